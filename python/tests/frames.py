"""HTTP/2 frame by frame (RFC 9113): a client that also sends what no library would, and looks at every frame that comes."""

from __future__ import annotations

import select
import socket
import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

import hpack

#: As in conftest.py, which needs this.
PATIENCE = 30.0
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
#: Before settings are exchanged (RFC 9113 §6.5.2, §6.9.2).
WINDOW, MOST = 65_535, 16_384
LARGEST_WINDOW = (1 << 31) - 1

END_STREAM = ACK = 0x1
END_HEADERS, PADDED, PRIORITIZED = 0x4, 0x8, 0x20

Field = tuple[str, str]


class Kind(IntEnum):
    DATA = 0
    HEADERS = 1
    PRIORITY = 2
    RST_STREAM = 3
    SETTINGS = 4
    PUSH_PROMISE = 5
    PING = 6
    GOAWAY = 7
    WINDOW_UPDATE = 8
    CONTINUATION = 9
    PRIORITY_UPDATE = 16


class Code(IntEnum):
    NO_ERROR = 0
    PROTOCOL_ERROR = 1
    INTERNAL_ERROR = 2
    FLOW_CONTROL_ERROR = 3
    SETTINGS_TIMEOUT = 4
    STREAM_CLOSED = 5
    FRAME_SIZE_ERROR = 6
    REFUSED_STREAM = 7
    CANCEL = 8
    COMPRESSION_ERROR = 9
    CONNECT_ERROR = 10
    ENHANCE_YOUR_CALM = 11
    INADEQUATE_SECURITY = 12
    HTTP_1_1_REQUIRED = 13


class Setting(IntEnum):
    HEADER_TABLE_SIZE = 1
    ENABLE_PUSH = 2
    MAX_CONCURRENT_STREAMS = 3
    INITIAL_WINDOW_SIZE = 4
    MAX_FRAME_SIZE = 5
    MAX_HEADER_LIST_SIZE = 6
    ENABLE_CONNECT_PROTOCOL = 8
    NO_RFC7540_PRIORITIES = 9


# What is sent


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return struct.pack(">BHBBL", len(payload) >> 16, len(payload) & 0xFFFF, kind, flags, stream) + payload


def data(stream: int, body: bytes = b"", end: bool = False) -> bytes:
    return frame(Kind.DATA, END_STREAM * end, stream, body)


def headers(stream: int, block: bytes, end: bool = True, complete: bool = True) -> bytes:
    return frame(Kind.HEADERS, END_STREAM * end | END_HEADERS * complete, stream, block)


def continuation(stream: int, block: bytes, complete: bool) -> bytes:
    return frame(Kind.CONTINUATION, END_HEADERS * complete, stream, block)


def priority(stream: int, depends_on: int = 0, weight: int = 16) -> bytes:
    return frame(Kind.PRIORITY, 0, stream, struct.pack(">LB", depends_on, weight - 1))


def reset(stream: int, code: int = Code.CANCEL) -> bytes:
    return frame(Kind.RST_STREAM, 0, stream, struct.pack(">L", code))


def settings(values: dict[int, int] | None = None) -> bytes:
    return frame(Kind.SETTINGS, 0, 0, b"".join(struct.pack(">HL", *pair) for pair in (values or {}).items()))


def ping(opaque: bytes = b"opaque!!") -> bytes:
    return frame(Kind.PING, 0, 0, opaque)


def goaway(last: int = 0, code: int = Code.NO_ERROR) -> bytes:
    return frame(Kind.GOAWAY, 0, 0, struct.pack(">LL", last, code))


def window_update(stream: int, bytes_more: int) -> bytes:
    return frame(Kind.WINDOW_UPDATE, 0, stream, struct.pack(">L", bytes_more))


def literal(name: str, value: str, indexed: bool = False) -> bytes:
    """A field without Huffman code, as it is: in capitals, empty, with control characters (RFC 7541 §6.2)."""
    name_bytes, value_bytes = name.encode("latin-1"), value.encode("latin-1")
    return bytes([0x40 if indexed else 0]) + integer(len(name_bytes), 7) + name_bytes + integer(len(value_bytes), 7) + value_bytes


def integer(value: int, bits: int, first: int = 0) -> bytes:
    """RFC 7541 §5.1, with the upper bits of the first byte."""
    most = (1 << bits) - 1
    if value < most:
        return bytes([first | value])
    rest, made = value - most, [first | most]
    while rest >= 128:
        made.append(rest & 127 | 128)
        rest >>= 7
    return bytes([*made, rest])


# What comes


@dataclass(frozen=True)
class Frame:
    kind: int
    flags: int
    stream: int
    payload: bytes

    @property
    def ends(self) -> bool:
        """The stream, where the kind has such a flag."""
        return self.kind in (Kind.DATA, Kind.HEADERS) and bool(self.flags & END_STREAM)

    @property
    def content(self) -> bytes:
        """Without padding and the fields of the old priorities."""
        body = self.payload
        if self.flags & PADDED and self.kind in (Kind.DATA, Kind.HEADERS):
            body = body[1 : len(body) - body[0]]
        return body[5:] if self.kind == Kind.HEADERS and self.flags & PRIORITIZED else body

    @property
    def number(self) -> int:
        """Of WINDOW_UPDATE the bytes, of RST_STREAM the code, of GOAWAY the last stream."""
        return int.from_bytes(self.payload[:4], "big") & LARGEST_WINDOW


def split(received: bytearray) -> Iterable[Frame]:
    """The complete frames at the beginning, which are taken away."""
    while len(received) >= 9:
        high, low, kind, flags, stream = struct.unpack_from(">BHBBL", received)
        end = 9 + (high << 16 | low)
        if len(received) < end:
            return
        payload = bytes(received[9:end])
        del received[:end]
        yield Frame(kind, flags, stream & LARGEST_WINDOW, payload)


@dataclass
class Answer:
    """What has come on a stream."""

    heads: list[list[Field]] = field(default_factory=list)
    body: bytearray = field(default_factory=bytearray)
    is_complete: bool = False
    reset: Code | None = None

    @property
    def status(self) -> int:
        """Of the last head that has one: interim heads come before, trailers after it."""
        found = [int(value) for head in self.heads for name, value in head if name == ":status"]
        return found[-1] if found else 0

    @property
    def fields(self) -> dict[str, str]:
        return dict(next((head for head in self.heads if (":status", str(self.status)) in head), []))

    @property
    def trailers(self) -> dict[str, str]:
        return {} if not self.heads or self.heads[-1][:1] == [(":status", str(self.status))] else dict(self.heads[-1])


class Ended(Exception):
    """The server has ended the connection while something was waited for."""


class Connection:
    """To a server, over an open socket.

    It acknowledges settings and pings, and gives windows back as bytes come, unless it is told not to.
    """

    def __init__(self, peer: socket.socket, values: dict[int, int] | None = None, grants: bool = True, acknowledges: bool = True) -> None:
        self.peer = peer
        peer.settimeout(PATIENCE)
        self.grants, self.acknowledges = grants, acknowledges
        self.encoder, self.decoder = hpack.Encoder(), hpack.Decoder()
        self.answers: dict[int, Answer] = {}
        #: In the order in which they came.
        self.frames: list[Frame] = []
        #: What the server has said of itself.
        self.theirs: dict[int, int] = {}
        self.goaways: list[tuple[int, Code]] = []
        self.is_over = False
        #: How many bytes may be sent: on the connection (0) and on each stream that was opened.
        self.windows: dict[int, int] = {0: WINDOW}
        self._next = 1
        self._received = bytearray()
        self._block: tuple[Frame, bytearray] | None = None
        self.send(PREFACE, settings(values))

    @classmethod
    def to(cls, port: int, values: dict[int, int] | None = None, grants: bool = True, acknowledges: bool = True) -> Connection:
        return cls(socket.create_connection(("127.0.0.1", port), PATIENCE), values, grants, acknowledges)

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.peer.close()

    # Sending

    def send(self, *frames: bytes) -> None:
        self.peer.sendall(b"".join(frames))

    def stream(self) -> int:
        """The next one of ours."""
        number, self._next = self._next, self._next + 2
        self.answers[number] = Answer()
        self.windows[number] = self.theirs.get(Setting.INITIAL_WINDOW_SIZE, WINDOW)
        return number

    def block(self, path: str = "/", method: str = "GET", fields: Sequence[Field] = ()) -> bytes:
        """Nothing of it goes into the table, so that what else stands in a block may be made by hand."""
        pseudo = [(":method", method), (":scheme", "http"), (":path", path), (":authority", "localhost")]
        return self.encoder.encode([(name, value, True) for name, value in (*pseudo, *fields)])

    def ask(self, path: str = "/", method: str = "GET", fields: Sequence[Field] = (), body: bytes | None = None, end: bool = True) -> int:
        """A request; its body goes as far as the windows let it, then it waits for them. Without ``end`` more is to come."""
        number = self.stream()
        self.send(headers(number, self.block(path, method, fields), end=end and body is None))
        if body is not None:
            self.upload(number, body, end)
        return number

    def upload(self, number: int, body: bytes, end: bool = True) -> None:
        at = 0
        while at < len(body) or (end and not body):
            while body and (room := min(self.windows[0], self.windows[number], MOST)) <= 0:
                if self.answers[number].is_complete or self.answers[number].reset is not None:
                    return
                self.take()
            part = body[at : at + room] if body else b""
            at += len(part)
            self.windows[0] -= len(part)
            self.windows[number] -= len(part)
            self.send(data(number, part, end and at == len(body)))
            if not body:
                return

    def flood(self, pieces: Iterable[bytes]) -> Code | None:
        """Sends without waiting, and reads beside it, until the server ends the connection; with which code, and none if it never does."""
        for piece in pieces:
            rest = memoryview(piece)
            while rest:
                readable, writable, _ = select.select([self.peer], [self.peer], [], PATIENCE)
                assert readable or writable, "the server neither reads nor ends the connection"
                if readable:
                    self.take_or_end()
                if self.goaways or self.is_over:
                    return self.ended()
                if writable:
                    try:
                        rest = rest[self.peer.send(rest[:65536]) :]
                    except ConnectionError:
                        return self.ended()
        return None

    # Receiving

    def take(self) -> list[Frame]:
        """What comes next, with its effects; raises ``Ended`` where nothing will."""
        part = b"" if self.is_over else self.peer.recv(1 << 18)
        if not part:
            self.is_over = True
            raise Ended(self.goaways)
        self._received += part
        frames = list(split(self._received))
        for each in frames:
            self._handle(each)
        self.frames += frames
        return frames

    def until(self, is_so: Callable[[Frame], bool]) -> Frame:
        """The first frame from now on of which this is so."""
        while True:
            found = next((each for each in self.take() if is_so(each)), None)
            if found:
                return found

    def answer(self, number: int) -> Answer:
        """That of a stream, when it is complete or reset."""
        answer = self.answers[number]
        while not answer.is_complete and answer.reset is None:
            self.take()
        return answer

    def fetch(self, path: str = "/", method: str = "GET", fields: Sequence[Field] = (), body: bytes | None = None) -> Answer:
        return self.answer(self.ask(path, method, fields, body))

    def ping(self, opaque: bytes = b"is there") -> None:
        """Asked and answered: all that was sent before has been read."""
        self.send(ping(opaque))
        self.until(lambda each: each.kind == Kind.PING and bool(each.flags & ACK) and each.payload == opaque)

    def ended(self) -> Code | None:
        """Waits for the end of the connection; the code that the server gave, if it gave one."""
        while not self.is_over:
            self.take_or_end()
        return self.goaways[-1][1] if self.goaways else None

    def take_or_end(self) -> None:
        """What comes next, or that nothing will."""
        try:
            self.take()
        except (Ended, ConnectionError):
            self.is_over = True

    def _handle(self, each: Frame) -> None:
        if self._block or (each.kind == Kind.HEADERS and not each.flags & END_HEADERS):
            return self._collect(each)
        match each.kind:
            case Kind.HEADERS:
                self._head(each, each.content)
            case Kind.DATA:
                self._data(each)
            case Kind.SETTINGS if not each.flags & ACK:
                self._settings(each)
            case Kind.PING if not each.flags & ACK and self.acknowledges:
                self.send_or_end(frame(Kind.PING, ACK, 0, each.payload))
            case Kind.WINDOW_UPDATE if each.stream in self.windows:
                self.windows[each.stream] += each.number
            case Kind.RST_STREAM if each.stream in self.answers:
                self.answers[each.stream].reset = Code(each.number)
            case Kind.GOAWAY:
                self.goaways.append((each.number, Code(int.from_bytes(each.payload[4:8], "big"))))

    def _collect(self, each: Frame) -> None:
        if self._block is None:
            self._block = each, bytearray(each.content)
            return
        assert each.kind == Kind.CONTINUATION, "a block of fields is not interrupted (RFC 9113 §4.3)"
        first, block = self._block
        block += each.payload
        if each.flags & END_HEADERS:
            self._block = None
            self._head(first, bytes(block))

    def _head(self, each: Frame, block: bytes) -> None:
        fields = [(name, value) for name, value in self.decoder.decode(block)]
        answer = self.answers.setdefault(each.stream, Answer())
        answer.heads.append(fields)
        answer.is_complete |= each.ends

    def _data(self, each: Frame) -> None:
        answer = self.answers.setdefault(each.stream, Answer())
        answer.body += each.content
        answer.is_complete |= each.ends
        if self.grants and each.payload:
            streams = (0,) if each.ends else (0, each.stream)
            self.send_or_end(*(window_update(stream, len(each.payload)) for stream in streams))

    def _settings(self, each: Frame) -> None:
        before = self.theirs.get(Setting.INITIAL_WINDOW_SIZE, WINDOW)
        self.theirs.update(struct.iter_unpack(">HL", each.payload))
        more = self.theirs.get(Setting.INITIAL_WINDOW_SIZE, WINDOW) - before
        for stream in self.windows:
            self.windows[stream] += more if stream else 0
        if self.acknowledges:
            self.send_or_end(frame(Kind.SETTINGS, ACK, 0))

    def send_or_end(self, *frames: bytes) -> None:
        """To a server that may be gone already."""
        try:
            self.send(*frames)
        except ConnectionError:
            pass
