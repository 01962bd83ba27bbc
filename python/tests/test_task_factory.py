"""A loop's own task factory makes the Tasks of requests."""

from __future__ import annotations

from conftest import Serve

SOURCE = """
import asyncio

class OwnTask(asyncio.Task):
    pass

made = []

def factory(loop, coro, **options):
    made.append(coro)
    return OwnTask(coro, loop=loop, **options)

async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        await receive()
        asyncio.get_running_loop().set_task_factory(factory)
        await send({"type": "lifespan.startup.complete"})
        await receive()
        return await send({"type": "lifespan.shutdown.complete"})
    text = f"{type(asyncio.current_task()).__name__} {len(made)}"
    if scope["path"] == "/no":
        asyncio.get_running_loop().set_task_factory(None)
    await send({"type": "http.response.start", "status": 200})
    await send({"type": "http.response.body", "body": text.encode()})
"""


def test_it_is_asked_for_every_request_while_it_is_there(serve_asgi: Serve, loop: str) -> None:
    server = serve_asgi("--loop", loop, source=SOURCE)
    assert [server.fetch(path).body for path in ("/", "/", "/no")] == [b"OwnTask 1", b"OwnTask 2", b"OwnTask 3"]
    assert server.fetch("/").body == b"Task 3"
    assert server.stop() == 0
