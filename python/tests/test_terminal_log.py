"""The access log that a terminal gets without being asked for."""

from __future__ import annotations

import os
import re
import select
import subprocess
import time
import urllib.request
from pathlib import Path

import pytest
from conftest import MAITRED, PATIENCE, environment_for
from test_terminal import APP, Terminal


def read_until(terminal: Terminal, pattern: str) -> re.Match[str]:
    """What the terminal shows, up to a match."""
    shown, end = "", time.monotonic() + PATIENCE
    while not (found := re.search(pattern, shown)):
        ready, _, _ = select.select([terminal.own], [], [], end - time.monotonic())
        assert ready, f"{pattern!r} is not shown, but:\n{shown}"
        shown += os.read(terminal.own, 65536).decode()
    return found


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_terminal_gets_a_line_for_each_request(tmp_path: Path, workers: str) -> None:
    (tmp_path / "app.py").write_text(APP)
    terminal = Terminal([MAITRED, "app.py", "--listen", "127.0.0.1:0", "--workers", workers], tmp_path)
    try:
        url = read_until(terminal, r"http://127\.0\.0\.1:[1-9]\d*")[0]
        with urllib.request.urlopen(f"{url}/page", timeout=PATIENCE) as answer:
            assert answer.read() == b"served"
        read_until(terminal, r'127\.0\.0\.1 - - \[.*\] "GET /page HTTP/1\.1" 200 ')
        terminal.first.terminate()
        assert terminal.first.wait(PATIENCE) == 0
    finally:
        terminal.first.kill()
        terminal.first.wait()
        terminal.hang_up()


def test_check_says_whether_it_is_one(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(APP)
    command: list[str | Path] = [MAITRED, "check", "app.py"]
    done = subprocess.run(command, cwd=tmp_path, env=environment_for({}), capture_output=True, text=True, timeout=PATIENCE)
    assert re.search(r'^access-log += "auto" +# default$', done.stdout, re.M), done.stdout
    assert "# access-log auto: standard output is no terminal: there is none\n" in done.stdout
    terminal = Terminal(command, tmp_path)
    try:
        read_until(terminal, "# access-log auto: standard output is a terminal, which gets it\r\n")
        assert terminal.first.wait(PATIENCE) == 0
    finally:
        terminal.first.kill()
        terminal.first.wait()
        terminal.hang_up()
