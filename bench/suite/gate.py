"""The interpreter gate: what ten watched threads cost beside one, and what they save when requests block."""

from __future__ import annotations

import heapq
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchlib import chart, compare, figures, load, machine, peers, python_servers, rounds, servers, traffic
from benchlib.report import Report, say

TITLE = "The interpreter gate: one thread, ten watched, ten without a gate"
APPLICATION = "gate_wsgi:application"
HELLO = b"Hello, world!"
BODY = bytes(range(256)) * 40
INLINE, WATCHED, FREE = "1 thread", "10 threads, watched", "10 threads, no gate"
#: In a closed loop, 64 connections.
CLOSED = (
    ("hello", [traffic.bare("/", HELLO)]),
    ("10 KiB echo", [traffic.bare("/echo", BODY, BODY)]),
    ("50 µs of Python", [traffic.bare("/python", HELLO)]),
    ("three os.stat", [traffic.bare("/stat", HELLO)]),
)
#: On a schedule: what, requests, requests per second.
SLEEPING = "10 % sleep 50 ms"
OPEN = (
    (SLEEPING, traffic.mixed(traffic.bare("/", HELLO), traffic.bare("/sleep", HELLO)), 400),
    ("10 % burn 20 ms", traffic.mixed(traffic.bare("/", HELLO), traffic.bare("/burn", HELLO)), 200),
)
PAIRS = 9
OPEN_S, SMOKE_OPEN_S = 6.0, 0.5
#: Gates: CPU of the watched threads to that of one thread in the closed loops; p99 in milliseconds, pinned.
GATE_CPU, GATE_P99_MS = 1.08, 2.0
GATE_P99_OF = ("hello", "10 KiB echo", SLEEPING)


@dataclass
class Series:
    """All rounds of one scheme with one workload; latencies in milliseconds."""

    cpu: list[float] = field(default_factory=list)
    rate: list[float] = field(default_factory=list)
    p50: list[float] = field(default_factory=list)
    p99: list[float] = field(default_factory=list)
    p999: list[float] = field(default_factory=list)
    switches: list[float] = field(default_factory=list)
    #: Share of the schedule that was answered.
    finished: list[float] = field(default_factory=list)
    #: Of a schedule: every latency of a fast request, sorted, by round.
    latencies: list[list[float]] = field(default_factory=list)

    def at(self, share: float) -> float:
        """A percentile: of all rounds together if they are kept, else the median of the rounds'."""
        if self.latencies:
            return figures.percentile(list(heapq.merge(*self.latencies)) or [float("inf")], share) / 1e3
        return figures.spread({0.5: self.p50, 0.99: self.p99, 0.999: self.p999}[share]).median


#: By workload and scheme.
Table = dict[tuple[str, str], Series]


def run(options: rounds.Options, folder: Path, report: Report) -> None:
    rounds.need("taskset")
    servers.cargo_build("openloop")
    environment = peers.environment(options)
    spins = subprocess.run([str(environment.program("python")), str(python_servers.folder_of(APPLICATION))],
                           capture_output=True, text=True, timeout=60, check=True).stdout.strip()
    report.text(
        f"{environment.description}; maitred with `--max-threads 1`, with its default of 10, and with 10 and "
        "`MAITRED_BENCH_NO_GATE=1`, where threads contend for the interpreter as the kernel has them.", "",
        f"Closed loops: {compare.CONNECTIONS} busy connections. Schedules: Poisson, {OPEN[0][2]} and {OPEN[1][2]} "
        "requests/s, latency from the scheduled time, of the fast requests only, over all rounds together. One server "
        f"has {spins} turns of a loop for 50 µs. Context switches are those of all threads of the server. "
        f"{rounds.INTERVAL_NOTE}")
    gates: list[str] = []
    groups = []
    for pinned, name in ((True, "one core"), (False, "both cores")):
        contenders = _contenders(environment, spins, pinned)
        chosen, skipped = rounds.present(options, contenders)
        report.text(f"## Server on {name}{'' if pinned else ', the load on one of them'}")
        if skipped:
            report.text(*skipped)
        with compare.running(chosen, WATCHED, folder, report) as up:
            table, shares = _measure(options, up, folder, report)
        _write(report, table, pinned, shares)
        gates += _gates(table, name, pinned)
        groups += [(f"{workload}, {name}", _bars(table, workload)) for workload, _ in CLOSED]
    report.text("## Gates", "", *gates)
    report.chart(chart.bars("CPU of the schemes", "CPU-seconds per 100,000 requests", groups))


def _contenders(environment: peers.Environment, spins: str, pinned: bool) -> list[servers.Contender]:
    def one(name: str, threads: int | None = None, **more: str) -> servers.Contender:
        return python_servers.ours(environment, APPLICATION, "wsgi", name, threads,
                                   variables={"BENCH_SPINS": spins, **more}, pinned=pinned)

    return [one(INLINE, 1), one(WATCHED), one(FREE, MAITRED_BENCH_NO_GATE="1")]


def _measure(options: rounds.Options, up: Sequence[servers.Server], folder: Path,
             report: Report) -> tuple[Table, list[float]]:
    table: Table = {}
    shares: list[float] = []
    for name, requests, *rate in (*CLOSED, *OPEN):
        right, file = compare.settled(up, WATCHED, compare.Workload(name, requests), folder, report)
        for number in range(options.rounds(PAIRS, smoke=1)):
            say(f"gate, {name}: round {number + 1}")
            for server in right:
                series = table.setdefault((name, server.name), Series())
                meter, switches = rounds.Meter(server), _Switches(server)
                if rate:
                    _on_schedule(options, server, file, rate[0], number, meter, switches, series, folder)
                else:
                    _in_closed_loop(options, server, file, meter, switches, series)
                shares.append(meter.others)
    return table, shares


class _Switches:
    """Context switches of a server between `start` and `stop`."""

    def __init__(self, server: servers.Server) -> None:
        self._pid = server.pid
        self.count = 0

    def start(self) -> None:
        self.count = -machine.context_switches(self._pid)

    def stop(self) -> None:
        self.count += machine.context_switches(self._pid)


def _in_closed_loop(options: rounds.Options, server: servers.Server, file: Path, meter: rounds.Meter,
                    switches: _Switches, series: Series) -> None:
    seconds = options.duration(compare.SECONDS, compare.SMOKE_SECONDS)

    def start() -> None:
        switches.start()
        meter.start()

    def stop() -> None:
        meter.stop()
        switches.stop()

    closed = load.busy(server.port, load.listed(file), compare.CONNECTIONS, 1, seconds, seconds / 4,
                       {"measuring": start, "measured": stop})
    if closed.failed or not closed.requests:
        raise load.WrongAnswer(f"{server.name}: {closed.failed} failed requests, {closed.requests} right ones")
    series.cpu.append(meter.cpu_ns / closed.requests / 1e4)
    series.rate.append(closed.rate)
    series.p50.append(closed.p50 / 1e3)
    series.p99.append(closed.p99 / 1e3)
    series.p999.append(closed.p999 / 1e3)
    series.switches.append(switches.count / closed.requests)
    series.finished.append(1.0)


def _on_schedule(options: rounds.Options, server: servers.Server, file: Path, rate: float, number: int,
                 meter: rounds.Meter, switches: _Switches, series: Series, folder: Path) -> None:
    seconds = options.duration(OPEN_S, SMOKE_OPEN_S)
    warm_up = seconds / 6
    switches.start()
    meter.start()
    outcome = load.openloop(server.port, load.listed(file), rate, seconds, warm_up, compare.CONNECTIONS, folder,
                            poisson=number)
    meter.stop()
    switches.stop()
    if outcome.wrong or outcome.broken or not outcome.answered:
        raise load.WrongAnswer(f"{server.name}: {outcome.wrong} wrong answers, {outcome.broken} connections broke, "
                               f"{outcome.answered} right answers")
    answered = outcome.answered + int(rate * warm_up)
    series.cpu.append(meter.cpu_ns / answered / 1e4)
    series.rate.append(rate)
    series.switches.append(switches.count / answered)
    series.finished.append(outcome.answered / outcome.scheduled)
    series.latencies.append(outcome.latencies)


def _write(report: Report, table: Table, pinned: bool, shares: Sequence[float]) -> None:
    rows = []
    for (workload, scheme), series in table.items():
        of = figures.spread(series.cpu)
        ratio = "–"
        if scheme != INLINE and (workload, INLINE) in table:
            ratio = rounds.ratio_text(figures.ratios(series.cpu, table[workload, INLINE].cpu))
        finished = figures.spread(series.finished).median
        rows.append([workload, scheme, f"{of.median:.3f} [{of.lower:.3f}, {of.upper:.3f}]", ratio,
                     f"{figures.spread(series.rate).median:,.0f}",
                     *(f"{series.at(share):.2f}" for share in (0.5, 0.99, 0.999)),
                     f"{figures.spread(series.switches).median:.3f}", f"{100 * finished:.0f} %"])
    report.table(["workload", "scheme", "CPU-s per 100,000", f"to {INLINE}", "requests/s", "p50 ms", "p99 ms",
                  "p99.9 ms", "switches/request", "answered"], rows)
    if pinned:
        report.text(rounds.others_text(shares))


def _gates(table: Table, where: str, pinned: bool) -> list[str]:
    if (CLOSED[0][0], WATCHED) not in table:
        return []
    lines = []
    ratios = [(figures.ratios(table[workload, WATCHED].cpu, table[workload, INLINE].cpu).median, workload)
              for workload, _ in CLOSED if (workload, INLINE) in table]
    if ratios:
        worst, workload = max(ratios)
        lines.append(rounds.verdict(f"Gate, CPU of {WATCHED} to {INLINE} in every closed loop, {where}; highest "
                                    f"({workload})", worst, GATE_CPU))
    if pinned:
        lines += [rounds.verdict(f"Gate, p99 of {workload} in ms, {where}", table[workload, WATCHED].at(0.99),
                                 GATE_P99_MS) for workload in GATE_P99_OF]
    return lines


def _bars(table: Table, workload: str) -> list[chart.Bar]:
    spreads = {scheme: figures.spread(series.cpu) for (name, scheme), series in table.items() if name == workload}
    return [chart.Bar(scheme, of.median, of.lower, of.upper) for scheme, of in spreads.items()]
