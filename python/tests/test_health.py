"""`maitred health`: an exit code and one line, whatever the server is doing."""

from __future__ import annotations

import socket
import subprocess
from pathlib import Path

import pytest
from certificates import Authority, authority, needs_openssl
from conftest import MAITRED, PATIENCE, Serve, environment_for

__all__ = ["authority"]

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


@needs_openssl
def test_a_page_says_it_by_https(serve: Serve, runtime: dict[str, str], authority: Authority, tmp_path: Path) -> None:
    pair = authority.issue("shop.example", "127.0.0.1")
    server = serve("--listen", "https://127.0.0.1:0", *pair.options, "--health-path", "/healthz", source=APP, **runtime)
    url = f"https://127.0.0.1:{server.port}/healthz"
    ready = (0, f"ready: {url} answers 200")
    assert health("--url", url) == ready
    assert health("--url", url, "--ca", str(authority.file)) == ready
    (tmp_path / "other").mkdir()
    code, line = health("--url", url, "--ca", str(Authority(tmp_path / "other", "Another one").file))
    assert code == 1 and f"{url} does not answer: no trusted authority has issued the certificate of the server" in line, line
    # The name is verified where the issuer is.
    code, line = health("--url", url.replace("127.0.0.1", "localhost"), "--ca", str(authority.file))
    assert code == 1 and "is not for localhost but for shop.example, 127.0.0.1" in line, line
    code, line = health("--url", url, "--ca", str(pair.key))
    assert code == 1 and line.startswith(f"maitred: health: --ca: {pair.key}: "), line


@needs_openssl
def test_a_certificate_that_has_signed_itself_is_its_own_authority(serve: Serve, runtime: dict[str, str], tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    server = serve("--tls", "--health-path", "/healthz", source=APP, XDG_CACHE_HOME=str(cache), **runtime)
    url = f"https://localhost:{server.port}/healthz"
    for options in [(), ("--ca", str(cache / "maitred/development.pem"))]:
        assert health("--url", url, *options) == (0, f"ready: {url} answers 200")
