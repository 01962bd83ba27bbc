"""``maitred ctl`` of a server with several workers: what is of all of them, and what holds in all of them."""

from __future__ import annotations

import json
import os
import platform
import re
import signal
import subprocess
from pathlib import Path

from conftest import MAITRED, PATIENCE
from crews import Crew, Start, crew, until

__all__ = ["crew"]

THREADS = "pool.default.max-threads"


def setting(server: Crew, number: int, name: str = THREADS) -> str:
    """In this worker."""
    rows = server.ask("settings", worker=number)["settings"]
    return str(next(row["value"] for row in rows if row["name"] == name))


def test_status_names_the_supervisor_and_all_workers(crew: Start) -> None:
    server = crew()
    pids = server.serving(2)
    status = server.ask("status")
    assert status["pid"] == server.process.pid
    assert status["application"].startswith("WSGI app.py:app")
    assert (status["workers_wanted"], status["workers_failed"]) == (2, 0)
    rows = {row["worker"]: row for row in status["workers"]}
    assert sorted(rows) == [1, 2] and {row["pid"] for row in rows.values()} == pids
    assert {row["phase"] for row in rows.values()} == {"serving"}
    assert [row["address"] for row in status["listeners"]] == [f"127.0.0.1:{server.port}"]
    os.kill(min(pids), signal.SIGKILL)
    server.wait_for("was killed by SIGKILL")
    server.serving(2)
    until("it is counted", lambda: server.ask("status")["workers_failed"] == 1)
    command = [MAITRED, "ctl", "--socket", "ctl.sock", "--json", "status"]
    done = subprocess.run(command, cwd=server.folder, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0 and json.loads(done.stdout)["workers_wanted"] == 2


def test_requests_and_threads_are_shown_with_their_worker(crew: Start, tmp_path: Path) -> None:
    server = crew()
    peers = server.stay(2)
    active = server.ask("active")["active"]
    assert len(active) == len(peers) and {row["worker"] for row in active} == {1, 2}
    threads = server.ask("threads")["threads"]
    busy = {(row["worker"], row["tid"]) for row in threads if row.get("path") == "/stays"}
    assert busy == {(row["worker"], row["tid"]) for row in active}
    only = server.ask("active", worker=2)["active"]
    assert {row["tid"] for row in only} == {row["tid"] for row in active if row["worker"] == 2}
    (tmp_path / "go").touch()
    assert all(peer.getresponse().status == 200 for peer in peers)


def test_counts_are_those_of_all(crew: Start) -> None:
    server = crew()
    server.serving(2)
    asked = 0
    before = requests(server)
    for _ in range(30):
        server.answer()
        asked += 1
    until("all are counted", lambda: requests(server) - before == asked)
    parts = [server.ask("stats", worker=number)["requests"] for number in (1, 2)]
    assert all(parts) and sum(parts) == requests(server)


def requests(server: Crew) -> int:
    count = server.ask("stats")["requests"]
    assert isinstance(count, int)
    return count


def test_what_is_set_holds_in_all_and_in_those_that_are_started_later(crew: Start) -> None:
    server = crew()
    before = server.serving(2)
    server.change("set", name=THREADS, value="3")
    assert [setting(server, number) for number in (1, 2)] == ["3", "3"]
    os.kill(min(before), signal.SIGKILL)
    until("another one is there", lambda: len(server.serving(2) - before) == 1)
    start = server.tell(signal.SIGTTIN)
    server.wait_for("info worker 3 is ready", start)
    assert [setting(server, number) for number in (1, 2, 3)] == ["3", "3", "3"]
    # Read again, the configuration takes it back.
    before = server.workers()
    server.tell(signal.SIGHUP)
    until("all are replaced", lambda: len(server.workers()) == 3 and not server.workers() & before)
    server.serving(3)
    assert [setting(server, number) for number in (1, 2, 3)] == ["10", "10", "10"]


def test_what_is_set_while_a_worker_starts_holds_in_it(crew: Start, tmp_path: Path) -> None:
    server = crew()
    (tmp_path / "hold").touch()
    start = server.tell(signal.SIGTTIN)
    server.wait_for("imports in", start)
    server.change("set", name=THREADS, value="3")
    (tmp_path / "hold").unlink()
    server.wait_for("info worker 3 is ready", start)
    until("it has heard of it", lambda: setting(server, 3) == "3")


def test_a_server_none_of_whose_workers_serves_is_found_by_its_port(crew: Start, tmp_path: Path) -> None:
    server = crew()
    (tmp_path / "hold").touch()
    for pid in server.workers():
        os.kill(pid, signal.SIGKILL)

    def phases() -> set[str]:
        return {row["phase"] for row in server.ask("status")["workers"]}

    until("none serves", lambda: phases() == {"starting"})
    assert server.ask("status")["listeners"] == [{"address": f"127.0.0.1:{server.port}"}]
    (tmp_path / "hold").unlink()
    # Until then the supervisor answers clients.
    until("both serve", lambda: phases() == {"serving"})
    assert server.serving(2)
    server.ends()


def test_a_drain_ends_all(crew: Start) -> None:
    server = crew()
    server.change("drain")
    assert server.process.wait(PATIENCE) == 0, server.said
    assert not server.processes()
    assert not (server.folder / "ctl.sock").exists()
    assert re.search("info .*the workers drain", server.said)


def test_a_question_is_answered_while_a_worker_stands_still(crew: Start) -> None:
    """One that is stopped by a signal, as a debugger does it, keeps nobody from the others."""
    server = crew()
    still, other = sorted(server.serving(2))
    os.kill(still, signal.SIGSTOP)
    try:
        status = server.ask("status")
        assert {row["pid"] for row in status["workers"]} == {still, other}
    finally:
        os.kill(still, signal.SIGCONT)
    server.serving(2)
    server.ends()


def test_the_figures_tell_of_workers_and_of_the_program(crew: Start) -> None:
    server = crew("--metrics-path", "/metrics", "--worker-requests", "40")
    pids = server.serving(2)

    def figures(accept: str = "text/plain") -> dict[str, str]:
        lines = server.fetch("/metrics", Accept=accept).body.decode().splitlines()
        names = [line.split(" ")[2] for line in lines if line.startswith("# TYPE ")]
        assert len(names) == len(set(names)), "each name is described once"
        for name in ("maitred_workers_ready", "maitred_workers_wanted", "maitred_build_info"):
            assert f"# TYPE {name} gauge" in lines and any(line.startswith(f"# HELP {name} ") for line in lines), name
        assert any(line.startswith("# TYPE maitred_worker_restarts") and line.endswith(" counter") for line in lines)
        return dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))

    def restarts(reason: str) -> int:
        return int(figures()[f'maitred_worker_restarts_total{{reason="{reason}"}}'])

    shown = figures()
    assert (shown["maitred_workers_ready"], shown["maitred_workers_wanted"]) == ("2", "2")
    [info] = [name for name in shown if name.startswith("maitred_build_info{")]
    assert re.search(r'version="\d+\.\d+\.\d+"', info) and f'python="{platform.python_version()}"' in info and shown[info] == "1"
    assert info in figures("application/openmetrics-text; version=1.0.0")
    assert {restarts(reason) for reason in ("exit", "start", "reload", "requests", "lifetime", "memory", "stuck")} == {0}
    os.kill(min(pids), signal.SIGKILL)
    until("it is counted", lambda: restarts("exit") == 1)
    server.serving(2)
    server.tell(signal.SIGHUP)
    server.wait_for("all workers are replaced")
    until("both are counted", lambda: restarts("reload") == 2)
    # Each of them has had enough after 40 requests, of which the questions are some.
    until("one is counted", lambda: restarts("requests") >= 1)
