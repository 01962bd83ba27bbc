"""The smallest useful ASGI application: a GET is answered with 13 bytes, a POST with its own body."""

HELLO = b"Hello, world!"


async def application(scope, receive, send):
    if scope["type"] != "http":
        raise ValueError(scope["type"])
    body = HELLO
    if scope["method"] == "POST":
        body = await _body(receive)
    headers = [(b"content-type", b"text/plain"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def _body(receive):
    parts = []
    more = True
    while more:
        message = await receive()
        parts.append(message.get("body", b""))
        more = message.get("more_body", False)
    return b"".join(parts)
