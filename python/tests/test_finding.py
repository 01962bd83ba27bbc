"""``maitred ctl`` finds a server by any of its processes and by its port; the admin listener has the figures of all workers."""

from __future__ import annotations

import json
import re
import subprocess
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from conftest import MAITRED, PATIENCE, Serve, environment_for

APP = """
import os

def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [str(os.getpid()).encode()]
"""

TOKEN = "0123456789abcdef"


@pytest.fixture
def runtime(tmp_path: Path) -> Path:
    """Where the sockets of this test are."""
    folder = tmp_path / "runtime"
    folder.mkdir(mode=0o700)
    return folder


def ctl(runtime: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [MAITRED, "ctl", "--json", *map(str, arguments)]
    environment = environment_for({"XDG_RUNTIME_DIR": str(runtime)})
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE)


def status(runtime: Path, *arguments: object) -> Any:
    done = ctl(runtime, *arguments, "status")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_server_is_found_by_a_worker_and_by_its_port(serve: Serve, runtime: Path) -> None:
    one = serve("--workers", "2", source=APP, XDG_RUNTIME_DIR=str(runtime))
    other = serve(source=APP, XDG_RUNTIME_DIR=str(runtime))
    one.wait_for("info all workers are ready")
    worker = int(one.fetch("/").body)
    assert worker != one.process.pid
    for named in [("--pid", one.process.pid), ("--pid", worker), ("--port", one.port)]:
        assert status(runtime, *named)["pid"] == one.process.pid, named
    assert status(runtime, "--port", other.port)["pid"] == other.process.pid
    done = ctl(runtime, "--port", 1, "status")
    assert done.returncode == 2 and f"there are {min(one.process.pid, other.process.pid)} (" in done.stderr


@pytest.mark.parametrize("workers", ["1", "2"])
def test_the_admin_listener_has_the_figures_of_all_for_who_has_the_token(
    serve: Serve, tmp_path: Path, runtime: Path, workers: str
) -> None:
    file = tmp_path / "token"
    file.write_text(TOKEN)
    file.chmod(0o600)
    options = ("--workers", workers, "--admin", "127.0.0.1:0", "--admin-token-file", str(file))
    server = serve(*options, source=APP, XDG_RUNTIME_DIR=str(runtime))
    if workers == "2":
        server.wait_for("info all workers are ready")
    for _ in range(5):
        assert server.fetch("/").status == 200
    places = status(runtime, "--pid", server.process.pid)["control"]
    url = next(place for place in places if re.fullmatch(r"(http://)?127\.0\.0\.1:\d+", place))
    url = f"{url if url.startswith('http') else f'http://{url}'}/metrics"
    # As Prometheus shows it: `authorization: credentials_file: ...`.
    asked = urllib.request.Request(url, headers={"Authorization": f"Bearer {TOKEN}"})
    with urllib.request.urlopen(asked, timeout=PATIENCE) as answer:
        kind, text = answer.headers["Content-Type"], answer.read().decode()
    assert kind.startswith("text/plain; version=0.0.4"), kind
    assert 'maitred_route_duration_seconds_count{route="GET /",span="run"} 5\n' in text
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(url, timeout=PATIENCE)
    assert refused.value.code == 401
    refused.value.close()
