"""Clients that upload all at the same time, each of them once: as fast as the server takes it, or each at its own rate."""

from __future__ import annotations

import collections
import concurrent.futures
import contextlib
import selectors
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from . import machine

T = TypeVar("T")

#: The most bytes that one send takes.
BLOCK = 64 << 10
#: A client with a rate sends so often, seconds; they are spread over that time.
TICK_S = 0.02
#: Between two looks whether they are to end.
LOOK_S = 0.1


@dataclass(frozen=True)
class Plan:
    """So many clients, who send so many bytes each and wait for the answer, which says that number."""

    count: int
    length: int
    path: str
    #: Bytes that each sends in a second; None: as fast as the server takes them.
    rate: float | None
    #: Who has no answer after so many seconds gets none.
    limit_s: float


@dataclass
class Outcome:
    """What became of the uploads."""

    #: How long after the begin each right answer came, in seconds, in that order.
    times: list[float] = field(default_factory=list)
    #: What the others were told instead.
    wrong: list[str] = field(default_factory=list)

    @property
    def right(self) -> int:
        return len(self.times)


_ZEROS = memoryview(bytes(BLOCK))


class _Client:
    """One connection with its upload, whose bytes are zeros."""

    def __init__(self, port: int, plan: Plan) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=10)
        self.socket.setblocking(False)
        self._head = (f"POST {plan.path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/octet-stream\r\n"
                      f"Content-Length: {plan.length}\r\n\r\n").encode()
        self._plan = plan
        self._said = b""
        self.unsent = plan.length
        #: What is wrong with the answer, nothing if it is right; None while there is none.
        self.verdict: str | None = None

    def send(self, most: int = BLOCK) -> None:
        """Send some of what is left, as much as the kernel takes."""
        if self._head:
            sent = self._attempt(lambda: self.socket.send(self._head))
            self._head = self._head[sent or 0:]
        elif most > 0:
            self.unsent -= self._attempt(lambda: self.socket.send(_ZEROS[:min(most, self.unsent)])) or 0

    def send_due(self, rate: float, seconds: float) -> None:
        """Send what this rate allows so long after the begin."""
        self.send(min(BLOCK, int(rate * seconds) - (self._plan.length - self.unsent)))

    def take(self) -> None:
        """Read what has come."""
        data = self._attempt(lambda: self.socket.recv(4096))
        if data is None:
            return
        self._said += data
        head, end, body = self._said.partition(b"\r\n\r\n")
        lengths = [line.partition(b":")[2] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
        if not data or (end and lengths and len(body) >= int(lengths[0])):
            right = not self.unsent and head.startswith(b"HTTP/1.1 200 ") and body == b"%d" % self._plan.length
            self.verdict = "" if right else repr(self._said[:200])

    def _attempt(self, work: Callable[[], T]) -> T | None:
        try:
            return work()
        except BlockingIOError:
            return None
        except OSError as error:
            self.verdict = str(error)
            return None


class _Crowd:
    """All of them, in one thread."""

    def __init__(self, port: int, plan: Plan, ended: threading.Event) -> None:
        self._port, self._plan, self._ended = port, plan, ended
        self._outcome = Outcome()
        self._begun = 0.0

    def run(self) -> Outcome:
        with machine.on_core(machine.cores()[1]), contextlib.ExitStack() as stack:
            clients = []
            for _ in range(self._plan.count):
                client = _Client(self._port, self._plan)
                stack.callback(client.socket.close)
                clients.append(client)
            selector = stack.enter_context(selectors.DefaultSelector())
            self._begun = time.monotonic()
            self._serve(clients, selector)
        return self._outcome

    def _serve(self, clients: Sequence[_Client], selector: selectors.BaseSelector) -> None:
        # Who has to send and when, the next one first.
        turns: collections.deque[tuple[float, _Client]] = collections.deque()
        both = selectors.EVENT_READ | selectors.EVENT_WRITE
        for number, client in enumerate(clients):
            selector.register(client.socket, both if self._plan.rate is None else selectors.EVENT_READ, client)
            if self._plan.rate is not None:
                turns.append((self._begun + TICK_S * number / len(clients), client))
        while selector.get_map() and not self._ended.is_set() and time.monotonic() - self._begun < self._plan.limit_s:
            for key, events in selector.select(self._take_turns(turns)):
                client = key.data
                if events & selectors.EVENT_READ:
                    client.take()
                elif events & selectors.EVENT_WRITE:
                    client.send()
                    if not client.unsent:
                        selector.modify(client.socket, selectors.EVENT_READ, client)
                if client.verdict is not None:
                    selector.unregister(client.socket)
                    self._note(client.verdict)

    def _take_turns(self, turns: collections.deque[tuple[float, _Client]]) -> float:
        """Let everyone send whose turn it is; how long until that of the next one."""
        while turns:
            due, client = turns[0]
            now = time.monotonic()
            if due > now:
                return min(due - now, LOOK_S)
            turns.popleft()
            assert self._plan.rate is not None
            client.send_due(self._plan.rate, now - self._begun)
            # A connection that broke is seen when it is read.
            if client.unsent and client.verdict is None:
                turns.append((due + TICK_S, client))
        return LOOK_S

    def _note(self, verdict: str) -> None:
        if verdict:
            self._outcome.wrong.append(verdict)
        else:
            self._outcome.times.append(time.monotonic() - self._begun)


@contextlib.contextmanager
def running(port: int, plan: Plan) -> Iterator[concurrent.futures.Future[Outcome]]:
    """All of them from here on, on the load's core; at the end those under way are broken off."""
    ended = threading.Event()
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        crowd = pool.submit(_Crowd(port, plan, ended).run)
        try:
            yield crowd
        finally:
            ended.set()
