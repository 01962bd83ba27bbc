"""The history of the figures: what was counted is in it once, of all workers, also of those that were killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import urllib.error
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


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [MAITRED, "ctl", "--socket", "ctl.sock", *map(str, arguments)]
    return subprocess.run(command, env=environment_for({}), capture_output=True, text=True, timeout=PATIENCE)


def history(*arguments: object) -> Any:
    done = run("--json", "history", *arguments)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def total(name: str, resolution: str = "1s") -> int:
    found = history("--last", "50m", "--resolution", resolution, "--figure", name)
    return sum(value for value in found["figures"][name] if value is not None)


def has_counted(name: str, count: int) -> None:
    until(f"{count} of {name} are in the history", lambda: total(name) >= count)


@pytest.fixture(autouse=True)
def in_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_each_request_is_in_the_history_once(serve: Serve, workers: str) -> None:
    server = serve("--workers", workers, "--control", "ctl.sock", "--admin", "127.0.0.1:0", source=APP)
    if workers == "2":
        server.wait_for("info all workers are ready")
    for _ in range(20):
        assert server.fetch("/").status == 200
    for _ in range(3):
        assert server.fetch("/no").status == 404
    has_counted("requests", 23)
    if workers == "2":
        killed = int(server.fetch("/").body)
        # A request is counted when its response is on its way.
        has_counted("requests", 24)
        os.kill(killed, signal.SIGKILL)
        server.wait_for(r"worker \d+ .*SIGKILL|signal 9")
        until("another one serves", lambda: int(server.fetch("/").body) != killed)
    before = len(server.said)
    os.kill(server.process.pid, signal.SIGHUP)
    server.wait_for("all workers are replaced" if workers == "2" else "read again", before)
    server.fetch("/no")
    has_counted("requests_4xx", 4)
    counted = sum(row["requests"] for row in json.loads(run("--json", "stats").stdout)["classes"])
    has_counted("requests", counted)
    for resolution in ("1s", "10s", "10m"):
        assert total("requests", resolution) == counted
        assert total("requests_4xx", resolution) == 4
        found = history("--last", "50m", "--resolution", resolution, "--figure", "latency")["latency"]
        pairs = [pair for row in found["counts"] for pair in row or []]
        assert sum(count for _, count in pairs) == counted
        assert all(0 <= bucket < len(found["bounds_seconds"]) for bucket, _ in pairs)
    newest = {name: values[-1] for name, values in history("--last", "2")["figures"].items()}
    assert newest["memory_bytes"] > 1e6 and newest["resident_bytes"] > 1e6, newest
    assert newest["cpu_user_seconds"] >= 0 and newest["queue"] == 0 and newest["connections_open"] == 0, newest


def test_it_is_asked_for_by_http_and_shown_to_people(serve: Serve) -> None:
    server = serve("--workers", "2", "--control", "ctl.sock", "--admin", "127.0.0.1:0", source=APP)
    server.fetch("/no")
    has_counted("requests", 1)
    place = next(place for place in json.loads(run("--json", "status").stdout)["control"] if "127.0.0.1" in place)
    since = history()["start"]
    asked = f"{place}/history?resolution=1s&since={since}&figure=requests,queue"
    with urllib.request.urlopen(asked, timeout=PATIENCE) as answer:
        found = json.load(answer)
    assert found["start"] == since and found["resolution_seconds"] == 1 and found["on"] is True
    assert list(found["figures"]) == ["requests", "queue"]
    assert all(len(values) == found["intervals"] for values in found["figures"].values())
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(urllib.request.Request(asked, headers={"Host": "other.example"}), timeout=PATIENCE)
    assert refused.value.code in (401, 403, 421), "the rules of access are those of the other answers"
    shown = run("history").stdout
    assert "requests 4xx" in shown and "p99" in shown, shown
    wrong = run("history", "--figure", "request")
    assert wrong.returncode == 1 and "did you mean 'requests'?" in wrong.stderr
    one = run("--worker", 1, "history")
    assert one.returncode == 1 and "the supervisor keeps that of all" in one.stderr


def stop(server: Server) -> None:
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(PATIENCE) == 0


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_file_keeps_it_over_a_restart(serve: Serve, tmp_path: Path, workers: str) -> None:
    kept = tmp_path / "kept"
    options = ("--workers", workers, "--control", "ctl.sock", "--history", "kept")
    server = serve(*options, source=APP)
    for _ in range(5):
        server.fetch("/")
    # What was counted since the last look is in the file, too.
    stop(server)
    assert kept.read_bytes().startswith(b"maitred history\n")
    server = serve(*options, source=APP)
    has_counted("requests", 5)
    server.fetch("/")
    has_counted("requests", 6)
    assert total("requests") == total("requests", "10m") == 6
    stop(server)
    kept.write_bytes(kept.read_bytes()[:-5])
    server = serve(*options, source=APP)
    server.wait_for("kept: it was cut off or changed; it is begun anew")
    server.fetch("/")
    has_counted("requests", 1)
    assert total("requests") == 1
    stop(server)
    assert [path.name for path in tmp_path.glob("kept*")] == ["kept"], "nothing is left beside it"


def test_a_file_of_something_else_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(APP)
    for name, what in [("app.py", "is something else than a history"), ("none/such", "there is no folder")]:
        command = [MAITRED, "app.py", "--listen", "127.0.0.1:0", "--history", name]
        done = subprocess.run(command, env=environment_for({}), capture_output=True, text=True, timeout=PATIENCE)
        assert done.returncode == 2 and what in done.stderr, done.stderr
    assert (tmp_path / "app.py").read_text() == APP


def test_without_statistics_there_is_no_history(serve: Serve) -> None:
    server = serve("--control", "ctl.sock", "--statistics=off", source=APP)
    server.fetch("/")
    until("it says so", lambda: history()["on"] is False)
    assert history()["intervals"] == 0
    assert run("set", "statistics", "on").returncode == 0
    until("it is on", lambda: history()["on"] is True)
    server.fetch("/")
    has_counted("requests", 1)
    assert total("requests") == 1 and total("connections") == 1


def test_a_worker_that_does_not_answer_leaves_no_hole(serve: Serve) -> None:
    server = serve("--workers", "2", "--control", "ctl.sock", source=APP)
    server.wait_for("info all workers are ready")
    server.fetch("/")
    has_counted("requests", 1)
    stopped = json.loads(run("--json", "status").stdout)["workers"][0]["pid"]
    found = history()
    begin = found["start"] + found["intervals"]

    def rows() -> Any:
        found = history("--last", "50m", "--figure", "resident_bytes")
        values = found["figures"]["resident_bytes"]
        return [value for at, value in enumerate(values) if found["start"] + at >= begin and value]

    os.kill(stopped, signal.SIGSTOP)
    try:
        until("four seconds have rows", lambda: len(rows()) >= 4)
        # What it has said last counts.
        assert min(rows()) > 0.6 * max(rows()), rows()
    finally:
        os.kill(stopped, signal.SIGCONT)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_routes_and_marks_are_kept_over_a_restart(serve: Serve, workers: str) -> None:
    options = ("--workers", workers, "--control", "ctl.sock", "--history", "kept")
    server = serve(*options, source=APP)
    if workers == "2":
        server.wait_for("info all workers are ready")
        before = len(server.said)
        os.kill(server.process.pid, signal.SIGHUP)
        server.wait_for("all workers are replaced", before)
    for _ in range(7):
        assert server.fetch("/page").status == 200
    has_counted("requests", 7)
    assert server.stop() == 0
    serve(*options, source=APP)
    found = history("--last", "1h", "--routes", "before")
    [row] = [row for row in found["routes"] if row["route"] == "GET /page"]
    assert (row["requests"], row["earlier_requests"]) == (7, 0)
    assert 0 < row["mean_seconds"] <= row["p95_seconds"] * 1.02
    marks = [mark["what"] for mark in found["marks"]]
    assert marks == (["start", "reload", "start"] if workers == "2" else ["start", "start"])
    minutes = history("--last", "1h", "--route", "GET /page")["minutes"]
    assert sum(minute["requests"] for minute in minutes) == 7
    shown = run("history", "--last", "1h", "--routes", "1d").stdout
    assert "GET /page" in shown and "start" in shown, shown
    shown = run("history", "--since", "00:00", "--route", "GET /page").stdout
    assert shown.count(":00") >= 1, shown
