"""The server as the first process of a container: a user without rights, a file system that nobody can write to, signals."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import MAITRED, PATIENCE, Reply, environment_for
from crews import until
from test_rights import NOBODY, REASON, SET_UP, Contained, folder, needed, opened

pytestmark = pytest.mark.skipif(bool(REASON), reason=REASON)

__all__ = ["folder"]

READ_ONLY = """
mkdir /tmp/volume && mount -t tmpfs -o mode=1777 tmpfs /tmp/volume
mount -o remount,ro /tmp
mount -o remount,ro,bind /
"""

APP = """
import hashlib, json, os
def app(environ, start_response):
    digest = hashlib.sha256(environ["wsgi.input"].read()).hexdigest()
    start_response("200 OK", [("Content-Type", "application/json")])
    return [json.dumps([os.getpid(), os.getuid(), os.access(".", os.W_OK), digest]).encode()]
"""


#: Leaves a process behind whose parent has ended, so that it becomes the first one's.
ORPHANS = APP.replace("def app", "import subprocess\ndef own", 1) + """
def app(environ, start_response):
    if environ["PATH_INFO"] != "/orphan":
        return own(environ, start_response)
    left = subprocess.run(["sh", "-c", "sleep 600 > /dev/null 2>&1 & echo $!"], stdout=subprocess.PIPE, check=True)
    start_response("200 OK", [])
    return [left.stdout]
"""


def contained(folder: Path, *arguments: str) -> list[str | Path]:
    """The server as process 1 of a container, as nobody and without capabilities; what has started it hands its exit code on."""
    script = SET_UP % (opened(needed()) + READ_ONLY)
    namespaces = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    nobody = ["setpriv", f"--reuid={NOBODY.pw_uid}", f"--regid={NOBODY.pw_gid}", "--clear-groups", "--no-new-privs"]
    nobody += ["--inh-caps=-all", "--bounding-set=-all"]
    return [*namespaces, "sh", "-c", script, "sh", folder, *nobody, MAITRED, *arguments]


#: Nobody asks for another user.
ENVIRONMENT = {"MAITRED_USER": "", "XDG_RUNTIME_DIR": ""}


def first_process(outer: int) -> int:
    """The process that this one has started: it is number 1 in there."""
    return int(Path(f"/proc/{outer}/task/{outer}/children").read_text().split()[0])


def end_inside(outer: int) -> None:
    """Ends the first process in there, and with it all others: with its user it has lost the signal that comes when the outer one ends."""
    with contextlib.suppress(OSError, IndexError):
        os.kill(first_process(outer), signal.SIGKILL)


class Container(Contained):
    def command(self, arguments: list[str]) -> list[str | Path]:
        return contained(self.folder, *arguments)

    def kill(self) -> None:
        end_inside(self.process.pid)
        super().kill()

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        os.kill(first_process(self.process.pid), number)
        code = self.process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        return code


Contain = Callable[..., Container]


@pytest.fixture
def contain(folder: Path) -> Iterator[Contain]:
    servers = []

    def start(*arguments: str, source: str = APP) -> Container:
        (folder / "app.py").write_text(source)
        named = ["app.py", "--listen", "127.0.0.1:8000", *arguments]
        server = Container(named, folder, ENVIRONMENT)
        servers.append(server)
        return server

    yield start
    for server in servers:
        server.kill()


BODY = b"x" * 300_000
IN_FILES = ("--body-memory", "64k", "--body-budget", "0")


def upload(server: Container) -> Reply:
    return server.fetch("/", "POST", BODY)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_first_process_without_rights_serves_and_drains(contain: Contain, number: signal.Signals) -> None:
    server = contain()
    process, user, may_write, _ = json.loads(server.fetch("/").body)
    assert (process, user, may_write) == (1, NOBODY.pw_uid, False)
    assert server.stop(number) == 0
    assert "drained: every accepted request was answered" in server.said


def test_a_reload_reaches_the_first_process(contain: Contain) -> None:
    server = contain()
    os.kill(first_process(server.process.pid), signal.SIGHUP)
    server.wait_for("SIGHUP: the configuration has been read again")


def inside(first: int) -> dict[int, tuple[str, str]]:
    """All processes in there beside the first one, as they are numbered out here, with their names and states."""
    found = {}
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            status = dict(line.split(":\t", 1) for line in (place / "status").read_text().splitlines())
            if os.readlink(place / "ns/pid") == os.readlink(f"/proc/{first}/ns/pid") and int(place.name) != first:
                found[int(place.name)] = (status["Name"], status["State"][0])
    return found


def test_a_supervisor_as_the_first_process_has_workers_and_takes_in_orphans(contain: Contain) -> None:
    server = contain("--workers", "2", source=ORPHANS)
    server.wait_for("info all workers are ready")
    first = first_process(server.process.pid)
    process, user, *_ = json.loads(server.fetch("/").body)
    assert process > 1 and user == NOBODY.pw_uid
    os.kill(first, signal.SIGUSR2)
    server.wait_for("error SIGUSR2: this is process 1, with which its container ends; SIGHUP replaces the workers")
    assert int(server.fetch("/orphan").body) > 1
    assert [name for name, _ in inside(first).values()].count("sleep") == 1
    os.kill(next(pid for pid, (name, _) in inside(first).items() if name == "sleep"), signal.SIGKILL)
    until("nobody is left of it, not even as a zombie", lambda: "sleep" not in dict(inside(first).values()))
    assert server.stop() == 0
    assert server.said.count("drained: every accepted request was answered") == 2


#: Also has a child that ends long before anybody asks for its end.
OWN_CHILD = ORPHANS.replace("def app(environ, start_response):\n", """own_child = None

def app(environ, start_response):
    global own_child
    if environ["PATH_INFO"] == "/start":
        own_child = subprocess.Popen(["sh", "-c", "exit 7"])
    if environ["PATH_INFO"] == "/end":
        start_response("200 OK", [])
        return [b"%d" % own_child.wait()]
""", 1)


def test_one_process_as_the_first_takes_in_orphans_and_leaves_its_own_children(contain: Contain) -> None:
    server = contain(source=OWN_CHILD)
    first = first_process(server.process.pid)
    server.fetch("/start")
    assert int(server.fetch("/orphan").body) > 1
    until("it sleeps", lambda: [name for name, _ in inside(first).values()].count("sleep") == 1)
    os.kill(next(pid for pid, (name, _) in inside(first).items() if name == "sleep"), signal.SIGKILL)
    until("nobody is left of it, not even as a zombie", lambda: "sleep" not in dict(inside(first).values()))
    assert [state for _, state in inside(first).values()] == ["Z"], "its end is the application's to ask for"
    assert server.fetch("/end").body == b"7"
    assert server.stop() == 0


def test_it_can_be_stopped_while_the_application_is_imported(folder: Path) -> None:
    (folder / "app.py").write_text("import threading\nprint('importing', flush=True)\nthreading.Event().wait()\n")
    command = contained(folder, "app.py", "--listen", "127.0.0.1:8000")
    environment = environment_for(ENVIRONMENT)
    started = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        assert started.stdout is not None
        assert started.stdout.readline() == "importing\n"
        os.kill(first_process(started.pid), signal.SIGTERM)
        assert started.wait(PATIENCE) == 128 + signal.SIGTERM
    finally:
        end_inside(started.pid)
        started.kill()
        started.wait()


def test_without_a_folder_to_write_to_large_bodies_are_refused_and_the_log_says_why(contain: Contain) -> None:
    server = contain(*IN_FILES)
    server.wait_for(
        r"warn no file can be made in the spool folder /var/tmp: Read-only file system.*; request bodies that memory does not keep "
        r".* will be refused with 503; name another folder with --spool\n"
    )
    assert server.fetch("/", "POST", b"small").status == 200
    assert upload(server).status == 503


def test_with_a_volume_for_them_they_are_served(contain: Contain) -> None:
    server = contain(*IN_FILES, "--spool", "/tmp/volume")
    assert upload(server).status == 200
    assert "the spool folder /tmp/volume is in memory" in server.said


def test_a_volume_that_is_missing_is_an_error(folder: Path) -> None:
    (folder / "app.py").write_text(APP)
    command = contained(folder, "app.py", "--listen", "127.0.0.1:8000", "--spool", "/spool")
    ended = subprocess.run(command, env=environment_for(ENVIRONMENT), capture_output=True, text=True, timeout=PATIENCE)
    assert ended.returncode == 2, ended.stderr
    assert "--spool: there is no folder /spool" in ended.stderr
