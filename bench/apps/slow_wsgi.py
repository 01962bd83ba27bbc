"""A WSGI application whose responses are large, each made in another way, and that tells how many of its threads are free.

`BENCH_BODY` is their length in bytes.
"""

import os
import tempfile
import threading
import time

LENGTH = int(os.environ.get("BENCH_BODY", 8 << 20))
BLOCK = 64 << 10
HELLO = b"Hello, world!"
CONSTANT = bytes(LENGTH)
#: `/hold...` waits for so many others, but no longer than that.
HOLD_S = 1.0

_file = tempfile.NamedTemporaryFile()
_file.write(CONSTANT)
_file.flush()

_changed = threading.Condition()
_inside = 0


def hold(most):
    """As many threads as are free meet here; how many did."""
    global _inside
    with _changed:
        _inside += 1
        _changed.notify_all()
        _changed.wait_for(lambda: _inside >= most, HOLD_S)
        seen = _inside
    # The last one to come is seen by all before the first one goes.
    time.sleep(0.05)
    with _changed:
        seen = max(seen, _inside)
    time.sleep(0.05)
    with _changed:
        _inside -= 1
    return b"%02d" % seen


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
