"""Mixed pages: a request waits only when all threads are truly busy.  The default beside our other strategies and the peers, by class."""

from __future__ import annotations

import dataclasses
import math
import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchlib import chart, figures, idleness, load, metrics, mixes, peers, python_servers, rounds, servers, traffic
from benchlib.mixes import MIXES, Mix, Outcome
from benchlib.report import Report, say

TITLE = "Mixed pages: throughput and p99 of each class, equal threads"
#: For the line about the machine.
ONE_CORE = False
OURS = python_servers.OURS
STRATEGIES = ("pc", "pec", "epc")
SECONDS, SMOKE_SECONDS, ROUNDS = 2.0, 0.4, 3
#: As a share of the measured time.
WARM_UP = 0.5
#: What a smoke run is about.
SMOKE_MIXES, SMOKE_SERVERS = ("wait50-compute20", "schedule-wait50-compute5"), (OURS, "granian")
#: Gates: throughput and p99 to the best other server's, and the per cent of time in which a thread idles while a request waits.
SCORE, TAIL, IDLE_PER_CENT = 0.9, 1.5, 1.0
#: Answers that a class counts for at least, so that one without any has a ratio.
LEAST_ANSWERS = 0.5


@dataclass
class Run:
    """All rounds of one server with one mix."""

    classes: dict[str, list[Outcome]] = field(default_factory=dict)
    #: The share of time in which requests waited beside an idle thread, as the server counts it (ours) and as it is seen from outside.
    said: list[float] = field(default_factory=list)
    seen: list[float] = field(default_factory=list)
    #: Seen from outside, whether or not somebody computed.
    held: list[float] = field(default_factory=list)
    #: The share of both cores that went to nothing the bench started.
    others: list[float] = field(default_factory=list)

    def median(self, name: str, figure: str) -> float:
        return figures.spread([getattr(each, figure) for each in self.classes[name]]).median

    def failed(self) -> int:
        return sum(each.wrong + each.broken for outcomes in self.classes.values() for each in outcomes)


#: By server.
Table = dict[str, Run]


def run(options: rounds.Options, folder: Path, report: Report) -> None:
    rounds.need("taskset")
    chosen = _chosen(options)
    servers.cargo_build("openloop")
    environment = peers.environment(options)
    place = _prepared(environment, folder)
    results = []
    left_out: dict[str, None] = {}
    for mix in chosen:
        contenders = _contenders(options, environment, mix, left_out)
        if contenders:
            results.append((mix, _measure(options, mix, contenders, place)))
    if not results:
        raise rounds.Missing("no server can run")
    seconds = options.duration(SECONDS, SMOKE_SECONDS)
    report.text(
        f"{environment.description}; {peers.versions(environment, python_servers.PACKAGES)}.", "",
        "Every server has as many threads for the application as the mix says, in each worker. Servers and load share both cores. Each run "
        f"starts its server anew and measures {seconds:g} s after a warm-up of {seconds * WARM_UP:g} s; servers take turns, {options.rounds(ROUNDS, 1)} "
        "rounds; medians of the rounds. Behind a class are its clients in a closed loop or its requests a second on a Poisson schedule, where latency "
        "counts from the scheduled time. Score: the geometric mean over the classes of throughput to that of the best other server, the one "
        "with the highest geometric mean. A request without an answer at the end counts with its age. \"Idle\" is the share of time in which "
        "a request waited beside an idle thread although nobody computed: as maitred says, and as seen from outside every 2 ms; \"held\" is the "
        "latter whether or not somebody computed.")
    report.text(rounds.others_text([share for _, table in results for run in table.values() for share in run.others], "both cores"))
    report.text(*left_out)
    report.text("## Summary")
    report.table(["mix", "score", "lowest round", "best other", "worst p99, ratio", "idle, said", "idle, seen", "held", "failed"],
                 [_summary(mix, table) for mix, table in results if OURS in table])
    if lines := gates(results):
        report.text("## Gates", "", f"{sum('**met**' in line for line in lines)} of {len(lines)} met.", "", *lines)
    for mix, table in results:
        _write(report, mix, table)
    report.chart(chart.bars(TITLE, "score", [("score of the default", [
        chart.Bar(mix.name, value, value, value) for mix, table in results if (value := score(table, best(table)))])]))
    report.data({"date": report.date, "mixes": {mix.name: {server: dataclasses.asdict(run) for server, run in table.items()}
                                                for mix, table in results}})


def _chosen(options: rounds.Options) -> list[Mix]:
    unknown = set(options.pages) - {mix.name for mix in MIXES}
    if unknown:
        raise rounds.Missing(f"no such mix: {', '.join(sorted(unknown))}; there are " + ", ".join(mix.name for mix in MIXES))
    wanted = options.pages or (SMOKE_MIXES if options.smoke else ())
    return [mix for mix in MIXES if not wanted or mix.name in wanted]


@dataclass(frozen=True)
class Place:
    """Where filled databases are, where a run may work, and what the application is told."""

    databases: Path
    folder: Path
    variables: dict[str, str]


def _prepared(environment: peers.Environment, folder: Path) -> Place:
    databases = folder / "databases"
    databases.mkdir()
    command = [str(environment.program("python")), str(python_servers.folder_of(mixes.APPLICATION))]
    said = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    subprocess.run([*command, "fill"], timeout=60, check=True,
                   env=os.environ | {"BENCH_MIXES_FOLDER": str(databases)})
    return Place(databases, folder, dict(line.split("=") for line in said.splitlines()))


def _contenders(options: rounds.Options, environment: peers.Environment, mix: Mix, left_out: dict[str, None]) -> list[servers.Contender]:
    """Those of this run, by their short names; `left_out` gets a line for each that is not installed."""
    of = python_servers.Wsgi(environment, mixes.APPLICATION, pinned=False)
    ours = of.maitred(mix.threads)
    more = metrics.WORDS if servers.offers(ours.program, metrics.OPTION) else ()
    workers = ("--workers", str(mix.workers)) * (mix.workers > 1)
    found = [_told(ours, OURS, *more, *workers),
             *(_told(ours, f"{OURS} {strategy}", *more, *workers, "--strategy", strategy) for strategy in STRATEGIES),
             _told(of.granian(mix.threads), "granian", *workers), _told(of.gunicorn(mix.threads, mix.workers), "gunicorn")]
    if mix.workers == 1:
        found.append(_told(of.waitress(mix.threads), "waitress"))
    wanted = options.only or (SMOKE_SERVERS if options.smoke else ())
    chosen = [each for each in found if not wanted or each.name in wanted]
    left_out.update(dict.fromkeys(f"skipped: {each.name} ({each.absent()} is not installed)" for each in chosen if each.absent()))
    return [each for each in chosen if not each.absent()]


def _told(contender: servers.Contender, name: str, *words: str) -> servers.Contender:
    before = contender.options["words"]
    assert isinstance(before, list)
    return dataclasses.replace(contender, name=name, options={**contender.options, "words": [*before, *words]})


def _measure(options: rounds.Options, mix: Mix, contenders: Sequence[servers.Contender], place: Place) -> Table:
    table: Table = {}
    for number in range(options.rounds(ROUNDS, smoke=1)):
        say(f"mixes, {mix.name}: round {number + 1}")
        # Each round begins with another, so that nobody always follows the same one.
        cut = number % len(contenders)
        for contender in [*contenders[cut:], *contenders[:cut]]:
            try:
                _round(options, mix, contender, place, number, table)
            except (load.WrongAnswer, servers.CannotStart) as error:
                if contender.name == OURS:
                    raise
                say(f"left out: {error}")
    return table


def _round(options: rounds.Options, mix: Mix, contender: servers.Contender, place: Place, number: int, table: Table) -> None:
    own = place.folder / "run"
    shutil.rmtree(own, ignore_errors=True)
    shutil.copytree(place.databases, own)
    variables = contender.environment | place.variables | {"BENCH_MIXES_FOLDER": str(own)}
    contender = dataclasses.replace(contender, environment=variables)
    seconds = options.duration(SECONDS, SMOKE_SECONDS)
    with servers.running(contender, own, own) as server:
        traffic.settle(server.name, server.port, [traffic.bare(each.path, mixes.HELLO) for each in mix.classes])
        watched = idleness.Place(server.pid, mix.threads * mix.workers, own, own / "outstanding")
        said: list[float] = []
        meter = rounds.Meter(server)
        watches: list[idleness.Watch] = []

        def measuring(process: int) -> None:
            said.append(_idle_seconds(server))
            watches.append(idleness.Watch(watched, process))
            watches[0].start()
            meter.start()

        def measured(_: int) -> None:
            meter.stop()
            watches[0].stop()
            said.append(_idle_seconds(server))

        window = mixes.Window(seconds, seconds * WARM_UP, number)
        outcomes = mixes.play(mix, server.port, window, own / "outstanding", {"measuring": measuring, "measured": measured})
        seen = watches[0].found
        watches[0].close()
        run = table.setdefault(contender.name, Run())
        for name, outcome in outcomes.items():
            run.classes.setdefault(name, []).append(outcome)
        run.seen.append(seen.idle_share)
        run.held.append(seen.held_share)
        run.others.append(meter.others)
        if server.name.startswith(OURS):
            run.said.append((said[1] - said[0]) / seconds)
        say(f"  {contender.name}: " + ", ".join(f"{name} {each.rate:,.0f}/s p99 {each.p99:.1f} ms" for name, each in outcomes.items())
            + f"; idle seen {seen.idle_share:.1%}, held {seen.held_share:.1%}; other work {meter.others:.0%}")


def _idle_seconds(server: servers.Server) -> float:
    """What our server has counted so far; 0 of a peer."""
    if not server.name.startswith(OURS):
        return 0.0
    return sum(sample.value for sample in metrics.named(metrics.read(server.port), metrics.AUDIT) if "seconds_total" in sample.name)


def _ratio(ours: float, theirs: float) -> float:
    """With an answer that is missing, half of one."""
    least = LEAST_ANSWERS / SECONDS
    return max(ours, least) / max(theirs, least)


def mean(run: Run) -> float:
    """The geometric mean of the classes' throughputs."""
    rates = [math.log(_ratio(run.median(name, "rate"), 1.0)) for name in run.classes]
    return math.exp(sum(rates) / len(rates))


def best(table: Table) -> str | None:
    """Of all but the default the server with the highest mean."""
    return max((name for name in table if name != OURS), key=lambda name: mean(table[name]), default=None)


def score(table: Table, other: str | None) -> float:
    """The default's throughput to another server's; 0 without one of them."""
    if other is None or OURS not in table:
        return 0.0
    return mean(table[OURS]) / mean(table[other])


def lowest(table: Table, other: str) -> float:
    """The lowest score of the rounds that both have: into which state a server falls may be chance."""
    rounds_of = [[(a.rate, b.rate) for a, b in zip(table[OURS].classes[name], table[other].classes[name])] for name in table[OURS].classes]
    return min(math.exp(sum(math.log(_ratio(*pair)) for pair in pairs) / len(pairs)) for pairs in zip(*rounds_of))


def tails(table: Table, other: str) -> dict[str, float]:
    """The default's p99 of each class to another server's."""
    ours, theirs = table[OURS], table[other]
    return {name: ours.median(name, "p99") / theirs.median(name, "p99") for name in ours.classes}


def _summary(mix: Mix, table: Table) -> list[str]:
    ours, other = table[OURS], best(table)
    cells = ["–"] * 4
    if other is not None:
        worst, name = max((ratio, name) for name, ratio in tails(table, other).items())
        cells = [f"{score(table, other):.2f}", f"{lowest(table, other):.2f}", other, f"{worst:.2f} ({name})"]
    return [f"{mix.name}: {mix.title}", *cells, *(_share(values) for values in (ours.said, ours.seen, ours.held)), str(ours.failed())]


def _share(values: Sequence[float]) -> str:
    return f"{100 * figures.spread(values).median:.1f} %" if values else "–"


def gates(results: Sequence[tuple[Mix, Table]]) -> list[str]:
    """Every gate that these results can decide."""
    lines = []
    for mix, table in results:
        if OURS not in table:
            continue
        if (other := best(table)) is not None:
            lines.append(rounds.verdict(f"{mix.name}: throughput, geometric mean of the classes, to {other}", score(table, other), SCORE, True))
            lines += [rounds.verdict(f"{mix.name}: p99 of {name} to {other}'s", ratio, TAIL) for name, ratio in tails(table, other).items()]
        for words, values in (("maitred says", table[OURS].said), ("seen from outside", table[OURS].seen)):
            lines.append(rounds.verdict(f"{mix.name}: per cent of time in which a request waited beside an idle thread although nobody "
                                        f"computed, {words}", 100 * figures.spread(values).median, IDLE_PER_CENT))
    return lines


def _write(report: Report, mix: Mix, table: Table) -> None:
    names = [each.name for each in mix.classes]
    report.text(f"## {mix.name}", mix.title + ".")
    other = best(table)
    rows = []
    for server, run in table.items():
        cells = [cell for name in names for cell in (f"{run.median(name, 'rate'):,.0f}", f"{run.median(name, 'p50'):.1f}",
                                                     f"{run.median(name, 'p99'):.1f}")]
        rows.append([server, *cells, f"{mean(run) / mean(table[other]):.2f}" if other else "–", _share(run.said), _share(run.seen),
                     _share(run.held), str(run.failed())])
    report.table(["server", *(head for name in names for head in (f"{name}: requests/s", "p50 ms", "p99 ms")), "to the best other", "idle, said",
                  "idle, seen", "held", "failed"], rows)
