"""The ASGI applications of the tests, one a path: ``/name`` is the coroutine function ``name``."""

from __future__ import annotations

import ast
import asyncio
import contextvars
import json
from collections import defaultdict
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import parse_qs

import anyio

import maitred

Message = MutableMapping[str, Any]
Scope = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Asgi = Callable[[Scope, Receive, Send], Awaitable[None]]

APPS: dict[str, Asgi] = {}
#: What applications wait for, and tests for applications, by name.
EVENTS: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
#: What applications have to say after their responses.
NOTES: defaultdict[str, list[Any]] = defaultdict(list)
VARIABLE: contextvars.ContextVar[str] = contextvars.ContextVar("VARIABLE", default="unset")


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "lifespan":
        assert (await receive())["type"] == "lifespan.startup"
        scope["state"]["shared"] = {"count": 0}
        scope["state"]["plain"] = "as started"
        await send({"type": "lifespan.startup.complete"})
        assert (await receive())["type"] == "lifespan.shutdown"
        await send({"type": "lifespan.shutdown.complete"})
        return
    await APPS[scope["path"].split("/")[1]](scope, receive, send)


def one(application: Asgi) -> Asgi:
    APPS[application.__name__] = application  # type: ignore[attr-defined]
    return application


def argument(scope: Scope, name: str, default: str = "") -> str:
    return parse_qs(scope["query_string"].decode()).get(name, [default])[0]


async def answer(send: Send, body: Any, status: int = 200, headers: Any = ()) -> None:
    if not isinstance(body, bytes):
        body = json.dumps(body, default=repr).encode()
    await send({"type": "http.response.start", "status": status, "headers": [(b"x-test", b"1"), *headers]})
    await send({"type": "http.response.body", "body": body})


async def read(receive: Receive) -> tuple[bytes, int]:
    body, count = b"", 0
    while True:
        message = await receive()
        assert message["type"] == "http.request", message
        body += message["body"]
        count += 1
        if not message["more_body"]:
            return body, count


@one
async def scope(scope: Scope, receive: Receive, send: Send) -> None:
    await answer(send, repr({key: value for key, value in scope.items() if key != "state"}).encode())


@one
async def changes_scope(scope: Scope, receive: Receive, send: Send) -> None:
    was = [scope.get("mark"), scope["extensions"].get("mark"), len(scope["headers"]), scope["state"].get("mark")]
    scope["state"]["shared"]["count"] += 1
    scope["mark"] = scope["extensions"]["mark"] = scope["state"]["mark"] = "changed"
    scope["headers"].append((b"mark", b"changed"))
    await answer(send, [was, scope["state"]["plain"], scope["state"]["shared"]["count"]])


@one
async def body(scope: Scope, receive: Receive, send: Send) -> None:
    whole, count = await read(receive)
    await answer(send, whole, headers=[(b"x-messages", str(count).encode())])


@one
async def body_as_task(scope: Scope, receive: Receive, send: Send) -> None:
    """All the ways to await ``receive``."""
    first = await asyncio.create_task(receive())  # type: ignore[arg-type]
    assert first["type"] == "http.request", first
    waiting = asyncio.ensure_future(receive())
    try:
        await asyncio.wait_for(asyncio.shield(waiting), 0.01)
    except asyncio.TimeoutError:
        waiting.cancel()
    try:
        await asyncio.wait_for(receive(), 0.01)
    except asyncio.TimeoutError:
        await answer(send, first["body"])


@one
async def reads_beside_others(scope: Scope, receive: Receive, send: Send) -> None:
    """How many others had their turn while a body was read."""
    parts, others, more = 0, [], True
    while more:
        more = (await receive())["more_body"]
        parts += 1
        asyncio.get_running_loop().call_soon(others.append, parts)
    await answer(send, [parts, len(others)])


@one
async def reads_while_it_answers(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200})
    more = True
    while more:
        message = await receive()
        more = message["more_body"]
        await send({"type": "http.response.body", "body": message["body"], "more_body": more})


@one
async def after_the_end(scope: Scope, receive: Receive, send: Send) -> None:
    """What receive says after the response, and what a task that waited before is told."""
    await read(receive)
    waiting = asyncio.ensure_future(receive())
    await asyncio.sleep(0)
    assert not waiting.done()
    await answer(send, b"done")
    NOTES["after_the_end"].append([(await waiting)["type"], (await receive())["type"]])


@one
async def misuses(scope: Scope, receive: Receive, send: Send) -> None:
    """Sends the messages of the query, answers with what the last one raised."""
    messages = ast.literal_eval(argument(scope, "messages"))
    try:
        for message in messages:
            await send(message)
    except Exception as error:
        NOTES["misuses"].append([type(error).__name__, str(error)])
        raise


@one
async def notes(scope: Scope, receive: Receive, send: Send) -> None:
    """Waits for a note and takes it."""
    name = argument(scope, "of")
    with anyio.fail_after(30):
        while not NOTES[name]:
            await asyncio.sleep(0.005)
    await answer(send, NOTES[name][0])
    if not name.endswith(" sent"):
        NOTES[name].pop(0)


@one
async def sets(scope: Scope, receive: Receive, send: Send) -> None:
    EVENTS[argument(scope, "event")].set()
    await answer(send, b"set")


@one
async def kinds_of_bodies(scope: Scope, receive: Receive, send: Send) -> None:
    headers = iter([[b"X-List", b"1"], (b"X-Generator", b"2"), iter([b"X-Iterator", b"3"])])
    await send({"type": "http.response.start", "status": 201, "headers": headers})
    for part in (bytearray(b"array "), memoryview(b"_view _"[1:-1]), memoryview(b"s l i c e")[::2], b" bytes"):
        await send({"type": "http.response.body", "body": part, "more_body": True})
    await send({"type": "http.response.body"})


@one
async def large(scope: Scope, receive: Receive, send: Send) -> None:
    await answer(send, b"x" * int(argument(scope, "size")))


@one
async def parts(scope: Scope, receive: Receive, send: Send) -> None:
    """Streams a part, then waits for the event, then the next one."""
    length = argument(scope, "length")
    headers = [(b"content-length", length.encode())] if length else []
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    for event in argument(scope, "events").split(","):
        await send({"type": "http.response.body", "body": event.encode(), "more_body": True})
        await EVENTS[event].wait()
    await send({"type": "http.response.body", "body": b"end"})


@one
async def head_first(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"", "more_body": True})
    await EVENTS["head_first"].wait()
    await send({"type": "http.response.body", "body": b"body"})


@one
async def endless(scope: Scope, receive: Receive, send: Send) -> None:
    """Streams until it is told that nobody reads; counts what it has sent."""
    name, sent = argument(scope, "name", "endless"), 0
    try:
        await send({"type": "http.response.start", "status": 200})
        while True:
            await send({"type": "http.response.body", "body": b"x" * 65536, "more_body": True})
            sent += 65536
            NOTES[f"{name} sent"] = [sent]
            await asyncio.sleep(0)
    except maitred.ClientDisconnected as error:
        NOTES[name].append([type(error).__name__, isinstance(error, BrokenPipeError), str(error)])
        raise
    finally:
        NOTES[f"{name} finally"].append(True)


@one
async def waits_for_disconnect(scope: Scope, receive: Receive, send: Send) -> None:
    await read(receive)
    waiting = [asyncio.ensure_future(receive()) for _ in range(3)]
    await asyncio.sleep(0)
    NOTES["waits"].append("waiting")
    NOTES["disconnected"].append([(await one)["type"] for one in waiting])


@one
async def ends_at_disconnect(scope: Scope, receive: Receive, send: Send) -> None:
    await read(receive)
    if argument(scope, "when") == "streaming":
        await send({"type": "http.response.start", "status": 200})
        await send({"type": "http.response.body", "body": b"part", "more_body": True})
    NOTES["ends"].append("waiting")
    assert (await receive())["type"] == "http.disconnect"
    NOTES["ends"].append("ended")


@one
async def large_head(scope: Scope, receive: Receive, send: Send) -> None:
    """More than a connection takes, and someone waits for a message already."""
    await read(receive)
    waiting = asyncio.ensure_future(receive())
    await asyncio.sleep(0)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"x", b"y" * 1000)] * 20_000})
    await send({"type": "http.response.body", "body": b"", "more_body": True})
    NOTES["large head"].append("sent")
    NOTES["large head"].append((await waiting)["type"])


@one
async def sends_beside_others(scope: Scope, receive: Receive, send: Send) -> None:
    """Says at the end whether others had their turn meanwhile."""
    others: list[bytes] = []
    asyncio.get_running_loop().call_soon(others.append, b"others")
    await send({"type": "http.response.start", "status": 200})
    for _ in range(1000):
        await send({"type": "http.response.body", "body": b".", "more_body": True})
    await send({"type": "http.response.body", "body": b"".join(others)})


@one
async def gives_up_receiving(scope: Scope, receive: Receive, send: Send) -> None:
    """A thousand times, as ``Request.is_disconnected`` of Starlette does."""
    await read(receive)
    for _ in range(1000):
        with anyio.CancelScope() as cancel:
            cancel.cancel()
            await receive()
    await answer(send, b"given up")


@one
async def fails(scope: Scope, receive: Receive, send: Send) -> None:
    when = argument(scope, "when")
    if when == "at once":
        raise ValueError("at once")
    await asyncio.sleep(0)
    if when == "start":
        await send({"type": "http.response.start", "status": 200})
    if when == "streaming":
        await send({"type": "http.response.start", "status": 200})
        await send({"type": "http.response.body", "body": b"part", "more_body": True})
    if when == "after":
        await answer(send, b"whole")
        await asyncio.sleep(0)
    if when == "exit":
        raise SystemExit(3)
    if when == "cancelled":
        raise asyncio.CancelledError
    raise ValueError(when)


@one
async def returns(scope: Scope, receive: Receive, send: Send) -> None:
    when = argument(scope, "when")
    if when != "at once":
        await send({"type": "http.response.start", "status": 200})
    if when == "streaming":
        await send({"type": "http.response.body", "body": b"part", "more_body": True})


@one
async def background(scope: Scope, receive: Receive, send: Send) -> None:
    await answer(send, b"answered")
    await EVENTS["background"].wait()
    NOTES["background"].append("went on")


@one
async def tasks(scope: Scope, receive: Receive, send: Send) -> None:
    """What needs a real Task around the first statement."""
    try:
        await TASKS[argument(scope, "kind")]()
    except asyncio.CancelledError:
        await answer(send, "cancelled")
        raise
    await answer(send, "passed")


async def current_task() -> None:
    task = asyncio.current_task()
    assert task is not None and task.get_coro().__qualname__ == "GET /tasks", task
    assert "GET /tasks" in repr(task), task
    await asyncio.sleep(0)
    assert asyncio.current_task() is task and task in asyncio.all_tasks()
    assert task.get_coro().cr_await is None
    task.get_stack()


async def timeout() -> None:
    try:
        async with asyncio.timeout(0.01):
            await asyncio.Event().wait()
    except TimeoutError:
        return
    raise AssertionError


async def anyio_group() -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(anyio.sleep, 0)
    with anyio.move_on_after(0.01) as cancel:
        await anyio.sleep_forever()
    assert cancel.cancelled_caught


async def task_group() -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(asyncio.sleep(0))


async def cancel_self() -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.sleep(0)


async def collected() -> None:
    """A Task that only its own future refers to is not lost to the garbage collector."""
    import gc

    future = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_later(0.01, future.set_result, None)
    asyncio.get_running_loop().call_soon(gc.collect)
    await future


TASKS = {f.__name__: f for f in (current_task, timeout, anyio_group, task_group, cancel_self, collected)}


@one
async def context(scope: Scope, receive: Receive, send: Send) -> None:
    was = VARIABLE.get()
    VARIABLE.set(argument(scope, "value"))
    await asyncio.sleep(0)
    await answer(send, [was, VARIABLE.get()])


@one
async def context_at_once(scope: Scope, receive: Receive, send: Send) -> None:
    was = VARIABLE.get()
    VARIABLE.set("leaked")
    await answer(send, [was])


@one
async def blocks(scope: Scope, receive: Receive, send: Send) -> None:
    with open(argument(scope, "fifo"), "rb") as door:
        door.read()
    await answer(send, b"unblocked")
