"""The same as an ASGI application, as far as that has it."""

import os

LENGTH = int(os.environ.get("BENCH_BODY", 8 << 20))
BLOCK = 64 << 10
HELLO = b"Hello, world!"
CONSTANT = bytes(LENGTH)


async def application(scope, receive, send):
    if scope["type"] != "http":
        raise RuntimeError("only http")
    path = scope["path"]
    body = {"/": HELLO, "/constant": CONSTANT}.get(path)
    if path == "/fresh":
        body = b"x" * LENGTH
    length = LENGTH if body is None else len(body)
    headers = [(b"content-type", b"application/octet-stream"), (b"content-length", b"%d" % length)]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    if body is not None:
        await send({"type": "http.response.body", "body": body})
        return
    for start in range(0, LENGTH, BLOCK):
        block = bytes(min(BLOCK, LENGTH - start))
        await send({"type": "http.response.body", "body": block, "more_body": start + BLOCK < LENGTH})
