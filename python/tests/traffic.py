"""Clients that ask without end, on new connections and on kept ones, and know of every request what became of it."""

from __future__ import annotations

import itertools
import random
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from conftest import PATIENCE, open_files
from crews import until

#: Writes down where each request begins and ends: a line is one write to a file opened for appending, which a killed process has done
#: or not done.
APP = """
import os, time
notes = os.open("requests.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
pid = os.getpid()

def app(environ, start_response):
    name = environ["PATH_INFO"][1:]
    os.write(notes, f"begin {name} {pid}\\n".encode())
    # Some take longer, so that an end finds requests in the middle.
    time.sleep(0.02 if name.endswith("7") else 0.001)
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(name)))])
    os.write(notes, f"end {name} {pid}\\n".encode())
    return [name.encode()]
"""

#: The longest pause of a client with a connection that is kept: it is idle when something happens to the server.
PAUSE = 0.03


class Unanswered(Exception):
    """The connection ended, or something else came, where an answer should be."""


@dataclass
class Traffic:
    """What the clients have seen."""

    port: int
    answered: int = 0
    #: Requests on a connection that had been used and was closed before anything of the answer came; asked again on a new one.
    asked_again: int = 0
    #: By name, with how.
    failed: dict[str, str] = field(default_factory=dict)
    #: The ports from which they were asked; 0 is one for which there was no connection.
    ports: dict[str, int] = field(default_factory=dict)
    done: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, name: str, failure: str | None, port: int = 0, again: bool = False) -> None:
        with self._lock:
            self.asked_again += again
            if failure is None:
                self.answered += 1
            else:
                self.failed[name], self.ports[name] = failure, port

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), PATIENCE)

    def on_new(self, client: int) -> None:
        for count in itertools.count():
            if self.done.is_set():
                return
            name, port = f"n{client}-{count}", 0
            try:
                with self.connect() as peer:
                    port = peer.getsockname()[1]
                    exchange(peer, name)
                self.note(name, None)
            except (OSError, Unanswered, Idle) as error:
                self.note(name, f"on a new connection: {error!r}", port or handshakes_port(error))

    def on_kept(self, client: int) -> None:
        chance = random.Random(client)
        peer: socket.socket | None = None
        for count in itertools.count():
            if self.done.is_set():
                break
            name, port, again = f"k{client}-{count}", 0, False
            try:
                if peer is not None:
                    try:
                        port = peer.getsockname()[1]
                        peer = exchange(peer, name)
                        self.note(name, None)
                        self.done.wait(chance.uniform(0, PAUSE))
                        continue
                    except Idle:
                        again, port = True, 0
                peer = self.connect()
                port = peer.getsockname()[1]
                peer = exchange(peer, name)
                self.note(name, None, again=again)
            except (OSError, Unanswered, Idle) as error:
                self.note(name, f"on a kept connection{', asked again' if again else ''}: {error!r}", port or handshakes_port(error), again)
                peer = None
            self.done.wait(chance.uniform(0, PAUSE))
        if peer is not None:
            peer.close()


def handshakes_port(error: Exception) -> int:
    """From which port a handshake of TLS was begun that has failed so; 0 if it was none."""
    return int(getattr(error, "connected_from", (None, 0))[1])


class Idle(Exception):
    """A used connection was closed, and nothing of the answer has come: a browser asks again (RFC 9112 §9.3.1)."""


def exchange(peer: socket.socket, name: str) -> socket.socket | None:
    """Asks, and reads the whole answer; the connection, if it goes on."""
    try:
        received = b""
        try:
            peer.sendall(f"GET /{name} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            while (end := received.find(b"\r\n\r\n")) < 0 or len(received) < end + 4 + len(name):
                part = peer.recv(65536)
                if not part:
                    raise Unanswered(f"the end after {received!r}")
                received += part
        except (OSError, Unanswered) as error:
            if not received:
                raise Idle(repr(error)) from error
            raise
        head, body = received[:end], received[end + 4 :]
        if not head.startswith(b"HTTP/1.1 200 ") or body != name.encode():
            raise Unanswered(f"{received!r}")
    except BaseException:
        peer.close()
        raise
    if b"\r\nconnection: close" in head.lower():
        peer.close()
        return None
    return peer


@contextmanager
def traffic(port: int, new: int = 4, kept: int = 4) -> Iterator[Traffic]:
    """So many clients of each kind meanwhile."""
    seen = Traffic(port)
    clients = [threading.Thread(target=seen.on_new, args=(number,)) for number in range(new)]
    clients += [threading.Thread(target=seen.on_kept, args=(number,)) for number in range(kept)]
    for client in clients:
        client.start()
    try:
        until("requests are answered", lambda: seen.answered > 50)
        yield seen
        before = seen.answered
        until("requests are answered still", lambda: seen.answered > before + 50)
    finally:
        seen.done.set()
        for client in clients:
            client.join(PATIENCE)


def begun(folder: Path) -> dict[str, list[int]]:
    """The processes that have begun each request, in order."""
    found: dict[str, list[int]] = {}
    for line in (folder / "requests.log").read_text().splitlines():
        what, name, pid = line.split()
        if what == "begin":
            found.setdefault(name, []).append(int(pid))
    return found


def connections(pid: int, port: int) -> set[int]:
    """The clients' ports of the connections to this port that a process has accepted and not closed."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    # Each is an address and a port in hexadecimal digits; the ninth column behind the number is the socket's (proc_pid_net(5)).
    remote = {row[9]: int(row[2].partition(":")[2], 16) for row in rows if int(row[1].partition(":")[2], 16) == port}
    inodes = (link.removeprefix("socket:[").removesuffix("]") for link in open_files(pid).values())
    return {remote[inode] for inode in inodes if inode in remote} - {0}
