"""`maitred health`: an exit code and one line, whatever the server is doing."""

from __future__ import annotations

import socket
import subprocess
from pathlib import Path

import pytest
from conftest import MAITRED, PATIENCE, Serve, environment_for

APP = """
def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"hello"]
"""


@pytest.fixture
def runtime(tmp_path: Path) -> dict[str, str]:
    """Control sockets are in a folder of the test's own."""
    folder = tmp_path / "runtime"
    folder.mkdir(mode=0o700)
    return {"XDG_RUNTIME_DIR": str(folder)}


def health(*arguments: str, **environment: str) -> tuple[int, str]:
    """The exit code and the only line."""
    ended = subprocess.run(
        [MAITRED, "health", *arguments], env=environment_for(environment), capture_output=True, text=True, timeout=PATIENCE
    )
    lines = (ended.stdout + ended.stderr).splitlines()
    assert len(lines) == 1, lines
    return ended.returncode, lines[0]


@pytest.mark.parametrize("workers", [(), ("--workers", "2")])
def test_a_server_is_found_and_ready(serve: Serve, runtime: dict[str, str], workers: tuple[str, ...]) -> None:
    server = serve(*workers, source=APP, **runtime)
    own = str(server.process.pid)
    ready = (0, f"ready: process {own}")
    for named in [(), ("--pid", own), ("--port", str(server.port)), ("--server", own)]:
        assert health(*named, **runtime) == ready
    assert health("--socket", f"{runtime['XDG_RUNTIME_DIR']}/maitred-{own}.sock") == ready


def test_nothing_runs(runtime: dict[str, str]) -> None:
    # One that is named: root also looks for servers of others, and other tests have some.
    code, line = health("--socket", f"{runtime['XDG_RUNTIME_DIR']}/none")
    assert code == 1 and "does not answer" in line, line
    code, line = health("--port", "1", **runtime)
    assert code == 1 and line.startswith("maitred: health: no server of this user"), line


def test_a_page_says_it(serve: Serve, runtime: dict[str, str]) -> None:
    server = serve("--health-path", "/healthz", source=APP, **runtime)
    url = f"http://127.0.0.1:{server.port}/healthz"
    assert health("--url", url) == (0, f"ready: {url} answers 200")
    server.kill()
    code, line = health("--url", url)
    assert code == 1 and line.startswith(f"maitred: health: {url} does not answer: "), line


def test_who_is_about_to_end_is_not_ready(serve: Serve, runtime: dict[str, str]) -> None:
    server = serve("--health-path", "/healthz", "--drain-delay", "60", source=APP, **runtime)
    server.process.terminate()
    server.wait_for("drain-delay")
    assert health(**runtime) == (1, f"maitred: health: process {server.process.pid} is not ready: it is about to end")
    assert server.stop() == 0


def test_who_never_answers_is_not_waited_for() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        for url in (address, f"{address}/healthz"):
            assert health("--url", url, "--timeout", "0.2")[0] == 1


def test_mistakes_have_another_code() -> None:
    assert health("--tmeout", "1") == (2, "maitred: health: --tmeout is no option of it; did you mean '--timeout'?")
    assert health("--timeout", "0")[0] == 2
