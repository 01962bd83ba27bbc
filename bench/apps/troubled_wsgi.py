"""A WSGI application with one page for each kind of trouble. Behind each line that is to be named stands `# here: NAME`."""

import mmap
import os
import re
import sqlite3
import threading
import time
import urllib.request

from maitred.instrument import dbapi

HELLO = b"Hello, world!"
LOCK = threading.Lock()
UPSTREAM = os.environ.get("TROUBLE_UPSTREAM", "")
#: A folder.
DISK = os.environ.get("TROUBLE_DISK", "")
#: No expression is slower than this one, and it is C that does not give the interpreter to others.
STARS = re.compile("(a*)*b")
#: At an address to which the disk may write: nothing is copied, so that the disk has nearly all of the time.
BLOCK = mmap.mmap(-1, 16 << 20)
#: As long as the others take, whatever the disk is.
WRITES_S = 0.4
own = threading.local()


def database():
    if not hasattr(own, "connection"):
        connection = sqlite3.connect(":memory:", isolation_level=None)
        # As long as a database takes elsewhere; the interpreter is free meanwhile.
        connection.create_function("waits", 1, time.sleep)
        own.connection = dbapi(connection)
    return own.connection


def one_statement():
    database().execute("SELECT waits(0.4)").fetchone()  # here: database


def many_statements():
    for number in range(80):
        database().execute("SELECT waits(0.005), ?", (number,)).fetchone()  # here: n+1


def calls():
    urllib.request.urlopen(UPSTREAM).read()  # here: outgoing


def locked():
    with LOCK:  # here: lock
        time.sleep(0.1)


def computes():
    return sum(number * number for number in range(1_000_000))  # here: python


def keeps():
    return STARS.match("a" * 22)  # here: c


def writes():
    file = os.open(DISK, os.O_WRONLY | os.O_TMPFILE | os.O_DIRECT | os.O_DSYNC, 0o600)
    end = time.monotonic() + WRITES_S
    while time.monotonic() < end:
        os.pwrite(file, BLOCK, 0)  # here: disk
    os.close(file)


def half():
    """As much as a server with one processor has time for."""
    return sum(number * number for number in range(60_000))  # here: other program


PAGES = {"/database": one_statement, "/orders": many_statements, "/outgoing": calls, "/lock": locked, "/python": computes, "/c": keeps,
         "/disk": writes, "/half": half}


def application(environ, start_response):
    path = environ["PATH_INFO"]
    if path == "/large":
        start_response("200 OK", [("Content-Type", "text/plain")])
        return [b"x" * (24 << 20)]
    if path in PAGES:
        PAGES[path]()
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(HELLO)))])
    return [HELLO]
