"""Static files: CPU of the server per 100,000 requests for 1 KiB, 64 KiB and 10 MiB."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path

from benchlib import chart, figures, load, rounds, servers
from benchlib.report import Report, say

TITLE = "Static files: CPU per request"
CONNECTIONS = 64
#: Path, bytes, seconds for each measurement, name.
FILES = (("/1k", 1024, 3, "1 KiB"), ("/64k", 64 * 1024, 3, "64 KiB"), ("/10m", 10 * 1024 * 1024, 5, "10 MiB"))
PAIRS = 9
WARM_UP_S = 2
#: wrk is slower than the fastest contenders, which then sleep between requests and pay for it; our own generator
#: keeps all of them busy.  Both views are true; the gate is read under wrk, the one that is harder for us.
LOADS = {"wrk": "wrk", "own": "our own generator (wrk for the largest file)"}
OURS, BASE = "maitred", servers.NGINX.name


def run(options: rounds.Options, folder: Path, report: Report) -> None:
    rounds.need("wrk", "taskset")
    servers.cargo_build("openloop")
    candidates = [servers.maitred(options.threads), servers.NGINX, servers.NGINX_CACHE, servers.H2O]
    contenders, skipped = rounds.present(options, candidates)
    root = folder / "root"
    root.mkdir()
    report.text(f"{CONNECTIONS} keep-alive connections, load by {LOADS[options.load]}; CPU-seconds (user and system, all processes of the "
                f"server) per 100,000 requests. {rounds.INTERVAL_NOTE}", *skipped)
    groups = []
    with rounds.all_running(contenders, root, folder) as running:
        for path, size, seconds, name in FILES:
            body = os.urandom(size)
            (root / path[1:]).write_bytes(body)
            for server in running:
                load.verify(server.name, server.port, path, body, size)
            samples, shares = _measure(options, running, path, size, options.duration(seconds), folder)
            _write(report, name, samples, shares)
            groups.append((name, _bars(samples)))
    report.chart(chart.bars(TITLE, "CPU-seconds per 100,000 requests", groups))


#: What one measurement gives: CPU-seconds per 100,000 requests, requests per second.
Figures = tuple[float, float]


def _measure(options: rounds.Options, running: Sequence[servers.Server], path: str, size: int, seconds: float,
             folder: Path) -> tuple[dict[str, list[Figures]], list[float]]:
    samples: dict[str, list[Figures]] = {server.name: [] for server in running}
    shares = []
    for server in running:
        load.wrk(server.port, path, CONNECTIONS, options.duration(WARM_UP_S), folder)
    for number in range(options.rounds(PAIRS)):
        say(f"static {path}: round {number + 1}")
        for server in running:
            closed, meter = _load(options, server, path, size, seconds, folder)
            if closed.failed:
                raise load.WrongAnswer(f"{server.name}: {closed.failed} failed requests")
            # Of the largest file only a few hundred are sent; the bytes count the ones under way as well.
            requests = closed.bytes / size if size > 1 << 20 else closed.requests
            samples[server.name].append((meter.cpu_ns / requests / 1e4, requests / closed.seconds))
            shares.append(meter.others)
    return samples, shares


def _load(options: rounds.Options, server: servers.Server, path: str, size: int, seconds: float,
          folder: Path) -> tuple[load.Closed, rounds.Meter]:
    if size > 1 << 20:
        options = dataclasses.replace(options, load="wrk")
    return rounds.busy(options, server, path, size, CONNECTIONS, seconds, folder)


def _write(report: Report, name: str, samples: dict[str, list[Figures]], shares: list[float]) -> None:
    cpu = {server: [each[0] for each in values] for server, values in samples.items()}
    rows = []
    for server, values in samples.items():
        of = figures.spread(cpu[server])
        rate = figures.spread([each[1] for each in values]).median
        rows.append([server, f"{of.median:.3f} [{of.lower:.3f}, {of.upper:.3f}]",
                     rounds.against(cpu, server, BASE),
                     rounds.against(cpu, OURS, server) if OURS in cpu else "–", f"{rate:,.0f}"])
    report.text(f"## {name}, {len(next(iter(samples.values())))} rounds")
    report.table(["server", "CPU-s per 100,000", f"ratio to {BASE}", "maitred / this", "requests/s"], rows)
    report.text(rounds.others_text(shares))
    if OURS in cpu and BASE in cpu:
        ratio = figures.ratios(cpu[OURS], cpu[BASE]).median
        report.text(rounds.verdict("Gate, at most nginx without cache", ratio, 1.0))


def _bars(samples: dict[str, list[Figures]]) -> list[chart.Bar]:
    spreads = {server: figures.spread([each[0] for each in values]) for server, values in samples.items()}
    return [chart.Bar(server, of.median, of.lower, of.upper) for server, of in spreads.items()]
