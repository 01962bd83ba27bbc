"""The ASGI half of the demo, mounted at /live: what the threads of its own server are doing, and a gentle load that a button begins.

It asks the server's control socket, as `maitred ctl threads` does (docs/operations/control.md). It runs on an event loop beside
the threads of the WSGI half, so it answers while all of those hang. Who sees the page sees which pages are asked for, and no
addresses of clients.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, MutableMapping
from pathlib import Path
from typing import Any

from load import Load
from pages import LIVE, page

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

#: The roles of threads that serve; others look after logs, files and time.
ROLES = ("worker", "reserve", "event loop", "backup poller")
#: The longest time the control may take, in seconds.
PATIENCE = 2.0

LOAD = Load()


async def app(scope: Message, receive: Receive, send: Send) -> None:
    if scope["type"] == "lifespan":
        await lifespan(receive, send)
        return
    path = scope["path"].removeprefix(scope.get("root_path", ""))
    if path == "/load":
        await change_load(scope, receive, send)
    elif path == "/state":
        try:
            body = json.dumps(await asyncio.wait_for(state(), PATIENCE)).encode()
            await answer(send, 200, "application/json", body)
        except (OSError, ValueError, LookupError, TimeoutError, asyncio.TimeoutError) as error:
            await answer(send, 503, "text/plain; charset=utf-8", f"the control does not answer: {error}\n".encode())
    elif path in ("", "/"):
        await answer(send, 200, "text/html; charset=utf-8", page("Live", LIVE).encode())
    else:
        await answer(send, 404, "text/html; charset=utf-8", page("Not found", "<p>There is no such page.</p>").encode())


async def lifespan(receive: Receive, send: Send) -> None:
    while True:
        kind = (await receive())["type"].removeprefix("lifespan.")
        await send({"type": f"lifespan.{kind}.complete"})
        if kind == "shutdown":
            LOAD.end()
            return


async def answer(send: Send, status: int, kind: str, body: bytes) -> None:
    headers = [(b"content-type", kind.encode()), (b"content-length", str(len(body)).encode()), (b"cache-control", b"no-store")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def change_load(scope: Message, receive: Receive, send: Send) -> None:
    """POST begins the load, or ends it."""
    origin = dict(scope["headers"]).get(b"sec-fetch-site", b"same-origin")
    if scope["method"] != "POST" or origin != b"same-origin":
        await answer(send, 405, "text/plain; charset=utf-8", b"a button of the page Live does this\n")
        return
    try:
        LOAD.change(scope.get("server"), scope["scheme"])
    except ValueError as error:
        await answer(send, 409, "text/plain; charset=utf-8", f"{error}\n".encode())
        return
    await answer(send, 200, "application/json", json.dumps({"load": LOAD.seconds_left()}).encode())


async def state() -> dict[str, Any]:
    """What the page shows."""
    threads, queued = (await asked("/threads"))["threads"], (await asked("/queued"))["total"]
    places = (await asked("/status"))["control"]
    dashboard = next((f"{place}/dashboard/" for place in places if place.startswith("http://")), None)
    shown = [
        {
            "name": thread["name"],
            "role": thread["role"],
            "request": f"{thread['method']} {thread['path']}" if thread["path"] else None,
            "seconds": thread["for_seconds"],
        }
        for thread in threads
        if thread["role"] in ROLES
    ]
    return {"threads": shown, "queued": queued, "dashboard": dashboard, "load": LOAD.seconds_left()}


async def asked(path: str) -> dict[str, Any]:
    """The control's answer to one question."""
    reader, writer = await asyncio.open_unix_connection(socket())
    try:
        writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        head, _, body = (await reader.read()).partition(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200 "):
            raise ValueError(head.partition(b"\r\n")[0].decode())
        found: dict[str, Any] = json.loads(body)
        return found
    finally:
        writer.close()


def socket() -> Path:
    """The server's control socket where `control` is `auto`; DEMO_CONTROL names another one."""
    if named := os.environ.get("DEMO_CONTROL"):
        return Path(named)
    folder = Path(os.environ.get("XDG_RUNTIME_DIR") or f"/tmp/maitred-{os.getuid()}")
    # With workers it is the supervisor's.
    sockets = [folder / f"maitred-{process}.sock" for process in (os.getpid(), os.getppid())]
    return next((path for path in sockets if path.exists()), sockets[0])
