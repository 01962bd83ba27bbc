"""Limits on peers, measured: bandwidths, requests and connections of a client beside what they are set to."""

from __future__ import annotations

import concurrent.futures
import contextlib
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchlib import chart, load, rounds, servers, workbench
from benchlib.report import Report, say

TITLE = "Limits on peers: set and measured"
SECONDS, SMOKE_SECONDS = 10.0, 1.5
#: The goal: so much of what is set, up or down.
GOAL = 0.1
#: What may pass at once is left out of a measured rate: it is taken after this share of the time.
WARM_UP = 0.2


@dataclass(frozen=True)
class Row:
    """A limit: its options, what it is set to, and who measures it."""

    name: str
    words: tuple[str, ...]
    unit: str
    setting: float
    measure: Callable[[int, float], float]


def run(options: rounds.Options, folder: Path, report: Report) -> None:
    rounds.need("taskset")
    servers.cargo_build("workbench")
    seconds = options.duration(SECONDS, SMOKE_SECONDS)
    files = folder / "files"
    files.mkdir()
    # Sparse: more than passes in the time.
    with (files / "large").open("wb") as file:
        file.truncate(1 << 30)
    report.text(
        f"The native server on one core, clients on another; {seconds:g} s for each row, a fresh server each time. Rates are measured "
        f"by the clients after the first {100 * WARM_UP:.0f} % of the time, so that what may pass at once is left out; shared ones over "
        "8 connections. The fairness of a shared one is the least that a connection got, as a share of an eighth.")
    measured = []
    for row in _rows(files):
        say(f"limits: {row.name}")
        contender = workbench.native(row.name.replace("/", " "), ["--static", f"/files={files}", *row.words])
        with servers.running(contender, files, folder) as server:
            _fairness.clear()
            got = row.measure(server.port, seconds)
            measured.append((row, got, min(_fairness, default=None)))
    _write(report, measured)


def _rows(files: Path) -> list[Row]:
    def one(port: int, seconds: float) -> float:
        return _download(port, "/files/large", 1, seconds)

    def eight(port: int, seconds: float) -> float:
        return _download(port, "/files/large", 8, seconds)

    def eight_of_pool(port: int, seconds: float) -> float:
        return _download(port, "/large/8", 8, seconds)

    mib = float(1 << 20)
    return [
        Row("connection-bandwidth 64k", ("--connection-bandwidth", "64k"), "MiB/s", 65536 / mib, one),
        Row("connection-bandwidth 1m", ("--connection-bandwidth", "1m"), "MiB/s", 1.0, one),
        Row("connection-bandwidth 20m", ("--connection-bandwidth", "20m"), "MiB/s", 20.0, one),
        Row("route-bandwidth 4m", ("--route-bandwidth", "/files/*=4m"), "MiB/s", 4.0, eight),
        Row("bandwidth 4m of the pool", ("--bandwidth", "4m"), "MiB/s", 4.0, eight_of_pool),
        Row("client-rate 20", ("--client-rate", "20", "--client-burst", "5"), "requests/s", 20.0, _requests),
        Row("client-rate 500", ("--client-rate", "500", "--client-burst", "50"), "requests/s", 500.0, _requests),
        Row("client-connections 50", ("--client-connections", "50"), "connections", 50.0, _connections),
    ]


#: The least share of the connections of one measurement.
_fairness: list[float] = []


def _download(port: int, path: str, connections: int, seconds: float) -> float:
    """MiB in a second over all connections."""
    begun = time.monotonic()
    count_from, until = begun + WARM_UP * seconds, begun + seconds

    def take(_: int) -> int:
        counted = 0
        with socket.create_connection(("127.0.0.1", port), 30) as peer:
            peer.sendall(b"GET %s HTTP/1.1\r\nHost: t\r\n\r\n" % path.encode())
            while (now := time.monotonic()) < until:
                part = peer.recv(1 << 18)
                if not part:
                    raise load.WrongAnswer("the connection was closed")
                if now >= count_from:
                    counted += len(part)
        return counted

    with concurrent.futures.ThreadPoolExecutor(connections) as pool:
        taken = list(pool.map(take, range(connections)))
    if connections > 1:
        _fairness.append(min(taken) * connections / max(sum(taken), 1))
    return sum(taken) / (until - count_from) / (1 << 20)


def _requests(port: int, seconds: float) -> float:
    """Requests in a second that are answered with 200, of a client that always asks again."""
    begun = time.monotonic()
    count_from, until = begun + WARM_UP * seconds, begun + seconds
    counted = 0
    with socket.create_connection(("127.0.0.1", port), 30) as peer, peer.makefile("rb") as answers:
        while (now := time.monotonic()) < until:
            peer.sendall(b"GET / HTTP/1.1\r\nHost: t\r\n\r\n")
            status = answers.readline()
            length = 0
            while (line := answers.readline()) not in (b"\r\n", b""):
                if line.lower().startswith(b"content-length: "):
                    length = int(line.split()[1])
            answers.read(length)
            if status.startswith(b"HTTP/1.1 200 "):
                counted += now >= count_from
            elif not status.startswith(b"HTTP/1.1 429 "):
                raise load.WrongAnswer(status.decode(errors="replace"))
    return counted / (until - count_from)


def _connections(port: int, _: float) -> float:
    """Of three times as many connections as may be, those that are answered."""
    answered = 0
    with contextlib.ExitStack() as stack:
        for _ in range(150):
            peer = stack.enter_context(socket.create_connection(("127.0.0.1", port), 30))
            with contextlib.suppress(OSError):
                peer.sendall(b"GET / HTTP/1.1\r\nHost: t\r\n\r\n")
                answered += peer.recv(12) == b"HTTP/1.1 200"
    return float(answered)


def _write(report: Report, measured: list[tuple[Row, float, float | None]]) -> None:
    rows, lines, bars = [], [], []
    for row, got, fair in measured:
        ratio = got / row.setting
        rows.append([row.name, row.unit, f"{row.setting:g}", f"{got:.4g}", f"{ratio:.3f}",
                     "" if fair is None else f"{fair:.2f}"])
        lines.append(rounds.verdict(f"Goal, {row.name}: measured beside set, off by", abs(ratio - 1), GOAL))
        bars.append(chart.Bar(row.name, ratio, ratio, ratio))
    report.table(["limit", "unit", "set", "measured", "ratio", "fairness"], rows)
    report.text("## Goal", "", *lines)
    report.chart(chart.bars(TITLE, "measured, as a share of what is set", [("all", bars)]))
