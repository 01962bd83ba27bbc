"""Workers that are forked from a process that has imported the application.

Promises: no fork with a second thread around, whose locks would stay locked for ever in the child. Leaves out: what else a fork shares,
such as sockets that the application has opened.
"""

from __future__ import annotations

import gc
import os
import sys
import threading

from maitred._load import LoadFailure

_TASKS = "/proc/self/task"
_DESCRIPTORS = "/proc/self/fd"

#: The sockets that there were before the application was imported.
_sockets: set[str] | None = None

#: Whether the garbage collector was on when forks were prepared.
_collects = True


def begin() -> None:
    """Notes what there is before the first application is imported."""
    global _sockets
    if _sockets is None:
        _sockets = _open_sockets()


def prepare() -> str:
    """What the application is made of is left alone by the garbage collector, so that its pages stay shared. Returns a warning, or nothing.

    Raises :class:`maitred._load.LoadFailure` if the process has several threads.
    """
    global _collects
    names = _threads()
    if names:
        raise LoadFailure(
            f"the application has started threads while it was imported, and a fork would not have them: {', '.join(names)}",
            "start them with the first request or in the lifespan, or leave preload out",
        )
    gc.collect()
    _collects = gc.isenabled()
    gc.disable()
    gc.freeze()
    opened = len(_open_sockets() - (_sockets or set()))
    if not opened:
        return ""
    what = "a socket" if opened == 1 else f"{opened} sockets"
    return (
        f"the application has opened {what} while it was imported, and all workers share what is open: open connections and make"
        " event loops with the first request or in the lifespan, or leave preload out"
    )


def _open_sockets() -> set[str]:
    links = set()
    for name in os.listdir(_DESCRIPTORS):
        try:
            links.add(os.readlink(f"{_DESCRIPTORS}/{name}"))
        except OSError:
            pass  # It was the one of the folder.
    return {link for link in links if link.startswith("socket:")}


def _threads() -> list[str]:
    """All but the main thread: by the name that Python has for them, else by the kernel's."""
    known = {thread.native_id: thread.name for thread in threading.enumerate()}
    names = []
    for task in sorted(map(int, os.listdir(_TASKS))):
        if task != os.getpid():
            try:
                with open(f"{_TASKS}/{task}/comm", encoding="utf-8", errors="replace") as file:
                    names.append(known.get(task) or f"{file.read().strip()} (not of threading)")
            except OSError:
                pass  # It has ended meanwhile.
    return names


def fork() -> int:
    """Forks a process whose parent ends at once: its number, and 0 in that process.

    Raises ``OSError`` if no process can be made.
    """
    reading, writing = os.pipe()
    between = os.fork()
    if between == 0:
        try:
            worker = os.fork()
        except BaseException:
            os._exit(1)
        if worker == 0:
            os.close(reading)
            os.close(writing)
            if _collects:
                gc.enable()
            return 0
        os.write(writing, worker.to_bytes(8, sys.byteorder))
        os._exit(0)
    os.close(writing)
    number = os.read(reading, 8)
    os.close(reading)
    # From then on the worker is a child of the supervisor.
    os.waitpid(between, 0)
    if len(number) < 8:
        raise OSError("no process can be made: see the limits of this one (ulimit, control group)")
    return int.from_bytes(number, sys.byteorder)
