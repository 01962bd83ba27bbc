"""The history of the figures: what was counted is in it once, of all workers, also of those that were killed."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from conftest import MAITRED, PATIENCE, Serve, Server, environment_for
from crews import until

APP = """
import os

def app(environ, start_response):
    start_response("404 Not Found" if environ["PATH_INFO"] == "/no" else "200 OK", [("Content-Type", "text/plain")])
    return [str(os.getpid()).encode()]
"""


def run(server: Server, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [MAITRED, "ctl", "--socket", "ctl.sock", *map(str, arguments)]
    folder = server.folder
    return subprocess.run(command, cwd=folder, env=environment_for({}), capture_output=True, text=True, timeout=PATIENCE)


def history(server: Server, *arguments: object) -> Any:
    done = run(server, "--json", "history", *arguments)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def total(server: Server, name: str, step: int = 1) -> float:
    found = history(server, "--seconds", 3000, "--step", step, "--series", name)
    return sum(value for value in found["values"][0] if value is not None)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_each_request_is_in_the_history_once(serve: Serve, tmp_path: Path, workers: str) -> None:
    server = serve("--workers", workers, "--control", "ctl.sock", "--admin", "127.0.0.1:0", source=APP)
    server.folder = tmp_path  # type: ignore[attr-defined]
    if workers == "2":
        server.wait_for("info all workers are ready")
    for _ in range(20):
        assert server.fetch("/").status == 200
    for _ in range(3):
        assert server.fetch("/no").status == 404
    until("all are in the history", lambda: total(server, "requests") >= 23)
    if workers == "2":
        killed = int(server.fetch("/").body)
        os.kill(killed, signal.SIGKILL)
        server.wait_for(r"worker \d+ .*SIGKILL|signal 9")
        until("the one that was answered by it is, too", lambda: total(server, "requests") >= 24)
        until("another one serves", lambda: int(server.fetch("/").body) != killed)
    os.kill(server.process.pid, signal.SIGHUP)
    server.fetch("/no")
    until("it goes on", lambda: total(server, "requests_4xx") >= 4)
    stats = json.loads(run(server, "--json", "stats").stdout)
    counted = sum(row["requests"] for row in stats["classes"])
    until("nothing is missing", lambda: total(server, "requests") >= counted)
    for step in (1, 10, 600):
        assert total(server, "requests", step) == counted
        assert total(server, "requests_4xx", step) == 4
    newest = history(server, "--seconds", 2)
    row = dict(zip(newest["columns"], (column[-1] for column in newest["values"])))
    assert row["memory_bytes"] > 1e6 and row["cpu_seconds"] >= 0 and row["queue"] == 0, row
    place = next(place for place in json.loads(run(server, "--json", "status").stdout)["control"] if "127.0.0.1" in place)
    for suffix, accept in [("&format=csv", "*/*"), ("", "text/csv")]:
        asked = urllib.request.Request(f"{place}/history?series=requests,queue{suffix}", headers={"Accept": accept})
        with urllib.request.urlopen(asked, timeout=PATIENCE) as answer:
            assert answer.headers["Content-Type"] == "text/csv; charset=utf-8"
            rows = list(csv.DictReader(io.StringIO(answer.read().decode())))
        assert list(rows[0]) == ["time", "requests", "queue"]
        assert sum(float(row["requests"] or 0) for row in rows) >= counted
    shown = run(server, "history", "--seconds", 5)
    assert "requests 4xx" in shown.stdout and "p99" in shown.stdout, shown.stdout
    assert run(server, "history", "--format", "csv").stdout.startswith("time,requests,requests_0xx")
    wrong = run(server, "history", "--series", "request")
    assert wrong.returncode == 1 and "did you mean 'requests'?" in wrong.stderr
    if workers == "2":
        one = run(server, "--worker", 1, "history")
        assert one.returncode == 1 and "the supervisor keeps that of all" in one.stderr


def test_without_statistics_there_is_no_history(serve: Serve, tmp_path: Path) -> None:
    server = serve("--control", "ctl.sock", "--statistics", "off", source=APP)
    server.folder = tmp_path  # type: ignore[attr-defined]
    server.fetch("/")
    until("it says so", lambda: history(server)["on"] is False)
    assert history(server)["times"] == []
    assert run(server, "set", "statistics", "on").returncode == 0
    until("it is on", lambda: history(server)["on"] is True)
    server.fetch("/")
    until("the new one is in it", lambda: total(server, "requests") >= 1)
    assert total(server, "requests") == 1 and total(server, "connections") == 1
