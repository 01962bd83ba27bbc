"""The application that the server under test runs: it passes everything on to the process of the test, where the test's own application is.

Each call of `application` opens a connection to the Unix socket PEERS_SOCKET and says its scope. The other side (`bridge.py`) asks for
calls of `receive` and `send`, gets what they return or raise, and says at last what its application has returned or raised. Both sides are of
one test, so that pickles are safe. With PEERS_LIFESPAN=off there is no lifespan; with names and numbers in it, as JSON, its state has
these.
"""

from __future__ import annotations

import asyncio
import builtins
import json
import os
import pickle
import struct
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

#: Of a message in front of its pickle.
LENGTH = struct.Struct(">I")
Message = dict[str, Any]


class Token:
    """Stands for an object of the test's process in the state of a lifespan."""

    def __init__(self, number: int) -> None:
        self.number = number


class Link:
    """One end of a connection between the two processes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    def write(self, *message: Any) -> None:
        data = pickle.dumps(message)
        self._writer.write(LENGTH.pack(len(data)) + data)

    async def read(self) -> Any:
        """The next message; `asyncio.IncompleteReadError` when the other side is gone."""
        (length,) = LENGTH.unpack(await self._reader.readexactly(LENGTH.size))
        return pickle.loads(await self._reader.readexactly(length))

    async def drained(self) -> None:
        await self._writer.drain()

    def close(self) -> None:
        self._writer.close()


def told(error: BaseException) -> tuple[str, str]:
    """What the other side has to know of an exception: the first of its classes that every Python has, and its text."""
    name = next(each.__name__ for each in type(error).__mro__ if each.__module__ == "builtins")
    return name, str(error)


def made(name: str, text: str) -> BaseException:
    """The exception that was told of."""
    error: BaseException = getattr(builtins, name)(text)
    return error


async def application(scope: Message, receive: Callable[[], Awaitable[Message]], send: Callable[[Message], Awaitable[None]]) -> Any:
    if scope["type"] == "lifespan" and os.environ["PEERS_LIFESPAN"] != "on":
        await _lifespan(scope, receive, send)
        return None
    link = Link(*await asyncio.open_unix_connection(os.environ["PEERS_SOCKET"]))
    calls: set[asyncio.Task[None]] = set()

    async def answer(number: int, call: Callable[..., Awaitable[Any]], *message: Message) -> None:
        try:
            link.write("answer", number, _plain(await call(*message)))
        except Exception as error:
            link.write("error", number, *told(error))

    try:
        link.write("scope", _plain(scope))
        while True:
            kind, *rest = await link.read()
            if kind == "return":
                return rest[0]
            if kind == "raise":
                raise made(*rest)
            if kind == "state":
                scope["state"].update(rest[0])
                continue
            task = asyncio.create_task(answer(rest[0], receive if kind == "receive" else send, *rest[1:]))
            calls.add(task)
            task.add_done_callback(calls.discard)
    except asyncio.CancelledError:
        link.write("cancel")
        raise
    finally:
        for task in calls:
            task.cancel()
        link.close()


async def _lifespan(scope: Message, receive: Callable[[], Awaitable[Message]], send: Callable[[Message], Awaitable[None]]) -> None:
    """The server's lifespan where the test's application has none to run."""
    told_state = os.environ["PEERS_LIFESPAN"]
    if told_state == "off":
        raise RuntimeError("no lifespan")
    scope["state"].update({name: Token(number) for name, number in json.loads(told_state).items()})
    for what in ("startup", "shutdown"):
        await receive()
        await send({"type": f"lifespan.{what}.complete"})


def _plain(value: Any) -> Any:
    """A value that can be sent: of an object of the server its text."""
    if isinstance(value, Mapping):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(map(_plain, value))
    return value if value is None or isinstance(value, (bool, int, float, str, bytes, Token)) else repr(value)
