"""A connection of a test that speaks HTTP/1.1, and behind it one to the server that speaks HTTP/2: one stream after the other.

What the test does to its socket happens to the other one: who does not read gets no window, who leaves resets the stream and ends
the connection, and who resets resets.
"""

from __future__ import annotations

import contextlib
import http
import queue
import select
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

import frames
import hpack
from frames import Kind, Setting

#: Of one connection (RFC 9113 §8.2.2).
OF_CONNECTION = {b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade", b"http2-settings"}
#: As the server writes them in HTTP/1; those that begin with x- are written as they come.
NAMES = {"etag": "ETag", "te": "TE", "www-authenticate": "WWW-Authenticate", "x-request-id": "X-Request-ID"}
#: For what is no HTTP/1, so that no test takes it for an answer of the server.
UNTRANSLATED = b"HTTP/1.1 599 Not To Be Translated\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
RESET = struct.pack("ii", 1, 0)
BUFFER = 128 << 10


def through(far: socket.socket) -> socket.socket:
    """An open connection to a server of HTTP/2, as one of HTTP/1.1."""
    timeout = far.gettimeout()
    far.settimeout(None)
    # One for each, in the network in which this thread is at the moment.
    with socket.create_server(("127.0.0.1", 0)) as listener:
        test = Near(socket.AF_INET, socket.SOCK_STREAM)
        # Little is between the server and a test that does not read.
        test.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER)
        test.connect(listener.getsockname())
        near, _ = listener.accept()
        near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER)
    for each in (near, test, far):
        each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    test.translator = Translator(near, far)
    test.settimeout(timeout)
    return test


class Near(socket.socket):
    """The test's own end."""

    translator: Translator | None = None

    def _real_close(self, *arguments: Any) -> None:
        translator, self.translator = self.translator, None
        if translator:
            with contextlib.suppress(OSError):
                lingers = self.getsockopt(socket.SOL_SOCKET, socket.SO_LINGER, 8)
                translator.left(with_reset=lingers == RESET)
        super()._real_close(*arguments)  # type: ignore[misc]

    def getpeername(self) -> Any:
        return self.translator.names[1] if self.translator else super().getpeername()

    def getsockname(self) -> Any:
        """As the server sees it."""
        return self.translator.names[0] if self.translator else super().getsockname()


class Gone(Exception):
    """One of both ends."""


class Untranslated(Exception):
    """No HTTP/1 of a kind that this can say in HTTP/2."""


@dataclass
class Exchange:
    stream: int
    is_head: bool
    is_old: bool
    """Of HTTP/1.0."""
    closes: bool
    has_begun: bool = False
    is_chunked: bool = False
    is_sent: bool = False
    """The request is complete."""
    is_done: bool = False
    """The answer is complete."""


class Translator:
    """Three threads: requests from the test, frames from the server, answers to the test."""

    def __init__(self, near: socket.socket, far: socket.socket) -> None:
        self._near, self._far = near, far
        self.names = far.getsockname(), far.getpeername()
        self._encoder, self._decoder = hpack.Encoder(), hpack.Decoder(1 << 30)
        self._windows = {0: frames.WINDOW}
        self._initial_window = frames.WINDOW
        self._changed = threading.Condition()
        self._sending = threading.Lock()
        self._next = 1
        self._exchange: Exchange | None = None
        self._block: tuple[frames.Frame, bytes] | None = None
        #: The test has left; the connection to the server has ended; the server has said that it will.
        self._is_gone = self._is_over = self._goes_away = False
        #: How the ends are closed: as the other one was.
        self._resets_far = self._resets_near = False
        #: The test gets the end behind an answer, and may go on with what nobody wants any more.
        self._lingers = False
        self._flushed = threading.Event()
        self._awake, self._waker = socket.socketpair()
        #: What the test is to get, and how many bytes of which stream may come for it.
        self._answers: queue.Queue[tuple[bytes, int, int] | None] = queue.Queue()
        self._send(frames.PREFACE + frames.settings({Setting.ENABLE_PUSH: 0, Setting.MAX_HEADER_LIST_SIZE: 1 << 30}))
        for work in (self._run_requests, self._run_frames, self._run_answers):
            threading.Thread(target=work, daemon=True).start()

    def left(self, with_reset: bool) -> None:
        """The test closes its end."""
        self._resets_far = with_reset
        self._note("_is_gone")

    def _note(self, what: str) -> None:
        with self._changed:
            setattr(self, what, True)
            self._changed.notify_all()

    def _wait(self, is_so: Callable[[], bool]) -> None:
        """Until that is so, or one of both ends has gone."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_gone or self._is_over or is_so())

    # Requests

    def _run_requests(self) -> None:
        try:
            with self._near.makefile("rb") as file:
                while self._request(file):
                    pass
        except Untranslated:
            self._answers.put((UNTRANSLATED, 0, 0))
            self._answers.put(None)
        except OSError:
            self._resets_far = True
            self._note("_is_gone")
        except Gone:
            # In the middle of a request: nobody can say the rest of it.
            self._note("_is_gone")
        self._end()

    def _request(self, file: BinaryIO) -> bool:
        """One, and its answer; whether there may be another."""
        line = file.readline()
        while line == b"\r\n":
            line = file.readline()
        if not line:
            return False
        try:
            method, target, version = line.rstrip(b"\r\n").split(b" ")
        except ValueError:
            raise Untranslated(line) from None
        if version not in (b"HTTP/1.1", b"HTTP/1.0"):
            raise Untranslated(line)
        fields = list(_fields(file))
        values = {name: value for name, value in fields}
        options = {each.strip() for name, value in fields if name == b"connection" for each in value.lower().split(b",")}
        is_old = version == b"HTTP/1.0"
        # Without Host a request of HTTP/1.1 is broken, and ends its connection.
        is_broken = not is_old and b"host" not in values and b"://" not in target
        exchange = Exchange(self._next, method == b"HEAD", is_old, is_old or is_broken or b"close" in options)
        is_chunked = values.get(b"transfer-encoding", b"").lower() == b"chunked"
        if b"transfer-encoding" in values and not is_chunked:
            raise Untranslated(values[b"transfer-encoding"])
        length = _length(values)
        has_body = is_chunked or length > 0
        self._exchange, self._next = exchange, self._next + 2
        with self._changed:
            self._windows[exchange.stream] = self._initial_window
        fields += [(b"host", b"localhost")] if is_old and b"host" not in values else []
        block = self._encoder.encode(_head(method, target, [pair for pair in fields if pair[0] not in options - {b"te"}]))
        self._send(b"".join(_blocks(exchange.stream, block, not has_body)))
        if is_chunked:
            self._chunks(file, exchange)
        elif length:
            self._body(file, exchange, length, ends=True)
        exchange.is_sent = True
        self._wait(lambda: exchange.is_done)
        return not (exchange.closes or self._is_gone or self._is_over or self._goes_away)

    def _chunks(self, file: BinaryIO, exchange: Exchange) -> None:
        while True:
            line = file.readline()
            if not line.endswith(b"\n"):
                raise Gone
            try:
                length = int(line.partition(b";")[0], 16)
            except ValueError:
                raise Untranslated(line) from None
            if not length:
                break
            self._body(file, exchange, length, ends=False)
            if file.readline() != b"\r\n":
                raise Untranslated("a chunk that is longer than its length")
        trailers = list(_fields(file))
        if trailers:
            self._send(b"".join(_blocks(exchange.stream, self._encoder.encode(trailers), True)))
        else:
            self._send(frames.data(exchange.stream, end=True))

    def _body(self, file: BinaryIO, exchange: Exchange, length: int, ends: bool) -> None:
        """Also when the answer is complete: then it is only read."""
        while length:
            part = file.read1(min(length, frames.MOST))  # type: ignore[attr-defined]
            if not part:
                raise Gone
            length -= len(part)
            while part and not exchange.is_done:
                if room := self._room(exchange, len(part)):
                    self._send(frames.data(exchange.stream, part[:room], ends and not length and room == len(part)))
                    part = part[room:]

    def _room(self, exchange: Exchange, wanted: int) -> int:
        """How much of that may be sent, which is taken from the windows; nothing behind a complete answer."""
        self._wait(lambda: exchange.is_done or min(self._windows[0], self._windows[exchange.stream]) > 0)
        with self._changed:
            if self._is_over or self._is_gone:
                raise Gone
            room = 0 if exchange.is_done else min(self._windows[0], self._windows[exchange.stream], wanted)
            for stream in (0, exchange.stream):
                self._windows[stream] -= room
            return room

    def _end(self) -> None:
        """The test sends nothing more; what it still wants to read comes first."""
        exchange = self._exchange
        if exchange:
            self._wait(lambda: exchange.is_done)
            if not exchange.is_done and not self._is_over:
                self._send(frames.reset(exchange.stream))
        self._waker.close()
        if self._lingers:
            self._flushed.wait()
            self._near.close()

    def _send(self, wire: bytes) -> None:
        with self._sending:
            try:
                self._far.sendall(wire)
            except OSError:
                pass  # The other thread finds out how it ended, or has closed it.

    # Frames

    def _run_frames(self) -> None:
        try:
            self._read_frames()
        except ConnectionError:
            self._resets_near = True
        finally:
            with self._sending:
                if self._resets_far:
                    self._far.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                self._far.close()
            self._note("_is_over")
            self._answers.put(None)

    def _read_frames(self) -> None:
        received, poll = bytearray(), select.poll()
        poll.register(self._far, select.POLLIN)
        poll.register(self._awake, select.POLLIN)
        while all(number != self._awake.fileno() for number, _ in poll.poll()):
            part = self._far.recv(1 << 18)
            if not part:
                return
            received += part
            for each in frames.split(received):
                self._frame(each)

    def _frame(self, each: frames.Frame) -> None:
        if each.kind == Kind.CONTINUATION or (each.kind == Kind.HEADERS and not each.flags & frames.END_HEADERS):
            return self._collect(each)
        match each.kind:
            case Kind.HEADERS:
                self._head(each, each.content)
            case Kind.DATA:
                self._data(each)
            case Kind.SETTINGS if not each.flags & frames.ACK:
                self._settings(dict(struct.iter_unpack(">HL", each.payload)))
            case Kind.PING if not each.flags & frames.ACK:
                self._send(frames.frame(Kind.PING, frames.ACK, 0, each.payload))
            case Kind.WINDOW_UPDATE:
                with self._changed:
                    self._windows[each.stream] = self._windows.get(each.stream, 0) + each.number
                    self._changed.notify_all()
            case Kind.RST_STREAM:
                self._reset(each)
            case Kind.GOAWAY:
                self._goes_away = True
                if self._exchange is None or self._exchange.is_done:
                    self._answers.put(None)

    def _collect(self, each: frames.Frame) -> None:
        first, block = self._block or (each, b"")
        block += each.content
        self._block = None if each.flags & frames.END_HEADERS else (first, block)
        if each.flags & frames.END_HEADERS:
            self._head(first, block)

    def _settings(self, theirs: dict[int, int]) -> None:
        with self._changed:
            initial = theirs.get(Setting.INITIAL_WINDOW_SIZE, self._initial_window)
            for stream in self._windows:
                self._windows[stream] += initial - self._initial_window if stream else 0
            self._initial_window = initial
            self._changed.notify_all()
        self._send(frames.frame(Kind.SETTINGS, frames.ACK, 0))

    def _current(self, each: frames.Frame) -> Exchange | None:
        exchange = self._exchange
        return exchange if exchange and exchange.stream == each.stream and not exchange.is_done else None

    def _head(self, each: frames.Frame, block: bytes) -> None:
        fields = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in self._decoder.decode(block, raw=True)]
        exchange = self._current(each)
        if exchange is None:
            return
        if exchange.has_begun:
            trailers = "".join(f"{_name(name)}: {value}\r\n" for name, value in fields)
            self._put(f"0\r\n{trailers}\r\n".encode("latin-1") if exchange.is_chunked else b"")
            return self._finish(exchange)
        status = int(fields.pop(0)[1])
        if status < 200:
            if not exchange.is_old:
                self._put(_written(status, fields))
            return
        exchange.has_begun = True
        has_none = exchange.is_head or status in (204, 304)
        if not has_none and all(name != "content-length" for name, _ in fields):
            if each.ends:
                fields.append(("content-length", "0"))
            elif exchange.is_old:
                exchange.closes = True
            else:
                exchange.is_chunked = True
                fields.append(("transfer-encoding", "chunked"))
        exchange.closes |= self._goes_away
        if exchange.closes:
            fields.append(("connection", "close"))
        self._put(_written(status, fields))
        if each.ends:
            self._finish(exchange)

    def _data(self, each: frames.Frame) -> None:
        exchange, body = self._current(each), each.content
        if exchange is None:
            self._send(frames.window_update(0, len(each.payload)) if each.payload else b"")
            return
        if body and exchange.is_chunked:
            body = b"%x\r\n%s\r\n" % (len(body), body)
        if each.ends and exchange.is_chunked:
            body += b"0\r\n\r\n"
        # The window is given back when the test has room for the bytes.
        self._put(body, each.stream, len(each.payload))
        if each.ends:
            self._finish(exchange)

    def _reset(self, each: frames.Frame) -> None:
        exchange = self._exchange
        if exchange and exchange.stream == each.stream and not (exchange.is_done and exchange.is_sent):
            # Nothing in HTTP/1 cuts a response, or says that the rest of a request is not wanted, but the end of its connection.
            self._lingers = exchange.closes = exchange.is_done
            self._answers.put(None)

    def _finish(self, exchange: Exchange) -> None:
        with self._changed:
            exchange.is_done = True
            self._changed.notify_all()
        if exchange.closes or self._goes_away:
            self._answers.put(None)

    # Answers

    def _put(self, wire: bytes, stream: int = 0, count: int = 0) -> None:
        self._answers.put((wire, stream, count))

    def _run_answers(self) -> None:
        try:
            while (answer := self._answers.get()) is not None:
                wire, stream, count = answer
                self._near.sendall(wire)
                if count:
                    self._send(frames.window_update(0, count) + frames.window_update(stream, count))
        except OSError:
            self._note("_is_gone")
        with contextlib.suppress(OSError):
            if self._resets_near:
                self._near.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            else:
                self._near.shutdown(socket.SHUT_WR if self._lingers else socket.SHUT_RDWR)
        if not self._lingers:
            self._near.close()
        self._flushed.set()


def _fields(file: BinaryIO) -> Iterator[tuple[bytes, bytes]]:
    while (line := file.readline()) not in (b"\r\n", b"\n"):
        if not line.endswith(b"\n"):
            raise Gone
        name, colon, value = line.rstrip(b"\r\n").partition(b":")
        if not colon or not name or name != name.strip():
            raise Untranslated(line)
        yield name.lower(), value.strip(b" \t")


def _length(values: dict[bytes, bytes]) -> int:
    try:
        return int(values.get(b"content-length", b"0"))
    except ValueError:
        raise Untranslated(values[b"content-length"]) from None


def _head(method: bytes, target: bytes, fields: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    scheme, authority = b"http", next((value for name, value in fields if name == b"host"), None)
    if b"://" in target and not target.startswith(b"/"):
        scheme, _, rest = target.partition(b"://")
        authority, slash, path = rest.partition(b"/")
        target = slash + path or b"/"
    head = [(b":method", method)]
    if method == b"CONNECT":
        head.append((b":authority", target))
    else:
        head += [(b":scheme", scheme), (b":path", target)]
        head += [(b":authority", authority)] if authority is not None else []
    for name, value in fields:
        if name in OF_CONNECTION or name == b"host" or (name == b"te" and value != b"trailers"):
            continue
        # As browsers do it (RFC 9113 §8.2.3).
        parts = value.split(b"; ") if name == b"cookie" else [value]
        head += [(name, part) for part in parts]
    return head


def _blocks(stream: int, block: bytes, ends: bool) -> Iterator[bytes]:
    parts = [block[at : at + frames.MOST] for at in range(0, len(block), frames.MOST)] or [b""]
    yield frames.headers(stream, parts[0], ends, complete=len(parts) == 1)
    for number, part in enumerate(parts[1:], 2):
        yield frames.continuation(stream, part, complete=number == len(parts))


def _written(status: int, fields: list[tuple[str, str]]) -> bytes:
    phrase = http.HTTPStatus(status).phrase if status in set(http.HTTPStatus) else ""
    lines = [f"HTTP/1.1 {status} {phrase}", *(f"{_name(name)}: {value}" for name, value in fields)]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def _name(name: str) -> str:
    return NAMES.get(name) or (name if name.startswith("x-") else "-".join(part.capitalize() for part in name.split("-")))
