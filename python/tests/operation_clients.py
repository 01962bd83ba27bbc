"""Clients for the tests of operation: programs of others, many connections from one thread, odd processes."""

from __future__ import annotations

import os
import re
import resource
import selectors
import socket
import ssl
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import secured
from conftest import MAITRED, PATIENCE


def run_client(*command: str | Path, limit: float = PATIENCE) -> subprocess.CompletedProcess[str]:
    """Runs a client program to its end; what it wrote is replaced where it is not UTF-8."""
    return subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=limit)


def allow_descriptors(count: int) -> None:
    """Lets this process open ``count`` descriptors at least."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < count:
        resource.setrlimit(resource.RLIMIT_NOFILE, (count, hard))


def processor_seconds(pid: int) -> float:
    """User and system time a process has used (proc(5), fields 14 and 15 of stat), to 10 ms."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def launched(
    *arguments: str, folder: Path, stdout: int | IO[bytes] | None, stderr: int | IO[bytes]
) -> Iterator[subprocess.Popen[bytes]]:
    """A server whose standard output and error the test chooses."""
    command = [str(MAITRED), *arguments, "--listen", "127.0.0.1:0"]
    process = subprocess.Popen(command, cwd=folder, stdout=stdout, stderr=stderr)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def announced_port(lines: IO[bytes]) -> int:
    """Reads start-up lines up to the one that names the address, and not a byte further."""
    said = b""
    while not (found := re.search(rb"127\.0\.0\.1:(\d+).*\n", said)):
        byte = os.read(lines.fileno(), 1)
        assert byte, f"no address in {said!r}"
        said += byte
    return int(found[1])


def connect(port: int, receive_buffer: int | None = None) -> socket.socket:
    """A connection; with a small receive buffer it is a reader that is easily too slow."""
    peer = socket.socket()
    peer.settimeout(PATIENCE)
    if receive_buffer is not None:
        # Before connecting: the window is agreed on then.
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    peer.connect(("127.0.0.1", port))
    return secured.wrapped(peer, port)


def request(path: str, *fields: str, method: str = "GET") -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: localhost", *fields, "", ""]).encode()


def complete_length(received: bytes) -> int | None:
    """The length of the first response in ``received``, framed by Content-Length or chunks; None while it is incomplete."""
    end = received.find(b"\r\n\r\n")
    if end < 0:
        return None
    head, at = received[:end].lower(), end + 4
    if b"\r\ntransfer-encoding: chunked" in head:
        while (line := received.find(b"\r\n", at)) >= 0:
            size = int(received[at:line], 16)
            at = line + 2 + size + 2
            if size == 0:
                return at if at <= len(received) else None
        return None
    length = re.search(rb"\r\ncontent-length: (\d+)", head)
    assert length, f"a response without length, or an interim one: {head!r}"
    at += int(length[1])
    return at if at <= len(received) else None


def read_response(peer: socket.socket) -> bytes:
    """One response, head included; fails when the connection ends inside it."""
    received = b""
    while (length := complete_length(received)) is None:
        part = peer.recv(65536)
        assert part, f"the connection ended after {received!r}"
        received += part
    assert length == len(received), f"more than was asked for: {received[length:]!r}"
    return received


@dataclass
class Talk:
    """One connection that asks, waits for the answer, and asks again."""

    peer: socket.socket
    received: bytes = b""
    asked: int = 0
    answered: int = 0


@dataclass
class Crowd:
    """Many connections, each with one request under way, served by one thread."""

    port: int
    requests: list[bytes]
    #: Called with the number of answers so far, after each one.
    on_answer: Callable[[int], None] = lambda count: None
    answers: int = 0
    statuses: dict[bytes, int] = field(default_factory=dict)
    #: What must not happen: an answer cut short, a request without any.
    faults: list[str] = field(default_factory=list)

    def run(self, connections: int, rounds: int | None = None) -> None:
        """Asks until every connection has had ``rounds`` answers, or the server has closed them all."""
        with selectors.DefaultSelector() as selector:
            for _ in range(connections):
                talk = Talk(connect(self.port))
                talk.peer.setblocking(False)
                selector.register(talk.peer, selectors.EVENT_READ, talk)
                self._ask(talk)
            while selector.get_map():
                events = selector.select(PATIENCE)
                if not events:
                    waiting = [key.data for key in selector.get_map().values()]
                    self.faults.append(f"{len(waiting)} connections without an answer for {PATIENCE} s")
                    for talk in waiting:
                        self._end(selector, talk)
                for key, _ in events:
                    if not self._receive(key.data, rounds):
                        self._end(selector, key.data)

    def _ask(self, talk: Talk) -> None:
        # A request fits into an empty socket buffer: the previous answer has been read.
        try:
            talk.peer.send(self.requests[talk.asked % len(self.requests)])
        except OSError as error:
            self.faults.append(f"sending request {talk.asked}: {error}")
        talk.asked += 1

    def _receive(self, talk: Talk, rounds: int | None) -> bool:
        """Whether the conversation goes on."""
        try:
            part = talk.peer.recv(262144)
            # By TLS, what comes is opened record by record, and no event tells of what is open.
            while part and isinstance(talk.peer, ssl.SSLSocket) and talk.peer.pending():
                part += talk.peer.recv(262144)
        except BlockingIOError:
            return True
        except OSError as error:
            self.faults.append(f"request {talk.asked}, {len(talk.received)} bytes of its answer: {error}")
            return False
        if not part:
            self.faults.append(f"request {talk.asked}: closed after {len(talk.received)} bytes of its answer")
            return False
        talk.received += part
        length = complete_length(talk.received)
        if length is None:
            return True
        answer, talk.received = talk.received[:length], talk.received[length:]
        if talk.received:
            self.faults.append(f"request {talk.asked}: more than one answer: {talk.received[:80]!r}")
        talk.answered += 1
        self.answers += 1
        self.statuses[answer[9:12]] = self.statuses.get(answer[9:12], 0) + 1
        self.on_answer(self.answers)
        if b"\r\nconnection: close" in answer[: answer.find(b"\r\n\r\n")].lower() or talk.answered == rounds:
            return False
        self._ask(talk)
        return True

    def _end(self, selector: selectors.BaseSelector, talk: Talk) -> None:
        selector.unregister(talk.peer)
        talk.peer.close()
