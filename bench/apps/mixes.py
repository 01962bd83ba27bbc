"""A WSGI application with a page for each thing that a thread can do: compute, wait, compress, hash, read, write, share a lock, keep the interpreter.

Work is a counted number of turns, so that it is the same whatever shares the machine: `python mixes.py` counts on the processor time of its
thread what takes a millisecond, and prints the variables that tell it to every server of a run. `BENCH_MIXES_FOLDER` has the databases
(`python mixes.py fill`), and a file for each process that says which thread is inside the application: see `Inside`.
"""

import hashlib
import mmap
import os
import random
import sqlite3
import struct
import sys
import threading
import time
import zlib
from urllib.parse import parse_qsl

HELLO = b"Hello, world!"
FOLDER = os.environ.get("BENCH_MIXES_FOLDER", ".")
ROWS = 1000
#: A row that is locked is waited for that long; longer than any run.
BUSY_S = 30
#: 256 KiB as a page has them: words in any order.
WORDS = [b"word%d " % number for number in range(1000)]
TEXT = b"".join(random.Random(1).choices(WORDS, k=50_000))[:256 << 10]


def spin(turns):
    value = 0
    for number in range(turns):
        value = (value * 31 + number) & 0xFFFF
    return value


def stretch(turns):
    # The interpreter is released.
    hashlib.pbkdf2_hmac("sha256", b"password", b"salt", max(1, turns))


def add(turns):
    # One call in C that looks at nothing else until it is done.
    sum(range(turns))


WORKS = {"SPIN": spin, "STRETCH": stretch, "ADD": add}
#: Turns of each in a millisecond.
TURNS = {name: int(os.environ.get(f"BENCH_MIXES_{name}", 1)) for name in WORKS}


def turns_of(work):
    """Turns that take a millisecond of processor time: from the fastest of many tries."""
    turns, shortest = 64, 0.0
    while shortest < 1e-3:
        turns *= 2
        shortest = min(cost(work, turns) for _ in range(5))
    shortest = min(cost(work, turns) for _ in range(50))
    return max(1, round(turns * 1e-3 / shortest))


def cost(work, turns):
    start = time.thread_time()
    work(turns)
    return time.thread_time() - start


class Inside:
    """Which threads are inside the application: in a file of records of two 32-bit numbers, a thread's id and 1 while it is inside."""

    MOST = 64

    def __init__(self):
        self._lock = threading.Lock()
        self._own = threading.local()
        self._process = None

    def _place(self):
        """Where this thread's record is; a process makes its file with its first request, because it may have been forked before."""
        with self._lock:
            if self._process != os.getpid():
                self._process, self._next = os.getpid(), 0
                with open(os.path.join(FOLDER, f"inside-{self._process}"), "w+b") as file:
                    file.truncate(8 * self.MOST)
                    self._map = mmap.mmap(file.fileno(), 8 * self.MOST)
            # Threads of a server that makes a new one for each request take the place of the first.
            place = 8 * (self._next % self.MOST)
            self._next += 1
        struct.pack_into("<II", self._map, place, threading.get_native_id(), 0)
        self._own.place, self._own.process = place, self._process
        return place

    def __enter__(self):
        own = self._own
        place = own.place if getattr(own, "process", None) == self._process is not None else self._place()
        self._map[place + 4] = 1

    def __exit__(self, *_):
        self._map[self._own.place + 4] = 0


def wait(ms):
    time.sleep(ms / 1000)


def compute(ms):
    spin(int(TURNS["SPIN"] * ms))


def both(compute_ms, wait_ms):
    """Computes, waits, computes."""
    compute(compute_ms)
    wait(wait_ms)
    compute(compute_ms)


def waits(ms, times=10):
    for _ in range(int(times)):
        wait(ms)


def compress():
    zlib.compress(TEXT)


def hashes(ms):
    stretch(int(TURNS["STRETCH"] * ms))


def keeps(ms):
    add(int(TURNS["ADD"] * ms))


_connections = threading.local()


def database(name):
    """This thread's connection."""
    connection = getattr(_connections, name, None)
    if connection is None:
        connection = sqlite3.connect(os.path.join(FOLDER, f"{name}.sqlite"), timeout=BUSY_S, isolation_level=None)
        if name == "wal":
            connection.execute("PRAGMA synchronous = off")
        setattr(_connections, name, connection)
    return connection


def read():
    database("wal").execute("SELECT text FROM item WHERE id = ?", (random.randrange(ROWS),)).fetchone()


def write():
    database("wal").execute("INSERT INTO line (text) VALUES (?)", ("a line of the log",))


def row():
    database("plain").execute("UPDATE counter SET value = value + 1 WHERE id = 1")


_shared = threading.Lock()


def lock(ms):
    with _shared:
        wait(ms)


def hello():
    pass


PAGES = {f"/{page.__name__}": page for page in (wait, compute, both, waits, compress, read, write, row, lock, keeps, hello)}
PAGES["/hash"] = hashes
inside = Inside()


def application(environ, start_response):
    with inside:
        given = {name: float(value) for name, value in parse_qsl(environ["QUERY_STRING"])}
        PAGES[environ["PATH_INFO"]](**given)
        start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(HELLO)))])
        return [HELLO]


def fill():
    wal = database("wal")
    wal.execute("PRAGMA journal_mode = wal")
    wal.execute("CREATE TABLE item (id INTEGER PRIMARY KEY, text TEXT)")
    wal.executemany("INSERT INTO item VALUES (?, ?)", [(number, f"item {number}") for number in range(ROWS)])
    wal.execute("CREATE TABLE line (id INTEGER PRIMARY KEY, text TEXT)")
    plain = database("plain")
    plain.execute("CREATE TABLE counter (id INTEGER PRIMARY KEY, value INTEGER)")
    plain.execute("INSERT INTO counter VALUES (1, 0)")


if __name__ == "__main__":
    if sys.argv[1:] == ["fill"]:
        fill()
    else:
        for name, work in WORKS.items():
            print(f"BENCH_MIXES_{name}={turns_of(work)}")
