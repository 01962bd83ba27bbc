"""The options of listening sockets, on and off, as the kernel has them: what ``ss`` shows, what the client's end of a connection
counts (TCP_INFO), and what a network of the test's own says of itself."""

from __future__ import annotations

import ctypes
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import MAITRED, PATIENCE, Serve, Server, open_files

#: `/` says `hello`; `/blocks` sends eight small blocks, one after the other.
SOURCE = """
def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    if environ["PATH_INFO"] == "/blocks":
        return (b"block" for _ in range(8))
    return [b"hello"]
"""
BLOCKS = 8

#: Above what is kept in memory, so that it leaves by sendfile; below a segment of the loopback interface.
FILE = 10_000

needs_ss = pytest.mark.skipif(shutil.which("ss") is None, reason="ss (iproute2) is not installed")


def until(what: str, is_so: Callable[[], bool]) -> None:
    limit = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < limit, what
        time.sleep(0.01)


def ss(*arguments: str) -> list[list[str]]:
    """The columns of each line."""
    said = subprocess.run(["ss", "-H", "-n", *arguments], capture_output=True, text=True, check=True, timeout=PATIENCE)
    return [line.split() for line in said.stdout.splitlines()]


def connect(server: Server) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), PATIENCE)


def get(peer: socket.socket, path: str = "/", last: bool = False) -> bytes:
    """The answer as far as its end can be told: by its length, or by the end of its chunks."""
    close = "Connection: close\r\n" if last else ""
    peer.sendall(f"GET {path} HTTP/1.1\r\nHost: a\r\n{close}\r\n".encode())
    received = b""
    while True:
        part = peer.recv(65536)
        assert part, received
        received += part
        head, end, body = received.partition(b"\r\n\r\n")
        length = re.search(rb"(?i)\r\ncontent-length: (\d+)", head)
        if end and (body.endswith(b"0\r\n\r\n") if length is None else len(body) == int(length[1])):
            return received


def ctl(control: Path, *arguments: str) -> dict[str, object]:
    command = [str(MAITRED), "ctl", *arguments, "--json", "--socket", str(control)]
    said = subprocess.run(command, capture_output=True, timeout=PATIENCE, check=True)
    return dict(json.loads(said.stdout))


def shown(control: Path, *arguments: str) -> dict[str, tuple[str | None, str, str | None]]:
    """Of each option what was requested, what is active, and why they differ."""
    rows = ctl(control, *arguments)["socket_options"]
    assert isinstance(rows, list)
    return {row["option"]: (row["requested"], row["active"], row["why"]) for row in rows}


Start = Callable[[str], Server]


@pytest.fixture
def control(tmp_path: Path) -> Path:
    return tmp_path / "ctl"


@pytest.fixture
def start(serve: Serve, tmp_path: Path, control: Path) -> Start:
    """Starts a server whose listener has these parameters."""
    (tmp_path / "files").mkdir()
    (tmp_path / "files/file").write_bytes(b"f" * FILE)
    more = ["--static", f"/files={tmp_path}/files", "--control", str(control)]

    def start(parameters: str = "") -> Server:
        return serve("--listen", f"127.0.0.1:0{parameters}", *more, source=SOURCE)

    return start


def test_status_and_explain_show_each_option_as_requested_and_as_active(start: Start, control: Path) -> None:
    start(",backlog=7,defer-accept=5,no-delay=off,cork=off,keep-alive=60:10:6")
    status = shown(control, "status")
    assert status["backlog"] == ("7", "7", None)
    assert status["no-delay"] == status["cork"] == ("off", "off", None)
    assert status["keep-alive"] == ("60:10:6", "60:10:6", None)
    assert status["fast-open"] == (None, "off", None)
    requested, active, why = status["defer-accept"]
    assert requested == "5" and int(active) >= 5 and (active == "5" or "rounds up" in str(why))
    for target in ("/", "/files/file", "/nothing"):
        assert shown(control, "explain", "GET", target) == status, target
    text = subprocess.run([MAITRED, "ctl", "explain", "GET", "/", "--socket", control], capture_output=True, text=True)
    assert re.search(r"option +requested +active", text.stdout), text.stdout
    assert re.search(r"cork +off +off", text.stdout), text.stdout


def test_what_nobody_has_asked_for_is_shown_as_it_is(start: Start, control: Path) -> None:
    start("")
    status = shown(control, "status")
    most = int(Path("/proc/sys/net/core/somaxconn").read_text())
    assert status["backlog"] == (None, str(min(4096, most)), None)
    assert {name: active for name, (_, active, _) in status.items() if name != "backlog"} == {
        "defer-accept": "off", "fast-open": "off", "no-delay": "on", "cork": "on", "keep-alive": "off"
    }


@needs_ss
@pytest.mark.parametrize("backlog", [7, None])
def test_backlog_is_the_queue_of_the_listener(start: Start, backlog: int | None) -> None:
    server = start(f",backlog={backlog}" if backlog else "")
    (listener,) = ss("-lt", f"sport = :{server.port}")
    most = int(Path("/proc/sys/net/core/somaxconn").read_text())
    # LISTEN, what waits, and how much may.
    assert listener[:3] == ["LISTEN", "0", str(backlog or min(4096, most))]


@needs_ss
@pytest.mark.parametrize("deferred", [True, False])
def test_a_connection_without_bytes_is_accepted_only_where_it_is_not_deferred(
    start: Start, control: Path, deferred: bool
) -> None:
    server = start(",defer-accept=30" if deferred else "")
    with connect(server) as silent, connect(server) as other:
        # It has come later, and is answered: all that was to be accepted before has been.
        assert b"hello" in get(other)
        port = silent.getsockname()[1]
        (ours,) = ss("-ta", f"sport = :{server.port} and dport = :{port}")
        assert ours[0] == ("SYN-RECV" if deferred else "ESTAB")
        assert ctl(control, "status")["connections"] == (1 if deferred else 2)
        assert b"hello" in get(silent)
        assert ctl(control, "status")["connections"] == 2


@needs_ss
@pytest.mark.parametrize("asks", [True, False])
def test_keep_alive_is_a_timer_of_idle_connections(start: Start, asks: bool) -> None:
    server = start(",keep-alive=50:10:6" if asks else "")

    def timers(peer: socket.socket) -> list[str]:
        port = peer.getsockname()[1]
        (ours,) = ss("-to", f"sport = :{server.port} and dport = :{port}")
        return [column for column in ours if column.startswith("timer:")]

    with connect(server) as peer:
        assert b"hello" in get(peer)
        if asks:
            # Until our answer is acknowledged another timer runs.
            until("it runs", lambda: any("keepalive" in timer for timer in timers(peer)))
            (timer,) = timers(peer)
            seconds = re.fullmatch(r"timer:\(keepalive,(\d+)(?:\.\d+)?sec,0\)", timer)
            assert seconds and int(seconds[1]) <= 50, timer
        else:
            until("no timer runs", lambda: not timers(peer))


def own_socket(server: Server, peer: socket.socket) -> socket.socket:
    """The server's end of a connection, which this process gets too (pidfd_getfd, Linux 5.6)."""
    local, remote = (f"{socket.htonl(0x7F000001):08X}:{port:04X}" for port in (server.port, peer.getsockname()[1]))
    table = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()]
    (inode,) = [line[9] for line in table if line[1:3] == [local, remote]]
    for descriptor, link in open_files(server.process.pid).items():
        if link == f"socket:[{inode}]":
            pidfd = os.pidfd_open(server.process.pid)
            try:
                got = ctypes.CDLL(None, use_errno=True).syscall(438, pidfd, descriptor, 0)
            finally:
                os.close(pidfd)
            if got < 0:
                pytest.skip(f"another process's sockets cannot be looked at: {os.strerror(ctypes.get_errno())}")
            return socket.socket(fileno=got)
    raise AssertionError("the server has no such socket")


def segments(peer: socket.socket) -> int:
    """Segments with data that this end of a connection has received (tcpi_data_segs_in, linux/tcp.h)."""
    told = peer.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
    if len(told) < 156:
        pytest.skip("this kernel does not count the segments of a connection")
    return int.from_bytes(told[152:156], sys.byteorder)


def received(server: Server, path: str) -> int:
    """The segments of one response to a client that acknowledges late."""
    with connect(server) as peer:
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 0)
        get(peer, path)
        return segments(peer)


@pytest.mark.parametrize("at_once", [True, False])
def test_small_segments_wait_for_others_only_without_no_delay(start: Start, at_once: bool) -> None:
    server = start(",no-delay=on" if at_once else ",no-delay=off")
    with connect(server) as peer:
        get(peer)
        with own_socket(server, peer) as ours:
            assert bool(ours.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)) is at_once
    if at_once:
        assert received(server, "/blocks") >= BLOCKS
    else:
        # The first leaves alone; the others wait until it is acknowledged, for 40 ms and not for ever: a busy machine gets
        # several attempts.
        assert any(received(server, "/blocks") < BLOCKS for _ in range(10))


@pytest.mark.parametrize("parameters", ["", ",cork=on", ",cork=off"])
def test_the_head_of_a_file_leaves_with_it_unless_cork_is_off(start: Start, parameters: str) -> None:
    server = start(parameters)
    received(server, "/files/file")  # It is open from here on.
    if parameters == ",cork=off":
        assert received(server, "/files/file") == 2
    else:
        # The kernel keeps the head for 200 ms at most: a busy machine gets several attempts.
        assert any(received(server, "/files/file") == 1 for _ in range(10))


class Namespace(Server):
    """A server in a network of its own, where these settings of the system (below /proc/sys/net) are its own, too."""

    def __init__(self, arguments: list[str], folder: Path, settings: dict[str, int]) -> None:
        self.settings = settings
        super().__init__(arguments, folder, {})

    def command(self, arguments: list[str]) -> list[str | Path]:
        settings = [f"echo {value} > /proc/sys/net/{name}" for name, value in self.settings.items()]
        script = " && ".join(["ip link set lo up", *settings, 'exec "$@"'])
        return ["unshare", "--net", "sh", "-c", script, "sh", *super().command(arguments)]

    def inside(self, code: str) -> str:
        """Runs Python code as a program in the same network; ``PORT`` is the listener's. What it has said."""
        command = ["nsenter", f"--net=/proc/{self.process.pid}/ns/net", sys.executable, "-c", f"PORT={self.port}\n{code}"]
        said = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
        assert said.returncode == 0, said.stderr
        return said.stdout


@pytest.fixture
def apart(tmp_path: Path, control: Path) -> Iterator[Callable[[str, dict[str, int]], Namespace]]:
    missing = [tool for tool in ("unshare", "nsenter", "ip") if shutil.which(tool) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} is not installed")
    if subprocess.run(["unshare", "--net", "true"], capture_output=True).returncode != 0:
        pytest.skip("a network of its own needs root")
    (tmp_path / "app.py").write_text(SOURCE)
    servers = []

    def start(parameters: str, settings: dict[str, int]) -> Namespace:
        arguments = ["app.py", "--listen", f"127.0.0.1:0{parameters}", "--control", str(control)]
        servers.append(Namespace(arguments, tmp_path, settings))
        return servers[-1]

    yield start
    for server in servers:
        server.kill()


#: Two connections: the first brings a cookie, the second one its request in the SYN. Then what the kernel has counted.
FAST = """
import socket
for _ in range(2):
    with socket.socket() as peer:
        request = b"GET / HTTP/1.1\\r\\nHost: a\\r\\nConnection: close\\r\\n\\r\\n"
        peer.sendto(request, socket.MSG_FASTOPEN, ("127.0.0.1", PORT))
        answer = b""
        while part := peer.recv(65536):
            answer += part
        assert answer.endswith(b"hello"), answer
lines = [line.split() for line in open("/proc/net/netstat") if line.startswith("TcpExt:")]
print(dict(zip(*lines))["TCPFastOpenPassive"])
"""

#: A client that may (1), and a server that may (2).
BOTH = {"ipv4/tcp_fastopen": 3}


def test_a_request_in_the_first_packet_is_taken_where_fast_open_is_on(
    apart: Callable[[str, dict[str, int]], Namespace], control: Path
) -> None:
    server = apart(",fast-open=16", BOTH)
    assert server.inside(FAST).strip() == "1"
    assert shown(control, "status")["fast-open"] == ("16", "16", None)
    assert server.stop() == 0
    assert "fast-open" not in server.said


@pytest.mark.parametrize("parameters", ["", ",fast-open=0"])
def test_it_is_not_where_fast_open_is_off(
    apart: Callable[[str, dict[str, int]], Namespace], control: Path, parameters: str
) -> None:
    server = apart(parameters, BOTH)
    assert server.inside(FAST).strip() == "0"
    assert shown(control, "status")["fast-open"] == ("off" if parameters else None, "off", None)
    assert server.stop() == 0
    assert "fast-open" not in server.said


def test_fast_open_that_the_kernel_has_off_is_told_at_the_start_and_shown(
    apart: Callable[[str, dict[str, int]], Namespace], control: Path
) -> None:
    server = apart(",fast-open=16", {"ipv4/tcp_fastopen": 1})
    trouble = "net.ipv4.tcp_fastopen lets no server do it: sysctl -w net.ipv4.tcp_fastopen=3"
    for query in (["status"], ["explain", "GET", "/"]):
        assert shown(control, *query)["fast-open"] == ("16", "off", trouble)
    assert server.inside(FAST).strip() == "0"
    assert server.stop() == 0
    warnings = [line for line in server.said.splitlines() if " warn " in line]
    assert len(warnings) == 1, server.said
    assert warnings[0].endswith(f"127.0.0.1:{server.port}: fast-open=16 has no effect: {trouble}")


def test_a_backlog_that_the_kernel_cuts_is_shown_with_the_reason(
    apart: Callable[[str, dict[str, int]], Namespace], control: Path
) -> None:
    apart(",backlog=100", {"core/somaxconn": 64})
    assert shown(control, "status")["backlog"] == (
        "100", "64", "the system permits no more: raise net.core.somaxconn"
    )
