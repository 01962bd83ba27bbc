"""Uploads from 1 KiB to 100 MiB: what one costs in CPU, WSGI and ASGI, beside the peers."""

from __future__ import annotations

import http.client
from collections.abc import Sequence
from pathlib import Path

from benchlib import chart, figures, load, peers, python_servers, rounds, servers
from benchlib.compare import running
from benchlib.report import Report, say

TITLE = "Uploads: CPU per body"
KIB = 1024
#: By the length of the body: connections at a time, and seconds of a round.
SIZES = {KIB: (16, 2), 64 * KIB: (16, 2), 256 * KIB: (8, 2), 1024 * KIB: (8, 2), 10 * 1024 * KIB: (4, 3),
         100 * 1024 * KIB: (2, 4)}
SMOKE = (KIB, 1024 * KIB)
PAIRS = 5
OURS = python_servers.OURS
#: Against the best peer of each size.
GATE, GOAL = 1.3, 1.0

HEADS = ("server", "CPU ms per upload", "maitred / this (CPU)", "MiB/s", "failed")


def run(options: rounds.Options, folder: Path, report: Report) -> None:
    rounds.need("taskset", "wrk")
    environment = peers.environment(options)
    report.text(f"{environment.description}; {peers.versions(environment, python_servers.PACKAGES)}.", "",
                "One worker process on the server's core, the load (wrk) on the other. The application takes the whole body and "
                f"answers with its length. Default settings. CPU is user and system of the server. {rounds.INTERVAL_NOTE}")
    results: dict[str, dict[str, list[float]]] = {}
    for interface in ("wsgi", "asgi"):
        application = f"upload_{interface}:application"
        make = python_servers.wsgi if interface == "wsgi" else python_servers.asgi
        contenders = [each for each in make(environment, application) if each.name != f"{OURS}, 1 thread"]
        contenders, skipped = rounds.present(options, contenders)
        report.text(*skipped)
        with running(contenders, OURS, folder, report) as up:
            for size in SMOKE if options.smoke else SIZES:
                results[f"{interface.upper()}, {named(size)}"] = measure(options, up, interface, size, folder, report)
    gates(report, results)
    groups = [(name, [chart.Bar(server, *spread(values)) for server, values in of.items()])
              for name, of in results.items()]
    report.chart(chart.bars(TITLE, "CPU ms per upload", groups))


def named(size: int) -> str:
    return f"{size // KIB // KIB} MiB" if size >= KIB * KIB else f"{size // KIB} KiB"


def spread(values: Sequence[float]) -> tuple[float, float, float]:
    of = figures.spread(values)
    return of.median, of.lower, of.upper


def measure(options: rounds.Options, up: Sequence[servers.Server], interface: str, size: int, folder: Path,
            report: Report) -> dict[str, list[float]]:
    """CPU milliseconds for each upload, by server, and their table in the report."""
    name = f"{interface.upper()}, {named(size)}"
    right = [server for server in up if takes(server, size, name, report)]
    connections, seconds = SIZES[size]
    cpu: dict[str, list[float]] = {server.name: [] for server in right}
    rate: dict[str, list[float]] = {server.name: [] for server in right}
    failed = dict.fromkeys(cpu, 0)
    shares = []
    for number in range(options.rounds(PAIRS, smoke=1)):
        say(f"{name}: round {number + 1}")
        for server in right:
            meter = rounds.Meter(server)
            meter.start()
            closed = load.wrk(server.port, "/", connections, options.duration(seconds, 1), folder, body=size)
            meter.stop()
            if not closed.requests:
                raise load.WrongAnswer(f"{server.name}, {name}: no upload in {seconds} s")
            cpu[server.name].append(meter.cpu_ns / closed.requests / 1e6)
            rate[server.name].append(closed.rate * size / KIB / KIB)
            failed[server.name] += closed.failed
            shares.append(meter.others)
            rounds.rest(server)
    rows = []
    for server, values in cpu.items():
        median, lower, upper = spread(values)
        ratio = "–" if server == OURS else rounds.ratio_text(figures.ratios(cpu[OURS], values))
        rows.append([server, f"{median:.3f} [{lower:.3f}, {upper:.3f}]", ratio,
                     f"{figures.spread(rate[server]).median:,.0f}", str(failed[server])])
    report.text(f"## {name}, {options.rounds(PAIRS, smoke=1)} rounds")
    report.table(HEADS, rows)
    report.text(rounds.others_text(shares, "the server's core"))
    return cpu


def takes(server: servers.Server, size: int, name: str, report: Report) -> bool:
    """Whether it answers right; a peer that does not is left out with a line."""
    client = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    try:
        client.request("POST", "/", b"x" * size)
        answer = client.getresponse()
        said = f"{answer.status} {answer.read()[:100]!r}"
    except (OSError, http.client.HTTPException) as error:
        said = str(error)
    finally:
        client.close()
    if said == f"200 {str(size).encode()!r}":
        return True
    if server.name == OURS:
        raise load.WrongAnswer(f"{server.name}, {name}: {said}")
    report.text(f"left out of {name}: {server.name}: {said}")
    return False


def gates(report: Report, results: dict[str, dict[str, list[float]]]) -> None:
    lines = []
    for name, of in results.items():
        best = max((figures.ratios(of[OURS], values).median for server, values in of.items() if server != OURS), default=None)
        if best is not None:
            lines.append(rounds.verdict(f"Gate, CPU against the best peer, {name}", best, GATE))
            lines.append(rounds.verdict(f"Goal, the same, {name}", best, GOAL))
    if lines:
        report.text("## Gates", "", *lines)
