"""``maitred top``: on a terminal of 80 × 24, and as plain text."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import secured
from conftest import MAITRED, PATIENCE, Serve, Server, environment_for
from crews import until

APP = """
import os, time

def app(environ, start_response):
    if environ["PATH_INFO"] == "/stays":
        print("stays", flush=True)
        while not os.path.exists("go"):
            time.sleep(0.01)
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"served"]
"""

TOP = f"{MAITRED} top --socket ctl.sock --interval 0.5"


@pytest.fixture(autouse=True)
def in_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def busy(serve: Serve, tmp_path: Path) -> Iterator[Server]:
    """A server with one request that stays and some that have been answered."""
    server = serve("--workers", "2", "--control", "ctl.sock", source=APP)
    staying = threading.Thread(target=server.fetch, args=("/stays",))
    staying.start()
    server.wait_for("stays\n")
    for _ in range(5):
        server.fetch("/quick")
    yield server
    (tmp_path / "go").touch()
    staying.join(PATIENCE)


class Tmux:
    """A terminal of 80 × 24 with a shell in it."""

    def __init__(self) -> None:
        self.name = f"maitred-{uuid.uuid4().hex}"
        self.begin()

    def begin(self) -> None:
        self.run("-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "24", "exec sh")

    def run(self, *arguments: str) -> str:
        command = ["tmux", "-L", self.name, *arguments]
        done = subprocess.run(command, env=environment_for({"LC_ALL": "C.UTF-8"}), capture_output=True, text=True, timeout=PATIENCE)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def type(self, *keys: str) -> None:
        self.run("send-keys", *keys)

    def screen(self) -> list[str]:
        return self.run("capture-pane", "-p").split("\n")

    def shows(self, what: str, is_it: Callable[[list[str]], bool]) -> list[str]:
        found: list[str] = []

        def shows() -> bool:
            found[:] = self.screen()
            return is_it(found)

        try:
            until(what, shows)
        except AssertionError:
            pytest.fail(f"the terminal does not show {what}, but:\n" + "\n".join(found))
        return found


@pytest.fixture
def tmux() -> Iterator[Tmux]:
    if not shutil.which("tmux"):
        pytest.skip("tmux is not installed: there is no terminal of 80 × 24 to look at")
    terminal = Tmux()
    yield terminal
    terminal.run("kill-server")


def has_left(screen: list[str], code: int = 0) -> bool:
    """Back at the shell, which echoes as before."""
    return any(f"left {code}" in line for line in screen)


def type_and_look(tmux: Tmux) -> None:
    """Types the command, between two looks at the settings of the terminal."""
    tmux.type(f"stty -a > before; sh -c 'echo $$ > pid; exec {TOP}'; echo left $?; stty -a > after", "Enter")


def is_restored() -> bool:
    return Path("after").exists() and Path("after").read_text() == Path("before").read_text()


@pytest.mark.parametrize("leave", ["q", "C-c", "Escape"])
def test_it_is_usable_at_80_by_24(busy: Server, tmux: Tmux, leave: str) -> None:
    type_and_look(tmux)
    screen = tmux.shows("the routes", lambda screen: any("/quick" in line for line in screen))
    text = "\n".join(screen)
    assert screen[0].startswith("maitred ") and "2 workers" in screen[0], text
    assert f"{secured.SCHEME}://127.0.0.1:{busy.port}" in screen[1], text
    for part in ["requests/s", "p99", "cpu ", "threads: ", "queue", "time▼", "1 requests run", "GET /stays"]:
        assert part in text, f"{part}\n{text}"
    assert screen[23].startswith("q quit  p pause"), text
    tmux.type("r")
    tmux.shows("another order", lambda screen: any("requests▼" in line for line in screen))
    tmux.type("p")
    tmux.shows("that it is stopped", lambda screen: screen[23].startswith("q quit  p go on"))
    tmux.type(leave)
    tmux.shows("the shell", has_left)
    until("it is as it was", is_restored)


def test_a_signal_restores_the_terminal(busy: Server, tmux: Tmux) -> None:
    type_and_look(tmux)
    tmux.shows("the server", lambda screen: screen[0].startswith("maitred "))
    os.kill(int(Path("pid").read_text()), signal.SIGTERM)
    tmux.shows("the shell", lambda screen: has_left(screen, 128 + signal.SIGTERM))
    until("it is as it was", is_restored)


def test_it_takes_the_size_of_its_terminal_and_no_other_keys(busy: Server, tmux: Tmux) -> None:
    tmux.type(f"{TOP}; echo left $?", "Enter")
    tmux.shows("the server", lambda screen: screen[23].startswith("q quit  p pause"))
    tmux.type("Down", "x", "p")
    tmux.run("resize-window", "-x", "60", "-y", "30")
    tmux.shows("a larger screen", lambda screen: screen[29].startswith("q quit  p go on") and not screen[23].startswith("q quit"))
    tmux.run("resize-window", "-x", "60", "-y", "10")
    tmux.shows("a smaller screen", lambda screen: screen[0].startswith("maitred ") and screen[9].startswith("q quit"))
    tmux.type("q")
    tmux.shows("the shell", has_left)


def test_it_ends_with_its_terminal_also_where_sighup_is_ignored(busy: Server, tmux: Tmux, tmp_path: Path) -> None:
    tmux.type(f"trap '' HUP; echo $$ > pid; exec {TOP}", "Enter")
    tmux.shows("the server", lambda screen: screen[0].startswith("maitred "))
    process = Path("/proc", Path("pid").read_text().strip())
    tmux.run("kill-server")
    until("it has ended", lambda: not process.exists())
    tmux.begin()


def test_a_server_that_ends_is_told_and_its_successor_is_shown(busy: Server, tmux: Tmux, serve: Serve) -> None:
    tmux.type(f"{TOP}; echo left $?", "Enter")
    tmux.shows("the server", lambda screen: screen[0].startswith("maitred "))
    Path("go").touch()
    busy.process.send_signal(signal.SIGTERM)
    busy.process.wait(PATIENCE)
    tmux.shows("that nobody answers", lambda screen: "does not answer" in screen[2])
    other = serve("--control", "ctl.sock", source=APP)
    tmux.shows("the new one", lambda screen: f"pid {other.process.pid}" in screen[0] and "does not answer" not in screen[2])
    tmux.type("q")
    tmux.shows("the shell", has_left)


def top(*arguments: str) -> subprocess.Popen[str]:
    command = [MAITRED, "top", *arguments]
    return subprocess.Popen(command, env=environment_for({}), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_without_a_terminal_it_is_plain_text(busy: Server) -> None:
    once = top("--socket", "ctl.sock", "--once")
    said, wrong = once.communicate(timeout=PATIENCE)
    assert once.returncode == 0, wrong
    assert "\x1b" not in said and said.startswith("maitred ") and said.endswith("\n\n"), said
    assert "GET /stays" in said and "/quick" in said, said
    going = top("--socket", "ctl.sock", "--interval", "0.5")
    assert going.stdout is not None
    blocks = 0
    for line in going.stdout:
        blocks += line.startswith("maitred ")
        if blocks == 3:
            break
    os.kill(going.pid, signal.SIGINT)
    assert going.communicate(timeout=PATIENCE)[1] == ""
    assert going.returncode == 128 + signal.SIGINT


def test_it_ends_when_nobody_reads(busy: Server) -> None:
    going = top("--socket", "ctl.sock", "--interval", "0.5")
    assert going.stdout is not None and going.stdout.readline().startswith("maitred ")
    going.stdout.close()
    assert going.wait(PATIENCE) == 0
    assert going.stderr is not None and going.stderr.read() == ""
    going.stderr.close()


def test_the_server_is_found_as_ctl_finds_it(serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.chmod(0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    server = serve(source=APP)
    for named in (["--port", str(server.port)], ["--pid", str(server.process.pid)], []):
        found = top("--once", *named)
        said, wrong = found.communicate(timeout=PATIENCE)
        assert found.returncode == 0 and f"pid {server.process.pid}" in said, wrong
    other = top("--once", "--port", "1")
    assert "no server of this user has the port 1" in other.communicate(timeout=PATIENCE)[1]
    assert other.returncode == 2
