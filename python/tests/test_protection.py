"""What peers and applications do slowly costs nobody else: the figures are printed (pytest -s)."""

from __future__ import annotations

import hashlib
import random
import select
import socket
import statistics
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest
import secured
from conftest import PATIENCE, Serve, Server

MIB = 1024 * 1024
LARGE = 50_000_000

APP = """
import ctypes, hashlib, threading, time

LIBRARY = ctypes.PyDLL(None)  # Unlike CDLL it keeps the interpreter during a call.
LARGE = b"x" * 50_000_000

def app(environ, start_response):
    path = environ["PATH_INFO"]
    if path == "/digest":
        digest = hashlib.sha256()
        while part := environ["wsgi.input"].read(65536):
            digest.update(part)
        body = digest.hexdigest().encode()
    elif path == "/large":
        body = LARGE
    elif path == "/keeps":
        body = keeps()
    elif path == "/sleeps":
        body = sleeps()
    else:
        body = b"hello"
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
    return [body]

def keeps():
    LIBRARY.usleep(3_000_000)
    return b"kept"

def sleeps():
    time.sleep(3)
    return b"slept"
"""

Finish = Callable[[], None]


def connect(server: Server, receive_buffer: int = 0) -> socket.socket:
    peer = socket.socket()
    peer.settimeout(PATIENCE)
    if receive_buffer:
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    peer.connect(("127.0.0.1", server.port))
    return secured.wrapped(peer, server.port)


def body_of(peer: socket.socket) -> bytes:
    received = b""
    while b"\r\n\r\n" not in received:
        part = peer.recv(65536)
        assert part, received
        received += part
    head, _, body = received.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 "), head
    length = int(head.partition(b"Content-Length: ")[2].split()[0])
    parts = [body]
    while (left := length - sum(map(len, parts))) > 0:
        parts.append(peer.recv(min(left, MIB)))
        assert parts[-1], "the end is missing"
    return b"".join(parts)


def half_head(server: Server, number: int, stack: ExitStack) -> Finish:
    """A head of which more or less is there."""
    request = b"GET /hello HTTP/1.1\r\nHost: t\r\nX-Long: %s\r\n\r\n" % (b"x" * 100)
    peer = stack.enter_context(connect(server))
    sent = [1, 10, 40, len(request) - 1][number]
    peer.sendall(request[:sent])

    def finish() -> None:
        peer.sendall(request[sent:])
        assert body_of(peer) == b"hello"

    return finish


def half_upload(server: Server, number: int, stack: ExitStack) -> Finish:
    """A body of which more or less is there: nothing, a little, most of it in a file, most of it in chunks."""
    body = random.Random(number).randbytes(3_000_000)
    request = b"POST /digest HTTP/1.1\r\nHost: t\r\n"
    if number == 3:
        parts = [b"%x\r\n%s\r\n" % (len(part), part) for part in (body[:1_000_000], body[1_000_000:])]
        request += b"Transfer-Encoding: chunked\r\n\r\n" + b"".join(parts) + b"0\r\n\r\n"
    else:
        request += b"Content-Length: %d\r\n\r\n" % len(body) + body
    peer = stack.enter_context(connect(server))
    sent = [70, 5_000, 2_999_000, len(request) - 2][number]
    peer.sendall(request[:sent])

    def finish() -> None:
        peer.sendall(request[sent:])
        assert body_of(peer).decode() == hashlib.sha256(body).hexdigest()

    return finish


def unread(server: Server, number: int, stack: ExitStack) -> Finish:
    """A response that has begun, and of which nothing more is read."""
    peer = stack.enter_context(connect(server, receive_buffer=4096))
    peer.sendall(b"GET /large HTTP/1.1\r\nHost: t\r\n\r\n")
    assert peer.recv(12, socket.MSG_WAITALL | socket.MSG_PEEK) == b"HTTP/1.1 200"

    def finish() -> None:
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 * MIB)
        assert body_of(peer) == b"x" * LARGE

    return finish


@pytest.mark.parametrize("checked", [True, False], ids=["checked", "as a list"])
def test_twelve_slow_clients_hold_neither_of_two_threads(serve: Serve, tmp_path: Path, checked: bool) -> None:
    # The validator makes an iterator of the list, whose length the engine does not know.
    server = serve("--max-threads", "2", "--spool", str(tmp_path), source=APP, checked=checked)
    assert server.fetch("/hello").body == b"hello"
    with ExitStack() as stack:
        finishes: list[Finish] = []
        for kind in (half_head, half_upload, unread):
            finishes += [kind(server, number, stack) for number in range(4)]
            took = []
            for _ in range(20):
                started = time.perf_counter()
                assert server.fetch("/hello").body == b"hello"
                took.append((time.perf_counter() - started) * 1000)
            print(f"\nbeside {len(finishes)} slow clients: {figures(took)}")
        # They were all unfinished, and none has lost anything.
        for finish in finishes:
            finish()
    assert server.stop() == 0, server.said


def figures(milliseconds: list[float]) -> str:
    return f"median {statistics.median(milliseconds):.1f} ms, longest {max(milliseconds):.1f} ms of {len(milliseconds)}"


class Memory:
    """The most memory a process has had since the start, in bytes: resident, and its share of it (proc(5))."""

    def __init__(self, server: Server) -> None:
        self.folder = Path(f"/proc/{server.process.pid}")
        # Begins the high-water mark of resident memory anew.
        (self.folder / "clear_refs").write_text("5")
        self.before = self.resident()
        self.share_before = self.most_share = self.share()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._sample)
        self._thread.start()

    def resident(self) -> int:
        return self._field("status", "VmHWM:")

    def share(self) -> int:
        return self._field("smaps_rollup", "Pss:")

    def _field(self, file: str, name: str) -> int:
        return int((self.folder / file).read_text().partition(name)[2].split()[0]) * 1024

    def _sample(self) -> None:
        while not self._ended.wait(0.05):
            self.most_share = max(self.most_share, self.share())

    def growth(self) -> tuple[int, int]:
        self._ended.set()
        self._thread.join()
        return self.resident() - self.before, self.most_share - self.share_before


@pytest.mark.parametrize("framing", ["length", "chunked"])
@pytest.mark.parametrize("parameter", ["", ",read-ahead=off"], ids=["spooled", "live"])
def test_an_upload_of_100_mb_grows_the_server_by_less_than_32_mb(
    serve: Serve, tmp_path: Path, parameter: str, framing: str
) -> None:
    server = serve("--spool", str(tmp_path), "--listen", f"127.0.0.1:0{parameter}", source=APP)
    part = random.Random(1).randbytes(1_000_000)
    assert server.fetch("/digest", "POST", part).body.decode() == hashlib.sha256(part).hexdigest()
    memory = Memory(server)
    headers = {"Content_Length": "100000000"} if framing == "length" else {}
    reply = server.fetch("/digest", "POST", (part for _ in range(100)), **headers)
    resident, share = memory.growth()
    assert reply.body.decode() == hashlib.sha256(part * 100).hexdigest()
    print(f"\n100 MB {framing}: resident {resident / 1e6:+.1f} MB, proportional {share / 1e6:+.1f} MB")
    assert max(resident, share) < 32_000_000


@pytest.mark.parametrize("threads", [1, 3], ids=["one thread", "all of three threads"])
@pytest.mark.parametrize("path", ["/keeps", "/sleeps"])
def test_the_engine_answers_while_the_application_is_stuck(
    serve: Serve, tmp_path: Path, path: str, threads: int
) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "kib").write_bytes(b"k" * 1024)
    options = ["--static", "/files=files", "--health-path", "/healthz", "--stuck-after", "1"]
    server = serve(*options, "--max-threads", str(threads), "--min-threads", str(threads), source=APP)
    with ExitStack() as stack:
        stuck = [stack.enter_context(connect(server)) for _ in range(threads)]
        for peer in stuck:
            peer.sendall(b"GET %s HTTP/1.1\r\nHost: t\r\n\r\n" % path.encode())
        took: dict[str, list[float]] = {"/files/kib": [], "/healthz": []}
        # Until the first of them is answered, which is after 3 s.
        while not select.select(stuck, [], [], 0.02)[0]:
            for asked, times in took.items():
                started = time.perf_counter()
                reply = server.fetch(asked)
                times.append((time.perf_counter() - started) * 1000)
                assert reply.body == (b"ok\n" if asked == "/healthz" else b"k" * 1024)
        for asked, times in took.items():
            print(f"\n{asked} beside {threads} x {path}: {figures(times)}")
            assert len(times) >= 3, "answered while the application was stuck"
        name = path[1:]
        entry = server.wait_for(rf"GET {path}: has been in the application for (\d+\.\d) s, on thread maitred-")
        server.wait_for(rf'(?m)^    File ".*app\.py", line \d+,? in {name}$', entry.start())
        for peer in stuck:
            assert body_of(peer) in (b"kept", b"slept")
    assert server.stop() == 0, server.said
