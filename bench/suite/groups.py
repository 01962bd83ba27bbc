"""One poll group against two on the same cores: what it costs, who waits for sleepers, how often a request leaves its group."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchlib import chart, compare, figures, metrics, rounds, servers, traffic, workbench
from benchlib.report import Report
from benchlib.series import Schedule, Table, Workload, bars, measure

TITLE = "Poll groups: one against two"
HELLO = workbench.HELLO
ONE, TWO = "1 group", "2 groups"
#: Threads from the start, shared out among the groups.
TEN = ("--min-threads", "10", "--max-threads", "10")
PAIRS = 5
RATE = 4000
CLOSED, MIX = "hello, closed loop", f"98 % 5 µs, 2 % sleep 20 ms, {RATE}/s"
REQUESTS, MIGRATIONS = "maitred_requests_total", "maitred_migrations_total"
#: What two groups may cost before one is better here, CPU and p99.9: on two cores, where the server chooses one, they may well.
LIMIT_CPU, LIMIT_TAIL = 1.05, 1.5
#: Gate: migrations per request.
GATE_MIGRATIONS = 0.01


def run(options: rounds.Options, folder: Path, report: Report) -> None:
    rounds.need("taskset")
    workbench.build()
    contenders = [workbench.native(name, ("--poll-groups", count, *TEN, *metrics.WORDS), pinned=False)
                  for name, count in ((ONE, "1"), (TWO, "2"))]
    if not servers.offers(contenders[0].program, "--poll-groups"):
        raise rounds.Missing("this build has no --poll-groups")
    report.text(
        "A native handler with 10 threads in one poll group, and with 5 in each of two, on the same cores and not "
        "pinned, in turn. A Poisson schedule has latency from the scheduled time, of the fast requests only. Every "
        "figure is the median of the rounds, percentiles too. A migration is a request that was run by a thread of the "
        f"other group, as the server counts them, over all requests of the rounds. {rounds.INTERVAL_NOTE}")
    chosen, skipped = rounds.present(options, contenders)
    report.text(*skipped)
    mixed = traffic.mixed(traffic.bare("/cpu/5", HELLO), traffic.bare("/sleep/20", HELLO), share=0.02)
    workloads = [Workload(CLOSED, [traffic.bare("/", HELLO)]), Workload(MIX, mixed, Schedule(RATE))]
    table: Table = {}
    migrations: dict[tuple[str, str], float] = {}
    with compare.running(chosen, ONE, folder, report) as up:
        for workload in workloads:
            before = _counts(up)
            table |= measure(options, up, ONE, [workload], PAIRS, 1, folder, report)[0]
            for name, (requests, moved) in _counts(up).items():
                earlier, earlier_moved = before[name]
                migrations[workload.name, name] = (moved - earlier_moved) / max(1, requests - earlier)
    _write(report, table, migrations)


def _counts(up: Sequence[servers.Server]) -> dict[str, tuple[float, float]]:
    """Requests and migrations so far, by server."""
    counts = {}
    for server in up:
        values = {sample.name: sample.value for sample in metrics.read(server.port)}
        counts[server.name] = values[REQUESTS], values[MIGRATIONS]
    return counts


def _write(report: Report, table: Table, migrations: dict[tuple[str, str], float]) -> None:
    rows, gates = [], []
    for (workload, name), series in table.items():
        of = figures.spread(series.cpu)
        rows.append([workload, name, f"{series.median('rate'):,.0f}", f"{of.median:.3f} [{of.lower:.3f}, {of.upper:.3f}]",
                     *(f"{series.at(share):.2f}" for share in (0.5, 0.99, 0.999)), f"{series.median('voluntary'):.3f}",
                     f"{migrations[workload, name]:.6f}", f"{100 * series.median('finished'):.0f} %"])
    report.table(["workload", "server", "requests/s", "CPU-s per 100,000", "p50 ms", "p99 ms", "p99.9 ms",
                  "wake-ups/request", "migrations/request", "answered"], rows)
    for workload in dict.fromkeys(workload for workload, _ in table):
        one, two = table.get((workload, ONE)), table.get((workload, TWO))
        if one and two:
            gates.append(rounds.verdict(f"For comparison, {workload}: CPU of {TWO} to {ONE}",
                                        figures.ratios(two.cpu, one.cpu).median, LIMIT_CPU))
            gates.append(rounds.verdict(f"For comparison, {workload}: p99.9 of {TWO} to {ONE}", two.at(0.999) / one.at(0.999),
                                        LIMIT_TAIL))
            gates.append(rounds.verdict(f"Gate, {workload}: migrations per request of {TWO}",
                                        migrations[workload, TWO], GATE_MIGRATIONS))
    report.text("## Gates", "", *gates)
    groups = [("CPU-s per 100,000, closed loop", bars(table, CLOSED)), ("p99.9 in ms, mix", bars(table, MIX, 0.999))]
    report.chart(chart.bars("Poll groups", "", [group for group in groups if group[1]]))
