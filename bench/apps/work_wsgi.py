"""A WSGI application whose requests compute, call the system, sleep or burn, as their paths say.

`BENCH_SPINS` is how many turns of `spin` take 50 µs: counted once for all servers of a run (`python work_wsgi.py`
prints it). `BENCH_HASH` is how many KiB are hashed in 1.3 ms (`python work_wsgi.py hash`). A kind of work has a folder of its own, so that a
server that learns which routes are slow can tell them apart.
"""

import hashlib
import os
import sys
import time

HELLO = b"Hello, world!"


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


def stat(environ):
    for name in ("/", "/etc", "/usr"):
        os.stat(name)
    return HELLO


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


PATHS = {"/": hello, "/stat": stat, "/hash": hashing, "/burn": computing(20_000), "/cpu/10000": computing(10_000),
         "/sleep/50": sleeping(50), "/report": sleeping(100), "/wait5": waiting(1, 5, 500), "/waits10": waiting(10, 0.3, 1000)}


def application(environ, start_response):
    body = PATHS[environ["PATH_INFO"]](environ)
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
    return [body]


if __name__ == "__main__":
    print(measure() if sys.argv[1:] == ["hash"] else count())
