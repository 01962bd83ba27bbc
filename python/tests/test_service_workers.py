"""A service manager, a PID file, a terminal and a drain delay where a supervisor has several workers."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import PATIENCE, Serve
from service_manager import VARIABLES, Manager, Service, listening, variables
from test_service_manager import connect, fetch
from test_terminal import Place, Terminal

APP = """
import json, os
def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "application/json")])
    return [json.dumps([os.getpid(), dict(os.environ)]).encode()]
"""

#: In front of it: stays in its import while there is a file ``hold``.
HELD = """
import os, time
print("imports", flush=True)
while os.path.exists("hold"):
    time.sleep(0.01)
"""

WORKERS = ("--workers", "2")

Start = Callable[..., Service]


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[Manager]:
    manager = Manager(str(tmp_path / "notify"))
    yield manager
    manager.close()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    servers = []

    def start(*arguments: str, sockets: list[socket.socket], **environment: str) -> Service:
        (tmp_path / "app.py").write_text(APP)
        server = Service(["app.py", *WORKERS, *arguments], tmp_path, environment, sockets)
        servers.append(server)
        return server

    yield start
    for server in servers:
        server.kill()


def ended(process: int) -> bool:
    """Whether it is gone; the tests are not its parent."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def test_the_service_manager_hears_the_supervisor_only(manager: Manager, start: Start) -> None:
    listener = listening()
    server = start("--listen", "systemd", sockets=[listener], NOTIFY_SOCKET=manager.address, **variables(1, "http"))
    own = server.process.pid
    assert manager.hear() == (own, {"EXTEND_TIMEOUT_USEC": "130000000"}), "start-timeout and 10 s"
    process, said = manager.hear()
    assert process == own and said["READY"] == "1" and said["MAINPID"] == str(own)
    assert said["STATUS"] == "supervising 2 workers"
    assert "HTTP/1.1, HTTP/2, socket 3 (http) of the service manager\n" in server.said
    worker, environment = json.loads(fetch(connect(listener)).body)
    assert worker != own
    assert not [name for name in VARIABLES if name in environment]
    begun_with = Path(f"/proc/{worker}/environ").read_text().split("\0")
    assert not [name for name in VARIABLES if any(given.startswith(f"{name}=") for given in begun_with)]
    server.process.send_signal(signal.SIGHUP)
    assert [manager.hear()[0] for _ in range(2)] == [own, own]
    server.wait_for(r"(?:drained: every accepted request(?s:.)*){2}")
    assert json.loads(fetch(connect(listener)).body)[0] != worker
    assert server.stop() == 0
    process, said = manager.hear()
    assert process == own and said == {"STOPPING": "1", "STATUS": "draining"}
    process, said = manager.hear()
    assert process == own and "EXTEND_TIMEOUT_USEC" in said


def test_a_reload_ends_when_the_new_code_serves_or_is_refused(manager: Manager, start: Start, tmp_path: Path) -> None:
    listener = listening()
    server = start(sockets=[listener], NOTIFY_SOCKET=manager.address, **variables(1))
    manager.wait_for("READY")
    hold = tmp_path / "hold"
    hold.touch()
    (tmp_path / "app.py").write_text(HELD + APP)
    server.process.send_signal(signal.SIGHUP)
    assert manager.hear()[1]["RELOADING"] == "1"
    server.wait_for("imports")
    assert manager.has_heard_nothing()
    hold.unlink()
    assert manager.hear()[1]["READY"] == "1"
    server.wait_for(r"(?s)SIGHUP: .*worker 1 is ready.*worker 2 is ready")
    (tmp_path / "app.py").write_text("import no_such_module\n")
    server.process.send_signal(signal.SIGHUP)
    assert manager.hear()[1]["RELOADING"] == "1"
    assert manager.hear()[1]["READY"] == "1"
    server.wait_for("error the successor of worker 1")


def test_the_supervisor_feeds_the_watchdog(manager: Manager, start: Start) -> None:
    listener = listening()
    told = {"NOTIFY_SOCKET": manager.address, "WATCHDOG_USEC": "200000", "WATCHDOG_PID": "this"}
    server = start(sockets=[listener], **told, **variables(1))
    manager.wait_for("READY")
    for _ in range(3):
        assert manager.hear() == (server.process.pid, {"WATCHDOG": "1"})


def test_a_new_program_is_the_service_from_then_on(manager: Manager, start: Start, tmp_path: Path) -> None:
    path, file = tmp_path / "http.sock", tmp_path / "run.pid"
    listeners = [listening(), listening(path)]
    told = {"NOTIFY_SOCKET": manager.address, **variables(2, "http", "inside")}
    server = start("--listen", "systemd", "--pid-file", "run.pid", sockets=listeners, **told)
    old = server.process.pid
    assert file.read_text() == f"{old}\n"
    manager.wait_for("READY")
    server.process.send_signal(signal.SIGUSR2)
    new = int(server.wait_for(r"process (\d+) is ready and serves: this one drains and ends")[1])
    try:
        heard = [manager.hear() for _ in range(2)]
        # The service manager believes the old process as long as it does not know the new one.
        assert (old, {"MAINPID": str(new)}) in heard
        assert [said["READY"] for process, said in heard if process == new] == ["1"]
        assert server.process.wait(PATIENCE) == 0
        assert file.read_text() == f"{new}\n" and path.is_socket()
        for listener in listeners:
            assert fetch(connect(listener)).status == 200
        assert manager.has_heard_nothing(), "the old one has not said that the service ends"
    finally:
        os.kill(new, signal.SIGTERM)
    assert manager.wait_for("STOPPING")
    server._reader.join(PATIENCE)
    assert ended(new) and not file.exists() and path.is_socket()


def test_the_pid_file_has_the_supervisor(serve: Serve, tmp_path: Path) -> None:
    file = tmp_path / "run.pid"
    server = serve(*WORKERS, "--pid-file", "run.pid", source=APP, checked=False)
    server.wait_for("all workers are ready")
    assert file.read_text() == f"{server.process.pid}\n"
    server.process.send_signal(signal.SIGUSR2)
    new = int(server.wait_for(r"process (\d+) is ready and serves")[1])
    try:
        assert server.process.wait(PATIENCE) == 0
        assert file.read_text() == f"{new}\n"
    finally:
        os.kill(new, signal.SIGTERM)
    server._reader.join(PATIENCE)
    assert ended(new) and not file.exists()


def test_the_workers_say_that_they_are_not_ready(serve: Serve) -> None:
    server = serve(*WORKERS, "--drain-delay", "60", "--health-path", "/healthz", source=APP, checked=False)
    server.wait_for("all workers are ready")
    assert {server.fetch("/healthz").status for _ in range(20)} == {200}
    server.process.send_signal(signal.SIGTERM)
    server.wait_for("not ready any more")
    others, in_a_row = 0, 0
    while in_a_row < 20:
        reply = server.fetch("/healthz")
        in_a_row = in_a_row + 1 if reply.status == 503 else 0
        others += reply.status != 503
        assert others < 1000, "a worker has not heard of it"
    assert reply.body == b"stopping\n" and reply.headers["Connection"] == "close"
    assert server.fetch("/").status == 200
    assert server.stop() == 0, "the second signal begins the drain"
    assert re.search("SIGTERM: the delay ends(?s:.)*the workers drain", server.said)


def test_a_terminal_that_hangs_up_ends_all(tmp_path: Path) -> None:
    place = Place(tmp_path)
    terminal = Terminal([*place.command(), *WORKERS], place.folder)
    try:
        place.wait_until_it_serves()
        children = Path(f"/proc/{place.process}/task/{place.process}/children").read_text().split()
        os.kill(place.process, signal.SIGHUP)
        place.look_for(r"SIGHUP: the configuration has been read again(?s:.)*(?:worker \d is ready(?s:.)*){2}")
        terminal.hang_up()
        assert terminal.first.wait(PATIENCE) == 0
        place.look_for("SIGHUP \\(the terminal has hung up\\): the workers drain")
        assert len(children) >= 2 and all(ended(int(child)) for child in children)
    finally:
        terminal.hang_up()
        place.end()
