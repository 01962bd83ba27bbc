"""Pools of threads and the strategies, with the real command and WSGI applications."""

from __future__ import annotations

import http.client
import re
import signal
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

import pytest
from conftest import PATIENCE, Reply, Serve, Server

STRATEGIES = ["adaptive", "pc", "pec", "epc"]

#: The queue has room for one request; the server refuses the next one.
REFUSES = ("--queue", "1", "--overflow", "refuse")

#: Threads of their own for the requests by which a test asks how many wait, and opens the door for them.
DOORS = ("--pool", "doors,path=/came/*", "--pool", "doors,path=/open", "--metrics-path", "/metrics")

#: ``/report...`` and ``/wait...`` wait until somebody asks for ``/open``; ``/came/N`` waits until so many have come.
APP = """
import threading
opened = threading.Event()
changed = threading.Condition()
came, inside, most = [], 0, 0

def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    path = environ["PATH_INFO"]
    if path.startswith(("/report", "/wait")):
        wait(path)
    elif path.startswith("/came/"):
        with changed:
            done = changed.wait_for(lambda: len(came) >= int(path[6:]), 20)
        return [f"{done} {most} {','.join(came)}".encode()]
    elif path == "/open":
        opened.set()
    elif path == "/threads":
        return [" ".join(sorted(thread.name for thread in threading.enumerate())).encode()]
    elif path.startswith("/stream/"):
        return (b"%d" % (number % 10) * 10_000 for number in range(30))
    elif path == "/multithread":
        return [repr((environ["wsgi.multithread"], environ["wsgi.multiprocess"])).encode()]
    body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    return [f"{path} {len(body)} {sum(body)} {threading.current_thread().name}".encode()]

def wait(path):
    global inside, most
    with changed:
        came.append(path)
        inside += 1
        most = max(most, inside)
        changed.notify_all()
    opened.wait(30)
    with changed:
        inside -= 1
"""


def asked(server: Server, paths: Iterable[str]) -> list[http.client.HTTPConnection]:
    """Connections on which these have been asked for, in this order; their answers are not waited for."""
    connections = []
    for path in paths:
        connection = server.connect()
        connection.request("GET", path)
        connections.append(connection)
    return connections


def answers(connections: Iterable[http.client.HTTPConnection]) -> list[str]:
    texts = []
    for connection in connections:
        reply = Reply(connection.getresponse())
        assert reply.status == 200
        texts.append(reply.body.decode())
        connection.close()
    return texts


def figure(server: Server, pool: str, name: str) -> int:
    found = re.search(rf'^maitred_pool_{name}{{pool="{pool}"}} (\d+)$', server.fetch("/metrics").body.decode(), re.M)
    assert found, name
    return int(found[1])


def wait_for_figure(server: Server, pool: str, name: str, value: int) -> None:
    """Asks again and again; the engine answers without the application."""
    end = time.monotonic() + PATIENCE
    while figure(server, pool, name) != value:
        assert time.monotonic() < end, f"{name} of {pool} is {value}"


def wait_until_come(server: Server, count: int) -> None:
    assert server.fetch(f"/came/{count}").body.startswith(b"True "), f"{count} have come"


def names(texts: Iterable[str]) -> set[str]:
    return {text.split()[-1] for text in texts}


def test_requests_that_come_at_once_get_a_thread_each(serve: Serve) -> None:
    server = serve("--pool", "reports,max-threads=6,path=/report*", source=APP)
    reports = asked(server, ["/report"] * 6)
    wait_until_come(server, 6)
    named = {f"maitred-reports-{number}" for number in range(1, 7)}
    assert named <= set(server.fetch("/threads").body.decode().split()), "threading knows them"
    server.fetch("/open")
    assert names(answers(reports)) == named
    assert server.stop() == 0, server.said


@pytest.mark.parametrize("options", [("--max-threads", "6"), ("--pool", "reports,max-threads=6,path=/report")])
def test_nothing_is_refused_while_there_are_threads_for_it(serve: Serve, options: tuple[str, str]) -> None:
    full = (options[0], f"{options[1]},queue=1,overflow=refuse") if options[0] == "--pool" else (*options, *REFUSES)
    server = serve(*full, *DOORS, source=APP)
    # They come at once, and wait at the interpreter's gate.
    reports = asked(server, ["/report"] * 6)
    wait_until_come(server, 6)
    server.fetch("/open")
    assert [text.split()[0] for text in answers(reports)] == ["/report"] * 6
    assert server.stop() == 0, server.said


def test_with_every_thread_blocked_the_engine_goes_on(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "a.txt").write_text("static")
    options = ["--max-threads", "2", *REFUSES, "--static", "/s=files"]
    options += ["--pool", "timed,max-threads=1,max-lost-threads=0,request-timeout=0.2,path=/wait/timed"]
    options += ["--health-path", "/health", "--head-timeout", "0.2", *DOORS]
    server = serve(*options, source=APP)
    blocked = []
    for count in (1, 2):
        blocked += asked(server, ["/wait"])
        wait_until_come(server, count)
    blocked += asked(server, ["/wait"])
    wait_for_figure(server, "default", "queued", 1)
    # One in its thread, then one that waits for it.
    assert [server.fetch("/wait/timed").status for _ in range(2)] == [504, 504]
    for _ in range(5):
        assert server.fetch("/s/a.txt").body == b"static"
        assert server.fetch("/health").body == b"ok\n"
        assert server.fetch("/fast").status == 503
    assert server.raw(b"GET / HT").startswith(b"HTTP/1.1 408 ")
    assert figure(server, "timed", "threads_lost") == 1
    server.fetch("/open")
    assert [text.split()[0] for text in answers(blocked)] == ["/wait"] * 3
    wait_for_figure(server, "timed", "threads_lost", 0)
    assert server.stop() == 0, server.said


def converse(server: Server, client: int, seen: Counter[str]) -> None:
    """Pipelined requests, a large body and a streamed response, three times on one connection."""
    with socket.create_connection(("127.0.0.1", server.port), PATIENCE) as peer:
        for turn in range(3):
            paths = [f"/{client}/{turn}/{number}" for number in range(4)]
            peer.sendall(b"".join(f"GET {path} HTTP/1.1\r\nHost: test\r\n\r\n".encode() for path in paths))
            large = bytes([turn + 1]) * 300_000
            path = f"/{client}/{turn}/large"
            peer.sendall(f"POST {path} HTTP/1.1\r\nHost: test\r\nContent-Length: {len(large)}\r\n\r\n".encode() + large)
            peer.sendall(f"GET /stream/{client} HTTP/1.1\r\nHost: test\r\n\r\n".encode())
            stream = peer.makefile("rb")
            texts = [read_body(stream) for _ in range(6)]
            expected = [f"{path} 0 0" for path in paths] + [f"{path} {len(large)} {sum(large)}"]
            assert [text.rpartition(b" ")[0].decode() for text in texts[:5]] == expected
            assert texts[5] == b"".join(b"%d" % (number % 10) * 10_000 for number in range(30))
            seen.update(expected)


def read_body(stream: BinaryIO) -> bytes:
    """The body of the next response."""
    head = b"".join(iter(stream.readline, b"\r\n")).decode()
    assert head.startswith("HTTP/1.1 200 "), head
    if length := re.search(r"Content-Length: (\d+)", head):
        return stream.read(int(length[1]))
    assert "Transfer-Encoding: chunked" in head
    body = b""
    while size := int(stream.readline(), 16):
        body += stream.read(size)
        assert stream.readline() == b"\r\n"
    assert stream.readline() == b"\r\n"
    return body


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_with_every_strategy_nothing_is_lost(serve: Serve, strategy: str) -> None:
    server = serve("--strategy", strategy, "--max-threads", "4", *DOORS, source=APP)
    # Where there is more than one thread, one of them is blocked all the time.
    blocked = [] if strategy == "pc" else asked(server, ["/wait"])
    seen: Counter[str] = Counter()
    wrong: list[BaseException] = []

    def client(number: int) -> None:
        try:
            converse(server, number, seen)
        except BaseException as error:
            wrong.append(error)

    clients = [threading.Thread(target=client, args=(number,)) for number in range(8)]
    for one in clients:
        one.start()
    for one in clients:
        one.join(PATIENCE)
    assert not wrong and not any(one.is_alive() for one in clients), wrong
    assert len(seen) == 8 * 3 * 5 and set(seen.values()) == {1}
    server.fetch("/open")
    assert len(answers(blocked)) == len(blocked)
    made = figure(server, "default", "threads_made_total")
    assert made == 1 if strategy == "pc" else made <= 4
    assert server.stop() == 0, server.said
    assert "Traceback" not in server.said


def test_a_drain_answers_what_runs_and_what_waits(serve: Serve) -> None:
    server = serve("--max-threads", "2", *DOORS, source=APP)
    waiting = asked(server, ["/wait"] * 2)
    wait_until_come(server, 2)
    # Of the same route: the extra thread would run others.
    waiting += asked(server, ["/wait"] * 5)
    wait_for_figure(server, "default", "queued", 5)
    with socket.create_connection(("127.0.0.1", server.port), PATIENCE) as opener:
        # A request whose head is on its way: its connection is not idle, and stays.
        opener.sendall(b"GET /open HTTP/1.1\r\n")
        wait_for_figure(server, "default", "queued", 5)
        start = len(server.said)
        server.process.send_signal(signal.SIGTERM)
        server.wait_for("draining", start)
        opener.sendall(b"Host: test\r\n\r\n")
        assert read_body(opener.makefile("rb")).startswith(b"/open ")
    assert [text.split()[0] for text in answers(waiting)] == ["/wait"] * 7
    assert server.process.wait(PATIENCE) == 0, server.said


@pytest.mark.parametrize(
    ("options", "multithread"),
    [
        (["--max-threads", "1"], False),
        (["--max-threads", "2"], True),
        (["--max-threads", "1", "--pool", "reports,max-threads=1,path=/report"], True),
        (["--max-threads", "1", "--request-timeout", "9", "--max-lost-threads", "1"], True),
        (["--max-threads", "1", "--request-timeout", "9", "--max-lost-threads", "0"], False),
    ],
)
def test_the_application_is_told_whether_other_threads_run(serve: Serve, options: list[str], multithread: bool) -> None:
    server = serve(*options, source=APP)
    assert server.fetch("/multithread").body.decode() == repr((multithread, False))
    assert server.stop() == 0, server.said


#: As Django keeps its connections: in a local of the thread, and closed when that is released.
LOCALS = """
import threading
local = threading.local()

class Connection:
    def __init__(self):
        self.thread = threading.current_thread().name
        self.uses = 0

    def __del__(self):
        print("closed", self.thread, self.uses, flush=True)

def app(environ, start_response):
    if not hasattr(local, "connection"):
        local.connection = Connection()
    local.connection.uses += 1
    start_response("200 OK", [("Content-Type", "text/plain")])
    thread = threading.current_thread()
    assert local.connection.thread == thread.name, "a local of another thread"
    return [f"{local.connection.uses} {thread.ident} {thread.name}".encode()]
"""


@pytest.mark.parametrize(("strategy", "pool"), [("adaptive", "default"), ("adaptive", "reports"), ("pec", "default"), ("epc", "default")])
def test_a_thread_that_has_served_its_requests_leaves_nothing_behind(serve: Serve, strategy: str, pool: str) -> None:
    limits = ["--min-threads", "1", "--max-threads", "1", "--thread-requests", "3"]
    path, name = "/", "maitred-"
    if pool == "reports":
        path, name = "/report", "maitred-reports-"
        limits = ["--pool", "reports,min-threads=1,max-threads=1,thread-requests=3,path=/report"]
    server = serve("--strategy", strategy, *limits, source=LOCALS)
    # Two of them end, at least a second apart. A request that comes before a thread has ended is still its own.
    uses: Counter[str] = Counter()
    end = time.monotonic() + PATIENCE
    while f"closed {name}2 " not in server.said:
        assert time.monotonic() < end, server.said
        count, _, thread = server.fetch(path).body.decode().split()
        uses[thread] += 1
        assert int(count) == uses[thread], "each thread has a local of its own"
    for thread in (f"{name}1", f"{name}2"):
        ended = server.wait_for(rf"closed {thread} (\d+)\n")
        assert int(ended[1]) == uses[thread] >= 3
    assert server.stop() == 0, server.said
    assert "Traceback" not in server.said


def test_an_idle_thread_leaves_nothing_behind(serve: Serve) -> None:
    server = serve("--pool", "reports,thread-idle=0.05,path=/report", source=LOCALS)
    assert server.fetch("/report").body.decode().split()[2] == "maitred-reports-1"
    server.wait_for("closed maitred-reports-1 1\n")
    assert server.fetch("/report").body.decode().split()[2] == "maitred-reports-2"
    assert server.stop() == 0, server.said


def test_others_get_past_a_slow_route_that_has_every_thread(serve: Serve) -> None:
    server = serve("--max-threads", "4", "--metrics-path", "/metrics", source=SLOW)
    server.fetch("/shut")
    slow = asked(server, ["/slow"] * 9)
    wait_for_figure(server, "default", "queued", 5)
    for letter in "abcdefghij":
        assert int(server.fetch(f"/fast/{letter}").body) == 4, "every thread is in a slow request"
    server.fetch("/open")
    assert len(answers(slow)) == 9
    assert server.fetch("/slow").body == b"4"
    assert server.stop() == 0, server.said


#: ``/slow`` takes no time, after ``/shut`` it waits for ``/open``. The answer is the most that were in it at once.
SLOW = """
import threading, time
opened = threading.Event()
changed = threading.Condition()
inside = most = 0
kind = str, 0

def app(environ, start_response):
    global inside, most, kind
    start_response("200 OK", [("Content-Type", "text/plain")])
    match environ["PATH_INFO"]:
        case "/slow":
            with changed:
                inside += 1
                most = max(most, inside)
            act, value = kind
            act(value)
            with changed:
                inside -= 1
        case "/shut":
            kind = opened.wait, 30
        case "/open":
            kind = str, 0
            opened.set()
    return [str(most).encode()]
"""
