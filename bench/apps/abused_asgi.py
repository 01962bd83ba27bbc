"""An ASGI application for clients that abuse it: a hello, a page that reads its whole body, WebSockets that take messages or never do."""

import asyncio

HELLO = b"Hello, world!"


async def application(scope, receive, send):
    if scope["type"] == "websocket":
        return await _socket(scope["path"], receive, send)
    if scope["type"] != "http":
        raise ValueError(scope["type"])
    if scope["path"] == "/body":
        while (message := await receive()).get("more_body"):
            pass
        if message["type"] == "http.disconnect":
            return None
    headers = [(b"content-type", b"text/plain"), (b"content-length", b"%d" % len(HELLO))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": HELLO})


async def _socket(path, receive, send):
    await receive()
    await send({"type": "websocket.accept"})
    if path == "/waits":
        # The application is busy with something else, and will take no message.
        await asyncio.Event().wait()
    while (await receive())["type"] != "websocket.disconnect":
        pass
