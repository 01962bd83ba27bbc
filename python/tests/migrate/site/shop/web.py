import os

from shop.told import told


async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        while True:
            message = await receive()
            await send({"type": message["type"] + ".complete"})
            if message["type"] == "lifespan.shutdown":
                return
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message.get("body", b""), message.get("more_body", False)
    fields = {name.decode(): value.decode() for name, value in scope["headers"]}
    answer = told(
        scope["method"], scope["root_path"], scope["path"], scope["query_string"].decode(), scope["scheme"], body, fields
    )
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(answer)).encode())]
    headers.append((b"x-mode", os.environ.get("SHOP_MODE", "none").encode()))
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": answer})


def create_app():
    return app
