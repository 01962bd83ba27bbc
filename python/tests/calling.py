"""The two forms of `maitred.http`: a test is written once, and runs for a thread's client and for that of an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from conftest import PATIENCE

import maitred.http as http


class Calls:
    """A client of one form: the calls of a test are the same for both."""

    def __init__(self, is_async: bool) -> None:
        self.is_async = is_async

    def run(self, steps: Callable[[Any], Any], **options: Any) -> Any:
        """Runs ``steps``, a generator: it yields calls as (name, arguments), and gets their results."""
        options = {"timeout": PATIENCE, "trust_env": False, **options}
        if not self.is_async:
            with http.Client(**options) as client:
                return _drive(steps, client)

        async def go() -> Any:
            async with http.AsyncClient(**options) as client:
                return await _drive_async(steps, client)

        return asyncio.run(go())

    def one(self, method: str, url: str, *, client: dict[str, Any] | None = None, **options: Any) -> http.Response:
        """One call by a client of its own."""

        def steps() -> Any:
            return (yield (method, url, options))

        return self.run(steps, **(client or {}))


def _drive(steps: Callable[[], Any], client: http.Client) -> Any:
    running, send = steps(), None
    try:
        while True:
            method, url, options = running.send(send)
            try:
                send = client.request(method, url, **options)
            except Exception as error:
                send = error
    except StopIteration as end:
        return _raised(end.value)


async def _drive_async(steps: Callable[[], Any], client: http.AsyncClient) -> Any:
    running, send = steps(), None
    try:
        while True:
            method, url, options = running.send(send)
            try:
                send = await client.request(method, url, **options)
            except Exception as error:
                send = error
    except StopIteration as end:
        return _raised(end.value)


def _raised(value: Any) -> Any:
    if isinstance(value, Exception):
        raise value
    return value


@pytest.fixture(params=["thread", "loop"])
def calls(request: pytest.FixtureRequest) -> Calls:
    return Calls(request.param == "loop")
