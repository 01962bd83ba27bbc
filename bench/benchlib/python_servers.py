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
PACKAGES = ("maitred", "peregrine-server", "weft-server", "freastal", "granian", "gunicorn", "waitress", "uvicorn", "uvloop", "httptools", "django",
            "fastapi", "flask", "sqlalchemy", "psycopg", "asyncpg")


def ours(environment: Environment, application: str, interface: str, name: str = OURS, threads: int | None = None,
         words: Sequence[str] = (), variables: dict[str, str] | None = None, pinned: bool = True) -> Contender:
    """Ours, with the default number of threads or the one given, and further options."""
    words = ["--interface", interface, *([] if threads is None else ["--max-threads", str(threads)]), *words]
    return _contender(environment, name, "maitred", _maitred, application, words, variables, pinned)


@dataclasses.dataclass(frozen=True)
class Wsgi:
    """The WSGI servers with one application; where a number of threads may be absent, the default is meant."""

    environment: Environment
    application: str
    variables: dict[str, str] | None = None
    #: Held to the server's core.
    pinned: bool = True

    def gunicorn(self, threads: int, workers: int = 1) -> Contender:
        """With so many threads in each worker."""
        return self._one("gunicorn gthread", threads, "gunicorn", _gunicorn, "--worker-class", "gthread", "--threads",
                         str(threads), "--workers", str(workers))

    def granian(self, threads: int) -> Contender:
        return self._one("granian", threads, "granian", _granian, "--interface", "wsgi", "--blocking-threads", str(threads))

    def waitress(self, threads: int) -> Contender:
        return self._one("waitress", threads, "waitress-serve", _waitress, f"--threads={threads}")

    def weft(self, threads: int | None = None) -> Contender:
        return self._one("weft", threads, "weft", _weft, "--interface", "wsgi", *_option("--wsgi-threads", threads))

    def peregrine(self, threads: int | None = None) -> Contender:
        return self._one("peregrine", threads, "peregrine", _peregrine, "--protocol", "wsgi",
                         *_option("--wsgi-threads", threads))

    def freastal(self) -> Contender:
        """libuv and one thread, which runs the application; it has no command of its own."""
        program = "python" if self.environment.package("freastal") else "freastal"
        return self._one("freastal", None, program, _freastal)

    def maitred(self, threads: int | None = None) -> Contender:
        return self._one(OURS, threads, "maitred", _maitred, "--interface", "wsgi", *_option("--max-threads", threads))

    def _one(self, name: str, threads: int | None, program: str, command: Command, *words: str) -> Contender:
        name = name if threads is None else f"{name}, {_threads(threads)}"
        return _contender(self.environment, name, program, command, self.application, list(words), self.variables,
                          self.pinned)


def _option(name: str, value: int | None) -> list[str]:
    return [] if value is None else [name, str(value)]


def wsgi(environment: Environment, application: str, threads: int | None = None,
         variables: dict[str, str] | None = None, pinned: bool = True) -> list[Contender]:
    """Every WSGI server with its usual numbers of threads; or those that have threads, each with so many.  The ones that
    people know come first, ours last."""
    of = Wsgi(environment, application, variables, pinned)
    if threads is not None:
        return [of.gunicorn(threads), of.granian(threads), of.weft(threads), of.maitred(threads)]
    return [of.gunicorn(4), of.granian(1), of.granian(4), of.weft(), of.peregrine(), of.maitred(1), of.maitred()]


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


def asgi(environment: Environment, application: str, variables: dict[str, str] | None = None,
         pinned: bool = True) -> list[Contender]:
    """Every ASGI server, on uvloop where it can be told; in the order of `wsgi`."""
    def one(name: str, program: str, command: Command, *words: str) -> Contender:
        return _contender(environment, name, program, command, application, list(words), variables, pinned)

    return [one("uvicorn", "uvicorn", _uvicorn, "--interface", "asgi3", "--loop", "uvloop", "--http", "httptools"),
            one("granian", "granian", _granian, "--interface", "asgi", "--loop", "uvloop"),
            one("weft", "weft", _weft, "--interface", "asgi"),
            one("peregrine", "peregrine", _peregrine, "--protocol", "asgi"),
            ours(environment, application, "asgi", variables=variables, pinned=pinned)]


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
    listen = f"{contender.options.get('scheme', '')}127.0.0.1:{place.port}{contender.options.get('listen', '')}"
    return [str(contender.program), application, "--app-dir", str(APPS), "--listen", listen, *words]


def _granian(contender: Contender, place: Place) -> list[str]:
    application, words = _words(contender)
    return [str(contender.program), application, "--host", "127.0.0.1", "--port", str(place.port), "--http", "1",
            "--workers", "1", *words]


def _gunicorn(contender: Contender, place: Place) -> list[str]:
    application, words = _words(contender)
    return [str(contender.program), application, "--bind", f"127.0.0.1:{place.port}", *words]


def _waitress(contender: Contender, place: Place) -> list[str]:
    application, words = _words(contender)
    return [str(contender.program), f"--listen=127.0.0.1:{place.port}", *words, application]


def _peregrine(contender: Contender, place: Place) -> list[str]:
    application, words = _words(contender)
    return [str(contender.program), application, "--host", "127.0.0.1", "--port", str(place.port), "--workers", "1",
            *words]


def _freastal(contender: Contender, place: Place) -> list[str]:
    application, _ = _words(contender)
    return [str(contender.program), str(APPS / "freastal_server.py"), application, str(place.port)]


def _weft(contender: Contender, place: Place) -> list[str]:
    return _peregrine(contender, place)


def _uvicorn(contender: Contender, place: Place) -> list[str]:
    return [*_peregrine(contender, place), "--no-access-log"]


def folder_of(application: str) -> Path:
    """The file of an application, for the report."""
    return APPS / f"{application.partition(':')[0]}.py"
