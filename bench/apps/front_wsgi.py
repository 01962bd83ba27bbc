"""A GET of /client is answered with who the client is, any other with 13 bytes."""

HELLO = b"Hello, world!"


def application(environ, start_response):
    body = HELLO
    if environ["PATH_INFO"] == "/client":
        body = f"{environ['REMOTE_ADDR']} {environ['wsgi.url_scheme']}".encode()
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
    return [body]
