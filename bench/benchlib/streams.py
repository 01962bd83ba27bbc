"""HTTP/2 frame by frame: a client that knows when each stream ended, and one that sends what it should not.

It decodes no fields: of an answer it sees the frames, and of its head whether the status is 200, which is one byte where it is the first field.
"""

from __future__ import annotations

import select
import socket
import ssl
import struct
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 0, 1, 2, 3, 4, 6, 7, 8, 9
END_STREAM = ACK = 1
END_HEADERS = 4
INITIAL_WINDOW_SIZE = 4
LARGEST_WINDOW = (1 << 31) - 1
ENHANCE_YOUR_CALM = 11
#: Indexed `:method: GET`, `:method: POST`, `:scheme: http`, `:status: 200` (RFC 7541 appendix A).
GET, POST, HTTP, OK = b"\x82", b"\x83", b"\x86", 0x88
#: Nothing that is waited for takes longer.
PATIENCE_S = 30.0


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return struct.pack(">BHBBL", len(payload) >> 16, len(payload) & 0xFFFF, kind, flags, stream) + payload


def window_update(stream: int, count: int) -> bytes:
    return frame(WINDOW_UPDATE, 0, stream, struct.pack(">L", count))


def settings(values: dict[int, int] | None = None) -> bytes:
    return frame(SETTINGS, 0, 0, b"".join(struct.pack(">HL", *each) for each in (values or {}).items()))


def literal(index: int, value: bytes) -> bytes:
    """A field with a name of the static table (below 15), which does not go into the dynamic one; a value below 127 bytes."""
    return bytes([index, len(value)]) + value


def own(name: bytes, value: bytes, indexed: bool = False) -> bytes:
    """A field with a name of its own; both below 127 bytes."""
    return bytes([0x40 * indexed, len(name)]) + name + bytes([len(value)]) + value


def request(path: bytes, method: bytes = GET) -> bytes:
    """A block of fields."""
    return method + HTTP + literal(4, path) + literal(1, b"localhost")


def begins_right(block: bytes) -> bool:
    """Whether the first field says 200; what changes the size of the table may stand before it (RFC 7541 §6.3)."""
    at = 0
    while at < len(block) and block[at] & 0xE0 == 0x20:
        is_long = block[at] & 0x1F == 0x1F
        at += 1
        while is_long and at < len(block):
            is_long = bool(block[at] & 0x80)
            at += 1
    return block[at : at + 1] == bytes([OK])


@dataclass
class Answer:
    asked: float
    is_right: bool = False
    length: int = 0
    #: Where the connection `keeps` it.
    body: bytearray = field(default_factory=bytearray)
    #: When it was complete; never, while it is 0.
    ended: float = 0.0
    reset: int | None = None

    @property
    def seconds(self) -> float:
        return self.ended - self.asked


@dataclass
class Connection:
    """To a server, in clear text or by TLS with a context.  It acknowledges, and gives windows back as bytes come if it `grants`."""

    port: int
    values: dict[int, int] = field(default_factory=dict)
    grants: bool = True
    keeps: bool = False
    context: ssl.SSLContext | None = None
    answers: dict[int, Answer] = field(default_factory=dict)
    #: The code of the last GOAWAY.
    code: int | None = None
    is_over: bool = False
    #: The code of the last stream that was reset.
    reset: int | None = None
    _next: int = 1
    _pong: bytes = b""
    _received: bytearray = field(default_factory=bytearray)

    def __post_init__(self) -> None:
        self.peer: socket.socket = socket.create_connection(("127.0.0.1", self.port), PATIENCE_S)
        self.peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self.context:
            self.peer = self.context.wrap_socket(self.peer, server_hostname="localhost")
        self.peer.sendall(PREFACE + settings(self.values))

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.peer.close()

    def stream(self) -> int:
        number, self._next = self._next, self._next + 2
        self.answers[number] = Answer(time.perf_counter())
        return number

    def ask(self, path: bytes, fields: bytes = b"") -> int:
        stream = self.stream()
        self.peer.sendall(frame(HEADERS, END_HEADERS | END_STREAM, stream, request(path) + fields))
        return stream

    def fetch(self, path: bytes, fields: bytes = b"") -> Answer:
        """One request and its answer; raise `OSError` where there is none that is right."""
        answer = self.answers[self.ask(path, fields)]
        while not answer.ended:
            self.take()
            if self.is_over or answer.reset is not None:
                raise OSError(f"no answer: reset {answer.reset}, connection {self.code}")
        if not answer.is_right:
            raise OSError("another status than 200")
        return answer

    def ping(self, opaque: bytes) -> None:
        """Asked and answered."""
        self._send(frame(PING, 0, 0, opaque))
        while self._pong != opaque:
            self.take()
            if self.is_over:
                raise OSError(f"no answer to a ping: {self.code}")

    def take(self) -> list[int]:
        """Read once; the streams that ended."""
        try:
            part = self.peer.recv(1 << 18)
        except ConnectionError:
            part = b""
        if not part:
            self.is_over = True
            return []
        now = time.perf_counter()
        self._received += part
        reply, ended = bytearray(), []
        for kind, flags, stream, payload in self._frames():
            answer = self.answers.get(stream)
            if kind == DATA and payload and self.grants:
                reply += window_update(0, len(payload)) + (b"" if flags & END_STREAM else window_update(stream, len(payload)))
            if kind in (DATA, HEADERS) and answer:
                answer.length += len(payload) if kind == DATA else 0
                answer.body += payload if kind == DATA and self.keeps else b""
                answer.is_right |= kind == HEADERS and begins_right(payload)
                if flags & END_STREAM:
                    answer.ended = now
                    ended.append(stream)
            elif kind == RST_STREAM:
                self.reset = int.from_bytes(payload[:4], "big")
                if answer:
                    answer.reset = self.reset
            elif kind in (SETTINGS, PING) and not flags & ACK:
                reply += frame(kind, ACK, 0, payload if kind == PING else b"")
            elif kind == PING:
                self._pong = payload
            elif kind == GOAWAY:
                self.code = int.from_bytes(payload[4:8], "big")
        if reply:
            self._send(bytes(reply))
        return ended

    def flood(self, pieces: Iterable[bytes], until: float) -> int:
        """Send without waiting, reading beside it, until the server ends the connection or the time has come; how many bytes went."""
        sent = 0
        for piece in pieces:
            rest = memoryview(piece)
            while rest:
                left = until - time.monotonic()
                if left <= 0 or self.code is not None or self.is_over:
                    return sent
                readable, writable, _ = select.select([self.peer], [self.peer], [], left)
                if readable:
                    self.take()
                if writable:
                    try:
                        count = self.peer.send(rest[:65536])
                    except ConnectionError:
                        # What the server said before is still to be read.
                        return sent
                    sent += count
                    rest = rest[count:]
        return sent

    def end(self, until: float) -> int | None:
        """Read until the server ends the connection; the code it gave."""
        while not self.is_over and (left := until - time.monotonic()) > 0:
            if select.select([self.peer], [], [], left)[0]:
                self.take()
        return self.code

    def _send(self, wire: bytes) -> None:
        try:
            self.peer.sendall(wire)
        except ConnectionError:
            self.is_over = True

    def _frames(self) -> Iterator[tuple[int, int, int, bytes]]:
        received = self._received
        while len(received) >= 9:
            high, low, kind, flags, stream = struct.unpack_from(">BHBBL", received)
            end = 9 + (high << 16 | low)
            if len(received) < end:
                return
            payload = bytes(received[9:end])
            del received[:end]
            yield kind, flags, stream, payload
