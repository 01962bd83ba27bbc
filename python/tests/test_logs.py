"""Logs of the Python command: SIGUSR1, and the report of the worked example."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import PATIENCE, Serve, Server

SPANS = ("accept", "queue", "gate", "filter", "run", "receive", "write")

HELLO = """
def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"hello"]
"""

SHUT = """
import sys
import threading
opened = threading.Event()

def app(environ, start_response):
    if environ["PATH_INFO"].startswith("/wait"):
        print("at the door", file=sys.stderr, flush=True)
        opened.wait(30)
    elif environ["PATH_INFO"] == "/open":
        opened.set()
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"done"]
"""


def test_sigusr1_opens_the_log_anew(serve: Serve, tmp_path: Path) -> None:
    server = serve("--access-log", "a.log", "--access-log-format", "$request_uri", source=HELLO)
    server.fetch("/?1")
    # The line is written a moment after the answer.
    deadline = time.monotonic() + PATIENCE
    while not (tmp_path / "a.log").read_text():
        assert time.monotonic() < deadline, server.said
    (tmp_path / "a.log").rename(tmp_path / "a.old")
    server.process.send_signal(signal.SIGUSR1)
    server.wait_for("SIGUSR1: the log files are opened anew")
    server.fetch("/?2")
    assert server.stop() == 0, server.said
    assert (tmp_path / "a.old").read_text() == "/?1\n"
    assert (tmp_path / "a.log").read_text() == "/?2\n"


def test_what_was_refused_is_in_the_access_log(serve: Serve, tmp_path: Path) -> None:
    asked = {
        b"GET /no-host HTTP/1.1\r\n\r\n": '"GET /no-host HTTP/1.1" 400',
        b"GET /version HTTP/9.9\r\nHost: a\r\n\r\n": '"GET /version HTTP/1.1" 505',
        b"POST /caf\xc3\xa9 HTTP/1.1\r\nHost: a\r\n\r\n": '"POST /caf\\xc3\\xa9 HTTP/1.1" 400',
        b"GET /field HTTP/1.1\r\nHost: a\r\nBad Name: x\r\n\r\n": '"GET /field HTTP/1.1" 400',
        b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n": '"GET /' + "a" * 1023 + ' HTTP/1.1" 414',
        b"G\x00T /method HTTP/1.1\r\n\r\n": '"- /method HTTP/1.1" 400',
        b"GET /port HTTP/1.1\r\nHost: a:98777\r\n\r\n": '"GET /port HTTP/1.1" 400',
        b"GET /late HTTP/1.1\r\nHost: a\r\n": '"GET /late HTTP/1.1" 408',
    }
    server = serve("--access-log", "a.log", "--head-timeout", "0.2", source=HELLO)
    for request in asked:
        server.raw(request)
    assert server.stop() == 0, server.said
    lines = (tmp_path / "a.log").read_text().splitlines()
    assert [line.partition("] ")[2].split(" ", 4)[:4] for line in lines] == [expected.split() for expected in asked.values()]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system with room for 64 KiB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "maitred-test", disk], capture_output=True)
    if mounted.returncode:
        pytest.skip("needs the right to mount")
    yield disk
    subprocess.run(["umount", "--lazy", disk], check=True)


def test_a_full_disk_stops_nobody_and_the_log_goes_on_when_there_is_room(serve: Serve, small_disk: Path) -> None:
    log = small_disk / "a.log"
    server = serve("--access-log", str(log), "--access-log-format", "$args", source=HELLO)
    # More than the disk and the buffer of the log (1 MiB) take.
    sent = 400
    connection = server.connect()
    begin = r" error the access log cannot be written \(No space left on device \(os error 28\)\); lines wait"
    for number in range(sent):
        connection.request("GET", f"/?{number:06}{'x' * 6000}")
        assert connection.getresponse().read() == b"hello"
        if number == 20:
            # More than the disk takes. Were the buffer full before the log's thread has seen that, its slowness would be told.
            server.wait_for(begin)
    connection.close()
    assert log.stat().st_size <= 64 << 10
    subprocess.run(["mount", "-o", "remount,size=16m", small_disk], check=True)
    deadline = time.monotonic() + PATIENCE
    while not (lines := log.read_text(errors="replace").splitlines()) or not lines[-1].startswith("last"):
        assert time.monotonic() < deadline, lines[-1:]
        # One that comes while the buffer is full is lost as the others were.
        server.fetch("/?last")
    assert server.stop() == 0, server.said
    numbers: list[int] = []
    missing = 0
    for line in log.read_text().splitlines():
        told = re.fullmatch(r"maitred: (\d+) lines are missing here, the log could not be written", line)
        if told:
            missing += int(told[1])
        elif not line.startswith("last"):
            assert line[6:] == "x" * 6000
            numbers.append(int(line[:6]))
    assert numbers == sorted(set(numbers))
    assert missing >= sent - len(numbers) > 0
    assert len(re.findall(begin, server.said)) == 1, server.said
    over = [int(lost) for lost in re.findall(r" warn the access log is written again; (\d+) lines were", server.said)]
    assert over and 0 < over[0] <= missing, server.said


def wait_until_queued(server: Server, count: int) -> None:
    line = f'maitred_pool_queued{{pool="default"}} {count}'
    deadline = time.monotonic() + PATIENCE
    while line not in server.fetch("/metrics").body.decode().splitlines():
        assert time.monotonic() < deadline, server.said


def get(number: int, *fields: str) -> bytes:
    return "\r\n".join([f"GET /wait/{number} HTTP/1.1", "Host: test", *fields, "\r\n"]).encode()


#: How long the door stays shut with all six there, and what two clocks may differ by, in seconds.
SHUT_FOR = 0.1
CLOCKS = 0.005
# Two lines of a log say when they began by the system's clock, which is looked at once for each and may be slewed between.
BETWEEN_LINES = 0.001


def test_who_waited_waited_as_long_as_the_others_ran_say_log_trace_and_report(serve: Serve, tmp_path: Path) -> None:
    """Two requests are in the application and three in the queue. One stays in its socket's buffer, behind the first of
    its connection. The door is opened by one of a pool of its own."""
    server = serve(
        *("--max-threads", "2", "--pool", "door,path=/open", "--metrics-path", "/metrics", "--dispatch-trace"),
        *("--access-log", "a.log", "--access-log-format", "json"),
        source=SHUT,
    )
    connections = [socket.create_connection(("127.0.0.1", server.port), PATIENCE) for _ in range(5)]
    # The second request of the first one does not wait until the first request is acknowledged.
    connections[0].setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for number, connection in enumerate(connections):
        connection.sendall(get(number, "Connection: close") if number > 0 else get(number))
        if number == 1:
            server.wait_for("(?s)(at the door.*){2}")
    wait_until_queued(server, 3)
    connections[0].sendall(get(5, "Connection: close"))
    begin = time.monotonic()
    time.sleep(SHUT_FOR)
    shut = time.monotonic() - begin - CLOCKS
    server.fetch("/open")
    for number, connection in enumerate(connections):
        with connection, connection.makefile("rb") as file:
            assert file.read().count(b"done") == (2 if number == 0 else 1)
    assert server.stop() == 0, server.said

    lines = [json.loads(line) for line in (tmp_path / "a.log").read_text().splitlines()]
    logged = {line["target"]: line for line in lines if line["route"] == "GET /wait/*"}
    assert len(logged) == 6
    # The three in the queue may have come in another order than they were sent; by TLS the handshake before it is a part of each.
    order = sorted(logged.values(), key=lambda line: line["start"])
    ran = [logged["/wait/0"], logged["/wait/1"]]
    waited = [line for line in order if line not in ran]
    assert waited[-1]["target"] == "/wait/5"
    assert all(line["run"] >= shut for line in ran)
    assert all(line["queue"] >= shut for line in waited)
    begun = {line["id"]: line["start"] + line["accept"] + line["queue"] for line in order}
    done = {line["id"]: line["start"] + line["total"] - line["write"] for line in order}
    first = ran[0]
    # Of the one in the buffer the wait ends when the first of its connection is done, of the others when a thread is free.
    assert begun[waited[-1]["id"]] >= done[first["id"]] - BETWEEN_LINES
    assert all(begun[line["id"]] >= min(done[line["id"]] for line in ran) - BETWEEN_LINES for line in waited)

    trace = dict(re.findall(r" trace (\S+) GET /wait/\d: .*; (queue .*)", server.said))
    for line in order:
        assert trace[line["id"]] == "queue {queue:.6f}, run {run:.6f}, total {total:.6f}".format(**line)

    command = [sys.executable, "-m", "maitred", "report", "--json", "--requests", "a.log"]
    told = subprocess.run(command, cwd=tmp_path, stdout=subprocess.PIPE, timeout=PATIENCE, check=True)
    report = json.loads(told.stdout)
    # The begin of one can lie before the end of the other by the clock's slew (BETWEEN_LINES): then they count as three.
    assert report["not_understood"] == 0
    assert report["most_at_once"]["default"] in (2, 3)
    assert report["waits"] >= 4
    all_of_them = report["in_order_of_arrival"]
    shown = [request for request in all_of_them if request["route"] == "GET /wait/*"]
    assert [request["id"] for request in shown] == [line["id"] for line in order]
    for request, line in zip(shown, order, strict=True):
        assert [request[span] for span in SPANS] == [line[span] for span in SPANS]
    waits = [request for request, line in zip(shown, order, strict=True) if line in waited]
    causes = [all_of_them[request["waited_for"] - 1]["id"] for request in waits]
    assert len(set(causes)) == len(waited), "an end frees a thread for one request"
    for line, cause in zip(waited, causes, strict=True):
        assert line["start"] + line["accept"] < done[cause] <= begun[line["id"]] + BETWEEN_LINES
    last = max(line["start"] + line["total"] for line in lines)
    people = subprocess.run(
        [*command[:4], "a.log"], cwd=tmp_path, stdout=subprocess.PIPE, timeout=PATIENCE, check=True, text=True
    )
    period = re.match(r"(\d+) requests in (\d+\.\d) s\n", people.stdout)
    assert period and int(period[1]) == len(lines)
    assert float(period[2]) == pytest.approx(last - min(line["start"] for line in lines), abs=0.06)


UPLOAD = """
def app(environ, start_response):
    length = len(environ["wsgi.input"].read(-1))
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [str(length).encode()]
"""


@pytest.mark.parametrize("length", [200_000, 400_000], ids=["in-memory", "in-a-file"])
def test_the_time_of_a_slow_upload_is_its_client_s_wherever_it_is_told(
    serve: Serve, tmp_path: Path, length: int
) -> None:
    server = serve(
        *("--server-timing", "--metrics-path", "/metrics", "--access-log", "a.log", "--access-log-format", "times"),
        source=UPLOAD,
    )
    head = f"POST /upload HTTP/1.1\r\nHost: test\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n"
    request = head.encode() + bytes(length)
    begin = time.monotonic()
    with socket.create_connection(("127.0.0.1", server.port), PATIENCE) as connection:
        connection.sendall(request[: length // 2])
        half = time.monotonic()
        time.sleep(SHUT_FOR)
        slow = time.monotonic() - half - CLOCKS
        connection.sendall(request[length // 2 :])
        with connection.makefile("rb") as file:
            answer = file.read()
    whole = time.monotonic() - begin + CLOCKS
    assert b"\r\n%d\r\n" % length in answer
    metrics = server.fetch("/metrics").body.decode()
    assert server.stop() == 0, server.said
    command = [sys.executable, "-m", "maitred", "report", "--json", "--requests", "a.log"]
    told = subprocess.run(command, cwd=tmp_path, stdout=subprocess.PIPE, timeout=PATIENCE, check=True)
    report = json.loads(told.stdout)["in_order_of_arrival"][0]
    assert report["route"] == "POST /upload"
    counted = r'maitred_span_duration_seconds_sum\{pool="default",span="(\w+)"\} (\S+)'
    header = re.search(rb"Server-Timing: (.*)\r\n", answer)
    line = (tmp_path / "a.log").read_text().splitlines()[0]
    assert header
    for where, spans in {
        "Server-Timing": {name: float(ms) / 1e3 for name, ms in re.findall(r"(\w+);dur=([\d.]+)", header[1].decode())},
        "log": {name: float(value) for name, value in re.findall(r" (\w+)=([\d.]+)(?= |$)", line)},
        "statistics": {name: float(value) for name, value in re.findall(counted, metrics)},
        "report": {name: report[name] for name in SPANS},
    }.items():
        assert slow <= spans["accept"], (where, spans)
        assert spans["accept"] + spans.get("queue", 0) <= whole, (where, spans)


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_a_report_of_a_log_without_times_is_an_error(tmp_path: Path, more: list[str]) -> None:
    (tmp_path / "a.log").write_text('127.0.0.1 - - [now] "GET / HTTP/1.1" 200 5\n')
    command = [sys.executable, "-m", "maitred", "report", *more, "a.log"]
    told = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=PATIENCE, text=True)
    assert (told.returncode, told.stdout) == (2, "")
    assert told.stderr.startswith("maitred: a.log:1: no line has the start of a request and its times")
    assert told.stderr.endswith("; write the log with --access-log-format times or json\n")
