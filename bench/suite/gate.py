"""Ten threads behind the limiter compared with one thread: their cost for short requests, their gain where requests block."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from benchlib import chart, compare, figures, peers, rounds, servers, traffic, workbench
from benchlib.report import Report
from benchlib.series import Schedule, Table, Workload, bars, measure

TITLE = "The limiter before the interpreter: one thread, ten behind it, ten without it"
APPLICATION = workbench.APPLICATION
HELLO = workbench.HELLO
BODY = bytes(range(256)) * 40
INLINE, LIMITED, FREE = "1 thread", "10 threads", "10 threads, no limiter"
#: In a closed loop, 64 connections.
CLOSED = (
    Workload("hello", [traffic.bare("/", HELLO)]),
    Workload("10 KiB echo", [traffic.bare("/echo", BODY, BODY)]),
    Workload("50 µs of Python", [traffic.bare("/cpu/50", HELLO)]),
    Workload("three os.stat", [traffic.bare("/stat", HELLO)]),
)
CLOSED_NAMES = [each.name for each in CLOSED]
#: Requests a second.
SLEEP_RATE, BURN_RATE = 400, 200
SLEEPING = Workload("10 % sleep 50 ms", traffic.mixed(traffic.bare("/", HELLO), traffic.bare("/sleep/50", HELLO)),
                    Schedule(SLEEP_RATE))
BURNING = Workload("10 % burn 20 ms", traffic.mixed(traffic.bare("/", HELLO), traffic.bare("/burn", HELLO)),
                   Schedule(BURN_RATE))
WORKLOADS = (*CLOSED, SLEEPING, BURNING)
PAIRS = 9
#: Gates: CPU of the threads behind the limiter to that of one thread in the closed loops; p99 in milliseconds, pinned.
GATE_CPU, GATE_P99_MS = 1.08, 2.0
GATE_P99_OF = (CLOSED[0].name, CLOSED[1].name, SLEEPING.name)


def run(options: rounds.Options, folder: Path, report: Report) -> None:
    rounds.need("taskset")
    servers.cargo_build("openloop")
    environment = peers.environment(options)
    report.text(
        f"{environment.description}; maitred with `--max-threads 1`, with its default of 10, and with 10 and "
        "`MAITRED_BENCH_NO_GATE=1`, where threads contend for the interpreter as the kernel has them.", "",
        f"Closed loops: {compare.CONNECTIONS} busy connections. Schedules: Poisson, {SLEEP_RATE} and {BURN_RATE} "
        "requests/s, latency from the scheduled time, of the fast requests only, over all rounds together. 50 µs are "
        f"{workbench.spins(environment)['BENCH_SPINS']} turns of a loop. Context switches are those of all threads of "
        f"the server. {rounds.INTERVAL_NOTE}")
    gates: list[str] = []
    groups = []
    for pinned, name in ((True, "one core"), (False, "both cores")):
        contenders = _contenders(environment, pinned)
        chosen, skipped = rounds.present(options, contenders)
        report.text(f"## Server on {name}{'' if pinned else ', the load on one of them'}")
        if skipped:
            report.text(*skipped)
        with compare.running(chosen, LIMITED, folder, report) as up:
            table, shares = measure(options, up, LIMITED, WORKLOADS, PAIRS, 1, folder, report)
        _write(report, table, pinned, shares)
        gates += _gates(table, name, pinned)
        groups += [(f"{workload}, {name}", bars(table, workload)) for workload in CLOSED_NAMES]
    report.text("## Gates", "", *gates)
    report.chart(chart.bars("CPU of the schemes", "CPU-seconds per 100,000 requests", groups))


def _contenders(environment: peers.Environment, pinned: bool) -> list[servers.Contender]:
    free = workbench.wsgi(environment, FREE, pinned=pinned)
    return [workbench.wsgi(environment, INLINE, ["--max-threads", "1"], pinned),
            workbench.wsgi(environment, LIMITED, pinned=pinned),
            dataclasses.replace(free, environment=free.environment | {"MAITRED_BENCH_NO_GATE": "1"})]


def _write(report: Report, table: Table, pinned: bool, shares: Sequence[float]) -> None:
    rows = []
    for (workload, scheme), series in table.items():
        of = figures.spread(series.cpu)
        ratio = "–"
        if scheme != INLINE and (workload, INLINE) in table:
            ratio = rounds.ratio_text(figures.ratios(series.cpu, table[workload, INLINE].cpu))
        switches = [sum(each) for each in zip(series.voluntary, series.involuntary, strict=True)]
        rows.append([workload, scheme, f"{of.median:.3f} [{of.lower:.3f}, {of.upper:.3f}]", ratio,
                     f"{series.median('rate'):,.0f}",
                     *(f"{series.together(share):.2f}" for share in (0.5, 0.99, 0.999)),
                     f"{figures.spread(switches).median:.3f}", f"{100 * series.median('finished'):.0f} %"])
    report.table(["workload", "scheme", "CPU-s per 100,000", f"to {INLINE}", "requests/s", "p50 ms", "p99 ms",
                  "p99.9 ms", "switches/request", "answered"], rows)
    if pinned:
        report.text(rounds.others_text(shares))


def _gates(table: Table, where: str, pinned: bool) -> list[str]:
    if (SLEEPING.name, LIMITED) not in table:
        return []
    lines = []
    ratios = [(figures.ratios(table[workload, LIMITED].cpu, table[workload, INLINE].cpu).median, workload)
              for workload in CLOSED_NAMES if (workload, INLINE) in table]
    if ratios:
        worst, workload = max(ratios)
        lines.append(rounds.verdict(f"Gate, CPU of {LIMITED} to {INLINE} in every closed loop, {where}; highest "
                                    f"({workload})", worst, GATE_CPU))
    if pinned:
        lines += [rounds.verdict(f"Gate, p99 of {workload} in ms, {where}", table[workload, LIMITED].together(0.99),
                                 GATE_P99_MS) for workload in GATE_P99_OF]
    return lines
