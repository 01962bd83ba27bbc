"""What systemd has to do with the server: notifications, the watchdog, and sockets that it passes."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import secured
from conftest import PATIENCE, Reply
from service_manager import VARIABLES, Manager, Service, listening, run, variables

APP = """
import json, os, subprocess

def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "application/json")])
    if environ["PATH_INFO"] != "/child":
        return [json.dumps(environ["REMOTE_ADDR"]).encode()]
    script = "import json, os; print(json.dumps([dict(os.environ), os.listdir('/proc/self/fd')]))"
    child = subprocess.run(["python3", "-c", script], close_fds=False, stdout=subprocess.PIPE)
    theirs, descriptors = json.loads(child.stdout)
    return [json.dumps({"own": dict(os.environ), "theirs": theirs, "descriptors": descriptors}).encode()]
"""

Start = Callable[..., Service]


@pytest.fixture(params=["path", "abstract"])
def manager(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Manager]:
    manager = Manager(str(tmp_path / "notify") if request.param == "path" else f"@maitred-{tmp_path}")
    yield manager
    manager.close()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts a server for APP, or for another source, with these sockets passed to it."""
    servers = []

    def start(*arguments: str, sockets: list[socket.socket] | None = None, source: str = APP, **environment: str) -> Service:
        (tmp_path / "app.py").write_text(source)
        server = Service(["app.py", *arguments], tmp_path, environment, sockets or [])
        servers.append(server)
        return server

    yield start
    for server in servers:
        server.kill()


ANY = ("--listen", "127.0.0.1:0")


def fetch(peer: socket.socket, path: str = "/") -> Reply:
    peer.settimeout(PATIENCE)
    peer.sendall(f"GET {path} HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n".encode())
    response = http.client.HTTPResponse(peer)
    response.begin()
    return Reply(response)


def connect(listener: socket.socket) -> socket.socket:
    peer = socket.socket(listener.family)
    peer.connect(listener.getsockname())
    return secured.wrapped(peer, listener.getsockname()[1]) if listener.family == socket.AF_INET else peer


def test_the_service_manager_hears_of_every_step(manager: Manager, start: Start) -> None:
    server = start(*ANY, NOTIFY_SOCKET=manager.address)
    own = server.process.pid
    assert manager.hear() == (own, {"EXTEND_TIMEOUT_USEC": "130000000"}), "start-timeout and 10 s"
    process, said = manager.hear()
    assert process == own and said["READY"] == "1" and said["MAINPID"] == str(own)
    assert said["STATUS"] == "serving WSGI app.py:app on 1 to 10 threads"

    server.process.send_signal(signal.SIGHUP)
    before = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
    process, said = manager.hear()
    assert process == own and said["RELOADING"] == "1"
    # From before the signal was sent it could be that of an earlier one (sd_notify(3)).
    assert before - 5_000_000 < int(said["MONOTONIC_USEC"]) <= time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
    process, said = manager.hear()
    assert process == own and said["READY"] == "1" and said["STATUS"].startswith("serving WSGI")

    assert server.stop() == 0
    process, said = manager.hear()
    assert process == own and said["STOPPING"] == "1" and said["STATUS"] == "draining"
    process, said = manager.hear()
    assert process == own and int(said["EXTEND_TIMEOUT_USEC"]) >= 5_000_000


def test_the_server_is_not_ready_while_the_application_is_imported(tmp_path: Path, start: Start) -> None:
    manager = Manager(str(tmp_path / "notify"))
    os.mkfifo(tmp_path / "door")

    def opened() -> None:
        # It waits until the application has opened the other side.
        with open(tmp_path / "door", "w"):
            assert list(manager.hear()[1]) == ["EXTEND_TIMEOUT_USEC"]
            assert manager.has_heard_nothing()

    opener = threading.Thread(target=opened)
    opener.start()
    start(*ANY, source="open('door').read()\n" + APP, NOTIFY_SOCKET=manager.address)
    opener.join()
    assert manager.hear()[1]["READY"] == "1"


def test_an_ended_drain_delay_is_told_too(tmp_path: Path, start: Start) -> None:
    manager = Manager(str(tmp_path / "notify"))
    server = start(*ANY, "--drain-delay", "0.05", NOTIFY_SOCKET=manager.address)
    assert server.stop() == 0
    assert manager.wait_for("STOPPING")["STATUS"] == "serving, until drain-delay is over"
    # Once said it stays so.
    assert manager.wait_for("STATUS") == {"STATUS": "draining"}


def test_the_watchdog_is_fed_while_nothing_happens(tmp_path: Path, start: Start) -> None:
    manager = Manager(str(tmp_path / "notify"))
    server = start(*ANY, NOTIFY_SOCKET=manager.address, WATCHDOG_USEC="200000", WATCHDOG_PID="this")
    manager.wait_for("READY")
    for _ in range(3):
        assert manager.hear() == (server.process.pid, {"WATCHDOG": "1"})


def test_the_watchdog_of_another_process_is_not_fed(tmp_path: Path, start: Start) -> None:
    manager = Manager(str(tmp_path / "notify"))
    # Every microsecond, if it were this one's.
    server = start(*ANY, NOTIFY_SOCKET=manager.address, WATCHDOG_USEC="2", WATCHDOG_PID="1")
    assert server.stop() == 0
    assert list(manager.hear()[1]) == ["EXTEND_TIMEOUT_USEC"], "for the start"
    heard = []
    while "EXTEND_TIMEOUT_USEC" not in (said := manager.hear()[1]):
        heard.append(said)
    assert not any("WATCHDOG" in said for said in heard) and "STOPPING" in heard[-1]


def test_a_service_manager_that_is_gone_is_told_in_the_log(tmp_path: Path, start: Start) -> None:
    server = start(*ANY, NOTIFY_SOCKET=str(tmp_path / "nobody"))
    server.wait_for(r"warn the service manager cannot be told anything \(NOTIFY_SOCKET\): No such file")
    assert fetch(socket.create_connection(("127.0.0.1", server.port))).status == 200


def test_neither_the_application_nor_its_children_have_the_variables_and_the_sockets(tmp_path: Path, start: Start) -> None:
    manager, listener = Manager(str(tmp_path / "notify")), listening()
    told = {"NOTIFY_SOCKET": manager.address, "WATCHDOG_USEC": "60000000", "WATCHDOG_PID": "this"}
    start("--listen", "systemd", sockets=[listener], MARK="here", **told, **variables(1, "http"))
    seen = json.loads(fetch(connect(listener), "/child").body)
    for environment in (seen["own"], seen["theirs"]):
        assert environment["MARK"] == "here"
        assert not [name for name in VARIABLES if name in environment]
    # The three that every process has, and the one that lists them.
    assert sorted(map(int, seen["descriptors"])) == [0, 1, 2, 3]


def test_all_sockets_are_served_and_stay_when_the_server_ends(tmp_path: Path, start: Start) -> None:
    path = tmp_path / "http.sock"
    listeners = [listening(), listening(path), listening()]
    server = start("--listen", "systemd", sockets=listeners, **variables(3, "http", "inside", "more"))
    for number, name, listener in zip((3, 4, 5), ("http", "inside", "more"), listeners):
        assert fetch(connect(listener)).status == 200
        server.wait_for(re.escape(f"HTTP/1.1, HTTP/2, socket {number} ({name}) of the service manager\n"))
    assert server.stop() == 0
    assert path.is_socket(), "whoever made it removes it"
    # Who connects between two servers waits for the next one.
    waiting = [connect(listener) for listener in listeners]
    start("--listen", "systemd", sockets=listeners, **variables(3))
    assert [fetch(peer).status for peer in waiting] == [200] * 3


def test_sockets_are_taken_if_nobody_says_where_to_listen(start: Start) -> None:
    listener = listening()
    server = start(sockets=[listener], **variables(1))
    server.wait_for(re.escape("HTTP/1.1, HTTP/2, socket 3 (unknown) of the service manager\n"))
    assert fetch(connect(listener)).status == 200


def test_sockets_are_chosen_by_name_and_have_options(start: Start) -> None:
    plain, proxied, unused = listening(), listening(), listening()
    server = start(
        *("--listen", "systemd:proxied,proxy-protocol=on,read-ahead=off", "--listen", "systemd:plain"),
        *("--trusted-proxies", "127.0.0.1"),
        sockets=[plain, proxied, unused],
        **variables(3, "plain", "proxied", "unused"),
    )
    peer = connect(proxied)
    peer.sendall(b"PROXY TCP4 192.0.2.7 192.0.2.1 5 80\r\n")
    assert json.loads(fetch(peer).body) == "192.0.2.7"
    assert json.loads(fetch(connect(plain)).body) == "127.0.0.1"
    server.wait_for(re.escape("without read-ahead, behind PROXY headers, socket 4 (proxied) of the service manager\n"))
    server.wait_for(r"warn socket 5 \(unused\) of the service manager is not used: add --listen systemd:unused")


def datagram() -> socket.socket:
    made = socket.socket(type=socket.SOCK_DGRAM)
    made.bind(("127.0.0.1", 0))
    return made


def idle() -> socket.socket:
    made = socket.socket()
    made.bind(("127.0.0.1", 0))
    return made


@pytest.mark.parametrize(
    ("arguments", "made", "environment", "expected"),
    [
        (
            ["--listen", "systemd"],
            [],
            {},
            "--listen: no sockets for systemd came from a service manager (LISTEN_FDS is not set for this process); start it by a "
            ".socket unit, or name an address",
        ),
        (["--listen", "systemd"], [listening], variables(1, process="1"), "(LISTEN_PID is 1, and this process is "),
        (["--listen", "systemd:htp"], [listening], variables(1, "http"), "is called 'htp'; did you mean systemd:http?"),
        ([], [datagram], variables(1, "dns"), "socket 3 (dns) of the service manager is a datagram socket; use ListenStream="),
        ([], [listening, idle], variables(2, "a", "b"), "socket 4 (b) of the service manager is a socket that does not listen"),
        (["--listen", "systemd,mode=660"], [], {}, "'mode' cannot be set for a socket that is passed; set SocketMode= in its"),
    ],
    ids=["none", "another-process", "unknown-name", "datagram", "not-listening", "mode"],
)
def test_what_cannot_be_served_is_an_error_with_its_remedy(
    tmp_path: Path,
    arguments: list[str],
    made: list[Callable[[], socket.socket]],
    environment: dict[str, str],
    expected: str,
) -> None:
    (tmp_path / "app.py").write_text(APP)
    code, said = run(["app.py", *arguments], tmp_path, environment, [make() for make in made])
    assert (code, len(said.splitlines())) == (2, 1), said
    assert expected in said


def test_a_check_needs_no_sockets(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(APP)
    code, said = run(["check", "app.py", "--listen", "systemd:http"], tmp_path, {}, [])
    assert code == 0 and 'listen           = ["systemd:http"]' in said
