"""A WSGI application whose responses are large, each made in another way, and that tells how many of its threads are free.

`BENCH_BODY` is their length in bytes.
"""

import os
import tempfile

from meeting import hold

LENGTH = int(os.environ.get("BENCH_BODY", 8 << 20))
BLOCK = 64 << 10
HELLO = b"Hello, world!"
CONSTANT = bytes(LENGTH)

_file = tempfile.NamedTemporaryFile()
_file.write(CONSTANT)
_file.flush()


def generator():
    for start in range(0, LENGTH, BLOCK):
        yield bytes(min(BLOCK, LENGTH - start))


def application(environ, start_response):
    path = environ["PATH_INFO"]
    if path == "/" or path.startswith("/hold"):
        body = HELLO if path == "/" else hold(int(environ["QUERY_STRING"]))
        start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
        return [body]
    write = start_response("200 OK", [("Content-Type", "application/octet-stream"), ("Content-Length", str(LENGTH))])
    if path == "/constant":
        return [CONSTANT]
    if path == "/fresh":
        return [b"x" * LENGTH]
    if path == "/generator":
        return generator()
    if path == "/write":
        for block in generator():
            write(block)
        return []
    return environ["wsgi.file_wrapper"](open(_file.name, "rb"))
