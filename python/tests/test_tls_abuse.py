"""Peers that do to TLS what they should not: slow, many, broken, gone. The server tells them and the log, and serves on."""

from __future__ import annotations

import contextlib
import os
import re
import selectors
import signal
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator

import pytest
from certificates import Authority, authority, connected, fetch, needs_openssl
from conftest import PATIENCE, Serve, Server, open_files
from operation_clients import allow_descriptors

__all__ = ["authority"]

pytestmark = needs_openssl

LONG = "MAITRED_LONG" in os.environ
MIB = 1 << 20
RESET = struct.pack("ii", 1, 0)

APP = """
import hashlib

def app(environ, start_response):
    if environ["PATH_INFO"] == "/large":
        start_response("200 OK", [("Content-Type", "application/octet-stream")])
        return [b"x" * (64 << 20)]
    body = environ["wsgi.input"].read()
    told = hashlib.sha256(body).hexdigest().encode()
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(told)))])
    return [told]
"""

REQUEST = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"

Start = Callable[..., Server]


@pytest.fixture
def secure(serve: Serve, authority: Authority) -> Start:
    """Starts a server with a certificate."""

    def start(*arguments: str) -> Server:
        return serve(*authority.issue("localhost").options, *arguments, source=APP, checked=False)

    return start


def open_plainly(server: Server) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), PATIENCE)


def sockets(server: Server) -> int:
    """So many of its connections it has open."""
    with open("/proc/net/tcp") as table:
        rows = [line.split() for line in list(table)[1:]]
    # In any state but listening (proc(5)).
    ours = {row[9] for row in rows if row[1].endswith(f":{server.port:04X}") and row[3] != "0A"}
    return sum(link[8:-1] in ours for link in open_files(server.process.pid).values())


def until(what: str, is_so: Callable[[], bool]) -> None:
    limit = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < limit, what
        time.sleep(0.01)


class Half:
    """A client in memory: what it sends and gets is in our hands."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.session = context.wrap_bio(self.incoming, self.outgoing, server_hostname="localhost")

    def flight(self) -> bytes:
        """What it has to say next of its handshake."""
        with contextlib.suppress(ssl.SSLWantReadError):
            self.session.do_handshake()
        return self.outgoing.read()

    def shake_hands(self, peer: socket.socket) -> None:
        peer.sendall(self.flight())
        while True:
            try:
                self.session.do_handshake()
                break
            except ssl.SSLWantReadError:
                peer.sendall(self.outgoing.read())
                part = peer.recv(65536)
                assert part
                self.incoming.write(part)
        peer.sendall(self.outgoing.read())

    def sealed(self, text: bytes) -> bytes:
        self.session.write(text)
        return self.outgoing.read()


def hello(authority: Authority, version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3) -> bytes:
    context = authority.client()
    context.minimum_version = context.maximum_version = version
    return Half(context).flight()


def rest(peer: socket.socket) -> bytes:
    """Until the server closes."""
    parts = []
    with contextlib.suppress(ConnectionResetError):
        while part := peer.recv(65536):
            parts.append(part)
    return b"".join(parts)


def alerts(received: bytes) -> list[int]:
    """Those in clear text among these records."""
    found = []
    while received:
        kind, _, length = struct.unpack(">BHH", received[:5])
        if kind == 21 and length == 2:
            found.append(received[6])
        received = received[5 + length :]
    return found


# Slow and many


def test_two_thousand_slow_handshakes_disturb_nobody_and_end_on_time(secure: Start, authority: Authority) -> None:
    count = 2000
    allow_descriptors(count + 200)
    server = secure("--tls-handshake-timeout", "5", "--max-connections", "5000")
    context = authority.client()
    fetch(server.port, context)
    before = server.settled_memory()
    first = hello(authority)
    begun = time.monotonic()
    waiting: dict[socket.socket, bytes] = {}
    done: list[str] = []

    def ask() -> None:
        with connected(server.port, context) as kept:
            while waiting or not done:
                kept.sendall(REQUEST)
                assert kept.recv(4096).startswith(b"HTTP/1.1 200 OK")
                assert fetch(server.port, context).reply.status == 200
                done.append("asked")

    other = threading.Thread(target=ask)
    with contextlib.ExitStack() as open_ones, selectors.DefaultSelector() as selector:
        for number in range(count):
            peer = open_ones.enter_context(open_plainly(server))
            peer.setblocking(False)
            # Nothing, half of it, or byte by byte.
            peer.send((b"", first[: len(first) // 2], first[:1])[number % 3])
            waiting[peer] = first[1:] if number % 3 == 2 else b""
            selector.register(peer, selectors.EVENT_READ)
        opened = time.monotonic() - begun
        other.start()
        try:
            until("all are there", lambda: sockets(server) >= count or len(waiting) < count or opened > 4)
            most = 0
            while waiting:
                assert time.monotonic() - begun < 3 * PATIENCE, f"{len(waiting)} are open"
                for key, _ in selector.select(1):
                    peer = key.fileobj
                    assert isinstance(peer, socket.socket)
                    with contextlib.suppress(ConnectionResetError):
                        # Who has said something is told that it ends: close_notify.
                        assert peer.recv(100)[5:] in (b"", b"\1\0")
                    selector.unregister(peer)
                    del waiting[peer]
                most = max(most, server.memory())
                for peer, left in waiting.items():
                    if left:
                        with contextlib.suppress(ConnectionError):
                            peer.send(left[:1])
                        waiting[peer] = left[1:]
        finally:
            waiting.clear()
            other.join(PATIENCE)
    assert not other.is_alive() and len(done) > 1
    until("nothing is left", lambda: sockets(server) == 0)
    # With all: a connection, and a session of those who have said something.
    assert most - before < 2000 * 24 * 1024, (most, before)
    assert re.search("warn .*tls-handshake-timeout", server.said), server.said
    assert server.stop() == 0


def test_a_storm_of_handshakes_beside_kept_connections(secure: Start, authority: Authority) -> None:
    each, clients = (2500 if LONG else 150), 4
    server = secure()
    failures: list[str] = []
    over = threading.Event()
    answered = [0, 0]

    def storm() -> None:
        context = authority.client()
        try:
            for number in range(each):
                with connected(server.port, context) as peer:
                    if number % 10 == 0:
                        peer.sendall(REQUEST)
                        assert peer.recv(4096).startswith(b"HTTP/1.1 200 OK")
                    assert not peer.session_reused
                answered[0] += 1
        except Exception as error:
            failures.append(repr(error))

    def keep() -> None:
        try:
            with connected(server.port, authority.client()) as peer:
                while not over.is_set():
                    peer.sendall(REQUEST)
                    assert peer.recv(4096).startswith(b"HTTP/1.1 200 OK")
                    answered[1] += 1
        except Exception as error:
            failures.append(repr(error))

    storms = [threading.Thread(target=storm) for _ in range(clients)]
    kept = [threading.Thread(target=keep) for _ in range(2)]
    for thread in [*kept, *storms]:
        thread.start()
    for thread in storms:
        thread.join()
    over.set()
    for thread in kept:
        thread.join()
    assert not failures
    assert answered[0] == each * clients and answered[1] > 0
    until("all are gone", lambda: sockets(server) == 0)
    assert server.stop() == 0
    assert "error" not in server.said, server.said


def test_a_handshake_that_begins_in_a_drain_has_its_time(secure: Start, authority: Authority) -> None:
    """It is for a request that is on its way. Who says nothing is closed after a moment."""
    for _ in range(5):
        server = secure()
        client = Half(authority.client())
        with open_plainly(server) as late, open_plainly(server) as silent:
            until("both are accepted", lambda: sockets(server) == 2)
            server.process.send_signal(signal.SIGTERM)
            server.wait_for("draining")
            with contextlib.suppress(OSError):
                late.sendall(client.flight())
            begun = b""
            with contextlib.suppress(ConnectionResetError):
                begun = late.recv(65536)
            assert rest(silent) == b""
            if not begun:
                # We were slower than that moment is long.
                assert server.process.wait(PATIENCE) == 0
                continue
            client.incoming.write(begun)
            late.sendall(client.flight())
            late.sendall(client.sealed(REQUEST))
            client.incoming.write(rest(late))
            assert client.session.read(65536).startswith(b"HTTP/1.1 200 ")
        assert server.process.wait(PATIENCE) == 0, server.said
        assert "handshake" not in server.said
        return
    pytest.fail("this machine is too slow")


# Broken


def record(content: bytes, kind: int = 22, version: int = 0x0301, length: int | None = None) -> bytes:
    return struct.pack(">BHH", kind, version, len(content) if length is None else length) + content


#: What is sent first, the alert in clear text that comes back (none: nothing does), and the line in the log.
BROKEN: dict[str, tuple[bytes, int | None, str]] = {
    "garbage": (bytes(range(128, 256)), 50, "the first bytes of the peer are not of TLS"),
    "zeros": (bytes(64), 50, "the first bytes of the peer are not of TLS"),
    "oversized": (record(b"\1" * 40, length=0x4801), 50, "the peer breaks the rules of TLS"),
    "empty handshake record": (record(b""), 50, "the peer breaks the rules of TLS"),
    "application data first": (record(b"GET /", 23), 10, "the first bytes of the peer are not of TLS"),
    "an alert first": (record(b"\2\x28", 21), None, r"the peer has ended the handshake by the alert handshake_failure \(40\)"),
    "a server's message": (record(b"\2\0\0\4abcd"), 50, "the peer breaks the rules of TLS"),
    "a hello that is longer than any": (
        record(b"\1\xff\xff\xff" + b"x" * 16380) + record(b"x" * 16384) * 5, 50, "the peer breaks the rules of TLS"
    ),
    "SSL 2": (b"\x80\x2e\1\0\2\0\x15\0\0\0\x10" + b"\7" * 36, 50, "the first bytes of the peer are not of TLS"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_first_bytes_get_an_alert_and_a_line(case: str, secure: Start, authority: Authority) -> None:
    sent, alert, line = BROKEN[case]
    server = secure()
    with open_plainly(server) as peer:
        peer.sendall(sent)
        assert alerts(rest(peer)) == ([] if alert is None else [alert])
    said = server.wait_for(r"info 127\.0\.0\.1: TLS handshake: .*; closed\n")[0]
    assert re.search(line, said), said
    assert fetch(server.port, authority.client()).reply.status == 200
    until("nothing is left", lambda: sockets(server) == 0)
    assert server.stop() == 0
    assert len(re.findall("TLS handshake", server.said)) == 1, server.said


def test_old_versions_are_told_so(secure: Start, authority: Authority) -> None:
    server = secure()
    # legacy_version of TLS 1.1, without the extension that names newer ones.
    body = b"\3\2" + b"r" * 32 + b"\0" + b"\0\4\xc0\x2b\xc0\x2f" + b"\1\0"
    with open_plainly(server) as peer:
        peer.sendall(record(b"\1" + len(body).to_bytes(3, "big") + body))
        assert alerts(rest(peer)) == [70]
    server.wait_for("the peer offers no common TLS version: at most TLS 1.1, and TLS 1.2 is needed; closed\n")
    assert fetch(server.port, authority.client()).reply.status == 200


def test_plain_http_is_told_where_it_is(secure: Start, authority: Authority) -> None:
    server = secure()
    for sent in (REQUEST, b"GET http://localhost/ HTTP/1.0\r\n\r\n", b"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n"):
        with open_plainly(server) as peer:
            peer.sendall(sent)
            answer = rest(peer)
            assert answer.startswith(b"HTTP/1.1 400 ") and b"https://" in answer
    server.wait_for("HTTP without TLS on a port for HTTPS")
    until("nothing is left", lambda: sockets(server) == 0)
    assert fetch(server.port, authority.client()).reply.status == 200


@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_a_record_that_was_changed_on_its_way_ends_its_connection_alone(version: str, secure: Start, authority: Authority) -> None:
    server = secure()
    context = authority.client()
    context.minimum_version = context.maximum_version = getattr(ssl.TLSVersion, f"TLSv{version.replace('.', '_')}")
    with connected(server.port, context) as other:
        for changed in ("one bit", "length", "cut"):
            client = Half(context)
            with open_plainly(server) as peer:
                client.shake_hands(peer)
                peer.sendall(client.sealed(REQUEST))
                while True:
                    client.incoming.write(peer.recv(65536))
                    with contextlib.suppress(ssl.SSLWantReadError):
                        assert client.session.read(65536).startswith(b"HTTP/1.1 200 OK")
                        break
                sealed = bytearray(client.sealed(REQUEST))
                if changed == "one bit":
                    sealed[-1] ^= 1
                elif changed == "length":
                    sealed[3:5] = b"\x50\x00"
                else:
                    del sealed[-3:]
                peer.sendall(sealed)
                if changed == "cut":
                    peer.shutdown(socket.SHUT_WR)
                received = rest(peer)
            client.incoming.write(received)
            client.incoming.write_eof()
            expected = {"one bit": "bad record mac", "length": "decode error", "cut": None}[changed]
            if expected:
                with pytest.raises(ssl.SSLError, match=expected):
                    while client.session.read(65536):
                        pass
                told = {"one bit": "a record of the peer cannot be decrypted", "length": "the peer breaks the rules of TLS"}[changed]
                server.wait_for(rf"info 127\.0\.0\.1: TLS: {told}.*; closed\n")
            else:
                # No request came: there is nothing to answer.
                assert b"".join(iter(lambda: client.session.read(65536), b"")) == b""
            other.sendall(REQUEST)
            assert other.recv(4096).startswith(b"HTTP/1.1 200 OK")
    until("nothing is left", lambda: sockets(server) == 0)
    assert server.stop() == 0


@pytest.mark.parametrize("how", ["end", "reset"])
@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_a_client_may_leave_at_any_moment(version: str, how: str, secure: Start, authority: Authority) -> None:
    server = secure()
    context = authority.client()
    context.minimum_version = context.maximum_version = getattr(ssl.TLSVersion, f"TLSv{version.replace('.', '_')}")
    fetch(server.port, context)

    def hear(client: Half, peer: socket.socket) -> bytes:
        """The client's next flight, of what the server sends."""
        while True:
            client.incoming.write(peer.recv(65536))
            flight = client.flight()
            if flight:
                return flight

    def steps(client: Half, peer: socket.socket) -> Iterator[str]:
        first = client.flight()
        yield "nothing sent"
        for byte in (1, 5, 20):
            peer.sendall(first[:byte])
            yield f"{byte} bytes of the hello"
            first = first[byte:]
        peer.sendall(first)
        yield "hello, nothing read"
        peer.recv(1, socket.MSG_PEEK)
        yield "their flight is there"
        second = hear(client, peer)
        yield "their flight is read"
        peer.sendall(second[: len(second) // 2])
        yield "half of the finish"
        peer.sendall(second[len(second) // 2 :])
        yield "all of it"
        if version == "1.2":
            client.incoming.write(peer.recv(65536))
        client.session.do_handshake()
        sealed = client.sealed(REQUEST)
        peer.sendall(sealed[: len(sealed) // 2])
        yield "half of a request"
        peer.sendall(sealed[len(sealed) // 2 :])
        yield "a request"
        peer.recv(1, socket.MSG_PEEK)
        yield "its answer is there"

    count = 0
    while True:
        client = Half(context)
        with open_plainly(server) as peer:
            if how == "reset":
                peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            done = list(zip(steps(client, peer), range(count + 1)))
        if len(done) <= count:
            break
        count += 1
        assert fetch(server.port, context).reply.status == 200, done[-1]
    assert count == 12
    until("nothing is left", lambda: sockets(server) == 0)
    assert server.stop() == 0
    assert "error" not in server.said and "panick" not in server.said, server.said


# Readers, bodies, ends


@pytest.mark.parametrize("limit", [("--body-timeout", "1"), ("--min-rate-out", "1m", "--min-rate-grace", "1")], ids="".join)
def test_who_does_not_read_is_let_go(limit: tuple[str, ...], secure: Start, authority: Authority) -> None:
    server = secure(*limit)
    with connected(server.port, authority.client()) as peer:
        peer.sendall(b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n")
        assert peer.recv(15) == b"HTTP/1.1 200 OK"
        until("it is let go", lambda: sockets(server) == 0)
    assert fetch(server.port, authority.client()).reply.status == 200
    assert server.stop() == 0


def strict(server: Server, authority: Authority) -> ssl.SSLSocket:
    """To this client an end without close_notify is an error."""
    peer = open_plainly(server)
    return authority.client().wrap_socket(peer, server_hostname="localhost", suppress_ragged_eofs=False)


def test_a_close_is_announced(secure: Start, authority: Authority) -> None:
    server = secure("--keep-alive", "1")
    endings = {
        "asked for": (b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", b"HTTP/1.1 200 OK"),
        "HTTP/1.0": (b"GET / HTTP/1.0\r\n\r\n", b"HTTP/1.1 200 OK"),
        "refused": (b"GET / HTTP/9.1\r\n\r\n", b"HTTP/1.1 505 "),
        "idle": (REQUEST, b"HTTP/1.1 200 OK"),
    }
    for how, (sent, answer) in endings.items():
        with strict(server, authority) as peer:
            peer.sendall(sent)
            assert rest(peer).startswith(answer), how
    with strict(server, authority) as kept, strict(server, authority) as reading:
        kept.sendall(REQUEST)
        assert kept.recv(4096).startswith(b"HTTP/1.1 200 OK")
        reading.sendall(b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n")
        assert reading.recv(15) == b"HTTP/1.1 200 OK"
        server.process.send_signal(signal.SIGTERM)
        assert rest(kept) == b""
        assert len(rest(reading)) >= 64 * MIB
    assert server.process.wait(PATIENCE) == 0
