"""A WSGI application that says which process has run a request, and when: for `bench/accept`.

`/` does nothing, `/cpu/N` takes N µs of Python (`work_wsgi` says how that is counted), `/sleep/N` sleeps N ms.
"""

import os
import time

import work_wsgi

HELLO = b"Hello, world!"


def application(environ, start_response):
    begin = time.monotonic_ns()
    kind, _, number = environ["PATH_INFO"].strip("/").partition("/")
    if kind == "cpu":
        work_wsgi.spin(work_wsgi.SPINS * int(number) // 50)
    elif kind == "sleep":
        time.sleep(int(number) / 1000)
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(HELLO))), ("X-Worker", str(os.getpid())),
                              ("X-Begin", str(begin)), ("X-End", str(time.monotonic_ns()))])
    return [HELLO]
