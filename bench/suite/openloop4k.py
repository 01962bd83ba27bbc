"""A fixed schedule of 4,000 requests a second: latency from the scheduled time."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from pathlib import Path

from benchlib import chart, figures, load, rounds, servers
from benchlib.report import Report, say

TITLE = "Open loop, 4,000 requests per second"
RATE = 4000
BODY = b"hello\n"
PATH = "/hello"
CONNECTIONS = 64
#: Sixty seconds for each contender, in segments that alternate.
SEGMENTS, SEGMENT_S = 6, 10
WARM_UP_S = 1.0
SHARES = ((0.5, "p50"), (0.9, "p90"), (0.95, "p95"), (0.99, "p99"), (0.999, "p99.9"), (1.0, "max"))
OURS, BASE = "maitred", servers.NGINX.name
GATE = 1.1


def run(options: rounds.Options, folder: Path, report: Report) -> None:
    rounds.need("taskset")
    servers.cargo_build("openloop")
    contenders, skipped = rounds.present(options, [servers.maitred(options.threads), servers.NGINX])
    root = folder / "root"
    root.mkdir()
    (root / PATH[1:]).write_bytes(BODY)
    segments, seconds = options.rounds(SEGMENTS), options.duration(SEGMENT_S)
    report.text(f"{RATE:,} requests/s over {CONNECTIONS} keep-alive connections, {len(BODY)}-byte file, {segments} "
                f"segments of {seconds:g} s each in turn. Latency counts from the scheduled time, so a late "
                "generator is charged too (its lag is shown). Every latency is kept; percentiles are over all "
                "segments, ratios over pairs of segments.", *skipped)
    outcomes: dict[str, list[load.Open]] = {each.name: [] for each in contenders}
    cpu: dict[str, list[float]] = {each.name: [] for each in contenders}
    shares = []
    with rounds.all_running(contenders, root, folder) as running:
        for server in running:
            load.verify(server.name, server.port, PATH, BODY, len(BODY))
            _segment(server, options, options.duration(3), folder)
        for number in range(segments):
            say(f"openloop4k: segment {number + 1}")
            for server in running:
                once = rounds.timed(server, lambda server=server: _segment(server, options, seconds, folder))
                outcomes[server.name].append(once.outcome)
                cpu[server.name].append(once.cpu_ns / (RATE * (seconds + WARM_UP_S)) / 1e4)
                shares.append(once.others)
    _write(report, outcomes, cpu)
    report.text(rounds.others_text(shares))


def _segment(server: servers.Server, options: rounds.Options, seconds: float, folder: Path) -> load.Open:
    return load.openloop(server.port, load.one_path(PATH, len(BODY)), RATE, seconds, WARM_UP_S, CONNECTIONS, folder,
                         options.spin)


def _write(report: Report, outcomes: dict[str, list[load.Open]], cpu: dict[str, list[float]]) -> None:
    rows, series = [], []
    for colour, (name, segments) in enumerate(outcomes.items()):
        merged = list(heapq.merge(*(each.latencies for each in segments)))
        scheduled = sum(each.scheduled for each in segments)
        if not merged:
            raise load.WrongAnswer(f"{name}: no request of {scheduled} succeeded")
        success = 100 * len(merged) / scheduled
        rows.append([name, f"{success:.3f} %" if len(merged) < scheduled else "100 %",
                     f"{sum(merged) / len(merged):.0f}",
                     *(f"{figures.percentile(merged, share):.0f}" for share, _ in SHARES),
                     f"{figures.spread([each.lag_p50 for each in segments]).median:.0f}",
                     f"{figures.spread([each.lag_p99 for each in segments]).median:.0f}",
                     f"{figures.spread(cpu[name]).median:.3f}"])
        series.append(chart.Line(name, _tail(merged), colour))
    report.table(["server", "success", "mean µs", *(f"{name} µs" for _, name in SHARES), "send lag p50 µs",
                  "send lag p99 µs", "CPU-s per 100,000"], rows)
    report.chart(chart.lines("Latency from the scheduled time", "1 / (1 − percentile): 10 is p90, 1,000 is p99.9",
                             "µs", series, log_x=True, log_y=True))
    for name in outcomes:
        if name != OURS and OURS in outcomes:
            _write_ratios(report, outcomes[OURS], name, outcomes[name])
    if OURS in outcomes:
        failed = sum(each.scheduled - len(each.latencies) for each in outcomes[OURS])
        report.text(rounds.verdict("Gate, failed requests", failed, 0))


def _write_ratios(report: Report, ours: Sequence[load.Open], name: str, theirs: Sequence[load.Open]) -> None:
    rows, lines = [], []
    for share, label in SHARES:
        ratio = figures.ratios([figures.percentile(each.latencies, share) for each in ours],
                               [figures.percentile(each.latencies, share) for each in theirs])
        rows.append([label, rounds.ratio_text(ratio)])
        if name == BASE and label in ("p50", "p90"):
            lines.append(rounds.verdict(f"Gate, {label} against {name}", ratio.median, GATE))
    report.table(["percentile", f"maitred / {name}"], rows)
    report.text(*lines)


def _tail(merged: Sequence[float]) -> list[tuple[float, float]]:
    """Points evenly spaced on the axis 1 / (1 - share), up to the last value that is not alone."""
    points, inverse = [], 1.0
    while inverse < len(merged):
        points.append((inverse, figures.percentile(merged, 1 - 1 / inverse) or 0.1))
        inverse *= 1.25
    return points
