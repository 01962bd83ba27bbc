"""The native server of the scheduling benches, and what it is compared with; and what both languages' work is told."""

from __future__ import annotations

import functools
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path

from . import load, machine, peers, python_servers, rounds, servers
from .report import say
from .servers import Contender, Place

#: The WSGI application with the same paths.
APPLICATION = "work_wsgi:application"
HELLO = b"Hello, world!"
NATIVE, WSGI = "native", "WSGI"
_TARGET = machine.TARGET / "bench"
_PROGRAMS = _TARGET / "release" if servers.PROFILE == "release" else machine.TARGET / servers.PROFILE
#: The native server, which is also the command that asks a running one.
PROGRAM = _PROGRAMS / "workbench"
#: The client that tells how long each answer took.
STOPWATCH = _PROGRAMS / "stopwatch"


def build() -> None:
    """The programs that are not Python."""
    for package in ("openloop", "epollloop", "workbench"):
        servers.cargo_build(package)


def build_with(feature: str) -> None:
    """The native server with a feature of its own."""
    servers.cargo_build("workbench", feature)


class CannotDo(Exception):
    """A server has not what a client asks for; the text says what."""


def play(client: str, server: servers.Server, words: Sequence[str], limit: float) -> tuple[dict[str, str], rounds.Meter]:
    """Run a client of `bench/workbench` on the load's core, for so many seconds at most and what load programs have beyond: what it has
    said, and the server's account of the time that it measured.  Raise `CannotDo` where it fails before it measures."""
    meter = rounds.Meter(server)
    marks = {"measuring": meter.start, "measured": meter.stop}
    command = [*machine.pinned(machine.cores()[1]), str(_PROGRAMS / client), *words]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    timer = threading.Timer(limit + load.SPARE_S, process.kill)
    timer.start()
    said = {}
    try:
        assert process.stdout is not None and process.stderr is not None
        for line in process.stdout:
            name, _, value = line.strip().partition(" ")
            said[name] = value
            if name in marks:
                marks[name]()
        if process.wait():
            why = process.stderr.read().strip() or "took too long"
            raise CannotDo(why) if "measuring" not in said else load.WrongAnswer(f"{server.name}: {why}")
    finally:
        timer.cancel()
        process.kill()
        process.wait()
    return said, meter


def languages(options: rounds.Options, lines: list[str]) -> dict[str, peers.Environment | None]:
    """What `contender` takes, by language.  A smoke run goes on without Python, and `lines` says so."""
    found: dict[str, peers.Environment | None] = {NATIVE: None}
    try:
        found[WSGI] = peers.environment(options)
    except rounds.Missing as error:
        if not options.smoke:
            raise
        left_out(lines, f"{WSGI} ({error})")
    return found


def left_out(lines: list[str], what: str) -> None:
    """One more line for the report about what this run leaves out; said at once too."""
    lines.append(f"skipped: {what}")
    say(lines[-1])


def contender(environment: peers.Environment | None, name: str, words: Sequence[str] = (),
              pinned: bool = True) -> Contender:
    """Ours with these options, in Python if there is an environment, else native."""
    if environment is None:
        return native(name, words, pinned)
    return wsgi(environment, name, words, pinned)


def native(name: str, words: Sequence[str] = (), pinned: bool = True) -> Contender:
    """The engine with a native handler and these options."""
    return _contender(name, "workbench", _workbench, words, pinned)


def allocating(name: str, words: Sequence[str] = ()) -> Contender:
    """The same with the allocator of this name; "system" is the one it has without a feature."""
    program = _PROGRAMS / "workbench" if name == "system" else _TARGET / name / "release/workbench"
    return _contender(name, program, _workbench, words, True)


def loops(name: str, pinned: bool = True) -> Contender:
    """As many loops as cores, which do the same work and nothing else; connections stay with the loop they came to."""
    count = 1 if pinned else len(set(machine.cores()))
    return _contender(name, "epollloop", _loops, [str(count)], pinned)


def echo(name: str) -> Contender:
    """A thread for each connection that blocks, and answers with the time."""
    return _contender(name, "echo", _echo, [], True)


def wsgi(environment: peers.Environment, name: str, words: Sequence[str] = (), pinned: bool = True) -> Contender:
    """Ours with the WSGI application and these options."""
    return python_servers.ours(environment, APPLICATION, "wsgi", name, words=words, variables=spins(environment),
                               pinned=pinned)


@functools.cache
def spins(environment: peers.Environment) -> dict[str, str]:
    """What the WSGI application is told: turns of a loop for 50 µs."""
    return {"BENCH_SPINS": _said(environment.program("python"), python_servers.folder_of(APPLICATION))}


@functools.cache
def turns() -> dict[str, str]:
    """What the native programs are told: turns of a loop for a millisecond."""
    return {"BENCH_TURNS": _said(_PROGRAMS / "workbench", "--count")}


def _said(*command: str | Path) -> str:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=60, check=True)
    return done.stdout.strip()


def _contender(name: str, program: str | Path, command: python_servers.Command, words: Sequence[str],
               pinned: bool) -> Contender:
    folder = _PROGRAMS if program == "workbench" else _TARGET / "release"
    return Contender(name, folder / program, command, {"words": list(words)}, turns(), pinned)


def _words(contender: Contender) -> list[str]:
    words = contender.options["words"]
    assert isinstance(words, list)
    return words


def _workbench(contender: Contender, place: Place) -> list[str]:
    return [str(contender.program), "native", "--listen", f"127.0.0.1:{place.port}", *_words(contender)]


def _loops(contender: Contender, place: Place) -> list[str]:
    return [str(contender.program), str(place.port), "--work", *_words(contender)]


def _echo(contender: Contender, place: Place) -> list[str]:
    return [str(contender.program), str(place.port)]
