"""An application that takes a body as a whole and says how long it was."""


def application(environ, start_response):
    text = b"%d" % len(environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0)))
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(text)))])
    return [text]
