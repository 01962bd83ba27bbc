"""Pages as users run them: default settings, no core of its own, one process; throughput and latency beside the peers."""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchlib import chart, compare, figures, load, pages, peers, postgres, python_servers, rounds, servers, work
from benchlib.pages import OURS, PAGES, THREADS, Page, named, threads_of
from benchlib.report import Report, say
from benchlib.series import Loop, Schedule, Series, in_closed_loop, on_schedule

TITLE = "Pages as users run them: default settings, both cores"
#: For the line about the machine.
ONE_CORE = False
MANY = Loop(64, 2.0, warm_up=0.15, spin=False, pinned=False)
FEW = Loop(8, 1.5, warm_up=0.2, spin=False, pinned=False)
SCHEDULE_S, SCHEDULE_WARM_UP = 2.0, 0.2
#: Of the best peer's capacity.
SHARE = 0.7
MANY_PAIRS, FEW_PAIRS, SCHEDULE_PAIRS = 5, 3, 3
#: Who is loaded with few connections and on the schedule where every server is there with every number of threads.
BESIDE = (OURS, "granian")
#: Whom a smoke run is about.
SMOKE = (OURS, "uvicorn", *(named(server, number) for server in BESIDE for number in (2, 4)))
#: Gates.
MEAN, LOWEST, TAIL, OWN_BEST, EQUAL = 0.95, 0.90, 1.25, 0.95, 0.97
MANY_NAME, FEW_NAME, SCHEDULE_NAME = "64 connections", "8 connections", f"schedule at {SHARE:.0%}"


@dataclasses.dataclass
class Result:
    """A page's figures, by load and contender."""

    page: Page
    many: dict[str, Series]
    few: dict[str, Series]
    schedule: dict[str, Series]
    others: list[float]
    lines: list[str]

    def loads(self) -> list[tuple[str, dict[str, Series]]]:
        return [(MANY_NAME, self.many), (FEW_NAME, self.few), (SCHEDULE_NAME, self.schedule)]

    def best(self, names: Sequence[str]) -> str | None:
        """The one of these with the highest throughput."""
        return max((name for name in names if name in self.many), key=lambda name: self.many[name].median("rate"),
                   default=None)

    def best_peer(self, like: str | None = None) -> str | None:
        """The peer with the highest throughput; of those with as many threads as this contender."""
        return self.best([name for name in self.many if not name.startswith(OURS)
                          and (like is None or threads_of(name) == threads_of(like))])

    def faster(self, name: str, base: str) -> figures.Spread:
        """Throughput to that of another."""
        return figures.ratios(self.many[name].rate, self.many[base].rate)


def run(options: rounds.Options, folder: Path, report: Report) -> None:
    rounds.need("taskset")
    chosen = _chosen(options)
    servers.cargo_build("openloop")
    environment = peers.environment(options)
    place = pages.Place(environment, work.spins(environment) | work.hashes(environment))
    results = []
    with contextlib.ExitStack() as stack:
        database: dict[str, str] = {}
        if any("django" in page.modules for page in chosen) and environment.has("django"):
            place.variables.update(pages.sqlite(environment, folder))
        for page in chosen:
            if not environment.has(*page.modules):
                _skip(report, f"{page.title} (not installed: one of {', '.join(page.modules)})")
                continue
            if page.postgres and not database:
                try:
                    database = {"BENCH_POSTGRES": str(stack.enter_context(postgres.running()))}
                except rounds.Missing as error:
                    _skip(report, f"{page.title} ({error})")
                    continue
                pages.fill(environment, database)
            told = place.variables | (database if page.postgres else {})
            result = _measure(options, page, dataclasses.replace(place, variables=told), folder, report)
            if result is not None:
                results.append(result)
    if not results:
        raise rounds.Missing("no page can be measured")
    _write(report, environment, results)


def _chosen(options: rounds.Options) -> list[Page]:
    unknown = set(options.pages) - {page.name for page in PAGES}
    if unknown:
        raise rounds.Missing(f"no such page: {', '.join(sorted(unknown))}; there are "
                             + ", ".join(page.name for page in PAGES))
    return [page for page in PAGES if not options.pages or page.name in options.pages]


def _skip(report: Report, what: str) -> None:
    say(f"pages: skipped: {what}")
    report.text(f"skipped: {what}")


def _measure(options: rounds.Options, page: Page, place: pages.Place, folder: Path, report: Report) -> Result | None:
    """A page's figures; `None` when `--only` leaves no contender."""
    only = options.only or (SMOKE if options.smoke else ())
    candidates = [each for each in page.contenders(place) if not only or each.name in only
                  or (options.only and each.name.partition(", ")[0] in only)]
    if not candidates:
        return None
    contenders, lines = rounds.present(dataclasses.replace(options, only=()), candidates)
    report.text(*lines)
    result = Result(page, {}, {}, {}, [], [])
    with compare.running(contenders, OURS, folder, report) as up:
        right, requests = compare.settled(up, OURS, page.title, page.requests, folder, report)
        loaded = _Loaded(options, result, right, requests, folder)
        loaded.closed(MANY_NAME, MANY, MANY_PAIRS, result.many)
        if page.handler:
            loaded.right = [each for each in loaded.right if each.name.partition(", ")[0] in BESIDE]
        loaded.closed(FEW_NAME, FEW, FEW_PAIRS, result.few)
        loaded.scheduled(result.schedule)
    return result


class _Loaded:
    """Rounds over the servers of a page; a peer that answers wrong leaves the page."""

    def __init__(self, options: rounds.Options, result: Result, right: list[servers.Server], requests: Path,
                 folder: Path) -> None:
        self.right = right
        self._options, self._result, self._requests, self._folder = options, result, requests, folder

    def closed(self, name: str, loop: Loop, pairs: int, table: dict[str, Series]) -> None:
        for _, server in self._rounds(name, pairs):
            with self._leaving_out(server):
                watch = in_closed_loop(self._options, server, self._requests, table.setdefault(server.name, Series()), loop)
                self._result.others.append(watch.meter.others)
            rounds.rest(server)

    def scheduled(self, table: dict[str, Series]) -> None:
        for number, server in self._rounds(SCHEDULE_NAME, SCHEDULE_PAIRS):
            schedule = Schedule(rate(self._result, server.name), SCHEDULE_S, SCHEDULE_WARM_UP)
            with self._leaving_out(server):
                on_schedule(self._options, schedule, server, self._requests, number,
                            table.setdefault(server.name, Series()), self._folder, may_starve=True, pinned=False)
            rounds.rest(server)

    def _rounds(self, name: str, pairs: int) -> Iterator[tuple[int, servers.Server]]:
        for number in range(self._options.rounds(pairs, smoke=1)):
            say(f"pages, {self._result.page.name}, {name}: round {number + 1}")
            # Each round begins with another, so that nobody always follows the same one.
            cut = number % max(1, len(self.right))
            for server in [*self.right[cut:], *self.right[:cut]]:
                yield number, server

    @contextlib.contextmanager
    def _leaving_out(self, server: servers.Server) -> Iterator[None]:
        try:
            yield
        except load.WrongAnswer as error:
            if server.name.startswith(OURS):
                raise
            self.right = [each for each in self.right if each is not server]
            for _, table in self._result.loads():
                table.pop(server.name, None)
            say(f"left out: {error}")
            self._result.lines.append(f"left out: {error}")


def rate(result: Result, name: str) -> float:
    """The schedule of a contender: the same for all it is compared with.  Our default is compared with ten threads."""
    like = None
    if result.page.handler:
        like = name if threads_of(name) else named(OURS, THREADS[-1])
    best = result.best_peer(like) or name
    return SHARE * result.many[best].median("rate")


def _write(report: Report, environment: peers.Environment, results: Sequence[Result]) -> None:
    report.text(
        f"{environment.description}; {peers.versions(environment, python_servers.PACKAGES)}.", "",
        "One process each, no access log, both cores, which the servers share with the load and the database. \"maitred\" "
        "has its default settings. Work in a handler is a counted number of turns. "
        f"Closed loops with {MANY.connections} and {FEW.connections} keep-alive connections from our own generator, which "
        f"sleeps when nothing has come; and a Poisson schedule at {SHARE:.0%} of the capacity of the best peer, with "
        f"{compare.CONNECTIONS} connections and latency from the scheduled time (all rounds together). CPU-seconds are "
        "user and system of all processes of the server, not of the database; context switches are those of all its "
        "threads. Of the handlers, every server has as many threads as named; the peer of \"maitred\" without a number is "
        f"the best of all. {rounds.INTERVAL_NOTE}")
    shares = [share for result in results for share in result.others]
    if shares:
        report.text(rounds.others_text(shares, "both cores"))
    report.text("## Summary")
    report.table(["page", "maitred, requests/s", "best peer", "its requests/s", "ratio", "p99 at 64, ratio", "CPU, ratio"],
                 [row for result in results if (row := _summary(result))])
    if lines := gates(results):
        report.text("## Gates", "", f"{sum('**met**' in line for line in lines)} of {len(lines)} met.", "", *lines)
    for result in results:
        _write_page(report, result)
    report.chart(chart.bars(TITLE, "requests/s", [(result.page.title, _bars(result)) for result in results]))


def _summary(result: Result) -> list[str]:
    peer = result.best_peer()
    if OURS not in result.many or peer is None:
        return []
    ours, theirs = result.many[OURS], result.many[peer]
    return [result.page.title, f"{ours.median('rate'):,.0f}", peer, f"{theirs.median('rate'):,.0f}",
            rounds.ratio_text(result.faster(OURS, peer)), f"{tail(result.many, OURS, peer):.3f}",
            rounds.ratio_text(figures.ratios(ours.cpu, theirs.cpu)) if all(theirs.cpu) else "–"]


def tail(table: dict[str, Series], name: str, base: str) -> float:
    """The ratio of the p99s: of a closed loop the median of the pairs, of a schedule that of all rounds together."""
    ours, theirs = table[name], table[base]
    if ours.latencies:
        return ours.together(0.99) / theirs.together(0.99)
    return figures.ratios(ours.percentiles[0.99], theirs.percentiles[0.99]).median


def gates(results: Sequence[Result]) -> list[str]:
    """Every gate that these results can decide."""
    lines = []
    whole = [(result, peer) for result in results
             if not result.page.handler and OURS in result.many and (peer := result.best_peer())]
    if whole:
        ratios = [result.faster(OURS, peer).median for result, peer in whole]
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        lines.append(rounds.verdict(f"Throughput to the best peer's, geometric mean of {len(ratios)} pages", mean, MEAN, True))
    for result, peer in whole:
        lines.append(rounds.verdict(f"{result.page.title}: throughput to {peer}", result.faster(OURS, peer).median, LOWEST,
                                    True))
        lines += _tails(result, OURS, peer)
    for result in results:
        own = result.best([named(OURS, number) for number in THREADS])
        if own and OURS in result.many:
            lines.append(rounds.verdict(f"{result.page.title}: throughput of the default to our best ({own})",
                                        result.faster(OURS, own).median, OWN_BEST, True))
        for number in THREADS[1:] if result.page.handler else ():
            ours, theirs = named(OURS, number), named("granian", number)
            if ours in result.many and theirs in result.many:
                lines.append(rounds.verdict(f"{result.page.title}: throughput, {ours} to granian",
                                            result.faster(ours, theirs).median, EQUAL, True))
                lines += _tails(result, ours, theirs)
    return lines


def _tails(result: Result, ours: str, theirs: str) -> list[str]:
    return [rounds.verdict(f"{result.page.title}, {name}: p99, {ours} to {theirs}", tail(table, ours, theirs), TAIL)
            for name, table in result.loads() if ours in table and theirs in table]


def _write_page(report: Report, result: Result) -> None:
    report.text(f"## {result.page.title}", *result.lines)
    rows = []
    for name, series in result.many.items():
        peer = result.best_peer(name if result.page.handler and threads_of(name) else None)
        against = rounds.ratio_text(result.faster(name, peer)) if peer and name != peer else "–"
        switches = [sum(each) for each in zip(series.voluntary, series.involuntary, strict=True)]
        few, schedule = result.few.get(name), result.schedule.get(name)
        rows.append([
            name, f"{series.median('rate'):,.0f}", against, f"{series.at(0.5):.2f}", f"{series.at(0.99):.2f}",
            f"{series.median('cpu'):.2f}", f"{figures.spread(switches).median:.2f}",
            *([f"{few.median('rate'):,.0f}", f"{few.at(0.5):.2f}", f"{few.at(0.99):.2f}"] if few else ["–"] * 3),
            *([f"{schedule.median('rate'):,.0f}", f"{schedule.together(0.5):.2f}", f"{schedule.together(0.99):.2f}",
               f"{schedule.median('finished'):.0%}"] if schedule else ["–"] * 4)])
    report.table(["server", "64: requests/s", "to the best peer" + " with as many threads" * result.page.handler, "p50 ms",
                  "p99 ms", "CPU-s per 100,000", "switches/request", "8: requests/s", "p50 ms", "p99 ms",
                  "schedule: requests/s", "p50 ms", "p99 ms", "answered"], rows)


def _bars(result: Result) -> list[chart.Bar]:
    spreads = {name: figures.spread(series.rate) for name, series in result.many.items()}
    return [chart.Bar(name, of.median, of.lower, of.upper) for name, of in spreads.items()]
