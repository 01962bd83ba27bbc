"""An ASGI application whose WebSockets send back what they get.

GET /memory answers with a JSON object: `traced`, the bytes that Python's allocators have given (with PYTHONTRACEMALLOC=1), and the bytes
of what the last socket has: its `scope` with what is in it and not in that of the one before, its `task` and its `coroutine`.
"""

import asyncio
import collections
import gc
import json
import sys
import tracemalloc

#: Scope and task of the last two sockets.
last = collections.deque(maxlen=2)


async def application(scope, receive, send):
    if scope["type"] == "http":
        await _memory(send)
    elif scope["type"] == "websocket":
        last.append((scope, asyncio.current_task()))
        await _echo(receive, send)
    else:
        raise ValueError(scope["type"])


async def _echo(receive, send):
    await receive()
    await send({"type": "websocket.accept"})
    while True:
        message = await receive()
        if message["type"] == "websocket.disconnect":
            return
        text = message.get("text")
        if text is not None:
            await send({"type": "websocket.send", "text": text})
        else:
            await send({"type": "websocket.send", "bytes": message["bytes"]})


async def _memory(send):
    gc.collect()
    sizes = {"traced": tracemalloc.get_traced_memory()[0]}
    if len(last) == 2:
        (before, _), (scope, task) = last
        # What both have counts for neither.
        shared = set()
        _size(before, shared)
        sizes |= {"scope": _size(scope, shared), "task": sys.getsizeof(task), "coroutine": sys.getsizeof(task.get_coro())}
    body = json.dumps(sizes).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _size(value, seen):
    """Of a value and everything in it; what is there twice counts once."""
    if id(value) in seen:
        return 0
    seen.add(id(value))
    parts = []
    if isinstance(value, dict):
        parts = [*value, *value.values()]
    elif isinstance(value, (list, tuple)):
        parts = value
    return sys.getsizeof(value) + sum(_size(part, seen) for part in parts)
