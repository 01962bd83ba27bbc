"""The test's side of `relay.py`: runs the test's application, on the test's event loop, for what the server in its own process has been asked.

So an application may be a closure of its test, and wait for what the test does; only the server is another one.
"""

from __future__ import annotations

import asyncio
import socket
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from relay import Link, Message, Token, made, told

Application = Callable[..., Any]
#: Nothing in a test takes so long.
PATIENCE = 10.0


class Run:
    """One call of the application."""

    def __init__(self, scope: Message) -> None:
        self.scope = scope
        self.ended = asyncio.Event()


class Bridge:
    def __init__(self, application: Application, state: dict[str, Any] | None = None) -> None:
        """`state` is that of a lifespan which is not run."""
        self._application = application
        self._folder = tempfile.TemporaryDirectory(prefix="peers-")
        self.path = Path(self._folder.name) / "bridge"
        #: Objects of the state of a lifespan, by their numbers.
        self._objects: list[Any] = []
        self.tokens = {name: self._token(value).number for name, value in (state or {}).items()}
        #: All so far, and those that nobody has waited for.
        self.runs: list[Run] = []
        self._new: asyncio.Queue[Run] = asyncio.Queue()
        self._tasks: set[asyncio.Task[None]] = set()
        # It listens before the loop runs: a test may start its server outside.
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self.path))
        self._listener.listen(128)
        self._listener.setblocking(False)
        self._accepting: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Accept, from within the loop."""
        self._accepting = asyncio.get_running_loop().create_task(self._accept())

    async def close(self) -> None:
        """End when all applications have; the server is gone."""
        if self._tasks:
            _, late = await asyncio.wait(set(self._tasks), timeout=PATIENCE)
            for task in late:
                task.cancel()
        self.abandon()

    def abandon(self) -> None:
        """End at once, from outside of the loop too."""
        if self._accepting is not None and not self._accepting.get_loop().is_closed():
            self._accepting.cancel()
        self._listener.close()
        self._folder.cleanup()

    async def next_run(self) -> Run:
        """The next one that has begun; behind its end."""
        run = await asyncio.wait_for(self._new.get(), PATIENCE)
        await asyncio.wait_for(run.ended.wait(), PATIENCE)
        return run

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            peer, _ = await loop.sock_accept(self._listener)
            task = loop.create_task(self._serve(peer))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _serve(self, peer: socket.socket) -> None:
        link = Link(*await asyncio.open_unix_connection(sock=peer))
        try:
            _, scope = await link.read()
            if "state" in scope:
                scope["state"] = {name: self._object(value) for name, value in scope["state"].items()}
            run = Run(scope)
            self.runs.append(run)
            if scope["type"] != "lifespan":
                self._new.put_nowait(run)
            await self._run(link, run)
        finally:
            link.close()

    async def _run(self, link: Link, run: Run) -> None:
        calls = _Calls(link, run.scope, self._token)
        application = asyncio.ensure_future(_called(self._application, run.scope, calls))
        listening = asyncio.ensure_future(calls.listen(application))
        try:
            link.write("return", _simple(await application))
        except asyncio.CancelledError:
            # The server has ended its own, or is gone.
            link.write("raise", "RuntimeError", "cancelled")
        except Exception as error:
            link.write("raise", *told(error))
        finally:
            listening.cancel()
            run.ended.set()
        try:
            await link.drained()
        except ConnectionError:
            pass  # The server is gone, and does not want to know.

    def _token(self, value: Any) -> Token:
        for number, known in enumerate(self._objects):
            if known is value:
                return Token(number)
        self._objects.append(value)
        return Token(len(self._objects) - 1)

    def _object(self, value: Any) -> Any:
        return self._objects[value.number] if isinstance(value, Token) else value


class _Calls:
    """`receive` and `send` of one call."""

    def __init__(self, link: Link, scope: Message, token: Callable[[Any], Token]) -> None:
        self._link, self._scope, self._token = link, scope, token
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._count = 0

    async def receive(self) -> Any:
        return await self._ask("receive")

    async def send(self, message: Message) -> None:
        if self._scope["type"] == "lifespan" and "state" in self._scope:
            self._link.write("state", {name: self._token(value) for name, value in self._scope["state"].items()})
        await self._ask("send", message)

    async def _ask(self, kind: str, *message: Any) -> Any:
        self._count += 1
        answer = self._waiting[self._count] = asyncio.get_running_loop().create_future()
        self._link.write(kind, self._count, *message)
        return await answer

    async def listen(self, application: asyncio.Future[Any]) -> None:
        """Pass on what the server says; end the application where the server does."""
        try:
            while True:
                kind, *rest = await self._link.read()
                if kind == "cancel":
                    application.cancel()
                    return
                answer = self._waiting.pop(rest[0])
                if answer.cancelled():
                    continue
                if kind == "answer":
                    answer.set_result(rest[1])
                else:
                    answer.set_exception(made(*rest[1:]))
        except (asyncio.IncompleteReadError, ConnectionError):
            application.cancel()


async def _called(application: Application, scope: Message, calls: _Calls) -> Any:
    return await application(scope, calls.receive, calls.send)


def _simple(value: Any) -> Any:
    return value if value is None or isinstance(value, (bool, int, float, str, bytes)) else repr(value)
