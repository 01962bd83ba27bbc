"""The Python servers as contenders: one worker process, no access log (but `with_access_log`), everything else as it
comes.

Threads are what the name says; "maitred" without a number is our default, 1 to 10.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path

from . import machine
from .peers import Environment
from .servers import Contender, Place

APPS = machine.REPOSITORY / "bench/apps"
OURS = "maitred"
Command = Callable[[Contender, Place], list[str]]
#: For the report: whose versions matter.
PACKAGES = ("maitred", "peregrine-server", "weft-server", "granian", "gunicorn", "uvicorn", "uvloop", "httptools", "django",
            "fastapi")


def ours(environment: Environment, application: str, interface: str, name: str = OURS, threads: int | None = None,
         words: Sequence[str] = (), variables: dict[str, str] | None = None, pinned: bool = True) -> Contender:
    """Ours, with the default number of threads or the one given, and further options."""
    words = ["--interface", interface, *([] if threads is None else ["--max-threads", str(threads)]), *words]
    return _contender(environment, name, "maitred", _maitred, application, words, variables, pinned)


def wsgi(environment: Environment, application: str, threads: int | None = None,
         variables: dict[str, str] | None = None) -> list[Contender]:
    """Every WSGI server with its usual numbers of threads; or those that have threads, each with so many."""
    def one(name: str, program: str, command: Command, *words: str) -> Contender:
        return _contender(environment, name, program, command, application, list(words), variables)

    def granian(number: int) -> Contender:
        return one(f"granian, {_threads(number)}", "granian", _granian, "--interface", "wsgi", "--blocking-threads",
                   str(number))

    def gunicorn(number: int) -> Contender:
        return one(f"gunicorn gthread, {_threads(number)}", "gunicorn", _gunicorn, "--worker-class", "gthread",
                   "--threads", str(number))

    def mine(number: int) -> Contender:
        return ours(environment, application, "wsgi", f"{OURS}, {_threads(number)}", number, variables=variables)

    def weft(number: int | None) -> Contender:
        name, words = ("weft", []) if number is None else (f"weft, {_threads(number)}", ["--wsgi-threads", str(number)])
        return one(name, "weft", _weft, "--interface", "wsgi", *words)

    if threads is not None:
        return [mine(threads), granian(threads), weft(threads), gunicorn(threads)]
    return [ours(environment, application, "wsgi", variables=variables), mine(1),
            one("peregrine", "peregrine", _peregrine, "--protocol", "wsgi"),
            weft(None), granian(1), granian(4), gunicorn(4)]


#: How peers are told to write a line for each request to standard output.
_ACCESS_LOG = {"granian": ["--access-log"], "gunicorn": ["--access-logfile", "-"], "peregrine": ["--access-log"],
               "weft": ["--access-log"]}


def with_access_log(peer: Contender) -> Contender:
    """The same with a line for each request in its output, which is a file."""
    _, words = _words(peer)
    more = _ACCESS_LOG[Path(peer.program).name]
    return dataclasses.replace(peer, options={**peer.options, "words": [*words, *more]})


def _threads(number: int) -> str:
    return f"{number} thread{'s' * (number > 1)}"


def asgi(environment: Environment, application: str) -> list[Contender]:
    """Every ASGI server, on uvloop where it can be told."""
    def one(name: str, program: str, command: Command, *words: str) -> Contender:
        return _contender(environment, name, program, command, application, list(words))

    return [ours(environment, application, "asgi"),
            one("peregrine", "peregrine", _peregrine, "--protocol", "asgi"),
            one("weft", "weft", _weft, "--interface", "asgi"),
            one("granian", "granian", _granian, "--interface", "asgi", "--loop", "uvloop"),
            one("uvicorn", "uvicorn", _uvicorn, "--interface", "asgi3", "--loop", "uvloop", "--http", "httptools")]


def _contender(environment: Environment, name: str, program: str, command: Command, application: str, words: list[str],
               variables: dict[str, str] | None = None, pinned: bool = True) -> Contender:
    # peregrine takes its packages from VIRTUAL_ENV.
    variables = {"PYTHONPATH": str(APPS), "VIRTUAL_ENV": str(environment.folder), **(variables or {})}
    return Contender(name, environment.program(program), command,
                     {"application": application, "words": words}, variables, pinned)


def _words(contender: Contender) -> tuple[str, list[str]]:
    words = contender.options["words"]
    assert isinstance(words, list)
    return str(contender.options["application"]), words


def _maitred(contender: Contender, place: Place) -> list[str]:
    application, words = _words(contender)
    return [str(contender.program), application, "--app-dir", str(APPS), "--listen", f"127.0.0.1:{place.port}", *words]


def _granian(contender: Contender, place: Place) -> list[str]:
    application, words = _words(contender)
    return [str(contender.program), application, "--host", "127.0.0.1", "--port", str(place.port), "--http", "1",
            "--workers", "1", *words]


def _gunicorn(contender: Contender, place: Place) -> list[str]:
    application, words = _words(contender)
    return [str(contender.program), application, "--bind", f"127.0.0.1:{place.port}", "--workers", "1", *words]


def _peregrine(contender: Contender, place: Place) -> list[str]:
    application, words = _words(contender)
    return [str(contender.program), application, "--host", "127.0.0.1", "--port", str(place.port), "--workers", "1",
            *words]


def _weft(contender: Contender, place: Place) -> list[str]:
    return _peregrine(contender, place)


def _uvicorn(contender: Contender, place: Place) -> list[str]:
    return [*_peregrine(contender, place), "--no-access-log"]


def folder_of(application: str) -> Path:
    """The file of an application, for the report."""
    return APPS / f"{application.partition(':')[0]}.py"
