"""Servers of raw sockets: a test says the bytes of each response, and looks at the bytes of each request."""

from __future__ import annotations

import contextlib
import re
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from conftest import PATIENCE

#: The bytes of a response, or what is done with the connection.
Answer = bytes | Callable[[socket.socket], "bytes | None"]


@dataclass
class Answering:
    """Answers the requests in their order, on as many connections as there are; the last answer again and again."""

    answers: list[Answer]
    tls: ssl.SSLContext | None = None
    #: Head and body of each request.
    requests: list[bytes] = field(default_factory=list)
    #: How many connections there were.
    connections: int = 0

    def __post_init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.ending = threading.Event()
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    @property
    def url(self) -> str:
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}"

    def close(self) -> None:
        self.ending.set()
        # Wakes `accept`.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def wait(self, connection: socket.socket) -> None:
        """An answer that never comes."""
        self.ending.wait(PATIENCE)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        connection.settimeout(PATIENCE)
        with contextlib.suppress(OSError), connection:
            if self.tls:
                connection = self.tls.wrap_socket(connection, server_side=True)
            with connection, connection.makefile("rb") as file:
                while request := read_request(file):
                    self.requests.append(request)
                    answer = self.answers[min(len(self.requests), len(self.answers)) - 1]
                    said = answer if isinstance(answer, bytes) else answer(connection)
                    if said is None:
                        return
                    connection.sendall(said)
                    if b"\r\nconnection: close\r\n" in said.lower():
                        return


def read_request(file: object) -> bytes:
    """Head and body of the next request; empty at the end."""
    read, line = file.readline, file.readline()  # type: ignore[attr-defined]
    head = line
    while line not in (b"\r\n", b""):
        line = read()
        head += line
    length = re.search(rb"\r\ncontent-length: *(\d+)", head, re.I)
    if length:
        return head + file.read(int(length[1]))  # type: ignore[attr-defined]
    if re.search(rb"\r\ntransfer-encoding: *chunked", head, re.I):
        while size := int(read().strip() or b"0", 16):
            head += file.read(size)  # type: ignore[attr-defined]
            read()
        read()
    return head


@contextlib.contextmanager
def answering(*answers: Answer, tls: ssl.SSLContext | None = None) -> Iterator[Answering]:
    server = Answering(list(answers), tls)
    try:
        yield server
    finally:
        server.close()


def ok(body: bytes = b"ok", *fields: bytes, status: bytes = b"200 OK") -> bytes:
    """A response with Content-Length."""
    lines = [b"HTTP/1.1 " + status, *fields, b"Content-Length: %d" % len(body)]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def chunked(*parts: bytes, fields: tuple[bytes, ...] = ()) -> bytes:
    head = b"\r\n".join([b"HTTP/1.1 200 OK", b"Transfer-Encoding: chunked", *fields]) + b"\r\n\r\n"
    return head + b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"
