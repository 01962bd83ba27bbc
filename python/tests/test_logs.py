"""Logs of the Python command: SIGUSR1, and the report of the worked example."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

from conftest import PATIENCE, Serve, Server

HELLO = """
def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"hello"]
"""

SHUT = """
import threading
opened = threading.Event()

def app(environ, start_response):
    if environ["PATH_INFO"].startswith("/wait"):
        opened.wait(30)
    elif environ["PATH_INFO"] == "/open":
        opened.set()
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"done"]
"""


def test_sigusr1_opens_the_log_anew(serve: Serve, tmp_path: Path) -> None:
    server = serve("--access-log", "a.log", "--access-log-format", "$request_uri", source=HELLO)
    server.fetch("/?1")
    (tmp_path / "a.log").rename(tmp_path / "a.old")
    server.process.send_signal(signal.SIGUSR1)
    server.wait_for("SIGUSR1: the log files are opened anew")
    server.fetch("/?2")
    assert server.stop() == 0, server.said
    assert (tmp_path / "a.old").read_text() == "/?1\n"
    assert (tmp_path / "a.log").read_text() == "/?2\n"


def wait_until_queued(server: Server, count: int) -> None:
    line = f'maitred_pool_queued{{pool="default"}} {count}'
    deadline = time.monotonic() + PATIENCE
    while line not in server.fetch("/metrics").body.decode().splitlines():
        assert time.monotonic() < deadline, server.said


def test_the_report_names_who_made_whom_wait(serve: Serve, tmp_path: Path) -> None:
    """Three requests are in the application, three wait; the door is opened by one of a pool of its own."""
    server = serve(
        *("--max-threads", "3", "--pool", "door,path=/open", "--metrics-path", "/metrics"),
        *("--access-log", "a.log", "--access-log-format", "json"),
        source=SHUT,
    )
    connections = []
    for number in range(6):
        connection = server.connect()
        connection.request("GET", f"/wait/{number}")
        connections.append(connection)
    wait_until_queued(server, 3)
    server.fetch("/open")
    for connection in connections:
        assert connection.getresponse().read() == b"done"
        connection.close()
    assert server.stop() == 0, server.said
    command = [sys.executable, "-m", "maitred", "report", "--json", "--requests", "--wait", "0", "a.log"]
    done = subprocess.run(command, cwd=tmp_path, stdout=subprocess.PIPE, timeout=PATIENCE, check=True)
    report = json.loads(done.stdout)
    assert report["not_understood"] == 0
    assert report["most_at_once"]["default"] == 3
    waited = [request for request in report["in_order_of_arrival"] if "/wait/" in request["route"]]
    first, last = waited[:3], waited[3:]
    for request in last:
        cause = report["in_order_of_arrival"][request["waited_for"] - 1]
        assert cause in first
        # It began when a thread was free, and so when one of the first three had ended.
        ends = [one["start"] + one["total"] - one["write"] for one in first]
        assert request["start"] + request["accept"] + request["queue"] >= min(ends) - 1e-4
