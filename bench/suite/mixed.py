"""Equal threads, fast requests among slow ones: at a fresh server, at one that knows its routes, beside burners and bursts; and the
same at ours after another load, from which it may have learnt what is of no use now."""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchlib import (chart, compare, figures, load, machine, metrics, peers, python_servers, rounds, servers, traffic,
                      work)
from benchlib.report import Report, say
from benchlib.series import Schedule, Series, Table, Workload, bars, on_schedule

TITLE = "Mixed load: fast requests among slow ones, equal threads"
APPLICATION, HELLO, OURS = work.APPLICATION, work.HELLO, python_servers.OURS
THREADS = (4, 10)
FAST, SLOW = traffic.bare("/", HELLO), traffic.bare("/sleep/50", HELLO)
#: Requests a second, in the mixes and beside the bursts.
RATE, BURST_RATE = 400, 200
#: From the first request of a fresh server; after five seconds in which it may have learnt what is slow.
FRESH = Workload(f"10 % sleep 50 ms, {RATE}/s, from the start", traffic.mixed(FAST, SLOW), Schedule(RATE, warm_up=0))
LEARNT = Workload(f"10 % sleep 50 ms, {RATE}/s, warm", traffic.mixed(FAST, SLOW), Schedule(RATE, warm_up=5 / 6))
BURST = Workload(f"30 slow at once every second, {BURST_RATE}/s fast", [FAST], Schedule(BURST_RATE))
#: A tenth of them: twenty a second, each with 20 ms of Python.
BURN_RATE = 200
BURNERS = Workload(f"20 burners of 20 ms a second, {BURN_RATE - 20}/s fast",
                   traffic.mixed(FAST, traffic.bare("/burn", HELLO)), Schedule(BURN_RATE))
#: One burst, and how far apart they are: longer than four threads need for thirty times 50 ms.
BURST_SIZE, BURST_EVERY_S = 30, 1.0
#: Into the measured time, so that the first burst is not missed.
BURST_LEAD_S = 0.1


@dataclass(frozen=True)
class Form:
    """Where servers and load run, what is measured there, and beside whom."""

    title: str
    pinned: bool
    workloads: tuple[Workload, ...]
    pairs: int
    #: Peers' names begin with one of these.
    peers: tuple[str, ...] = ("",)


#: As users run it.
USERS = Form("both cores, as users run it", False, (LEARNT, BURNERS, BURST), 3, ("gunicorn", "granian"))
PINNED = Form("one core", True, (FRESH, LEARNT, BURST), 5)
#: In the form that users run, with as many threads: fast p50 and p99, and slow p99, to this peer's.
BESIDE, GATE_FAST, GATE_SLOW = "granian", 1.0, 1.25
#: Fast p99 in milliseconds, by workload; the first two with four threads.
GATE_MS = {FRESH.name: 1.0, LEARNT.name: 1.0, BURNERS.name: 6.0, BURST.name: 5.0}
#: The longest a request may wait while a thread is idle and the interpreter free, µs: the monitor's sample.
AUDIT_US = 1000.0

#: Loads that come first, of routes that the measured ones have not; they leave threads free. None: a fresh server.
BEFORE_S, SMOKE_BEFORE_S = 20.0, 0.5
BEFORE: tuple[tuple[str, Workload | None], ...] = (
    ("a fresh server", None),
    ("after pages that wait 100 ms, 20/s", Workload("waits", [traffic.bare("/report", HELLO)], Schedule(20))),
    ("after pages that compute 10 ms, 40/s", Workload("computes", [traffic.bare("/cpu/10000", HELLO)], Schedule(40))),
    ("after short pages, hashes and ten short waits, 200/s", Workload("short", traffic.blend([
        (traffic.bare("/stat", HELLO), 0.5), (traffic.bare("/hash", HELLO), 0.25), (traffic.bare("/waits10", HELLO), 0.25)]), Schedule(200))),
)
#: What is measured then, from its first request.
AFTER = (FRESH, Workload(BURNERS.name, BURNERS.requests, Schedule(BURN_RATE, warm_up=0)),
         Workload(BURST.name, BURST.requests, Schedule(BURST_RATE, warm_up=0)))
AFTER_PAIRS = 3


@dataclass
class Audit:
    """What our servers say of requests that waited although a thread was idle: sums of the rounds, and the longest."""

    figures: dict[tuple[str, str], float] = field(default_factory=dict)

    def add(self, server: str, samples: Sequence[metrics.Sample]) -> None:
        for sample in samples:
            key = (server, sample.text)
            join = max if "longest" in sample.name else sum
            self.figures[key] = join((self.figures.get(key, 0.0), sample.value))

    def lines(self) -> list[str]:
        return [f"- {server}: {name} {value:g}" for (server, name), value in self.figures.items()]

    def gates(self) -> list[str]:
        lines = []
        for (server, name), value in self.figures.items():
            if "longest" in name:
                lines.append(rounds.verdict(f"Gate, {server}: {name}", value, AUDIT_US))
        return lines


def run(options: rounds.Options, folder: Path, report: Report) -> None:
    rounds.need("taskset")
    servers.cargo_build("openloop")
    environment = peers.environment(options)
    assert LEARNT.schedule is not None
    _, warm_up = LEARNT.schedule.lengths(options)
    report.text(
        f"{environment.description}; {peers.versions(environment, python_servers.PACKAGES)}.", "",
        "Every server has the same number of threads for the application. In the form that users run, servers and load share "
        "both cores; in the other the server has one and the load the other. Poisson "
        f"schedules over {compare.CONNECTIONS} connections; latency from the scheduled time, of the fast requests "
        "only; of the slow ones of a burst, from its begin. Slow ones have a path of their own. Every round starts every "
        f"server anew. \"Warm\" is measured after {warm_up:.1f} s of the same, \"from the start\" from the first request; "
        f"bursts come over connections of their own. In the last part each measurement has a fresh server of ours, which has had "
        f"another load for {_before(options):.0f} s or none, and begins with its first request. {rounds.INTERVAL_NOTE}")
    gates: list[str] = []
    groups = []
    for form in (USERS,) if options.unpinned else (USERS, PINNED):
        for threads in THREADS[:1] if options.smoke else THREADS:
            table, audit = _measure(options, environment, form, threads, folder, report)
            _write(report, table)
            report.text(*audit.lines())
            decided = _gates(table, threads) if form.pinned else _users_gates(table, threads)
            gates += [line.replace("- ", f"- {form.title}: ", 1) for line in [*decided, *audit.gates()]]
            groups += [(f"{_count(threads)}, {form.title}; {workload.name}: fast p99 in ms", bars(table, workload.name, 0.99))
                       for workload in form.workloads]
    for threads in THREADS[:1] if options.smoke else THREADS:
        table = _after(options, environment, threads, folder, report)
        gates += [line.replace("- ", f"- {USERS.title}: ", 1) for line in _limits(table, threads)]
        groups += [(f"{_count(threads)}: fast p99 in ms of {workload.name}, by what was before", bars(table, workload.name, 0.99))
                   for workload in AFTER]
    report.text("## Gates", "", *gates)
    report.chart(chart.bars(TITLE, "", [group for group in groups if group[1]]))


def _count(threads: int) -> str:
    return f"{threads} threads"


def _measure(options: rounds.Options, environment: peers.Environment, form: Form, threads: int, folder: Path,
             report: Report) -> tuple[Table, Audit]:
    ours = f"{OURS}, {_count(threads)}"
    chosen, skipped = rounds.present(options, _contenders(environment, form, threads))
    report.text(f"## {form.title[0].upper()}{form.title[1:]}: {_count(threads)}")
    report.text(*skipped)
    watched = servers.offers(work.ours(environment, ours).program, metrics.OPTION)
    table: Table = {}
    audit = Audit()
    failed: set[tuple[str, str]] = set()
    for number in range(options.rounds(form.pairs, smoke=1)):
        with compare.running(chosen, ours, folder, report) as up:
            for workload in form.workloads:
                say(f"mixed, {form.title}, {_count(threads)}, {workload.name}: round {number + 1}")
                requests = traffic.write(folder / "requests", workload.requests)
                for server in up:
                    if (workload.name, server.name) in failed:
                        continue
                    series = table.setdefault((workload.name, server.name), Series())
                    try:
                        # Only a fast one is tried: a fresh server knows of no slow route yet.
                        traffic.settle(server.name, server.port, [FAST])
                        _round(options, server, workload, requests, number, series, folder)
                    except load.WrongAnswer as error:
                        if server.name == ours:
                            raise
                        failed.add((workload.name, server.name))
                        del table[workload.name, server.name]
                        say(f"left out: {error}")
                        report.text(f"left out of {workload.name}: {error}")
            if watched:
                for server in up:
                    if server.name.startswith(OURS):
                        audit.add(server.name, metrics.named(metrics.read(server.port), metrics.AUDIT))
    return table, audit


def _before(options: rounds.Options) -> float:
    """Seconds of another load."""
    return options.before or (SMOKE_BEFORE_S if options.smoke else BEFORE_S)


def _after(options: rounds.Options, environment: peers.Environment, threads: int, folder: Path, report: Report) -> Table:
    """Ours after each of the other loads, in the place of servers."""
    name = f"{OURS}, {_count(threads)}"
    if options.only and name not in options.only:
        return {}
    ours = work.ours(environment, name, ["--max-threads", str(threads)], pinned=False)
    table: Table = {}
    before = dataclasses.replace(options, smoke=False, seconds=_before(options))
    for number in range(options.rounds(AFTER_PAIRS, smoke=1)):
        for title, other in BEFORE:
            for workload in AFTER:
                say(f"mixed, {_count(threads)}, {workload.name}, {title}: round {number + 1}")
                with compare.running([ours], name, folder, report) as (server,):
                    traffic.settle(server.name, server.port, [FAST])
                    if other:
                        assert other.schedule is not None
                        requests = traffic.write(folder / "before", other.requests)
                        alone = dataclasses.replace(other.schedule, warm_up=0)
                        on_schedule(before, alone, server, requests, number, Series(), folder, pinned=False)
                    requests = traffic.write(folder / "requests", workload.requests)
                    _round(options, server, workload, requests, number, table.setdefault((workload.name, title), Series()), folder)
    report.text(f"## After another load: {_count(threads)}")
    _write(report, table, "before")
    return table


def _limits(table: Table, threads: int) -> list[str]:
    """The gates in milliseconds, whatever was before."""
    return [rounds.verdict(f"Gate, {_count(threads)}, {workload}, {title}: fast p99 in ms", series.at(0.99), GATE_MS[workload])
            for (workload, title), series in table.items() if _has_gate(workload, threads)]


def _has_gate(workload: str, threads: int) -> bool:
    return threads == THREADS[0] or workload not in (FRESH.name, LEARNT.name)


def _contenders(environment: peers.Environment, form: Form, threads: int) -> list[servers.Contender]:
    *others, _ = python_servers.wsgi(environment, APPLICATION, threads, work.spins(environment), form.pinned)
    words = ["--max-threads", str(threads)]
    name = f"{OURS}, {_count(threads)}"
    if servers.offers(work.ours(environment, name).program, metrics.OPTION):
        words += metrics.WORDS
    mine = work.ours(environment, name, words, form.pinned)
    return [*(each for each in others if each.name.startswith(form.peers)), mine]


def _round(options: rounds.Options, server: servers.Server, workload: Workload, requests: Path, seed: int,
           series: Series, folder: Path) -> None:
    assert workload.schedule is not None
    if workload.name != BURST.name:
        on_schedule(options, workload.schedule, server, requests, seed, series, folder, pinned=server.pinned)
        return
    seconds, warm_up = workload.schedule.lengths(options)
    ended = threading.Event()
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        bursts = pool.submit(_bursts, server, warm_up + BURST_LEAD_S, seconds, ended)
        try:
            on_schedule(options, workload.schedule, server, requests, seed, series, folder, pinned=server.pinned)
        finally:
            ended.set()
        slow = bursts.result()
        if not slow:
            raise load.WrongAnswer(f"{server.name}: no burst was answered in time")
        series.beside += [1e3 * each for each in slow]


def _bursts(server: servers.Server, first: float, seconds: float, ended: threading.Event) -> list[float]:
    """Bursts from `first` on until `seconds` later; how long each of their requests took, in seconds."""
    start = time.monotonic() + first
    fired, times = 0, []
    with machine.on_core(machine.cores()[1]) if server.pinned else contextlib.nullcontext():
        while fired * BURST_EVERY_S < seconds - BURST_LEAD_S:
            if ended.wait(max(0.0, start + fired * BURST_EVERY_S - time.monotonic())):
                break
            times += traffic.burst(server.name, server.port, SLOW, BURST_SIZE)
            fired += 1
    return times


def _write(report: Report, table: Table, whose: str = "server") -> None:
    rows = []
    for (workload, name), series in table.items():
        cells = []
        for share in (0.5, 0.99):
            of = figures.spread(series.percentiles[share])
            cells.append(f"{of.median:.2f} [{of.lower:.2f}, {of.upper:.2f}]")
        rows.append([workload, name, *cells, f"{series.at(0.999):.2f}",
                     f"{_slow_p99(series):.1f}" if series.beside else "–", f"{series.median('cpu'):.2f}",
                     f"{100 * series.median('finished'):.0f} %"])
    report.table(["workload", whose, "fast p50 ms", "fast p99 ms", "fast p99.9 ms", "slow p99 ms", "CPU-s per 100,000",
                  "answered"], rows)


def _slow_p99(series: Series) -> float:
    return figures.percentile(sorted(series.beside), 0.99)


def _users_gates(table: Table, threads: int) -> list[str]:
    lines = []
    for workload in USERS.workloads:
        ours = table.get((workload.name, f"{OURS}, {_count(threads)}"))
        theirs = table.get((workload.name, f"{BESIDE}, {_count(threads)}"))
        if ours is None or theirs is None:
            continue
        what = f"Gate, {_count(threads)}, {workload.name}"
        if _has_gate(workload.name, threads):
            lines.append(rounds.verdict(f"{what}: fast p99 in ms", ours.at(0.99), GATE_MS[workload.name]))
        shares = (0.5, 0.99) if workload is LEARNT else (0.99,)
        lines += [rounds.verdict(f"{what}: fast p{100 * share:.0f} to {BESIDE}'s", ours.at(share) / theirs.at(share), GATE_FAST)
                  for share in shares]
        if workload is BURST:
            lines.append(rounds.verdict(f"{what}: slow p99 to {BESIDE}'s", _slow_p99(ours) / _slow_p99(theirs), GATE_SLOW))
    return lines


def _gates(table: Table, threads: int) -> list[str]:
    ours = f"{OURS}, {_count(threads)}"
    lines = []
    for workload in PINNED.workloads:
        tails = {name: series.at(0.99) for (other, name), series in table.items() if other == workload.name}
        if ours not in tails:
            continue
        mine = tails.pop(ours)
        what = f"{_count(threads)}, {workload.name}: fast p99"
        if tails:
            best = min(tails, key=tails.__getitem__)
            lines.append(rounds.verdict(f"Gate, {what} to the best peer's ({best})", mine / tails[best], 1.0))
        if _has_gate(workload.name, threads):
            lines.append(rounds.verdict(f"Gate, {what} in ms", mine, GATE_MS[workload.name]))
    return lines
