"""The programs of `bench/clients`: load by TLS and by WebSockets."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path

from . import load, machine, rounds, servers

PROGRAMS = machine.TARGET / "bench/release"


def build() -> None:
    servers.cargo_build("clients")


def command(client: str, words: Sequence[str]) -> list[str | Path]:
    """One of them with these words, on the load's core."""
    return [*machine.pinned(machine.cores()[1]), PROGRAMS / client, *words]


class CannotDo(Exception):
    """A server has not what a client asks for; the text says what."""


def play(client: str, server: servers.Server, words: Sequence[str], limit: float) -> tuple[dict[str, str], rounds.Meter]:
    """Run a client, for so many seconds at most and what load programs have beyond: what it has said, and the server's account of the
    time that it measured.  Raise `CannotDo` where it fails before it measures."""
    meter = rounds.Meter(server)
    marks = {"measuring": meter.start, "measured": meter.stop}
    process = subprocess.Popen(command(client, words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
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
