"""A WSGI application whose requests compute, call the system, sleep or burn, as their paths say.

`BENCH_SPINS` is how many turns of `spin` take 50 µs: counted once for all servers of a run (`python gate_wsgi.py`
prints it).
"""

import os
import time

HELLO = b"Hello, world!"
BURN_MS = 20
SLEEP_S = 0.05


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


SPINS = int(os.environ.get("BENCH_SPINS", 0))


def echo(environ):
    return environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))


def python(environ):
    spin(SPINS)
    return HELLO


def stat(environ):
    for name in ("/", "/etc", "/usr"):
        os.stat(name)
    return HELLO


def sleep(environ):
    time.sleep(SLEEP_S)
    return HELLO


def burn(environ):
    spin(SPINS * BURN_MS * 20)
    return HELLO


PATHS = {"/": lambda environ: HELLO, "/echo": echo, "/python": python, "/stat": stat, "/sleep": sleep, "/burn": burn}


def application(environ, start_response):
    body = PATHS[environ["PATH_INFO"]](environ)
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
    return [body]


if __name__ == "__main__":
    print(count())
