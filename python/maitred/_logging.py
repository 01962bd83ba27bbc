"""The server's logs by way of Python's ``logging``.

Promises: the engine never waits for a handler. It writes lines to a pipe, as to any log, which a thread of its own reads; what the
pipe does not take waits in the engine's bounded buffer, or is dropped and counted. Lines from before the application has been loaded,
and with it what configures ``logging``, wait for that. Leaves out: what becomes of a record, which the application configures.
"""

from __future__ import annotations

import logging
import os
import re
import select
import sys
import threading
import traceback
from collections.abc import Callable
from datetime import datetime

#: The marks of entries of the error log, with their levels. Of what an application writes to ``wsgi.errors`` only it knows the
#: level; the stream is one for errors.
_LEVELS = {
    "error": logging.ERROR,
    "warn": logging.WARNING,
    "info": logging.INFO,
    "debug": logging.DEBUG,
    "trace": logging.DEBUG,
    "app": logging.ERROR,
}

#: Time, mark and text.
_ENTRY = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+)Z (error|warn|info|debug|trace|app) (.*)", re.DOTALL)

#: How long the further lines of an entry are waited for, in seconds: they are written in one piece.
_BELONGS = 0.02


class Pipe:
    """A log, and the lines of it that have come."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.reader, self.writer = os.pipe()
        os.set_blocking(self.reader, False)
        self._part = b""
        self._entry: list[str] = []

    def receive(self) -> bool:
        """Takes what has come, and passes on what is complete; whether there was anything."""
        try:
            received = os.read(self.reader, 65536)
        except BlockingIOError:
            return False
        *lines, self._part = (self._part + received).split(b"\n")
        for line in lines:
            text = line.decode(errors="replace")
            if self.name != "error":
                _emit("maitred.access", logging.INFO, text, None)
            elif _ENTRY.match(text):
                self.end_entry()
                self._entry = [text]
            elif self._entry:
                self._entry.append(text)
            else:
                # What is said at the start has neither time nor level.
                _emit("maitred.error", logging.INFO, text, None)
        return True

    @property
    def waits(self) -> bool:
        """Whether further lines may belong to the last entry."""
        return bool(self._entry)

    def end_entry(self) -> None:
        """No further line belongs to the last entry."""
        if not self._entry:
            return
        text, self._entry = "\n".join(self._entry), []
        if found := _ENTRY.fullmatch(text):
            time, mark, said = found.groups()
            name = "maitred.wsgi" if mark == "app" else "maitred.error"
            _emit(name, _LEVELS[mark], said, datetime.fromisoformat(f"{time}+00:00").timestamp())

    def close(self) -> None:
        os.close(self.reader)
        os.close(self.writer)


class Forwarder:
    """The logs of this process that go to ``logging``."""

    def __init__(self) -> None:
        self._pipes: list[Pipe] = []
        self._thread: threading.Thread | None = None
        self._bell: tuple[int, int] | None = None

    def place(self, name: str) -> str:
        """The path of a file for the log ``error`` or ``access``."""
        pipe = Pipe(name)
        self._pipes.append(pipe)
        return f"/proc/self/fd/{pipe.writer}"

    def start(self, mark: Callable[[], None]) -> None:
        """The application is there. ``mark`` is called on the thread."""
        if self._pipes and self._thread is None:
            self._bell = os.pipe()
            self._thread = threading.Thread(target=self._run, args=(mark, self._bell[0]), name="maitred-logging", daemon=True)
            self._thread.start()

    def end(self, limit: float) -> bool:
        """Passes on what has come, at most for ``limit`` seconds: handlers may be slow. Whether all have taken it."""
        if self._thread is not None and self._bell is not None:
            os.write(self._bell[1], b"e")
            self._thread.join(limit)
            if self._thread.is_alive():
                print("maitred: logging: its handlers have not taken all lines in time", file=sys.stderr, flush=True)
                return False
        else:
            # No application came that would have configured anything.
            for pipe in self._pipes:
                while pipe.receive():
                    pass
                pipe.end_entry()
        for pipe in self._pipes:
            pipe.close()
        for descriptor in self._bell or ():
            os.close(descriptor)
        self._pipes, self._thread, self._bell = [], None, None
        return True

    def _run(self, mark: Callable[[], None], bell: int) -> None:
        mark()
        readers = {pipe.reader: pipe for pipe in self._pipes}
        ends = False
        while not ends:
            limit = _BELONGS if any(pipe.waits for pipe in self._pipes) else None
            poll = select.poll()
            for descriptor in (bell, *readers):
                poll.register(descriptor, select.POLLIN)
            ready = [descriptor for descriptor, _ in poll.poll(None if limit is None else limit * 1000)]
            ends = bell in ready
            for descriptor in ready:
                if descriptor != bell:
                    readers[descriptor].receive()
            if not ready:
                for pipe in self._pipes:
                    pipe.end_entry()
        for pipe in self._pipes:
            while pipe.receive():
                pass
            pipe.end_entry()


def _emit(name: str, level: int, text: str, time: float | None) -> None:
    try:
        logger = logging.getLogger(name)
        if not logger.isEnabledFor(level):
            return
        record = logger.makeRecord(name, level, "maitred", 0, text, (), None)
        if time is not None:
            record.created, record.msecs = time, time % 1 * 1000
        logger.handle(record)
    except BaseException:
        # A filter of the application, or a handler that lets its exception pass.
        traceback.print_exc()
