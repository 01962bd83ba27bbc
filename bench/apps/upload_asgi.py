"""An application that takes a body part by part and says how long it was."""


async def application(scope, receive, send):
    if scope["type"] != "http":
        raise ValueError(scope["type"])
    length, more = 0, True
    while more:
        message = await receive()
        length += len(message.get("body", b""))
        more = message.get("more_body", False)
    text = b"%d" % length
    headers = [(b"content-type", b"text/plain"), (b"content-length", b"%d" % len(text))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": text})
