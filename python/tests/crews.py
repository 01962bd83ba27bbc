"""Servers of several processes: who belongs to one, which of them answers, and that none is left."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import MAITRED, PATIENCE, Server

#: Stays in its import while there is a file ``hold``, and says which process it is.
APP = """
import os, signal, time
RELEASE = "first"
print("imports in", os.getpid(), flush=True)
while os.path.exists("hold"):
    time.sleep(0.01)

def app(environ, start_response):
    path, _, wanted = environ["PATH_INFO"][1:].partition("/")
    if not wanted or int(wanted) == os.getpid():
        act(path)
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [f"{RELEASE} {os.getpid()}".encode()]

kept = []

def act(what):
    if what == "exits":
        os._exit(7)
    if what == "crashes":
        os.kill(os.getpid(), signal.SIGSEGV)
        # Another thread may be the one that the kernel ends first.
        time.sleep(60)
    if what == "grows":
        kept.append(b"x" * (96 << 20))
    if what == "stays":
        print("stays in", os.getpid(), flush=True)
        while not os.path.exists("go"):
            time.sleep(0.01)
"""

#: Streams that do not end by themselves.
EVENTS = """
import asyncio, os

async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        raise RuntimeError("no lifespan")
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})
    await send({"type": "http.response.body", "body": f"{os.getpid()}\\n".encode(), "more_body": True})
    await asyncio.Event().wait()
"""

#: The command as a file of its own, which can be replaced.
PROGRAM = """
import sys
from maitred.__main__ import main
sys.exit(main())
"""


def until(what: str, is_so: Callable[[], bool], limit: float = PATIENCE) -> None:
    end = time.monotonic() + limit
    while not is_so():
        assert time.monotonic() < end, what
        time.sleep(0.01)


def marked(mark: str) -> dict[int, int]:
    """All processes with this variable in their environment, with their parents. Those that have ended have none."""
    found = {}
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if f"CREW={mark}".encode() in (place / "environ").read_bytes().split(b"\0"):
                found[int(place.name)] = int((place / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            pass  # It has ended meanwhile, or is another user's.
    return found


class Door(http.client.HTTPConnection):
    """To the control socket in a folder, whose path may be longer than an address of a socket."""

    def __init__(self, folder: Path) -> None:
        super().__init__("localhost", timeout=PATIENCE)
        self.folder = folder

    def connect(self) -> None:
        folder = os.open(self.folder, os.O_PATH)
        try:
            self.sock = socket.socket(socket.AF_UNIX)
            self.sock.settimeout(PATIENCE)
            self.sock.connect(f"/proc/self/fd/{folder}/ctl.sock")
        finally:
            os.close(folder)


class Crew(Server):
    """A supervisor and its workers, which are ready."""

    def __init__(self, arguments: list[str], folder: Path, mark: str, program: str | None = None) -> None:
        self.folder, self.mark, self.program = folder, mark, program
        # One of its own: what is compiled from a source stays valid when it is replaced within a second.
        environment = {"CREW": mark, "PYTHONDONTWRITEBYTECODE": "1"}
        super().__init__([*arguments, "--control", "ctl.sock"], folder, environment)
        self.wait_for("info all workers are ready")

    def command(self, arguments: list[str]) -> list[str | Path]:
        program: list[str | Path] = [MAITRED] if self.program is None else [sys.executable, self.program]
        # In a process group of its own, as a shell has it for what a terminal's Ctrl-C reaches.
        return ["setsid", *program, *arguments]

    @property
    def leader(self) -> int:
        """The supervisor, which is another process after an upgrade."""
        last = re.findall(r"info process (\d+) is ready and serves", self.said)
        return int(last[-1]) if last else self.process.pid

    def processes(self) -> set[int]:
        """All that are left of it, whoever has started them."""
        return set(marked(self.mark))

    def workers(self) -> set[int]:
        """The processes that the supervisor has started."""
        return {pid for pid, parent in marked(self.mark).items() if parent == self.leader}

    def answer(self, path: str = "/") -> tuple[str, int]:
        """The release and the process that answer on a new connection."""
        reply = self.fetch(path)
        assert reply.status == 200, (reply.status, reply.body)
        release, pid = reply.body.decode().split()
        return release, int(pid)

    def serving(self, count: int, release: str = "first") -> set[int]:
        """Waits until so many processes, and no others, have answered new connections with this release; which."""
        seen: list[tuple[str, int]] = []

        def settled() -> bool:
            seen.append(self.answer())
            last = seen[-count * 8 :]
            return len(last) == count * 8 and len(set(last)) == count and {each for each, _ in last} == {release}

        until(f"{count} processes serve {release!r}", settled)
        return {pid for _, pid in seen[-count * 8 :]}

    def stay(self, count: int) -> list[http.client.HTTPConnection]:
        """Requests that stay in the application until there is a file ``go``; so many workers have one at least."""
        peers: list[http.client.HTTPConnection] = []

        def they_stay() -> bool:
            return len(set(re.findall(r"stays in (\d+)", self.said))) >= count

        def stay() -> bool:
            peer = self.connect()
            peer.request("GET", "/stays")
            peers.append(peer)
            # A worker without a free thread takes what the others, for want of a processor, have left for 10 ms: another peer then.
            with self._changed:
                self._changed.wait_for(lambda: self._ended or self.said.count("stays in ") >= len(peers), 1)
            return they_stay()

        until(f"{count} workers have a request", stay)
        return peers

    def end_worker(self, how: str, pid: int) -> None:
        """Has the application in this process end it."""
        while True:
            try:
                self.fetch(f"/{how}/{pid}")
            except (http.client.HTTPException, ConnectionError):
                return

    def open_streams(self) -> list[http.client.HTTPResponse]:
        """Streams of events, of which each of two workers has one at least."""
        pids: set[bytes] = set()
        streams = []

        def reaches_both() -> bool:
            connection = self.connect()
            connection.request("GET", "/")
            streams.append(connection.getresponse())
            pids.add(streams[-1].readline())
            return len(pids) == 2

        until("both have a stream", reaches_both)
        return streams

    def tell(self, number: signal.Signals) -> int:
        """To the supervisor; the position in what is said from which on its answer comes."""
        start = len(self.said)
        os.kill(self.leader, number)
        return start

    def ask(self, command: str, **arguments: str | int) -> Any:
        """A query of ``maitred ctl``."""
        query = "&".join(f"{name}={value}" for name, value in arguments.items())
        return self._knock("GET", f"/{command}?{query}")

    def change(self, command: str, **arguments: str) -> Any:
        return self._knock("POST", f"/{command}", json.dumps(arguments))

    def _knock(self, method: str, path: str, body: str | None = None) -> Any:
        door = Door(self.folder)
        try:
            door.request(method, path, body)
            response = door.getresponse()
            answer = json.loads(response.read())
            assert response.status == 200, answer
            return answer
        finally:
            door.close()

    def ends(self, number: signal.Signals = signal.SIGTERM) -> None:
        """It ends as it should when it is asked to, with all its processes."""
        leader = self.leader
        os.kill(leader, number)
        if leader == self.process.pid:
            assert self.process.wait(PATIENCE) == 0, self.said
        until("no process is left", lambda: not self.processes())
        self.read_all()


Start = Callable[..., Crew]


@pytest.fixture
def crew(tmp_path: Path) -> Iterator[Start]:
    """Starts servers for a source text; none of their processes outlives the test."""
    mark = uuid.uuid4().hex

    def start(*arguments: str, source: str = APP, workers: int | None = 2, program: str | None = None) -> Crew:
        (tmp_path / "app.py").write_text(source)
        target = () if (tmp_path / "maitred.toml").exists() else ("app.py",)
        # None: as many as the configuration file says.
        number = [] if workers is None else ["--workers", str(workers)]
        return Crew([*target, *arguments, *number], tmp_path, mark, program)

    yield start
    for pid in sorted(marked(mark)):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass  # The one before was its supervisor.
