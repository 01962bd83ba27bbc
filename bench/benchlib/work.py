"""The WSGI application whose requests compute, sleep or call the system, as their paths say; and what it is told."""

from __future__ import annotations

import functools
import subprocess
from collections.abc import Sequence

from . import peers, python_servers
from .servers import Contender

APPLICATION = "work_wsgi:application"
HELLO = b"Hello, world!"


def ours(environment: peers.Environment, name: str, words: Sequence[str] = (), pinned: bool = True) -> Contender:
    """maitred with it and these options."""
    return python_servers.ours(environment, APPLICATION, "wsgi", name, words=words, variables=spins(environment),
                               pinned=pinned)


@functools.cache
def spins(environment: peers.Environment) -> dict[str, str]:
    """Turns of a loop for 50 µs."""
    return {"BENCH_SPINS": _counted(environment)}


@functools.cache
def hashes(environment: peers.Environment) -> dict[str, str]:
    """KiB that are hashed in 1.3 ms."""
    return {"BENCH_HASH": _counted(environment, "hash")}


def _counted(environment: peers.Environment, *what: str) -> str:
    """Once for all servers of a run."""
    program = [str(environment.program("python")), str(python_servers.folder_of(APPLICATION)), *what]
    return subprocess.run(program, capture_output=True, text=True, timeout=60, check=True).stdout.strip()
