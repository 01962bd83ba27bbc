"""A WSGI application whose requests compute, call the system, sleep or burn, as their paths say.

`BENCH_SPINS` is how many turns of `spin` take 50 µs: counted once for all servers of a run (`python work_wsgi.py`
prints it). `BENCH_HASH` is how many KiB are hashed in 1.3 ms (`python work_wsgi.py hash`). The paths that `bench/work` knows too mean the same there. A kind of work has a folder of its own, so that a
server that learns which routes are slow can tell them apart.
"""

import hashlib
import os
import sys
import time

HELLO = b"Hello, world!"
BURN_MS = 20
REPORT_MS = 100


def spin(turns):
    value = 0
    for number in range(turns):
        value = (value * 31 + number) & 0xFFFF
    return value


def count():
    """Turns that take 50 µs: from the fastest of many tries."""
    turns = 1000
    shortest = float("inf")
    for _ in range(200):
        start = time.perf_counter()
        spin(turns)
        shortest = min(shortest, time.perf_counter() - start)
    return max(1, round(turns * 50e-6 / shortest))


def measure():
    """KiB that SHA-256 takes 1.3 ms for: from the fastest of many tries."""
    sample = bytes(1 << 20)
    shortest = float("inf")
    for _ in range(50):
        start = time.perf_counter()
        hashlib.sha256(sample)
        shortest = min(shortest, time.perf_counter() - start)
    return max(8, round(1024 * 1.3e-3 / shortest))


SPINS = int(os.environ.get("BENCH_SPINS", 0))


def hello(environ):
    return HELLO


def echo(environ):
    return environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))


def stat(environ):
    for name in ("/", "/etc", "/usr"):
        os.stat(name)
    return HELLO


def clock(environ):
    return b"%020d" % time.monotonic_ns()


def computing(micros):
    turns = SPINS * micros // 50

    def compute(environ):
        spin(turns)
        return HELLO

    return compute


def sleeping(milliseconds):
    def sleep(environ):
        time.sleep(milliseconds / 1000)
        return HELLO

    return sleep


def waiting(times, milliseconds, micros):
    """So many waits of this length, and Python for so many microseconds, in equal parts between them."""
    turns = SPINS * micros // 50 // times

    def wait(environ):
        for _ in range(times):
            spin(turns)
            time.sleep(milliseconds / 1000)
        return HELLO

    return wait


def hashing(environ, data=bytes(1024 * int(os.environ.get("BENCH_HASH", 8)))):
    # The interpreter is released: the buffer is longer than 2047 bytes.
    hashlib.sha256(data)
    return HELLO


def large(mebibytes):
    return lambda environ: b"x" * (mebibytes << 20)


def report(environ, sleep=sleeping(REPORT_MS), burn=computing(REPORT_MS * 1000)):
    return burn(environ) if environ["QUERY_STRING"] == "burn" else sleep(environ)


PATHS = {"/": hello, "/echo": echo, "/stat": stat, "/clock": clock, "/report": report, "/hash": hashing,
         "/wait5": waiting(1, 5, 500), "/waits10": waiting(10, 0.3, 1000),
         "/burn": computing(BURN_MS * 1000), **{f"/large/{number}": large(number) for number in (1, 8, 64)},
         **{f"/cpu/{micros}": computing(micros) for micros in (5, 20, 50, 200, 1000, 10_000, 20_000, 50_000)},
         **{f"/sleep/{milliseconds}": sleeping(milliseconds) for milliseconds in (1, 10, 20, 50)}}


def application(environ, start_response):
    body = PATHS[environ["PATH_INFO"]](environ)
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
    return [body]


if __name__ == "__main__":
    print(measure() if sys.argv[1:] == ["hash"] else count())
