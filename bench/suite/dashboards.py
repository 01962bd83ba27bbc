"""What open dashboards cost the server: CPU of all its processes with ten pages open, with none, and without the listener they are served at."""

from __future__ import annotations

import contextlib
import http.client
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from benchlib import chart, figures, peers, rounds, servers
from benchlib.load import WrongAnswer
from benchlib.python_servers import OURS, ours
from benchlib.report import Report, say

ONE_CORE = False
TITLE = "Open dashboards: CPU of the server"
PAGES = 10
#: What the page Overview follows, where the server keeps a history.
FOLLOWED = "/dashboard/feed?of=stats&of=pools&of=status&of=active&of=finding&of=history%3Flast%3D2s%26resolution%3D1s"
WINDOW_S, ROUNDS = 10.0, 7
#: Requests a second beside it, so that there is something to show.
RATE = 50
#: Of a core, in per cent.
GOAL = 1.0
NONE, TEN, OFF = "none", f"{PAGES} pages", "no listener"


def run(options: rounds.Options, folder: Path, report: Report) -> None:
    environment = peers.environment(options)
    window = options.duration(WINDOW_S)
    report.text(
        f"{environment.description}. A WSGI hello gets {RATE} requests a second. In turn for {window:g} s each: no page is open; {PAGES} pages follow what Overview follows, "
        "as server-sent events each second; beside them a server without `--admin`. CPU is user and system of all processes of the server, as a share of one core. "
        f"{rounds.INTERVAL_NOTE}")
    rows, groups = [], []
    for name, words in (("one process", []), ("two workers", ["--workers", "2"])):
        shares = _measure(options, environment, folder, window, name, words)
        spreads = {state: figures.spread(values) for state, values in shares.items()}
        added = figures.spread([ten - none for ten, none in zip(shares[TEN], shares[NONE], strict=True)])
        idle = figures.spread([none - off for none, off in zip(shares[NONE], shares[OFF], strict=True)])
        rows.append([name, *(f"{spreads[state].median:.2f} %" for state in (OFF, NONE, TEN)),
                     *(f"{each.median:.2f} [{each.lower:.2f}, {each.upper:.2f}]" for each in (added, idle))])
        groups.append((name, [chart.Bar(state, of.median, of.lower, of.upper) for state, of in spreads.items()]))
        report.text(rounds.verdict(f"Goal, {name}: {PAGES} open pages, per cent of a core", added.median, GOAL))
    report.table(["server", OFF, NONE, TEN, f"{TEN} - {NONE}", f"{NONE} - {OFF}"], rows)
    report.chart(chart.bars(TITLE, "per cent of a core", groups))


def _measure(options: rounds.Options, environment: peers.Environment, folder: Path, window: float, name: str, words: list[str]) -> dict[str, list[float]]:
    admin = servers.free_port()
    contenders = [ours(environment, "plain_wsgi:application", "wsgi", words=[*words, "--admin", f"127.0.0.1:{admin}"], pinned=False),
                  ours(environment, "plain_wsgi:application", "wsgi", name=OFF, words=words, pinned=False)]
    shares: dict[str, list[float]] = {OFF: [], NONE: [], TEN: []}
    with contextlib.ExitStack() as stack:
        own, without = (stack.enter_context(servers.running(each, folder, folder)) for each in contenders)
        for number in range(options.rounds(ROUNDS, smoke=1)):
            say(f"dashboards, {name}: round {number + 1}")
            for state, server in ((OFF, without), (NONE, own), (TEN, own)):
                with _pages(admin if state == TEN else None), _visitors(server):
                    # The thread that asks for the pages begins.
                    time.sleep(min(1.0, window))
                    shares[state].append(100 * rounds.timed(server, lambda: time.sleep(window)).cpu_ns / (window * 1e9))
    return shares


@contextlib.contextmanager
def _visitors(server: servers.Server) -> Iterator[None]:
    stop = threading.Event()

    def visit() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
        while not stop.wait(1 / RATE):
            connection.request("GET", "/")
            connection.getresponse().read()
        connection.close()

    thread = threading.Thread(target=visit)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@contextlib.contextmanager
def _pages(admin: int | None) -> Iterator[None]:
    """Pages that read what they follow."""
    received = [0] * (PAGES if admin else 0)

    def follow(number: int, connection: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while part := connection.recv(65536):
                received[number] += part.count(b"event: ")

    with contextlib.ExitStack() as stack:
        threads = []
        connections = []
        for number in range(len(received)):
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", admin), timeout=30))
            connection.sendall(f"GET {FOLLOWED} HTTP/1.1\r\nHost: 127.0.0.1:{admin}\r\n\r\n".encode())
            threads.append(threading.Thread(target=follow, args=(number, connection)))
            threads[-1].start()
            connections.append(connection)
        try:
            yield
        finally:
            for connection in connections:
                connection.shutdown(socket.SHUT_RDWR)
            for thread in threads:
                thread.join()
    if received and min(received) == 0:
        raise WrongAnswer(f"{OURS}: a page has got no answers: {received}")
