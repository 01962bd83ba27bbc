"""Rights are given up when the server listens: of every thread, for good, and everything else goes on working.

Each server has a network of its own, in which ports below 1024 are free, and a /tmp of its own.
"""

from __future__ import annotations

import contextlib
import ctypes
import grp
import hashlib
import http.client
import json
import os
import pwd
import re
import shlex
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import by_h2
import pytest
import secured
from conftest import MAITRED, PATIENCE, Reply, Serve, Server

import maitred

NOBODY = pwd.getpwnam("nobody")
GROUP = grp.getgrgid(NOBODY.pw_gid).gr_name
#: Groups that the process begins with, and must not keep.
MORE_GROUPS = [4, 27]

SEEN = """
import hashlib, json, os, socket, threading

def attempt(what):
    try:
        what()
    except OSError as error:
        return type(error).__name__
    return "done"

def seen():
    return {
        "users": os.getresuid(), "groups": os.getresgid(), "further": os.getgroups(),
        "home": os.environ.get("HOME"), "user": os.environ.get("USER"),
        "setuid": attempt(lambda: os.setuid(0)),
        "setgroups": attempt(lambda: os.setgroups([0])),
        "secret": attempt(lambda: open(os.environ["SECRET"])),
        "bind": attempt(lambda: socket.create_server(("127.0.0.1", 81)).close()),
    }

threading.Thread(target=threading.Event().wait, daemon=True).start()
at_import = seen()

def files():
    links = []
    for name in os.listdir("/proc/self/fd"):
        # The engine's threads close files meanwhile.
        try:
            links.append(os.readlink("/proc/self/fd/" + name))
        except FileNotFoundError:
            pass
    return links
"""

WSGI = (
    SEEN
    + """
def app(environ, start_response):
    links, body = files(), environ["wsgi.input"].read()
    digest = hashlib.sha256(body).hexdigest()
    start_response("200 OK", [("Content-Type", "application/json")])
    return [json.dumps({"import": at_import, "request": seen(), "digest": digest, "files": links}).encode()]
"""
)

ASGI = (
    SEEN
    + """
async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        while True:
            message = await receive()
            await send({"type": message["type"] + ".complete"})
            if message["type"] == "lifespan.shutdown":
                return
    links, digest, more = files(), hashlib.sha256(), True
    while more:
        message = await receive()
        digest.update(message.get("body", b""))
        more = message.get("more_body", False)
    answer = {"import": at_import, "request": seen(), "digest": digest.hexdigest(), "files": links}
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]})
    await send({"type": "http.response.body", "body": json.dumps(answer).encode()})
"""
)

PLAIN = """
def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"served"]
"""

#: Its import waits until somebody has opened the door and closed it.
SLOW = 'open("door").read()\n' + PLAIN

CLONE_NEWNET = 0x40000000


#: Each server has one of its own.
HIDDEN = Path("/tmp")


def opened(paths: list[Path]) -> str:
    """Commands that hide /tmp and let everybody reach these paths, by an empty folder in the place of each one above them that is closed: a
    home folder as a rule. Paths in what is hidden are mounted again: a clone may be below /tmp."""
    replaced = {HIDDEN: "1777"}
    kept: list[Path] = []
    for path in paths:
        for parent in reversed(path.parents):
            if parent not in replaced and parent.stat().st_mode & 0o005 != 0o005:
                replaced[parent] = "755"
            if parent in replaced:
                kept.append(path)
                break
    # Opened before they are hidden; 3 is the first number that a shell leaves free.
    numbered = [(shlex.quote(str(path)), number) for number, path in enumerate(kept, 3)]
    lines = [f"exec {number}<{name}" for name, number in numbered]
    lines += [f"mount -t tmpfs -o mode={mode} tmpfs {shlex.quote(str(parent))}" for parent, mode in replaced.items()]
    lines += [f"mkdir -p {name} && mount --no-canonicalize --bind /proc/self/fd/{number} {name}" for name, number in numbered]
    return "\n".join([*lines, *(f"exec {number}<&-" for _, number in numbered)])


def needed() -> list[Path]:
    """What a user has to read to run the command."""
    modules = Path(maitred.__file__).resolve().parent
    return [Path(sys.base_prefix).resolve(), Path(sys.prefix).resolve(), modules]


SET_UP = """set -e
ip link set lo up
# Where servers of other users have their sockets.
[ ! -d /run/user ] || mount -t tmpfs -o mode=755 tmpfs /run/user
%s
cd "$1"
shift
exec "$@"
"""


def namespaced(folder: Path, command: list[str | Path]) -> list[str | Path]:
    script = SET_UP % opened(needed())
    return ["unshare", "--net", "--mount", "sh", "-c", script, "sh", folder, *command]


def why_not() -> str:
    if os.geteuid() != 0:
        return "only root can become another user"
    missing = [tool for tool in ("unshare", "nsenter", "setpriv", "ip", "mount") if not shutil.which(tool)]
    if missing:
        return f"needs {', '.join(missing)}"
    tried = subprocess.run(namespaced(Path("/"), ["true"]), capture_output=True, text=True)
    return f"needs namespaces of its own: {tried.stderr.strip()}" if tried.returncode else ""


REASON = why_not()
root_only = pytest.mark.skipif(bool(REASON), reason=REASON)


@contextlib.contextmanager
def network_of(process: int) -> Iterator[None]:
    """Sockets that are made within belong to the network of this process. Only of the thread that calls."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open("/proc/thread-self/ns/net") as own, open(f"/proc/{process}/ns/net") as other:
        assert libc.setns(other.fileno(), CLONE_NEWNET) == 0, os.strerror(ctypes.get_errno())
        try:
            yield
        finally:
            assert libc.setns(own.fileno(), CLONE_NEWNET) == 0


class Connection(http.client.HTTPConnection):
    process = 0

    def connect(self) -> None:
        with network_of(self.process):
            super().connect()


class Contained(Server):
    """A server in namespaces of its own, started by root with groups that it must not keep."""

    def command(self, arguments: list[str]) -> list[str | Path]:
        prefix = ["setpriv", "--groups", ",".join(map(str, MORE_GROUPS))]
        return namespaced(self.folder, [*prefix, MAITRED, *arguments])

    def __init__(self, arguments: list[str], folder: Path, environment: dict[str, str]) -> None:
        self.folder = folder
        super().__init__(arguments, folder, environment)

    def connect(self) -> http.client.HTTPConnection:
        connection = Connection("127.0.0.1", self.port, timeout=PATIENCE)
        connection.process = self.process.pid
        return connection

    def within(self, *command: str | Path, user: int = 0) -> subprocess.CompletedProcess[str]:
        """Runs a command where the server is, as another user if one is named."""
        entered = ["nsenter", "--target", str(self.process.pid), "--net", "--mount", f"--wd={self.folder}"]
        prefix = ["setpriv", "--reuid", str(user), "--regid", str(user), "--clear-groups"] if user else []
        environment = {name: value for name, value in os.environ.items() if name != "XDG_RUNTIME_DIR"}
        return subprocess.run([*entered, *prefix, *command], capture_output=True, text=True, env=environment)

    def ctl(self, *arguments: str, user: int = 0) -> Any:
        done = self.within(MAITRED, "ctl", "--json", *arguments, user=user)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def rights(self) -> list[dict[str, list[str]]]:
        """Of each thread, the lines of proc_pid_status(5) as lists of words."""
        tasks = Path(f"/proc/{self.process.pid}/task").iterdir()
        texts = [(task / "status").read_text() for task in tasks]
        return [{name: rest.split() for name, _, rest in (line.partition(":") for line in text.splitlines())} for text in texts]


@pytest.fixture
def folder() -> Iterator[Path]:
    """One that others may read, and that is not in /tmp, which the servers do not see."""
    folder = Path(tempfile.mkdtemp(prefix="maitred-rights-", dir="/var/tmp"))
    folder.chmod(0o755)
    (folder / "secret").write_text("of root")
    (folder / "secret").chmod(0o600)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def contain(folder: Path) -> Iterator[Callable[..., Contained]]:
    """Starts a server with the rights of nobody for a source text, at port 80."""
    servers = []

    def start(source: str, *arguments: str) -> Contained:
        (folder / "app.py").write_text(source)
        # Long bodies go through files, also for ASGI.
        named = ("app:app", "--user", "nobody", "--listen", "127.0.0.1:80,read-ahead=on", *arguments)
        server = Contained(list(named), folder, {"SECRET": str(folder / "secret")})
        servers.append(server)
        return server

    yield start
    for server in servers:
        server.kill()


Contain = Callable[..., Contained]


def check_threads(server: Contained) -> None:
    every = server.rights()
    assert len(every) > 4
    for rights in every:
        assert rights["Uid"] == [str(NOBODY.pw_uid)] * 4, rights["Name"]
        assert rights["Gid"] == [str(NOBODY.pw_gid)] * 4, rights["Name"]
        assert rights["Groups"] == [str(NOBODY.pw_gid)], rights["Name"]
        for which in ("Inh", "Prm", "Eff", "Bnd", "Amb"):
            assert int(rights[f"Cap{which}"][0], 16) == 0, (which, rights["Name"])


def eventually(path: Path, text: str) -> None:
    """A line is written a moment after its answer."""
    deadline = time.monotonic() + PATIENCE
    while text not in (path.read_text() if path.exists() else ""):
        assert time.monotonic() < deadline, (path, text)


@root_only
@pytest.mark.parametrize("source", [WSGI, ASGI], ids=["wsgi", "asgi"])
def test_no_thread_keeps_a_right_and_the_application_never_had_one(source: str, contain: Contain) -> None:
    server = contain(source)
    assert server.port == 80
    server.wait_for(rf"acts as user nobody \({NOBODY.pw_uid}\), group {GROUP} \({NOBODY.pw_gid}\), with no capability")
    reply = server.fetch("/")
    assert reply.status == 200, server.said
    answer = json.loads(reply.body)
    for when in ("import", "request"):
        assert answer[when] == {
            "users": [NOBODY.pw_uid] * 3,
            "groups": [NOBODY.pw_gid] * 3,
            "further": [NOBODY.pw_gid],
            "home": NOBODY.pw_dir,
            "user": "nobody",
            "setuid": "PermissionError",
            "setgroups": "PermissionError",
            "secret": "PermissionError",
            "bind": "PermissionError",
        }, when
    check_threads(server)
    status = server.ctl("status")
    assert status["user"] == f"nobody ({NOBODY.pw_uid})"
    assert status["group"] == f"{GROUP} ({NOBODY.pw_gid})"
    assert status["capabilities"] == "none"
    assert server.stop() == 0, server.said


@root_only
@pytest.mark.parametrize("source", [WSGI, ASGI], ids=["wsgi", "asgi"])
def test_bodies_logs_and_reload_work_as_the_user(source: str, contain: Contain, folder: Path) -> None:
    logs = folder / "logs"
    logs.mkdir()
    os.chown(logs, NOBODY.pw_uid, -1)
    (folder / "maitred.toml").write_text('body-memory = "4k"\nbody-budget = 0\n')
    server = contain(source, "--access-log", "logs/a.log", "--access-log-format", "$request_uri $status")
    assert "cannot" not in server.said
    # A body that is kept in a file.
    body = os.urandom(300_000)
    answer = json.loads(server.fetch("/body", "POST", body).body)
    assert answer["digest"] == hashlib.sha256(body).hexdigest()
    assert any(name.startswith("/var/tmp/") and name.endswith("(deleted)") for name in answer["files"]), answer["files"]
    # The log, before and after somebody else has renamed it.
    eventually(logs / "a.log", "/body 200\n")
    assert (logs / "a.log").stat().st_uid == NOBODY.pw_uid
    (logs / "a.log").rename(logs / "a.old")
    server.process.send_signal(signal.SIGUSR1)
    server.wait_for("SIGUSR1: the log files are opened anew")
    assert server.fetch("/second").status == 200
    eventually(logs / "a.log", "/second 200\n")
    assert (logs / "a.log").stat().st_uid == NOBODY.pw_uid
    # A filter that comes with SIGHUP.
    with open(folder / "maitred.toml", "a") as file:
        file.write('[[filter]]\npath = "/closed"\naccess = "deny all"\n')
    server.process.send_signal(signal.SIGHUP)
    server.wait_for("filters: 1 in the place of 0")
    assert (server.fetch("/closed").status, server.fetch("/open").status) == (403, 200)
    check_threads(server)
    assert server.stop() == 0, server.said


@root_only
def test_a_log_in_a_folder_of_root_is_given_to_the_user_and_its_folder_is_named(folder: Path) -> None:
    (folder / "e.log").write_text("earlier\n")
    log = ("--access-log", "a.log", "--access-log-format", "$request_uri", "--error-log", str(folder / "e.log"))
    (folder / "app.py").write_text(WSGI)
    command = namespaced(folder, [MAITRED, "app:app", "--user", "nobody", "--listen", "127.0.0.1:80", *log])
    tls = secured.environment([], {})
    secured.learn([80] if tls else [], [80])
    environment = {**os.environ, **tls, "SECRET": str(folder / "secret")}
    with subprocess.Popen(command, env=environment) as process:
        try:
            eventually(folder / "e.log", "with no capability")
            said = (folder / "e.log").read_text()
            assert said.startswith("earlier\n")
            warning = f"user nobody ({NOBODY.pw_uid}) cannot make files in {folder}: logs there are not rotated"
            assert warning in said and f"chown {NOBODY.pw_uid} {folder}" in said, said
            assert said.count("cannot make files in") == 1
            assert [(folder / name).stat().st_uid for name in ("a.log", "e.log")] == [NOBODY.pw_uid] * 2
            # What logrotate's "create" does.
            (folder / "a.log").rename(folder / "a.old")
            (folder / "a.log").touch()
            os.chown(folder / "a.log", NOBODY.pw_uid, -1)
            process.send_signal(signal.SIGUSR1)
            eventually(folder / "e.log", "SIGUSR1: the log files are opened anew")
            with network_of(process.pid):
                peer = socket.create_connection(("127.0.0.1", 80), PATIENCE)
            with peer:
                peer.sendall(b"GET /after HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
                while peer.recv(65536):
                    pass
            eventually(folder / "a.log", "/after\n")
            process.terminate()
            assert process.wait(PATIENCE) == 0
        finally:
            process.kill()


@root_only
def test_a_log_is_rotated_by_the_user(contain: Contain, folder: Path) -> None:
    logs = folder / "logs"
    logs.mkdir()
    os.chown(logs, NOBODY.pw_uid, -1)
    server = contain(WSGI, "--access-log", "logs/a.log", "--log-rotate-size", "1")
    for _ in range(3):
        server.fetch("/")
    deadline = time.monotonic() + PATIENCE
    while len(list(logs.iterdir())) < 3:
        assert time.monotonic() < deadline, server.said
    assert {path.stat().st_uid for path in logs.iterdir()} == {NOBODY.pw_uid}
    assert server.stop() == 0, server.said


@root_only
def test_logs_reach_logging_as_the_user(contain: Contain, folder: Path) -> None:
    configured = "import logging, sys\nlogging.basicConfig(level='INFO', stream=sys.stdout, format='%(name)s %(message)s')\n"
    server = contain(configured + WSGI, "--error-log", "logging", "--access-log", "logging")
    server.fetch("/logged")
    server.wait_for(rf'maitred\.access .*"GET /logged {by_h2.LOGGED}" 200 ')
    assert server.stop() == 0, server.said
    assert "maitred.error drained: every accepted request was answered" in server.said


@root_only
def test_unix_sockets_belong_to_the_user_or_to_who_is_named(contain: Contain, folder: Path) -> None:
    own = folder / "own"
    own.mkdir()
    os.chown(own, NOBODY.pw_uid, -1)
    server = contain(
        WSGI,
        *("--listen", f"unix:{own}/s"),
        *("--listen", f"unix:{folder}/s,mode=600,owner=daemon,group=root"),
        *("--control", str(folder / "ctl")),
    )

    def shown(path: Path) -> tuple[int, int, int]:
        found = path.stat()
        return found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)

    assert shown(own / "s") == (NOBODY.pw_uid, NOBODY.pw_gid, 0o660)
    assert shown(folder / "s") == (pwd.getpwnam("daemon").pw_uid, 0, 0o600)
    assert shown(folder / "ctl") == (NOBODY.pw_uid, NOBODY.pw_gid, 0o600)
    for path in (own / "s", folder / "s"):
        with socket.socket(socket.AF_UNIX) as peer:
            peer.connect(str(path))
            peer.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            assert peer.recv(65536).startswith(b"HTTP/1.1 200 ")
    for user in (0, NOBODY.pw_uid):
        assert server.ctl("--socket", str(folder / "ctl"), "status", user=user)["pid"] == server.process.pid
    refused = server.within(MAITRED, "ctl", "--socket", str(folder / "ctl"), "status", user=pwd.getpwnam("daemon").pw_uid)
    assert refused.returncode == 1 and "Permission denied" in refused.stderr, refused
    assert server.stop() == 0, server.said
    assert not (own / "s").exists()
    # Only root may remove these; the next server replaces them.
    for name, line in (("s", f"the file of unix:{folder}/s stays"), ("ctl", f"the file {folder}/ctl stays")):
        assert (folder / name).exists() and f"{line} (Permission denied" in server.said, server.said
    second = contain(WSGI, "--listen", f"unix:{folder}/s", "--control", str(folder / "ctl"))
    assert shown(folder / "s") == (NOBODY.pw_uid, NOBODY.pw_gid, 0o660)
    assert second.stop() == 0, second.said


@root_only
def test_root_and_the_user_find_the_server(contain: Contain) -> None:
    server = contain(WSGI)
    for user in (0, NOBODY.pw_uid):
        for which in ((), ("--server", "80"), ("--server", str(server.process.pid))):
            assert server.ctl(*which, "status", user=user)["pid"] == server.process.pid
    other = server.within(MAITRED, "ctl", "status", user=pwd.getpwnam("daemon").pw_uid)
    assert other.returncode == 2 and "no running server of this user" in other.stderr, other


@root_only
def test_who_connects_while_the_application_is_loaded_is_served(folder: Path) -> None:
    os.mkfifo(folder / "door")
    (folder / "door").chmod(0o666)
    (folder / "app.py").write_text(SLOW)
    command = namespaced(folder, [MAITRED, "app:app", "--user", "nobody", "--listen", "127.0.0.1:80"])
    with subprocess.Popen(command) as process:
        try:
            # Somebody reads: the application is being imported.
            door = os.open(folder / "door", os.O_WRONLY)
            assert f"Uid:\t{NOBODY.pw_uid}\t" in Path(f"/proc/{process.pid}/status").read_text()
            with network_of(process.pid):
                peer = socket.create_connection(("127.0.0.1", 80), PATIENCE)
            peer.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            os.close(door)
            response = http.client.HTTPResponse(peer)
            response.begin()
            assert Reply(response).body == b"served"
            peer.close()
            process.terminate()
            assert process.wait(PATIENCE) == 0
        finally:
            process.kill()


@root_only
def test_an_application_that_cannot_be_loaded_serves_nothing(folder: Path) -> None:
    os.mkfifo(folder / "door")
    (folder / "door").chmod(0o666)
    (folder / "app.py").write_text('open("door").read()\nraise RuntimeError("not today")\n')
    own = folder / "own"
    own.mkdir()
    os.chown(own, NOBODY.pw_uid, -1)
    listen = ("--listen", "127.0.0.1:80", "--listen", f"unix:{own}/s")
    command = namespaced(folder, [MAITRED, "app:app", "--user", "nobody", *listen])
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            door = os.open(folder / "door", os.O_WRONLY)
            with network_of(process.pid):
                peer = socket.create_connection(("127.0.0.1", 80), PATIENCE)
            peer.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            os.close(door)
            with contextlib.suppress(ConnectionResetError):
                assert peer.recv(65536) == b""
            peer.close()
            said = process.communicate(timeout=PATIENCE)[1]
        finally:
            process.kill()
    assert process.returncode == 2, said
    assert "RuntimeError: not today" in said and said.splitlines()[-1].startswith("maitred: app:app: "), said
    assert not (own / "s").exists()


@root_only
def test_others_of_the_same_user_cannot_look_into_the_process(contain: Contain) -> None:
    if Path("/proc/sys/fs/suid_dumpable").read_text().strip() == "1":
        pytest.skip("fs.suid_dumpable is 1")
    server = contain(WSGI)
    looked = server.within("cat", f"/proc/{server.process.pid}/environ", user=NOBODY.pw_uid)
    assert looked.returncode == 1 and "Permission denied" in looked.stderr


@root_only
def test_a_capability_from_the_service_manager_is_given_up_as_well(folder: Path) -> None:
    """As with AmbientCapabilities of systemd: the process is that user already."""
    (folder / "app.py").write_text(WSGI)

    class Ambient(Contained):
        def command(self, arguments: list[str]) -> list[str | Path]:
            ids = [f"--reuid={NOBODY.pw_uid}", f"--regid={NOBODY.pw_gid}", "--clear-groups"]
            sets = ["--inh-caps=+net_bind_service", "--ambient-caps=+net_bind_service"]
            return namespaced(folder, ["setpriv", *ids, *sets, MAITRED, *arguments])

    for named in ((), ("--user", "nobody")):
        environment = {"SECRET": str(folder / "secret"), "MAITRED_USER": ""}
        server = Ambient(["app:app", "--listen", "127.0.0.1:80", *named], folder, environment)
        try:
            effective = {int(rights["CapEff"][0], 16) for rights in server.rights()}
            ambient = {int(rights["CapAmb"][0], 16) for rights in server.rights()}
            bind = json.loads(server.fetch("/").body)["import"]["bind"]
            if named:
                assert (effective, ambient, bind) == ({0}, {0}, "PermissionError")
                assert server.ctl("status")["capabilities"] == "none"
            else:
                assert (effective, ambient, bind) == ({1 << 10}, {1 << 10}, "done")
                assert server.ctl("status")["capabilities"] == "cap_net_bind_service"
            assert server.stop() == 0, server.said
        finally:
            server.kill()


@root_only
def test_what_the_user_cannot_read_is_told_at_the_start(contain: Contain, folder: Path) -> None:
    (folder / "maitred.toml").write_text("max-threads = 2\n")
    (folder / "maitred.toml").chmod(0o600)
    (folder / "env").write_text("A=1\n")
    (folder / "env").chmod(0o640)
    server = contain(WSGI, "--env-file", str(folder / "env"))
    for name in ("maitred.toml", "env"):
        assert re.search(rf"cannot read \S*{name} \(Permission denied.*\), so SIGHUP will change nothing", server.said)
    server.process.send_signal(signal.SIGHUP)
    server.wait_for("SIGHUP: the configuration is not valid, nothing has changed: maitred.toml: cannot be read")
    assert server.fetch("/").status == 200
    assert server.stop() == 0, server.said


def failure(folder: Path, arguments: list[str], prefix: list[str | Path]) -> str:
    command = [*prefix, MAITRED, "app:app", "--listen", "127.0.0.1:80", *arguments]
    done = subprocess.run(namespaced(folder, command), capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 2, done
    assert "serving" not in done.stderr
    return done.stderr.splitlines()[-1]


@root_only
def test_who_may_not_become_another_user_is_told_so(folder: Path) -> None:
    (folder / "app.py").write_text(PLAIN)
    as_nobody: list[str | Path] = ["setpriv", f"--reuid={NOBODY.pw_uid}", f"--regid={NOBODY.pw_gid}", "--clear-groups"]
    assert failure(folder, ["--user", "daemon"], as_nobody).startswith(
        f"maitred: --user: this process runs as nobody ({NOBODY.pw_uid}) and may not become user daemon (1), group daemon (1); "
        "start it as root"
    )
    assert "--user NAME" in failure(folder, [], as_nobody)  # Port 80.


@root_only
def test_a_program_that_the_user_cannot_read_is_named_with_the_folder_that_is_closed(folder: Path) -> None:
    closed = folder / "closed"
    (closed / "site").mkdir(parents=True)
    (closed / "site" / "app.py").write_text(WSGI)
    closed.chmod(0o700)
    line = failure(folder, ["--user", "nobody", "--app-dir", str(closed / "site")], [])
    expected = f"--user: user nobody ({NOBODY.pw_uid}) may not read {closed}, and the application is in {closed}/site; let that user"
    assert expected in line


@root_only
def test_root_is_told_to_give_its_rights_up(serve: Serve) -> None:
    line = "the application runs as root: --user NAME gives its rights up"
    assert serve(source=PLAIN, MAITRED_USER="").wait_for(line)
    assert serve("--workers", "2", source=PLAIN, MAITRED_USER="").wait_for(line)
    meant = serve("--user", "root", source=PLAIN)
    assert meant.fetch("/").body == b"served"
    assert meant.stop() == 0 and line not in meant.said and "acts as" not in meant.said


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--user", "nobdy"], "maitred: --user: there is no user 'nobdy' on this machine; did you mean 'nobody'?"),
        (["--group", "rooot"], "maitred: --group: there is no group 'rooot' on this machine; did you mean 'root'?"),
        (
            ["--user", "4000000000"],
            "maitred: --user: user 4000000000 has no entry on this machine, so its group is not known; give it with --group",
        ),
        (
            ["--listen", "unix:/tmp/never,owner=nobdy"],
            "maitred: --listen: there is no user 'nobdy' on this machine; did you mean 'nobody'?",
        ),
    ],
)
def test_names_that_nobody_has_are_told_with_the_nearest(arguments: list[str], line: str, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(WSGI)
    for command in ([], ["check"]):
        done = subprocess.run([MAITRED, *command, "app:app", *arguments], cwd=tmp_path, capture_output=True, text=True)
        assert (done.returncode, done.stderr.splitlines()[-1]) == (2, line)


def test_a_process_that_is_the_user_already_gives_nothing_up(serve: Serve) -> None:
    server = serve("--user", str(os.getuid()), source=PLAIN)
    assert server.fetch("/").body == b"served"
    assert server.stop() == 0 and "acts as" not in server.said, server.said


@root_only
def test_workers_and_those_of_a_new_program_run_as_the_user(contain: Contain, folder: Path) -> None:
    """The port below 1024 is handed over; nobody could listen there again."""
    (folder / "door").mkdir()
    os.chown(folder / "door", NOBODY.pw_uid, -1)
    server = contain(WSGI, "--workers", "2", "--control", f"{folder}/door/ctl.sock")
    server.wait_for("info all workers are ready")

    def seen() -> list[dict[str, Any]]:
        answer = json.loads(server.fetch("/").body)
        return [answer["import"], answer["request"]]

    try:
        before = seen()
        assert before[1]["home"] == NOBODY.pw_dir and before[1]["bind"] == "PermissionError"
        check_threads(server)
        server.process.send_signal(signal.SIGHUP)
        server.wait_for("all workers are replaced")
        server.wait_for(r"(?s)(?:info worker \d is ready.*){4}")
        assert seen() == before
        server.process.send_signal(signal.SIGUSR2)
        successor = int(server.wait_for(r"info process (\d+) is ready and serves: this one drains and ends")[1])
        # The network is that of the process that answers.
        handle = os.pidfd_open(successor)
        assert server.process.wait(PATIENCE) == 0, server.said
        server.process.pid = successor
        assert seen() == before
        check_threads(server)
        control = ("--socket", f"{folder}/door/ctl.sock")
        deadline = time.monotonic() + PATIENCE
        while server.within(MAITRED, "ctl", *control, "status").returncode:
            assert time.monotonic() < deadline, server.said
        status = server.ctl(*control, "status")
        assert (status["pid"], status["workers_wanted"]) == (successor, 2)
        assert " error " not in server.said, server.said
    finally:
        with contextlib.suppress(UnboundLocalError, ProcessLookupError):
            signal.pidfd_send_signal(handle, signal.SIGTERM)
