"""The strategies beside each other: what a request costs, how often threads are woken, who waits for sleepers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchlib import chart, compare, figures, peers, rounds, servers, traffic, workbench
from benchlib.report import Report
from benchlib.series import Schedule, Table, Workload, bars, measure

TITLE = "Strategies: adaptive, pc, pec, epc, and one loop per core"
HELLO = workbench.HELLO
STRATEGIES = ("adaptive", "pc", "pec", "epc")
ADAPTIVE = STRATEGIES[0]
#: The bounds: loops that do nothing but the work; the engine with a single thread.
LOOPS, ONE = "one loop per core", "1 thread"
#: Threads of every strategy, from the start: when more are made is another question.
TEN = ("--min-threads", "10", "--max-threads", "10")
#: µs of CPU.
CLOSED = (0, 20, 200)
PAIRS = 5
#: A request at a time: who is woken for it.
PACED, PACED_RATE = "5 µs", 4000
#: Fast requests among sleepers, and requests per second: of the second by language, and it is longer where they are few,
#: for its p99.9.
FIRST = ("98 % 5 µs, 2 % sleep 20 ms", 4000)
SECOND = "99 % fast, 1 % sleep 50 ms"
SECOND_RATES = {workbench.NATIVE: 4000, workbench.WSGI: 400}
SLOW_RATE_S = 12.0
#: Requests of each mix: ten of them are slower than the p99.9; and where they are few.
LEAST, LEAST_SLOW_RATE = 10_000, 2000
#: Gates. CPU of adaptive to the bound's, without work and with.
GATE_CPU, GATE_CPU_AT_WORK = 1.2, 1.05
#: p99.9 of adaptive to the best; of one loop per core to adaptive.
GATE_TAIL, GATE_AHEAD = 1.5, 5.0
#: Wake-ups per request beyond those of one thread, on a schedule without sleepers: "about one", and "far below".
GATE_WOKEN, GATE_NOT_WOKEN = 0.8, 0.2


@dataclass(frozen=True)
class Language:
    """A handler in one language, and the bound its strategies are held against."""

    name: str
    bound: str
    environment: peers.Environment | None

    def contenders(self, pinned: bool, lines: list[str]) -> list[servers.Contender]:
        """Those this build has, and a line for those it has not."""
        def one(name: str, *words: str) -> servers.Contender:
            return workbench.contender(self.environment, name, words, pinned)

        several = [one(name, "--strategy", name, *TEN) for name in STRATEGIES]
        if not servers.offers(several[0].program, "--strategy"):
            workbench.left_out(lines, f"{', '.join(STRATEGIES[1:])} (this build has no --strategy)")
            several = [one(ADAPTIVE, *TEN)]
        loops = [] if self.environment else [workbench.loops(LOOPS, pinned)]
        return [*several, *loops, one(ONE, "--max-threads", "1")]

    def closed(self) -> list[Workload]:
        paths = {micros: f"/cpu/{micros}" if micros else "/" for micros in CLOSED}
        return [Workload(f"{micros} µs", [traffic.bare(path, HELLO)]) for micros, path in paths.items()]

    def paced(self) -> list[Workload]:
        def mix(fast: str, slow: str, share: float) -> list[traffic.Request]:
            return traffic.mixed(traffic.bare(fast, HELLO), traffic.bare(slow, HELLO), share=share)

        rate = SECOND_RATES[self.name]
        first = Schedule(FIRST[1], least=LEAST)
        second = Schedule(rate, least=LEAST) if rate > 1000 else Schedule(rate, SLOW_RATE_S, least=LEAST_SLOW_RATE)
        return [Workload(f"{PACED}, {PACED_RATE}/s", [traffic.bare("/cpu/5", HELLO)], Schedule(PACED_RATE)),
                Workload(f"{FIRST[0]}, {FIRST[1]}/s", mix("/cpu/5", "/sleep/20", 0.02), first),
                Workload(f"{SECOND}, {rate}/s", mix("/", "/sleep/50", 0.01), second)]


def run(options: rounds.Options, folder: Path, report: Report) -> None:
    rounds.need("taskset")
    workbench.build()
    lines: list[str] = []
    languages = [Language(name, ONE if environment else LOOPS, environment)
                 for name, environment in workbench.languages(options, lines).items()]
    report.text(*_method(languages))
    report.text(*lines)
    gates: list[str] = []
    groups = []
    for language in languages:
        closed = _measure(options, language, language.closed(), True, folder, report)
        paced = _measure(options, language, language.paced(), False, folder, report)
        gates += [*_wakes(language, paced), *_costs(language, closed), *_tails(language, paced)]
        groups += [(f"{language.name}, {each.name}: CPU-s per 100,000", bars(closed, each.name))
                   for each in language.closed()]
        alone, *mixes = (each.name for each in language.paced())
        groups.append((f"{language.name}, {alone}: wake-ups per request", bars(paced, alone, "voluntary")))
        groups += [(f"{language.name}, {name}: p99.9 in ms", bars(paced, name, 0.999)) for name in mixes]
    report.text("## Gates", "", *gates)
    report.chart(chart.bars("Strategies", "", [group for group in groups if group[1]]))


def _method(languages: Sequence[Language]) -> list[str]:
    environments = [each.environment.description for each in languages if each.environment]
    spins = [f"{workbench.spins(each.environment)['BENCH_SPINS']} turns of a loop for 50 µs in Python"
             for each in languages if each.environment]
    return [
        f"maitred with 10 threads and each strategy (pc takes one), and with one thread (\"{ONE}\"); \"{LOOPS}\" is "
        "`bench/epollloop`, which does the same work but parses nothing, with an epoll descriptor and a listener for "
        f"each loop. {'; '.join([*environments, *spins])}; {workbench.turns()['BENCH_TURNS']} turns for a millisecond "
        "in Rust. Work is counted in turns: a thread that loses the core in the middle still has "
        "the rest before it.", "",
        f"Closed loops: {compare.CONNECTIONS} busy connections, the server on one core. Schedules: Poisson, the server "
        "on both cores, the load on one of them, latency from the scheduled time, of the fast requests only. Every "
        "figure is the median of the rounds, percentiles too. Wake-ups are voluntary context switches of all threads "
        "of the server: a thread that goes to sleep is woken once. In a saturated closed loop nobody goes to sleep: "
        "whom a strategy wakes shows on the schedule without sleepers, where one of the wake-ups is the wait for the "
        "request. The backup poller, which looks at the clock now and then, is among them; involuntary switches are not. "
        f"{rounds.INTERVAL_NOTE}"]


def _measure(options: rounds.Options, language: Language, workloads: Sequence[Workload], pinned: bool, folder: Path,
             report: Report) -> Table:
    lines: list[str] = []
    chosen, skipped = rounds.present(options, language.contenders(pinned, lines))
    report.text(f"## {language.name}, server on {'one core' if pinned else 'both cores'}")
    report.text(*lines, *skipped)
    with compare.running(chosen, ADAPTIVE, folder, report) as up:
        table, others = measure(options, up, ADAPTIVE, workloads, PAIRS, 1, folder, report)
    rows = []
    for (workload, name), series in table.items():
        of = figures.spread(series.cpu)
        ratio = rounds.against({other: each.cpu for (same, other), each in table.items() if same == workload}, name,
                               language.bound)
        rows.append([workload, name, f"{series.median('rate'):,.0f}",
                     f"{of.median:.3f} [{of.lower:.3f}, {of.upper:.3f}]", ratio,
                     f"{series.median('voluntary'):.3f}", f"{series.median('involuntary'):.3f}",
                     *(f"{series.at(share):.2f}" for share in (0.5, 0.99, 0.999)),
                     f"{100 * series.median('finished'):.0f} %"])
    report.table(["workload", "strategy", "requests/s", "CPU-s per 100,000", f"to {language.bound}", "wake-ups/request",
                  "involuntary/request", "p50 ms", "p99 ms", "p99.9 ms", "answered"], rows)
    if pinned:
        report.text(rounds.others_text(others))
    return table


def _wakes(language: Language, table: Table) -> list[str]:
    """How often a further thread is woken for a request says which strategy it is."""
    lines = []
    workload = language.paced()[0].name
    one = table.get((workload, ONE))
    for name, least in (("pec", True), ("epc", True), ("pc", False), (ADAPTIVE, False)):
        series = table.get((workload, name))
        if one and series:
            beyond = figures.spread([a - b for a, b in zip(series.voluntary, one.voluntary, strict=True)]).median
            words = f"Gate, {language.name}, {workload}: wake-ups per request of {name} beyond those of {ONE}"
            lines.append(rounds.verdict(words, beyond, GATE_WOKEN if least else GATE_NOT_WOKEN, least))
    return lines


def _costs(language: Language, table: Table) -> list[str]:
    lines = []
    bounds = [language.bound] + [ONE] * (language.bound != ONE)
    for bound in bounds:
        for workload in dict.fromkeys(workload for workload, _ in table):
            ours, theirs = table.get((workload, ADAPTIVE)), table.get((workload, bound))
            if ours and theirs:
                words = "Gate" if bound == language.bound else "For comparison, the same engine"
                limit = GATE_CPU if workload == f"{CLOSED[0]} µs" else GATE_CPU_AT_WORK
                lines.append(rounds.verdict(f"{words}, {language.name}, {workload}: CPU of {ADAPTIVE} to {bound}",
                                            figures.ratios(ours.cpu, theirs.cpu).median, limit))
    return lines


def _tails(language: Language, table: Table) -> list[str]:
    lines = []
    for workload in (each.name for each in language.paced()[1:]):
        tails = {name: series.at(0.999) for (other, name), series in table.items() if other == workload}
        if ADAPTIVE not in tails:
            continue
        ours = tails[ADAPTIVE]
        best = min(tails, key=tails.__getitem__)
        lines.append(rounds.verdict(f"Gate, {language.name}, {workload}: p99.9 of {ADAPTIVE} to the best ({best})",
                                    ours / tails[best], GATE_TAIL))
        if language.bound in tails:
            lines.append(rounds.verdict(f"Gate, {language.name}, {workload}: p99.9 of {language.bound} to {ADAPTIVE}",
                                        tails[language.bound] / ours, GATE_AHEAD, least=True))
    return lines
