"""The smallest useful WSGI application: a GET is answered with 13 bytes, a POST with its own body."""

HELLO = b"Hello, world!"


def application(environ, start_response):
    if environ["REQUEST_METHOD"] == "POST":
        body = environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))
    else:
        body = HELLO
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
    return [body]
