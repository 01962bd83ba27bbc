"""What ``maitred ctl`` tells of requests that have ended, of logs, options and memory, and all of it as one file."""

from __future__ import annotations

import json
import re
import urllib.request
from pathlib import Path
from typing import Any

import by_h2
import pytest
from conftest import Serve, Server
from crews import APP, Crew, Start, crew, until
from test_control import asked, ctl

__all__ = ["crew"]

SLEEPS = """
import time

def app(environ, start_response):
    path = environ["PATH_INFO"]
    if path == "/broken":
        raise RuntimeError("as asked for")
    if path.startswith("/sleeps"):
        time.sleep(0.2)
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"through"]
"""

SPANS = ["accept", "queue", "gate", "filter", "run", "receive", "write"]


def begun(serve: Serve, *arguments: str, **environment: str) -> Server:
    # An exception is none of the checker's business.
    return serve("--control", "ctl.sock", *arguments, source=SLEEPS, checked=False, **environment)


def test_slow_and_failed_requests_are_kept_with_their_times(serve: Serve, tmp_path: Path) -> None:
    server = begun(serve)
    for _ in range(40):
        server.fetch("/")
    server.fetch("/sleeps/7?a=b%22", X_Request_ID="slow-1")
    server.fetch("/broken", X_Request_ID="bad-1")
    recent = asked(tmp_path, "recent")
    slow = recent["slow"][0]
    assert (slow["id"], slow["method"], slow["target"], slow["status"]) == ("slow-1", "GET", "/sleeps/7?a=b%22", 200)
    assert (slow["route"], slow["pool"], slow["end"]) == ("GET /sleeps/*", "default", "complete")
    assert slow["peer"].startswith("127.0.0.1:") and slow["thread"].startswith("maitred-")
    assert slow["run_seconds"] >= 0.2 and abs(sum(slow[f"{span}_seconds"] for span in SPANS) - slow["total_seconds"]) < 1e-6
    totals = [row["total_seconds"] for row in recent["slow"]]
    assert totals == sorted(totals, reverse=True) and 32 <= len(totals) <= 64
    assert [(row["id"], row["status"], row["route"]) for row in recent["failed"]] == [("bad-1", 500, "GET /broken")]
    only = asked(tmp_path, "recent", "--route", "GET /sleeps/*")
    assert [row["id"] for row in only["slow"]] == ["slow-1"] and only["failed"] == []
    shown = ctl(tmp_path, "recent", "--route", "GET /sleeps/*")
    assert shown.returncode == 0 and "slow-1" in shown.stdout and "failed: none" in shown.stdout


def test_a_route_has_the_spread_of_its_times_and_its_classes(serve: Serve, tmp_path: Path) -> None:
    server = begun(serve)
    for _ in range(5):
        server.fetch("/sleeps")
    server.fetch("/broken")
    of_route = asked(tmp_path, "stats", "--route", "GET /sleeps")
    assert of_route["classes"] == [{"name": "2xx", "requests": 5}]
    bounds = [bound for bound, _ in of_route["buckets"]]
    assert bounds == sorted(set(bounds)) and 0.2 < bounds[0] < 1 and sum(count for _, count in of_route["buckets"]) == 5
    assert asked(tmp_path, "stats", "--route", "GET /broken")["classes"] == [{"name": "5xx", "requests": 1}]


def test_the_last_lines_of_both_logs_are_shown(serve: Serve, tmp_path: Path) -> None:
    server = begun(serve, "--access-log", "access.log", "--access-log-format", '$request_id "$request" $status')
    for number in range(3):
        server.fetch(f"/{number}", X_Request_ID=f"id-{number}")
    server.fetch("/broken", X_Request_ID="id-20")
    until("it is written", lambda: len(asked(tmp_path, "logs", "--which", "access")["access_log"]) == 4)
    logs = asked(tmp_path, "logs", "--last", "2")
    broken = f'id-20 "GET /broken {by_h2.LOGGED}" 500'
    assert logs["access_log_goes_to"] == "access.log" and logs["access_log_trouble"] is None
    assert [row["line"] for row in logs["access_log"]] == [f'id-2 "GET /2 {by_h2.LOGGED}" 200', broken]
    assert len(logs["error_log"]) == 2
    of_request = asked(tmp_path, "logs", "--request", "id-2")
    assert [row["line"].split()[0] for row in of_request["access_log"]] == ["id-2"] and of_request["error_log"] == []
    errors = asked(tmp_path, "logs", "--which", "error", "--level", "error")["error_log"]
    assert [row["level"] for row in errors] == ["error"] and "RuntimeError: as asked for" in errors[0]["line"]
    assert "access_log" not in asked(tmp_path, "logs", "--which", "error")
    shown = ctl(tmp_path, "logs", "--which", "access", "--last", "1")
    assert shown.stdout.endswith(f"access log:\n  {broken}\n")
    assert ctl(tmp_path, "logs", "--which", "acess").stderr == "maitred: which: 'acess' is none of error, access\n"


def test_an_access_log_that_is_no_file_is_told(serve: Serve, tmp_path: Path) -> None:
    begun(serve, "--access-log", "-")
    logs = asked(tmp_path, "logs", "--which", "access")
    assert (logs["access_log_goes_to"], logs["access_log"]) == ("standard output", [])
    assert logs["access_log_trouble"] == "it goes to standard output, which nobody can read back"


def test_every_option_has_its_origin_and_no_secret(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "maitred.toml").write_text(
        'max-threads = 5\n[[pool.reports.match]]\npath = "/export/*"\nheader = "X-Key: s3cret"\n'
        '[[filter]]\nset-request = ["Authorization: Basic s3cret"]\n'
    )
    begun(serve, "--queue", "77", MAITRED_LOG_LEVEL="debug")
    rows = {row["name"]: row for row in asked(tmp_path, "configuration")["configuration"]}
    assert (rows["max-threads"]["value"], rows["max-threads"]["from"]) == ("5", "maitred.toml:1")
    assert (rows["queue"]["value"], rows["queue"]["from"]) == ("77", "command line")
    assert (rows["log-level"]["value"], rows["log-level"]["from"]) == ("debug", "environment variable MAITRED_LOG_LEVEL")
    assert (rows["admin"]["value"], rows["admin"]["from"]) == (None, "default")
    assert "s3cret" not in json.dumps(rows) and rows["filter 1: set-request"]["value"] == "(not shown)"
    done = ctl(tmp_path, "set", "pool.default.max-threads", "4")
    assert done.returncode == 0, done.stderr
    rows = {row["name"]: row for row in asked(tmp_path, "configuration")["configuration"]}
    assert (rows["max-threads"]["value"], rows["max-threads"]["from"]) == ("4", "changed at run time")
    assert all(name.startswith("pool.reports.") for name in of_pool(tmp_path))


def of_pool(folder: Path) -> list[str]:
    return [row["name"] for row in asked(folder, "configuration", "--pool", "reports")["configuration"]]


def test_memory_of_the_process_is_what_the_system_says(serve: Serve, tmp_path: Path) -> None:
    server = begun(serve)
    memory = asked(tmp_path, "memory")
    (process,) = memory["processes"]
    assert process["pid"] == server.process.pid and process["descriptors"] > 5 and process["user_seconds"] > 0
    assert abs(process["resident_bytes"] - server.memory()) < 32 << 20
    assert memory["limit_bytes"] > process["peak_bytes"] >= process["resident_bytes"]
    assert memory["engine"][0]["figures_bytes"] > 0
    assert "MiB" in ctl(tmp_path, "memory").stdout


def get(port: int, path: str) -> tuple[bytes, Any]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=30) as reply:
        return reply.read(), reply.headers


def snapshot_in(page: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="snapshot">(.*?)</script>', page, re.DOTALL)
    assert found
    snapshot: dict[str, Any] = json.loads(found[1])
    return snapshot


def test_a_snapshot_is_a_page_with_all_answers_and_nothing_from_elsewhere(serve: Serve, tmp_path: Path) -> None:
    server = begun(serve, "--admin", "127.0.0.1:0")
    server.ask(b"GET /</script><img/src=x> HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    admin = next(int(place.rsplit(":", 1)[1]) for place in asked(tmp_path, "status")["control"] if "127.0.0.1:" in place)
    page, headers = get(admin, "/dashboard/snapshot")
    assert re.fullmatch(r'attachment; filename="maitred-\d{8}-\d{6}\.html"', headers["Content-Disposition"])
    taken = snapshot_in(page.decode())
    commands = {row["path"][1:]: row for row in json.loads(get(admin, "/")[0])["commands"]}
    wanted = {name for name, row in commands.items() if row["method"] == "GET" and " [" not in row["usage"].partition(" [")[0]}
    asked_of = {name.partition("?")[0] for name in taken["answers"]}
    assert asked_of == wanted - {"explain", "snapshot"}
    # What does not change is what the query itself says.
    for name in ("handlers", "pools", "configuration", "settings"):
        assert taken["answers"][name] == asked(tmp_path, name), name
    assert taken["answers"]["finding"]["cause"] == "none" and taken["answers"]["finding"]["compared_seconds"] > 0.7
    outside = re.sub(r'<script type="application/json".*?</script>', "", page.decode(), flags=re.DOTALL)
    assert not re.search(r"""(src|href)=["'](?!data:|#)""", outside) and "default-src 'none'" in outside


def test_a_snapshot_is_written_to_a_file(serve: Serve, tmp_path: Path) -> None:
    begun(serve)
    done = ctl(tmp_path, "snapshot")
    assert done.returncode == 0, done.stderr
    file = tmp_path / done.stdout.strip()
    assert re.fullmatch(r"maitred-\d{8}-\d{6}\.html", file.name) and file.stat().st_mode & 0o777 == 0o600
    assert snapshot_in(file.read_text())["answers"]["status"]["version"]
    taken = json.loads(ctl(tmp_path, "snapshot", "--json").stdout)
    assert set(taken) == {"taken", "answers"} and "stats" in taken["answers"]
    assert ctl(tmp_path, "snapshot", "now.json", "--json").stdout == "now.json\n"
    assert json.loads((tmp_path / "now.json").read_text())["answers"]["memory"]
    refused = ctl(tmp_path, "snapshot", "none/such.html")
    assert refused.returncode == 1 and "cannot be written to none/such.html" in refused.stderr


@pytest.fixture
def two(crew: Start) -> Crew:
    server = crew("--access-log", "access.log", source=APP.replace('path, _, wanted', 'time.sleep(0.01)\n    path, _, wanted', 1))
    server.serving(2)
    return server


def test_several_workers_are_one_answer(two: Crew) -> None:
    recent = two.ask("recent")
    assert {row["worker"] for row in recent["slow"]} == {1, 2}
    totals = [row["total_seconds"] for row in recent["slow"]]
    assert totals == sorted(totals, reverse=True) and len(totals) <= 64
    ids = {row["id"] for row in two.ask("recent", worker=2)["slow"]}
    assert {row["id"] for row in recent["slow"] if row["worker"] == 2} <= ids
    logs = two.ask("logs", last=200)
    times = [row["time"] for row in logs["error_log"]]
    assert times == sorted(times) and logs["access_log_goes_to"] == "access.log"

    def all_lines() -> bool:
        kept = [row["line"] for row in two.ask("logs", last=200)["access_log"]]
        return kept == (two.folder / "access.log").read_text().splitlines()[-200:]

    # A line is written after its answer: the last one may come between the two.
    until("the access logs of both workers are the lines of the file", all_lines)
    memory = two.ask("memory")
    processes = [(row["process"], row.get("worker")) for row in memory["processes"]]
    assert processes == [("worker", 1), ("worker", 2), ("supervisor", None)]
    assert memory["processes"][2]["pid"] == two.process.pid
    assert two.ask("configuration")["configuration"][0].get("worker") is None
    taken = two.ask("snapshot")
    assert {row["worker"] for row in taken["answers"]["pools"]["pools"]} == {1, 2}
    assert taken["answers"]["status"]["pid"] == two.process.pid
