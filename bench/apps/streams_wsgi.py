"""A WSGI application for many streams: most requests take no time, those below `/slow` 50 ms, those below `/stay` 3 s."""

import time

HELLO = b"Hello, world!"
WAITS = {"/slow": 0.05, "/stay": 3.0}


def application(environ, start_response):
    path = environ["PATH_INFO"]
    if path in WAITS:
        time.sleep(WAITS[path])
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(HELLO)))])
    return [HELLO]
