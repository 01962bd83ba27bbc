"""WebSockets frame by frame (RFC 6455, RFC 7692): a client that also sends what no library would, and looks at every frame that comes.

The same client speaks over HTTP/1.1 (clear, or TLS where the suite wants it), over HTTP/2 (RFC 8441), or any pipe of bytes.
"""

from __future__ import annotations

import re
import socket
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import frames
from websocket_frames import NO_CODE, RSV1, Deflate, Event, Frame, Opcode, close, fragments, ping, pong, split

#: As in conftest.py, which needs modules like this one.
PATIENCE = 30.0
#: Of RFC 6455 §1.3, with the answer to it.
KEY, ACCEPTED = "dGhlIHNhbXBsZSBub25jZQ==", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
def request(path: str = "/", *lines: str, method: str = "GET", version: str | None = "13", key: str | None = KEY, upgrade: str = "websocket") -> bytes:
    """The head of an upgrade; ``None`` leaves a field out, ``lines`` are further ones."""
    head = [f"{method} {path} HTTP/1.1", "Host: localhost", f"Upgrade: {upgrade}", "Connection: Upgrade"]
    head += [f"Sec-WebSocket-Key: {key}"] if key is not None else []
    head += [f"Sec-WebSocket-Version: {version}"] if version is not None else []
    return "\r\n".join([*head, *lines, "", ""]).encode("latin-1")


@dataclass
class Head:
    """Of a response."""

    status: int
    fields: list[tuple[str, str]]
    body: bytes = b""

    def field(self, name: str) -> str | None:
        found = [value for each, value in self.fields if each == name]
        assert len(found) < 2, f"{name} is there {len(found)} times"
        return found[0] if found else None


class Refused(Exception):
    """The server has answered something else."""

    def __init__(self, head: Head) -> None:
        super().__init__(head)
        self.head = head


class Ended(Exception):
    """The connection has ended while something was waited for."""


class Pipe(Protocol):
    """What a WebSocket's bytes go through."""

    def send(self, data: bytes) -> None: ...

    def receive(self) -> bytes:
        """What comes next; empty at the end, however that came."""

    def finish(self) -> None:
        """Ends our side, and the other one may go on."""

    def abort(self) -> None:
        """As a peer that is lost: no close frame, and no end that is in order."""

    def leave(self) -> None:
        """Gives everything back that is still open."""


class SocketPipe:
    """A connection of its own, by HTTP/1.1."""

    def __init__(self, peer: socket.socket) -> None:
        self.peer = peer
        peer.settimeout(PATIENCE)
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        #: It did not end in order.
        self.was_reset = False

    def send(self, data: bytes) -> None:
        self.peer.sendall(data)

    def receive(self) -> bytes:
        try:
            return self.peer.recv(1 << 18)
        except ConnectionError:
            self.was_reset = True
            return b""

    def finish(self) -> None:
        self.peer.shutdown(socket.SHUT_WR)

    def abort(self) -> None:
        self.peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.peer.close()

    def leave(self) -> None:
        self.peer.close()


class StreamPipe:
    """A stream of an HTTP/2 connection, which may have others."""

    def __init__(self, connection: frames.Connection, stream: int) -> None:
        self.connection, self.stream = connection, stream
        self._taken = 0
        self._is_over = False

    @property
    def answer(self) -> frames.Answer:
        return self.connection.answers[self.stream]

    @property
    def was_reset(self) -> bool:
        return self.answer.reset is not None

    def send(self, data: bytes) -> None:
        if data:
            self.connection.upload(self.stream, data, end=False)

    def receive(self) -> bytes:
        while len(self.answer.body) == self._taken:
            if self.answer.is_complete or self.was_reset:
                return b""
            self.connection.take()
        part = bytes(self.answer.body[self._taken :])
        self._taken = len(self.answer.body)
        return part

    def finish(self) -> None:
        self.connection.send(frames.data(self.stream, end=True))
        self._is_over = True

    def abort(self) -> None:
        self.connection.send(frames.reset(self.stream))
        self._is_over = True

    def leave(self) -> None:
        if not self._is_over:
            self.connection.send_or_end(frames.reset(self.stream))


# The client


class WebSocket:
    """An open one. It answers nothing by itself."""

    def __init__(self, pipe: Pipe, head: Head, ahead: bytes = b"") -> None:
        self.pipe, self.head = pipe, head
        extensions = head.field("sec-websocket-extensions")
        self.deflate = Deflate.agreed(extensions) if extensions else None
        self.subprotocol = head.field("sec-websocket-protocol")
        #: The frames of messages that came so far, and how many bytes.
        self.frames_received = 0
        self.bytes_received = len(ahead)
        self._received = bytearray(ahead)
        self._message: tuple[Frame, list[bytes]] | None = None

    def __enter__(self) -> WebSocket:
        return self

    def __exit__(self, *_: object) -> None:
        self.pipe.leave()

    # Sending

    def send(self, *parts: bytes) -> None:
        """Frames, or parts of them, in one piece."""
        self.pipe.send(b"".join(parts))

    def send_each(self, parts: Iterable[bytes]) -> None:
        """One by one, as long as the server takes them."""
        try:
            for part in parts:
                self.pipe.send(part)
        except ConnectionError:
            pass  # It has ended the connection; what it said before is read next.

    def say(self, message: str | bytes, size: int = 0) -> None:
        """A message, compressed if that was agreed on, in fragments of ``size`` bytes if there is one."""
        opcode = Opcode.TEXT if isinstance(message, str) else Opcode.BINARY
        payload = message.encode() if isinstance(message, str) else message
        if self.deflate:
            payload = self.deflate.compress(payload)
        self.send(*fragments(opcode, payload, size or len(payload) or 1, RSV1 if self.deflate else 0))

    # Receiving

    def frame(self) -> Frame | None:
        """The next one; none when the connection has ended."""
        while (found := split(self._received)) is None:
            part = self.pipe.receive()
            if not part:
                assert not self._received, f"the connection has ended in the middle of a frame: {bytes(self._received[:40])!r}"
                return None
            self.bytes_received += len(part)
            self._received += part
        self.frames_received += not found.is_control
        return found

    def event(self) -> Event | None:
        """What comes next, whole; none when the connection has ended."""
        while (found := self.frame()) is not None:
            if found.is_control:
                return self._control(found)
            if (event := self._data(found)) is not None:
                return event
        return None

    def _control(self, found: Frame) -> Event:
        if found.opcode != Opcode.CLOSE:
            return Opcode(found.opcode).name.lower(), found.payload
        assert len(found.payload) != 1, "a code has two bytes"
        if not found.payload:
            return "close", (NO_CODE, "")
        (code,) = struct.unpack(">H", found.payload[:2])
        assert 1000 <= code < 5000 and code not in (1004, 1005, 1006, 1015), f"{code} is never sent (RFC 6455 §7.4)"
        return "close", (code, found.payload[2:].decode())

    def _data(self, found: Frame) -> Event | None:
        assert (found.opcode == Opcode.CONTINUATION) == (self._message is not None), f"out of order: {found}"
        may_be_compressed = self.deflate is not None and found.opcode != Opcode.CONTINUATION
        assert found.rsv in ((0, RSV1) if may_be_compressed else (0,)), found.rsv
        first, parts = self._message = self._message or (found, [])
        parts.append(found.payload)
        if not found.fin:
            return None
        self._message = None
        payload = b"".join(parts)
        if first.rsv:
            assert self.deflate
            payload = self.deflate.decompress(payload)
        return ("text", payload.decode()) if first.opcode == Opcode.TEXT else ("binary", payload)

    def message(self) -> str | bytes:
        """The next message. Pings on the way are answered, and nothing else may come."""
        while True:
            match self.event():
                case ("text" | "binary", message):
                    assert isinstance(message, (str, bytes))
                    return message
                case ("ping", payload):
                    self.send(pong(payload))
                case ("pong", _):
                    pass
                case other:
                    raise Ended(other)

    def echo(self, message: str | bytes) -> str | bytes:
        self.say(message)
        return self.message()

    def ping(self, payload: bytes = b"is there") -> list[Event]:
        """Asked and answered: all that was sent before has been read. What came before the answer."""
        self.send(ping(payload))
        before: list[Event] = []
        while (event := self.event()) != ("pong", payload):
            assert event is not None, before
            before.append(event)
        return before

    # The end

    def closed(self) -> tuple[int, str]:
        """The server's code and reason, which come next and are answered; then it ends the connection first (§7.1.1)."""
        match self.event():
            case ("close", (int(code), str(reason))):
                self.answer_close(code)
                assert self.event() is None, "nothing follows a close"
                return code, reason
            case other:
                raise AssertionError(f"no close, but {other}")

    def answer_close(self, code: int) -> None:
        try:
            self.send(close(None if code == NO_CODE else code))
        except ConnectionError:
            pass  # A server that closes for a fault waits for no answer.

    def close(self, code: int | None = 1000, reason: str = "") -> tuple[int, str]:
        """Ours, and what the server answers to it; then it ends the connection."""
        self.send(close(code, reason))
        match self.event():
            case ("close", (int(said), str(why))):
                assert self.event() is None, "nothing follows a close"
                return said, why
            case other:
                raise AssertionError(f"no close, but {other}")


# The handshake


def connect(port: int, path: str = "/", *lines: str, deflate: str | None = None, subprotocols: Sequence[str] = ()) -> WebSocket:
    """A WebSocket by HTTP/1.1; ``lines`` are further fields. Raises ``Refused``."""
    return over(socket.create_connection(("127.0.0.1", port), PATIENCE), path, *lines, deflate=deflate, subprotocols=subprotocols)


def over(peer: socket.socket, path: str = "/", *lines: str, deflate: str | None = None, subprotocols: Sequence[str] = ()) -> WebSocket:
    """The same on a connection that is open."""
    offers = [f"Sec-WebSocket-Extensions: {deflate}"] if deflate else []
    offers += [f"Sec-WebSocket-Protocol: {', '.join(subprotocols)}"] if subprotocols else []
    peer.sendall(request(path, *offers, *lines))
    return accepted(peer)


def accepted(peer: socket.socket) -> WebSocket:
    """What the answer to a request that was sent has opened."""
    pipe = SocketPipe(peer)
    try:
        head, ahead = response(pipe)
        if head.status != 101:
            head.body = body(pipe, head, ahead)
            raise Refused(head)
        assert head.field("sec-websocket-accept") == ACCEPTED, head
        assert (head.field("upgrade") or "").lower() == "websocket" and (head.field("connection") or "").lower() == "upgrade", head
        assert head.field("content-length") is None and head.field("transfer-encoding") is None, head
        return WebSocket(pipe, head, ahead)
    except BaseException:
        peer.close()
        raise


def refused(port: int, asked: bytes) -> Head:
    """The answer to a request that is not accepted."""
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as peer:
        peer.sendall(asked)
        try:
            accepted(peer)
        except Refused as error:
            return error.head
    raise AssertionError("it was accepted")


def response(pipe: SocketPipe) -> tuple[Head, bytes]:
    """A head, and what came after it."""
    received = b""
    while b"\r\n\r\n" not in received:
        part = pipe.receive()
        if not part:
            raise Ended(received)
        received += part
    said, _, ahead = received.partition(b"\r\n\r\n")
    first, *lines = said.decode("latin-1").split("\r\n")
    pairs = (line.split(":", 1) for line in lines)
    return Head(int(first.split(" ")[1]), [(name.lower(), value.strip()) for name, value in pairs]), ahead


def body(pipe: SocketPipe, head: Head, ahead: bytes) -> bytes:
    """Of a response that has one, by its length, by chunks or to the end."""
    received = ahead
    if head.field("transfer-encoding") == "chunked":
        while not received.endswith(b"0\r\n\r\n"):
            received += pipe.receive() or b"0\r\n\r\n"
        parts = []
        while received:
            size, _, received = received.partition(b"\r\n")
            parts.append(received[: int(size, 16)])
            received = received[int(size, 16) + 2 :]
        return b"".join(parts)
    length = head.field("content-length")
    while length is None or len(received) < int(length):
        part = pipe.receive()
        if not part:
            break
        received += part
    return received


def complaints(said: str) -> list[str]:
    """What a server has said of faults. That the loop stood still is told, too, where others have the processors."""
    lines = (line for line in said.splitlines() if re.search(r"Z (?:error|warn) |panicked|Traceback", line))
    return [line for line in lines if "standing still" not in line and "loop is back" not in line]


def connect_h2(
    connection: frames.Connection,
    path: str = "/",
    *fields: frames.Field,
    deflate: str | None = None,
    subprotocols: Sequence[str] = (),
    scheme: str = "http",
) -> WebSocket:
    """A WebSocket on a new stream of the connection. Raises ``Refused``, also where the stream is reset: then with status 0."""
    connection.peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    offers = [("sec-websocket-extensions", deflate)] if deflate else []
    offers += [("sec-websocket-protocol", ", ".join(subprotocols))] if subprotocols else []
    stream = extended(connection, path, [("sec-websocket-version", "13"), *offers, *fields], scheme=scheme)
    answer = connection.answers[stream]
    while not answer.heads and answer.reset is None:
        connection.take()
    head = Head(answer.status, list(answer.heads[0][1:]) if answer.heads else [])
    if head.status != 200:
        connection.answer(stream)
        head.body = bytes(answer.body)
        raise Refused(head)
    for name in ("sec-websocket-accept", "upgrade", "connection", "content-length", "transfer-encoding"):
        assert head.field(name) is None, head
    return WebSocket(StreamPipe(connection, stream), head)


def extended(
    connection: frames.Connection, path: str, fields: Sequence[frames.Field], protocol: str | None = "websocket", scheme: str = "http", end: bool = False
) -> int:
    """Asks for a stream by extended CONNECT (RFC 8441 §4); its number."""
    named = [(":protocol", protocol)] if protocol is not None else []
    pseudo = [(":method", "CONNECT"), *named, (":scheme", scheme), (":path", path), (":authority", "localhost")]
    stream = connection.stream()
    block = connection.encoder.encode([(name, value, True) for name, value in (*pseudo, *fields)])
    connection.send(frames.headers(stream, block, end=end))
    return stream
