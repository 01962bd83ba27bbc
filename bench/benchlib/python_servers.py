"""The Python servers as contenders: one worker process, no access log, everything else as it comes.

Threads are what the name says; "maitred" without a number is our default, 1 to 10.
"""

from __future__ import annotations

from pathlib import Path

from . import machine, servers
from .peers import Environment
from .servers import Contender, Place

APPS = machine.REPOSITORY / "bench/apps"
OURS = "maitred"
OURS_ONE = "maitred, 1 thread"
#: For the report: whose versions matter.
PACKAGES = ("maitred", "peregrine-server", "weft-server", "granian", "gunicorn", "uvicorn", "uvloop", "httptools", "django",
            "fastapi")


def ours(environment: Environment, application: str, interface: str, name: str = OURS, threads: int | None = None,
         **more: object) -> Contender:
    """Ours, with the default number of threads or the one given."""
    words = ["--interface", interface] + ([] if threads is None else ["--max-threads", str(threads)])
    return _contender(environment, name, "maitred", _maitred, application, words, **more)


def wsgi(environment: Environment, application: str, threads: int | None = None) -> list[Contender]:
    """Every WSGI server; those that have threads with so many, or with the numbers that make sense for each."""
    def one(name: str, program: str, command: object, *words: str) -> Contender:
        return _contender(environment, name, program, command, application, list(words))

    granian = [one(f"granian, {number} thread{'s' * (number > 1)}", "granian", _granian, "--interface", "wsgi",
                   "--blocking-threads", str(number)) for number in ([1, 4] if threads is None else [threads])]
    gunicorn = one("gunicorn gthread, 4 threads" if threads is None else f"gunicorn gthread, {threads} threads", "gunicorn",
                   _gunicorn, "--worker-class", "gthread", "--threads", str(threads or 4))
    if threads is not None:
        return [ours(environment, application, "wsgi", f"{OURS}, {threads} threads", threads), *granian, gunicorn]
    return [ours(environment, application, "wsgi"), ours(environment, application, "wsgi", OURS_ONE, 1),
            one("peregrine", "peregrine", _peregrine, "--protocol", "wsgi"),
            one("weft", "weft", _weft, "--interface", "wsgi"), *granian, gunicorn]


def asgi(environment: Environment, application: str) -> list[Contender]:
    """Every ASGI server, on uvloop where it can be told."""
    def one(name: str, program: str, command: object, *words: str) -> Contender:
        return _contender(environment, name, program, command, application, list(words))

    return [ours(environment, application, "asgi"),
            one("peregrine", "peregrine", _peregrine, "--protocol", "asgi"),
            one("weft", "weft", _weft, "--interface", "asgi"),
            one("granian", "granian", _granian, "--interface", "asgi", "--loop", "uvloop"),
            one("uvicorn", "uvicorn", _uvicorn, "--interface", "asgi3", "--loop", "uvloop", "--http", "httptools")]


def _contender(environment: Environment, name: str, program: str, command: object, application: str, words: list[str],
               variables: dict[str, str] | None = None, pinned: bool = True) -> Contender:
    # peregrine takes its packages from VIRTUAL_ENV.
    variables = {"PYTHONPATH": str(APPS), "VIRTUAL_ENV": str(environment.folder), **(variables or {})}
    return Contender(name, environment.program(program), command,  # type: ignore[arg-type]
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


__all__ = ["APPS", "OURS", "OURS_ONE", "PACKAGES", "asgi", "folder_of", "ours", "servers", "wsgi"]
