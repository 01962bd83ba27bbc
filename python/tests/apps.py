"""The applications of the tests, one a path.

Those under /checked run inside ``wsgiref.validate``, whose complaints become a 500; those under /raw
do what the validator would refuse, or what only an unwrapped application sees.
"""

from __future__ import annotations

import ast
import json
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any
from urllib.parse import parse_qs
from wsgiref.validate import validator

Environ = dict[str, Any]
Wsgi = Callable[[Environ, Callable[..., Any]], Iterable[bytes]]

PATIENCE = 30.0
TEXT = [("Content-Type", "text/plain")]

RAW: dict[str, Wsgi] = {}
CHECKED: dict[str, Wsgi] = {}

#: Events by name: what a test waits for, or lets an application go on with.
EVENTS: defaultdict[str, threading.Event] = defaultdict(threading.Event)
CLOSED: defaultdict[str, int] = defaultdict(int)
BARRIER = threading.Barrier(2)


def app(environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
    _, kind, name = environ["PATH_INFO"].split("/", 2)
    return {"raw": RAW, "checked": CHECKED}[kind][name](environ, start_response)


def both(application: Wsgi) -> Wsgi:
    """The application under its name, checked and raw."""
    RAW[application.__name__] = application
    CHECKED[application.__name__] = validator(application)
    return application


def raw(reason: str) -> Callable[[Wsgi], Wsgi]:
    """The application only as it is, for a reason."""
    assert reason

    def register(application: Wsgi) -> Wsgi:
        RAW[application.__name__] = application
        return application

    return register


def argument(environ: Environ, name: str, default: str = "") -> str:
    return parse_qs(environ["QUERY_STRING"]).get(name, [default])[0]


class Closing:
    """An iterable that counts the calls of close()."""

    def __init__(self, key: str, blocks: Iterable[Any]) -> None:
        self.key = key
        self.blocks = blocks

    def __iter__(self) -> Iterator[Any]:
        return iter(self.blocks)

    def close(self) -> None:
        CLOSED[self.key] += 1
        EVENTS[f"closed {self.key}"].set()


@both
def hello(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "5")])
    return [b"hello"]


@both
def show(environ, start_response):
    """The environ as JSON; what is not text or number as its type's name."""
    plain = (str, int, bool, list, tuple)
    shown = {
        key: value if isinstance(value, plain) else type(value).__name__ for key, value in environ.items()
    }
    start_response("200 OK", [("Content-Type", "application/json")])
    return [json.dumps(shown).encode()]


@both
def echo(environ, start_response):
    body = b"".join(iter(lambda: environ["wsgi.input"].read(1000), b""))
    start_response("200 OK", TEXT)
    return [body]


@raw("gives bodies to statuses that have none, and leaves Content-Type out")
def status(environ, start_response):
    """Answers with the status and body of the query, of the given kind."""
    start_response(argument(environ, "status"), [("X-Kind", argument(environ, "kind"))])
    body = argument(environ, "body").encode()
    return {"list": [body], "empty": [], "generator": (bytes([byte]) for byte in body)}[argument(environ, "kind")]


@raw("sends more or less than it declares, as a list, which the validator hides")
def declared(environ, start_response):
    """Declares one length and sends another."""
    start_response("200 OK", [*TEXT, ("Content-Length", argument(environ, "declared"))])
    body = argument(environ, "body").encode()
    return [body] if argument(environ, "kind") == "list" else iter([body[:1], body[1:]])


@raw("breaks the rules on purpose")
def misuse(environ, start_response):
    return MISUSES[argument(environ, "which")](start_response)


def _twice(start_response):
    start_response("200 OK", TEXT)
    start_response("200 OK", TEXT)
    return [b"never"]


def _raise(error: BaseException):
    raise error


MISUSES: dict[str, Callable[..., Any]] = {
    "never called": lambda start: [b"body"],
    "never called, no body": lambda start: [],
    "called twice": _twice,
    "status without digits": lambda start: start("OK", TEXT) and [],
    "header injection": lambda start: start("200 OK", [("X-A", "b\r\nSet-Cookie: evil=1")]) and [],
    "name injection": lambda start: start("200 OK", [("X-A: b\r\nSet-Cookie", "evil=1")]) and [],
    "status injection": lambda start: start("200 OK\r\nSet-Cookie: evil=1", TEXT) and [],
    "no list": lambda start: start("200 OK", {"X-A": "b"}) and [],
    "text body": lambda start: start("200 OK", TEXT) and ["text"],
    "no iterable": lambda start: start("200 OK", TEXT) and 7,
    "exception": lambda start: _raise(ValueError("on purpose")),
    "SystemExit": lambda start: _raise(SystemExit(3)),
    "KeyboardInterrupt": lambda start: _raise(KeyboardInterrupt()),
}


@both
def replaced(environ, start_response):
    """An error page in the place of a head that has not been sent."""
    start_response("200 OK", [("Content-Type", "text/plain"), ("X-First", "1")])
    try:
        raise ValueError("on purpose")
    except ValueError:
        start_response("503 Replaced", TEXT, sys.exc_info())
    return [b"sorry"]


@both
def too_late(environ, start_response):
    """An error after the first block: start_response raises it again."""
    start_response("200 OK", TEXT)

    def blocks():
        yield b"first"
        try:
            raise ValueError("too late")
        except ValueError:
            start_response("500 Oops", TEXT, sys.exc_info())
        yield b"never"

    return blocks()


@both
def writes(environ, start_response):
    write = start_response("200 OK", TEXT)
    write(b"one ")
    write(b"two ")
    return [b"three ", b"four"]


@raw("yields what is no bytes; a list stays a list")
def closing(environ, start_response):
    key = argument(environ, "key")
    start_response("200 OK", TEXT)
    return Closing(key, ast.literal_eval(argument(environ, "blocks")))


@both
def endless(environ, start_response):
    """Blocks until the client goes."""
    key = argument(environ, "key")
    start_response("200 OK", TEXT)
    return Closing(key, iter(lambda: b"x" * 10_000, b""))


@both
def step(environ, start_response):
    """One block, then a wait for the event, then another block."""
    start_response("200 OK", TEXT)

    def blocks():
        yield b"one"
        assert EVENTS[argument(environ, "key")].wait(PATIENCE)
        yield b""
        yield b"two"

    return blocks()


@both
def release(environ, start_response):
    EVENTS[argument(environ, "key")].set()
    start_response("200 OK", TEXT)
    return [b"released"]


@both
def closed(environ, start_response):
    """Waits until close() was called for the key, and says how often."""
    key = argument(environ, "key")
    EVENTS[f"closed {key}"].wait(PATIENCE)
    start_response("200 OK", TEXT)
    return [str(CLOSED[key]).encode()]


@both
def meet(environ, start_response):
    """Ends only when two requests are inside at the same time."""
    BARRIER.wait(PATIENCE)
    start_response("200 OK", TEXT)
    return [b"met"]


@both
def log(environ, start_response):
    print("one", "two", file=environ["wsgi.errors"])
    environ["wsgi.errors"].writelines(["thr", "ee\n", "unfinished"])
    environ["wsgi.errors"].flush()
    start_response("200 OK", TEXT)
    return [b"logged"]


@both
def thread(environ, start_response):
    current = threading.current_thread()
    facts = [type(current).__name__, current.name, current.daemon, current.is_alive()]
    start_response("200 OK", TEXT)
    return [json.dumps(facts).encode()]
