"""A service that misbehaves as the path of a request says, in a process of its own, for the tests of `maitred.http`.

    /hello          200 and "hello", by chunks too: /chunked
    /bytes/N        200 and N bytes
    /echo           200 and the body of the request
    /late           200, a tenth of a second late
    /sleep          no answer, until the client leaves
    /dribble        a head, and a byte of its body every 10 ms, without end
    /stop           a head that promises 1,000 bytes, and 500 of them
    /cut            the same, and the end of the connection
    /reset          the connection is reset in the place of an answer
    /reset-body     the same in the middle of a body
    /close          the connection ends without an answer
    /once           200 and "hello", and the connection ends unannounced
    /nonsense       what is not HTTP
    /status/N       an empty answer with this status
    /raw            the body of the request is the answer, byte by byte as it is; the connection ends behind it
    /connections    how many connections are open, that of the asker among them
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

PROMISED = 1000
#: The first byte of a client that speaks TLS (RFC 8446, section 5.1).
HANDSHAKE = b"\x16"


class Upstream:
    """The running service."""

    def __init__(self, certificate: Path | None = None, key: Path | None = None, host: str = "127.0.0.1", port: int = 0) -> None:
        words = [host, str(port), *(str(file) for file in (certificate, key) if file)]
        self.process = subprocess.Popen([sys.executable, __file__, *words], stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        said = self.process.stdout.readline()
        assert said, "the service has not started"
        self.port = int(said)
        self.scheme = "https" if certificate else "http"
        self.host = host

    def url(self, path: str = "/", host: str | None = None) -> str:
        return f"{self.origin(host)}{path}"

    def origin(self, host: str | None = None) -> str:
        return f"{self.scheme}://{host or self.host}:{self.port}"

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


@contextlib.contextmanager
def upstream(certificate: Path | None = None, key: Path | None = None, host: str = "127.0.0.1", port: int = 0) -> Iterator[Upstream]:
    running = Upstream(certificate, key, host, port)
    try:
        yield running
    finally:
        running.end()


@contextlib.contextmanager
def unaccepting(family: socket.AddressFamily = socket.AF_INET, port: int = 0) -> Iterator[int]:
    """A port whose backlog is full: the kernel answers no further SYN."""
    address = "127.0.0.1" if family == socket.AF_INET else "::1"
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.socket(family))
        listener.bind((address, port))
        listener.listen(0)
        place = listener.getsockname()[:2]
        while True:
            client = stack.enter_context(socket.socket(family))
            client.settimeout(0.5)
            try:
                client.connect(place)
            except TimeoutError:
                break
        yield place[1]


def refused() -> int:
    """A port at which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


# The service


class Service:
    def __init__(self) -> None:
        self.open = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open += 1
        try:
            # ValueError: a body that ends where the size of a chunk should be.
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, ssl.SSLError, ValueError):
                while await self.exchange(reader, writer):
                    await writer.drain()
        finally:
            self.open -= 1
            writer.close()

    async def exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One request; whether the connection goes on."""
        first = await reader.readexactly(1)
        if first == HANDSHAKE:
            writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
            return False
        head = (first + await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        path = head.split(" ", 2)[1]
        fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head.split("\r\n")[1:])}
        body = await received(reader, fields)
        word, _, number = path.strip("/").partition("/")
        if word == "hello":
            write(writer, b"hello")
        elif word == "once":
            write(writer, b"hello")
            await writer.drain()
            return False
        elif word == "chunked":
            writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\nX-After: yes\r\n\r\n")
        elif word == "bytes":
            write(writer, bytes(int(number)))
        elif word == "echo":
            write(writer, body)
        elif word == "raw":
            writer.write(body)
            await writer.drain()
            return False
        elif word == "late":
            await asyncio.sleep(0.1)
            write(writer, b"hello")
        elif word == "status":
            writer.write(f"HTTP/1.1 {number} As Asked\r\nContent-Length: 0\r\n\r\n".encode())
        elif word == "connections":
            write(writer, str(self.open).encode())
        else:
            await misbehave(word, reader, writer)
            return False
        return True


async def received(reader: asyncio.StreamReader, fields: dict[str, str]) -> bytes:
    if fields.get("transfer-encoding") == "chunked":
        body = b""
        while size := int(await reader.readline(), 16):
            body += await reader.readexactly(size)
            await reader.readexactly(2)
        await reader.readline()
        return body
    return await reader.readexactly(int(fields.get("content-length", "0")))


def write(writer: asyncio.StreamWriter, body: bytes) -> None:
    writer.write(f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)


async def misbehave(word: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {PROMISED}\r\n\r\n".encode()
    if word == "nonsense":
        writer.write(b"SSH-2.0-OpenSSH_9.2p1\r\n")
    if word in ("stop", "cut", "reset-body"):
        writer.write(head + bytes(PROMISED // 2))
    if word == "dribble":
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
        while not reader.at_eof():
            writer.write(b".")
            await writer.drain()
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(reader.read(1), 0.01)
        return
    with contextlib.suppress(ConnectionError):
        await writer.drain()
    if word in ("sleep", "stop"):
        await reader.read()
    elif word.startswith("reset"):
        connection = writer.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()


async def main(host: str, port: str, *files: str) -> None:
    tls = None
    if files:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(*files)
    server = await asyncio.start_server(Service().serve, host, int(port), ssl=tls, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
