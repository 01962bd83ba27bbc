"""The PID file: of one live server at a time, whatever became of the one before."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import threading
from pathlib import Path

import pytest
from conftest import MAITRED, PATIENCE, Serve, environment_for

APP = """
def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"served"]
"""


def refused(folder: Path, *arguments: str) -> str:
    """What a server says that does not start."""
    command = [MAITRED, "app.py", "--listen", "127.0.0.1:0", *arguments]
    ended = subprocess.run(
        command, cwd=folder, env=environment_for({}), capture_output=True, text=True, timeout=PATIENCE
    )
    assert ended.returncode == 2, ended.stderr
    return ended.stderr


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.pid"


def test_it_has_the_number_while_the_server_serves(serve: Serve, path: Path) -> None:
    before = os.umask(0o077)
    try:
        server = serve("--pid-file", "run.pid", source=APP)
    finally:
        os.umask(before)
    assert path.read_text() == f"{server.process.pid}\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o644, "whatever the umask"
    assert server.stop() == 0
    assert not path.exists()


def test_that_of_a_live_server_is_an_error_that_names_it(serve: Serve, path: Path, tmp_path: Path) -> None:
    server = serve("--pid-file", "run.pid", source=APP)
    number = server.process.pid
    said = refused(tmp_path, "--pid-file", str(path))
    assert said.startswith(f"maitred: --pid-file: {path} belongs to process {number} (") and "which runs; stop it" in said
    assert path.read_text() == f"{number}\n" and server.fetch("/").status == 200


def test_that_of_a_killed_server_is_replaced(serve: Serve, path: Path) -> None:
    killed = serve("--pid-file", "run.pid", source=APP)
    killed.kill()
    assert path.read_text() == f"{killed.process.pid}\n"
    server = serve("--pid-file", "run.pid", source=APP)
    assert path.read_text() == f"{server.process.pid}\n"


def test_a_number_that_another_program_has_by_now_is_replaced(serve: Serve, path: Path) -> None:
    path.write_text(f"{os.getpid()}\n")
    server = serve("--pid-file", "run.pid", source=APP)
    assert path.read_text() == f"{server.process.pid}\n"


def test_a_child_that_a_killed_server_has_left_keeps_nobody_from_it(serve: Serve, path: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "door")
    forked = "import os\nif os.fork() == 0:\n    open('door').read()\n    os._exit(0)\n"
    killed = serve("--pid-file", "run.pid", source=forked + APP)
    killed.kill()
    # The child has inherited the lock, and waits at the door.
    with open(tmp_path / "door", "w"):
        server = serve("--pid-file", "run.pid", source=APP)
        assert path.read_text() == f"{server.process.pid}\n"


def test_it_is_claimed_before_the_application_is_loaded(serve: Serve, path: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "door")
    said = []

    def opened() -> None:
        # It waits until the application has opened the other side.
        with open(tmp_path / "door", "w"):
            said.append((path.read_text(), refused(tmp_path, "--pid-file", "run.pid")))

    opener = threading.Thread(target=opened)
    opener.start()
    server = serve("--pid-file", "run.pid", source="open('door').read()\n" + APP)
    opener.join()
    [(text, error)] = said
    assert text == "" and f"belongs to process {server.process.pid} (" in error
    assert path.read_text() == f"{server.process.pid}\n"


def test_none_is_left_by_a_server_that_does_not_start(path: Path, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("raise RuntimeError('no')\n" + APP)
    assert "RuntimeError" in refused(tmp_path, "--pid-file", "run.pid")
    assert not path.exists()


@pytest.mark.parametrize("text", ["root:x:0:0:root\n", "12 34\n"])
def test_another_file_is_left_alone(path: Path, tmp_path: Path, text: str) -> None:
    (tmp_path / "app.py").write_text(APP)
    path.write_text(text)
    assert "is no PID file: it holds something else than the number of a process" in refused(tmp_path, "--pid-file", "run.pid")
    assert path.read_text() == text


def test_a_folder_that_is_missing_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(APP)
    said = refused(tmp_path, "--pid-file", "missing/run.pid")
    assert "--pid-file: missing/run.pid cannot be made: No such file" in said and "a folder that exists" in said


def test_a_server_that_is_ended_at_once_leaves_none(serve: Serve, path: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "door")
    waits = APP.replace("    start_response", "    open('door').read()\n    start_response", 1)
    server = serve("--pid-file", "run.pid", source=waits)
    connection = server.connect()
    connection.request("GET", "/")
    with open(tmp_path / "door", "w"):
        server.process.send_signal(signal.SIGTERM)
        server.wait_for("draining")
        assert server.stop() == 143
        assert not path.exists()
