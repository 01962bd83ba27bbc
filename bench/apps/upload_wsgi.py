"""An application that takes a body as a whole, or at /parts in parts of 64 KiB as frameworks do, and says how long it was."""

PART = 64 << 10


def application(environ, start_response):
    read = environ["wsgi.input"].read
    if environ["PATH_INFO"] == "/parts":
        length = 0
        while part := read(PART):
            length += len(part)
    else:
        length = len(read(int(environ.get("CONTENT_LENGTH") or 0)))
    text = b"%d" % length
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(text)))])
    return [text]
