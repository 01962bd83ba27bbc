"""SIGHUP: the end with a terminal that hangs up, and a reload for whoever has none or asks while it is there."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import shutil
import signal
import subprocess
import termios
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import MAITRED, PATIENCE, environment_for

APP = """
def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"served"]
"""

MEANS_END = r"SIGHUP \(the terminal has hung up\): draining"
MEANS_RELOAD = r"SIGHUP: the configuration has been read again"


class Terminal:
    """A terminal with a session in it, whose first process is this command. Closing it hangs up."""

    def __init__(self, command: list[str | Path], folder: Path, ignored: bool = False) -> None:
        self.own, theirs = pty.openpty()

        def begin() -> None:
            fcntl.ioctl(theirs, termios.TIOCSCTTY, 0)
            # Whoever starts the tests with nohup ignores it, and the command would inherit that.
            signal.signal(signal.SIGHUP, signal.SIG_IGN if ignored else signal.SIG_DFL)

        self.first = subprocess.Popen(
            command,
            cwd=folder,
            env=environment_for({"PS1": "$ "}),
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            preexec_fn=begin,
        )
        os.close(theirs)
        self.open = True

    def type(self, line: str) -> None:
        os.write(self.own, line.encode() + b"\n")

    def hang_up(self) -> None:
        if self.open:
            os.close(self.own)
            self.open = False


class Place:
    """A server's log file, and its process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.process = 0
        (folder / "app.py").write_text(APP)

    def command(self) -> list[str | Path]:
        options = ["--listen", "127.0.0.1:0", "--error-log", "error.log", "--pid-file", "run.pid"]
        return [MAITRED, "app.py", *options]

    def look_for(self, pattern: str, name: str = "error.log") -> None:
        """Looks again and again until the file has it."""
        path = self.folder / name
        over = threading.Event()
        for _ in range(int(PATIENCE * 50)):
            if path.exists() and re.search(pattern, path.read_text()):
                return
            over.wait(0.02)
        pytest.fail(f"no {pattern!r} in {path.read_text() if path.exists() else 'nothing'}")

    def wait_until_it_serves(self) -> None:
        self.look_for(r"^\d+\n", "run.pid")
        self.process = int((self.folder / "run.pid").read_text())

    def wait_until_it_is_gone(self) -> None:
        over = threading.Event()
        for _ in range(int(PATIENCE * 50)):
            if not (self.folder / "run.pid").exists():
                return
            over.wait(0.02)
        pytest.fail("it does not end")

    def end(self) -> None:
        if self.process:
            try:
                os.kill(self.process, signal.SIGKILL)
            except ProcessLookupError:
                pass


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    place = Place(tmp_path)
    yield place
    place.end()


@pytest.fixture
def terminal(place: Place) -> Iterator[Terminal]:
    """One whose first process is the server."""
    terminal = Terminal(place.command(), place.folder)
    place.wait_until_it_serves()
    yield terminal
    terminal.hang_up()
    terminal.first.wait(PATIENCE)


def test_a_terminal_that_hangs_up_ends_the_server(place: Place, terminal: Terminal) -> None:
    terminal.hang_up()
    assert terminal.first.wait(PATIENCE) == 0
    place.look_for(MEANS_END)
    place.look_for("drained: every accepted request was answered")


def test_a_signal_while_it_is_there_reloads(place: Place, terminal: Terminal) -> None:
    os.kill(place.process, signal.SIGHUP)
    place.look_for(MEANS_RELOAD)
    assert terminal.first.poll() is None


def test_who_ignores_the_end_of_the_terminal_reloads(place: Place) -> None:
    """As nohup(1) starts it."""
    terminal = Terminal(place.command(), place.folder, ignored=True)
    place.wait_until_it_serves()
    terminal.hang_up()
    place.look_for(MEANS_RELOAD)
    assert terminal.first.poll() is None
    terminal.first.terminate()
    assert terminal.first.wait(PATIENCE) == 0


@pytest.mark.skipif(not shutil.which("setsid"), reason="needs setsid")
def test_a_daemon_reloads(place: Place) -> None:
    """Started in a terminal, in a session of its own."""
    command = ["sh", "-c", 'setsid "$@" & wait', "sh", *place.command()]
    terminal = Terminal(command, place.folder)
    place.wait_until_it_serves()
    terminal.hang_up()
    terminal.first.wait(PATIENCE)
    os.kill(place.process, signal.SIGHUP)
    place.look_for(MEANS_RELOAD)
    os.kill(place.process, signal.SIGTERM)
    place.wait_until_it_is_gone()


@pytest.mark.skipif(not shutil.which("bash"), reason="needs bash")
@pytest.mark.parametrize("background", ["", " &"])
def test_a_shell_hands_it_on(place: Place, background: str) -> None:
    terminal = Terminal(["bash", "--norc", "-i"], place.folder)
    terminal.type(" ".join(map(str, place.command())) + background)
    place.wait_until_it_serves()
    terminal.hang_up()
    place.look_for(MEANS_END)
    place.wait_until_it_is_gone()
    terminal.first.wait(PATIENCE)
