"""Active connections: throughput, p99 and CPU from 64 to 16,384 busy connections, plain and pipelined."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from benchlib import chart, figures, load, machine, rounds, servers
from benchlib.report import Report, say

TITLE = "Active connections"
COUNTS = (64, 256, 1024, 4096, 16384)
SMOKE_COUNTS = (64, 1024)
#: Requests sent at once on each connection when pipelining.
DEPTH = 8
MODES = ((1, "plain"), (DEPTH, f"pipelined, {DEPTH} at a time"))
PAIRS = 3
SECONDS = 6
SIZE = 1024
PATH = "/1k"
WARM_UP_S = 2
OURS, BASE = "maitred", servers.NGINX_CACHE.name
#: Gate: share of the own best throughput that must be left at so many connections.
GATE_COUNT, GATE_SHARE = 4096, 0.85
#: Descriptors that a load program or a server needs besides its connections.
SPARE_DESCRIPTORS = 600

#: Requests per second, p99 in microseconds, CPU-seconds per 100,000 requests, failed requests.
Figures = tuple[float, float, float, int]
Key = tuple[str, int, int]


def run(options: rounds.Options, folder: Path, report: Report) -> None:
    rounds.need("taskset")
    servers.cargo_build("openloop")
    contenders, skipped = rounds.present(options, [servers.maitred(options.threads), servers.NGINX_CACHE])
    limit = machine.raise_descriptor_limit()
    counts = [count for count in (SMOKE_COUNTS if options.smoke else COUNTS) if count + SPARE_DESCRIPTORS <= limit]
    left_out = [f"skipped: {count:,} connections (limit of open files is {limit:,})"
                for count in (() if options.smoke else COUNTS) if count not in counts]
    root = folder / "root"
    root.mkdir()
    body = os.urandom(SIZE)
    (root / PATH[1:]).write_bytes(body)
    report.text(f"{SIZE}-byte file; every connection is busy all the time. Connecting and {options.duration(WARM_UP_S):g} s of "
                "warming up are not measured. Latency counts from sending (a batch, if pipelined) to the last answer: "
                "with so many busy connections it is the length of the queue. Medians of "
                f"{options.rounds(PAIRS, smoke=1)} rounds.", *skipped, *left_out)
    samples: dict[Key, list[Figures]] = {}
    shares: list[float] = []
    with rounds.all_running(contenders, root, folder, max(counts)) as running:
        for server in running:
            load.verify(server.name, server.port, PATH, body, SIZE)
        for count in counts:
            for depth, _ in MODES:
                _measure(options, running, count, depth, samples, shares)
    _write(report, [server.name for server in running], counts, samples)
    report.text(rounds.others_text(shares))
    _charts(report, [server.name for server in running], counts, samples)


def _measure(options: rounds.Options, running: Sequence[servers.Server], count: int, depth: int,
             samples: dict[Key, list[Figures]], shares: list[float]) -> None:
    for number in range(options.rounds(PAIRS, smoke=1)):
        say(f"active: {count} connections, {depth} at a time, round {number + 1}")
        for server in running:
            meter = rounds.Meter(server)
            closed = load.busy(server.port, load.one_path(PATH, SIZE), count, depth, options.duration(SECONDS),
                               options.duration(WARM_UP_S), {"measuring": meter.start, "measured": meter.stop})
            samples.setdefault((server.name, count, depth), []).append(
                (closed.rate, closed.p99, meter.cpu_ns / max(1, closed.requests) / 1e4, closed.failed))
            shares.append(meter.others)


def _median(values: Sequence[Figures], index: int) -> float:
    return figures.spread([each[index] for each in values]).median


def _write(report: Report, names: Sequence[str], counts: Sequence[int], samples: dict[Key, list[Figures]]) -> None:
    for depth, mode in MODES:
        rows, shares = [], {}
        for name in names:
            best = max(_median(samples[name, count, depth], 0) for count in counts)
            for count in counts:
                values = samples[name, count, depth]
                share = shares[name, count] = _median(values, 0) / best
                ratio = "–"
                if OURS in names and BASE in names and name != OURS:
                    mine = samples[OURS, count, depth]
                    ratio = rounds.ratio_text(figures.ratios([each[2] for each in mine], [each[2] for each in values]))
                rows.append([name, f"{count:,}", f"{_median(values, 0):,.0f}", f"{100 * share:.0f} %",
                             f"{_median(values, 1) / 1000:.2f}", f"{_median(values, 2):.3f}", ratio,
                             str(sum(each[3] for each in values))])
        report.text(f"## {mode.capitalize()}")
        report.table(["server", "connections", "requests/s", "of own best", "p99 ms", "CPU-s per 100,000",
                      "maitred / this (CPU)", "failed"], rows)
        if (OURS, GATE_COUNT) in shares:
            share = shares[OURS, GATE_COUNT]
            report.text(f"- Gate, {GATE_COUNT:,} connections keep at least {100 * GATE_SHARE:.0f} % of our best: "
                        f"{100 * share:.0f} %: **{'met' if share >= GATE_SHARE else 'not met'}**")


def _charts(report: Report, names: Sequence[str], counts: Sequence[int], samples: dict[Key, list[Figures]]) -> None:
    series = [chart.Line(f"{name}, {mode}", [(count, _median(samples[name, count, depth], 0)) for count in counts],
                         colour, dash)
              for colour, name in enumerate(names) for dash, (depth, mode) in enumerate(MODES)]
    report.chart(chart.lines("Throughput against active connections", "active connections", "requests/s", series,
                             log_x=True))
