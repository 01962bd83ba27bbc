"""`maitred install-service`: units that systemd accepts, that leave little open, and whose command serves."""

from __future__ import annotations

import ctypes
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import MAITRED, PATIENCE, Server, environment_for
from service_manager import Manager, Service, listening, variables

#: It says how long the body of the request was.
APP = """
def app(environ, start_response):
    length = len(environ["wsgi.input"].read())
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"%d" % length]

async def asgi(scope, receive, send):
    if scope["type"] != "http":
        raise RuntimeError
    length, more = 0, True
    while more:
        message = await receive()
        length, more = length + len(message.get("body", b"")), message.get("more_body", False)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"%d" % length})
"""
#: At most, of 10 (systemd-analyze security).
MAX_EXPOSURE = 2.0

ANALYZE = shutil.which("systemd-analyze")
needs_systemd = pytest.mark.skipif(ANALYZE is None, reason="systemd-analyze is missing (Debian: systemd)")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "shop site"
    folder.mkdir()
    (folder / "shop.py").write_text(APP)
    return folder


def install(folder: Path, *arguments: str, code: int = 0, checked: bool = False) -> str:
    """Everything that it says. Without ``checked=True`` it looks at nothing: only root may look into a folder of pytest."""
    unchecked = [] if checked else ["--unchecked"]
    ended = subprocess.run(
        [MAITRED, "install-service", *unchecked, *arguments], cwd=folder, env=environment_for({}), capture_output=True, text=True, timeout=PATIENCE
    )
    assert ended.returncode == code, ended.stderr
    return ended.stdout + ended.stderr


def analyze(*arguments: str | Path) -> str:
    assert ANALYZE is not None
    ended = subprocess.run([ANALYZE, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=PATIENCE)
    assert ended.returncode == 0, ended.stdout
    return ended.stdout


def test_units_are_written_once(folder: Path, tmp_path: Path) -> None:
    place = ("--unit-dir", str(tmp_path))
    said = install(folder, *place, "--socket", ":80", "--", "shop:app")
    assert f"wrote {tmp_path}/shop.service" in said and f"wrote {tmp_path}/shop.socket" in said
    assert "systemctl enable --now shop.socket shop.service" in said
    assert (tmp_path / "shop.service").stat().st_mode & 0o777 == 0o644
    before = (tmp_path / "shop.service").read_text()
    refused = install(folder, *place, "--", "shop:app", "--workers", "2", code=2)
    assert refused.splitlines()[-1] == f"maitred: install-service: {tmp_path}/shop.service is there already; give --force to replace it"
    assert (tmp_path / "shop.service").read_text() == before
    install(folder, *place, "--force", "--", "shop:app", "--workers", "2")
    assert "--workers 2\n" in (tmp_path / "shop.service").read_text()
    assert not list(tmp_path.glob("*.new"))


def test_the_program_is_named_by_its_whole_path(folder: Path) -> None:
    near = folder / "bin"
    near.symlink_to(MAITRED.parent)
    command = ["bin/maitred", "install-service", "--print", "--folder", "/", "--name", "shop", "--", "shop:app"]
    ended = subprocess.run(command, cwd=folder, env=environment_for({}), capture_output=True, text=True, timeout=PATIENCE)
    started = re.search(r"^ExecStart=(.*)$", ended.stdout, re.MULTILINE)
    assert started and f'"{near}/maitred"' in started[1], ended.stdout + ended.stderr


def test_printing_writes_nothing(folder: Path, tmp_path: Path) -> None:
    before = sorted(tmp_path.rglob("*"))
    text = install(folder, "--print", "--socket", "/run/shop.sock", "--user", "www-data", "--", "shop:app")
    assert "# /etc/systemd/system/shop.service\n" in text and "# /etc/systemd/system/shop.socket\n" in text
    assert "\nUser=www-data\n" in text and "\nListenStream=/run/shop.sock\n" in text
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--", "shop:app", "--wrokers", "2"], "--workers"),
        (["--", "shop:app", "--user", "www-data"], "give --user before the --"),
        (["--socket", "80", "--", "shop:app", "--listen", ":80"], "leave --socket out"),
        (["--socket", "somewhere:80", "--", "shop:app"], "is no address for systemd"),
        (["--name", "../shop", "--", "shop:app"], "needs a name"),
        (["--folder", "/nowhere", "--", "shop:app"], "/nowhere is no folder"),
        (["shop:app"], "behind --"),
        (["--unit-dir", "/nowhere", "--", "shop:app"], "run it as root, or give --print"),
    ],
)
def test_what_would_not_work_is_refused(folder: Path, arguments: list[str], message: str) -> None:
    said = [line for line in install(folder, *arguments, code=2).splitlines() if not line.startswith("maitred: warning: ")]
    assert len(said) == 1 and message in said[0], said


def test_the_guide_shows_what_is_written(folder: Path) -> None:
    guide = (Path(__file__).resolve().parents[2] / "docs/guides/systemd.md").read_text()
    shown = guide.partition("```ini\n")[2].partition("```")[0]
    # Of the guide; the folder there is another one, and so is the program.
    printed = install(folder, "--print", "--socket", "80", "--", "shop:app", "--workers", "auto")
    printed = printed[: printed.rindex("WantedBy=sockets.target\n")] + "WantedBy=sockets.target\n"
    printed = printed.replace(f"WorkingDirectory={folder}", "WorkingDirectory=/srv/shop")
    printed = re.sub(r"(?m)^ExecStart=.* shop:app", "ExecStart=/opt/shop/bin/python3 /opt/shop/bin/maitred shop:app", printed)
    for home in ("yes", "read-only"):
        printed = printed.replace(f"ProtectHome={home}", "ProtectHome=yes")
    assert printed == shown


@needs_systemd
@pytest.mark.parametrize(
    "arguments",
    [
        ["--", "shop:app"],
        ["--socket", "443", "--socket", "@shop", "--", "shop:app", "--workers", "auto"],
        # The weakest that there is: a user with files of its own, a low port, code that is made.
        ["--user", "www-data", "--jit", "--writable", "/home/shop/media files", "--", "shop:app", "--listen", ":80"],
        ["--", "shop:app", "--app-dir", "/100%", "--access-log", "/srv/log/access $1.log"],
    ],
)
def test_systemd_takes_them_and_they_leave_little_open(folder: Path, tmp_path: Path, arguments: list[str]) -> None:
    install(folder, "--unit-dir", str(tmp_path), *arguments)
    units = sorted(tmp_path.glob("shop.*"))
    said = analyze("verify", *units)
    assert str(tmp_path) not in said and "shop." not in said, said
    text = analyze("security", "--offline=true", tmp_path / "shop.service")
    exposure = re.search(r"Overall exposure level for shop.service: ([\d.]+)", text)
    assert exposure and float(exposure[1]) <= MAX_EXPOSURE, text


#: As the unit's SystemCallFilter= and MemoryDenyWriteExecute= have it: other calls are refused with EPERM. Arguments: the calls, the command.
RESTRICTED = """
import ctypes, os, sys
PR_SET_MDWE, REFUSE_EXEC_GAIN, ALLOW, REFUSE = 65, 1, 0x7FFF0000, 0x00050001
filters = ctypes.CDLL("libseccomp.so.2")
filters.seccomp_init.restype = ctypes.c_void_p
context = ctypes.c_void_p(filters.seccomp_init(REFUSE))
for name in sys.argv[1].split():
    number = filters.seccomp_syscall_resolve_name(name.encode())
    if number >= 0:
        assert filters.seccomp_rule_add(context, ALLOW, number, 0) == 0, name
# Kernels before 6.3 do not know it.
ctypes.CDLL(None).prctl(PR_SET_MDWE, REFUSE_EXEC_GAIN, 0, 0, 0)
assert filters.seccomp_load(context) == 0
os.execv(sys.argv[2], sys.argv[2:])
"""


def calls(name: str) -> set[str]:
    """The system calls of a set of systemd such as ``@system-service``."""
    lines = [line.strip() for line in analyze("syscall-filter", name).splitlines()[1:]]
    members = [line for line in lines if line and not line.startswith("#")]
    return {call for member in members for call in (calls(member) if member.startswith("@") else {member})}


def allowed(unit: str) -> set[str]:
    """Those that a unit's lines leave."""
    found: set[str] = set()
    for line in re.findall(r"^SystemCallFilter=(.*)$", unit, re.MULTILINE):
        named = {call for name in line.lstrip("~").split() for call in calls(name)}
        found = found - named if line.startswith("~") else found | named
    return found


def has_seccomp() -> bool:
    try:
        ctypes.CDLL("libseccomp.so.2")
    except OSError:
        return False
    return True


class Installed(Service):
    """The command of a unit, started as systemd does."""

    def __init__(self, unit: Path, environment: dict[str, str], sockets: list[socket.socket]) -> None:
        settings = dict(re.findall(r"^(\w+)=(.*)$", unit.read_text(), re.MULTILINE))
        self.filter = allowed(unit.read_text())
        self.words = [word.replace('"', "") for word in re.findall(r'(?:"[^"]*"|\S)+', settings["ExecStart"])]
        super().__init__(["--listen", "systemd"], Path(settings["WorkingDirectory"]), environment, sockets)

    def command(self, arguments: list[str]) -> list[str | Path]:
        command = super().command(arguments)
        restricted = [sys.executable, "-c", RESTRICTED, " ".join(sorted(self.filter))]
        return [*command[: command.index(MAITRED)], *restricted, *self.words]


@pytest.fixture
def servers() -> Iterator[list[Server]]:
    servers: list[Server] = []
    yield servers
    for server in servers:
        server.kill()


@needs_systemd
@pytest.mark.skipif(not has_seccomp(), reason="libseccomp.so.2 is missing")
@pytest.mark.parametrize(("application", "options"), [("app", "--spool ."), ("app", "--workers 2"), ("asgi", "")])
def test_the_command_serves_with_the_calls_that_the_unit_leaves(
    folder: Path, tmp_path: Path, servers: list[Server], application: str, options: str
) -> None:
    place = ("--unit-dir", str(tmp_path), "--socket", "80")
    install(folder, *place, "--", f"shop:{application}", "--max-threads", "3", *options.split())
    manager = Manager(str(tmp_path / "notify"))
    listener = listening()
    told = {"NOTIFY_SOCKET": manager.address, "MAITRED_CONTROL": str(tmp_path / "control.sock")}
    server = Installed(tmp_path / "shop.service", told | variables(1, "http"), [listener])
    servers.append(server)
    manager.wait_for("READY")
    assert server.fetch("/", "POST", b"x" * 5_000_000).body == b"5000000"
    ended = subprocess.run([MAITRED, "health", "--socket", tmp_path / "control.sock"], timeout=PATIENCE)
    assert ended.returncode == 0
    server.process.send_signal(signal.SIGHUP)
    assert "RELOADING" in manager.wait_for("RELOADING") and manager.wait_for("READY")["READY"] == "1"
    assert server.fetch("/").body == b"0"
    assert server.stop() == 0
    assert "not permitted" not in server.said and " warn " not in server.said and " error " not in server.said, server.said
    manager.close()
    listener.close()


@pytest.fixture
def site() -> Iterator[Path]:
    """A folder that everybody may read, unlike those of pytest."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "site"
        folder.mkdir()
        (folder / "shop.py").write_text(APP)
        for each in (folder.parent, folder):
            each.chmod(0o755)
        yield folder


def complaints(site: Path, *arguments: str, code: int = 2) -> list[str]:
    """Of an installation below the site; the interpreter of these tests may be anywhere."""
    units = site.parent / "units"
    units.mkdir(exist_ok=True)
    said = install(site, "--unit-dir", str(units), *arguments, code=code, checked=True)
    assert code == 0 or not list(units.iterdir()), "nothing is written"
    return [line for line in said.splitlines() if line.startswith("maitred: ") and str(site) in line]


def test_what_the_user_of_the_service_cannot_read_is_named_with_the_cure(site: Path) -> None:
    key, variables, certificate = site / "shop.key", site / "shop.env", site / "shop.pem"
    for file in (key, variables, certificate):
        file.write_text("A=1")
        file.chmod(0o600)
    options = ("--", "shop:app", "--env-file", "shop.env")
    group = pwd.getpwnam("nobody").pw_gid
    [line] = complaints(site, "--user", "nobody", *options)
    start = "maitred: install-service: user nobody may not read"
    assert line.startswith(f"{start} {variables}, and the service needs {variables}; chgrp {group} '{variables}' && chmod g+rX '{variables}', or")
    # With the user that systemd makes only a group can be let in.
    [line] = complaints(site, *options)
    assert line.startswith("maitred: install-service: the user that systemd makes may not read") and "--group GROUP" in line
    variables.chmod(0o644)
    files = ("--tls-cert", str(certificate), "--tls-key", str(key))
    [line] = complaints(site, "--user", "nobody", *options, *files)
    assert line.startswith(f"{start} {key}, ")
    key.chmod(0o644)
    [line] = complaints(site, "--user", "nobody", *options, *files)
    assert line.startswith(f"{start} {certificate}, ")
    # A folder on the way, and a link, whose target counts.
    inner = site / "inner"
    inner.mkdir(mode=0o700)
    variables.rename(inner / "shop.env")
    variables.symlink_to(inner / "shop.env")
    [line] = complaints(site, "--user", "nobody", *options)
    assert line.startswith(f"{start} {inner}, and the service needs {inner / 'shop.env'}; ")
    if os.getuid() == 0:
        # The owner may, and so may the group.
        nobody = pwd.getpwnam("nobody")
        for owner, gid, mode in [(nobody.pw_uid, 0, 0o700), (0, nobody.pw_gid, 0o750)]:
            os.chown(inner, owner, gid)
            inner.chmod(mode)
            said = install(site, "--print", "--user", "nobody", *options, checked=True)
            assert f"may not read {inner}" not in said
        inner.chmod(0o700)
    warned = install(site, "--unit-dir", str(site.parent / "units"), "--user", "nobody", *options)
    assert "maitred: warning: install-service: user nobody" in warned and "maitred: wrote " in warned


def test_an_application_that_is_not_there_is_told(site: Path) -> None:
    said = install(site, "--unit-dir", str(site), "--", "shopp:app", code=2, checked=True)
    assert any(line.startswith("maitred: shopp:app: ") and "shopp" in line for line in said.splitlines()), said
    assert not list(site.glob("*.service"))


def test_an_unknown_user_is_told(site: Path) -> None:
    said = install(site, "--unit-dir", str(site), "--user", "nobdy", "--", "shop:app", code=2, checked=True)
    assert "--user: there is no user 'nobdy' on this machine; did you mean 'nobody'?" in said


def test_a_link_of_the_program_into_a_home_leaves_homes_visible(site: Path) -> None:
    home = Path("/run/user") / f"maitred-{os.getpid()}"
    try:
        home.mkdir(parents=True)
    except OSError:
        pytest.skip("only root may make a home")
    try:
        shutil.copy(MAITRED, home / "command")
        (site / "maitred").symlink_to(home / "command")
        ended = subprocess.run(
            [site / "maitred", "install-service", "--print", "--", "shop:app"], cwd=site, env=environment_for({}), capture_output=True, text=True
        )
        assert "\nProtectHome=read-only\n" in ended.stdout, ended.stderr
    finally:
        shutil.rmtree(home)
