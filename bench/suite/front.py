"""A proxy in front: what a second process costs in CPU and latency, and what one process instead of two saves."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchlib import chart, compare, figures, fronts, load, pages, peers, python_servers, rounds, servers, traffic
from benchlib.report import Report, say
from benchlib.series import Loop, Schedule, Series, Watch, in_closed_loop, on_schedule

TITLE = "A proxy in front: CPU of both processes, and latency"
OURS = python_servers.OURS
#: The last two by `http-reuse` of haproxy.
TCP, UNIX, NEVER = f"{OURS}, haproxy by TCP", f"{OURS}, PROXY v2, safe", f"{OURS}, PROXY v2, never"
PEER = "gunicorn, nginx"
HELLO = b"Hello, world!"
#: What the application answers to this path if the proxy is believed.
CLIENT_PATH, CLIENT_ANSWER = "/client", f"{fronts.CLIENT} http"
#: No coding makes it smaller.
PREFIX, FILE, FILE_BYTES = "/static", "photo.jpg", 64 * 1024
#: Of gunicorn.
WORKERS, THREADS = 2, 4
BUSY_S, WARM_UP = 1.0, 0.15
#: Its rate is this share of what the slowest answers.
SHARE, SCHEDULE_S, SCHEDULE_WARM_UP = 0.5, 1.5, 0.2
#: Rounds by form: connections that are always busy, and the schedule.
PAIRS = {compare.USERS.name: (5, 5), compare.PINNED.name: (5, 3)}


@dataclass(frozen=True)
class Case:
    """What is asked for."""

    name: str
    requests: Sequence[traffic.Request]


@dataclass(frozen=True)
class Site:
    """An application, and what it is asked for; each of its cases is measured with the same servers."""

    application: str
    cases: Sequence[Case]
    #: What its interpreter must have.
    modules: tuple[str, ...] = ()
    #: Its answer to `CLIENT_PATH` says who the client is.
    names_client: bool = False


_PAGE = next(page for page in pages.PAGES if page.name == "django-sqlite")


def sites(file: bytes) -> list[Site]:
    """All that are measured, with the bytes of the file."""
    browsers = [traffic.browser(number, f"{PREFIX}/{FILE}", file) for number in range(traffic.VARIANTS)]
    return [Site("front_wsgi:application", (Case("hello", traffic.varied(HELLO)),
                                            Case(f"{FILE_BYTES // 1024} KiB file", browsers)), names_client=True),
            Site("shop.wsgi:application", (Case(_PAGE.title, _PAGE.requests),), _PAGE.modules)]


@dataclass
class Measured:
    """All rounds of one server with one load."""

    series: Series = field(default_factory=Series)
    #: CPU-seconds per 100,000 requests of the proxy and of the server behind it, which `series` has in one.
    proxy: list[float] = field(default_factory=list)
    behind: list[float] = field(default_factory=list)
    #: Connections that the server took for each request, if it can say so.
    connections: list[float] = field(default_factory=list)

    def note(self, watch: Watch, before: fronts.Counts | None, after: fronts.Counts | None) -> None:
        """What the last round has cost each of them."""
        *front, last = watch.meter.parts_ns
        per_ns = self.series.cpu[-1] / watch.meter.cpu_ns if watch.meter.cpu_ns else 0.0
        self.proxy.append(sum(front) * per_ns)
        self.behind.append(last * per_ns)
        if before and after:
            self.connections.append((after.connections - before.connections) / max(1, after.requests - before.requests))


@dataclass
class Result:
    """A case in one form, by contender."""

    name: str
    rate: float = 0.0
    busy: dict[str, Measured] = field(default_factory=dict)
    schedule: dict[str, Measured] = field(default_factory=dict)
    others: list[float] = field(default_factory=list)


def run(options: rounds.Options, folder: Path, report: Report) -> None:
    rounds.need("taskset")
    servers.cargo_build("openloop")
    environment = peers.environment(options)
    variables = pages.sqlite(environment, folder) if environment.has("django") else {}
    files = folder / "files"
    files.mkdir()
    (files / FILE).write_bytes(os.urandom(FILE_BYTES))
    _method(environment, report)
    results: list[Result] = []
    for form in compare.forms(options):
        for site in sites((files / FILE).read_bytes()):
            if not environment.has(*site.modules):
                _skip(report, f"{site.cases[0].name} (not installed: one of {', '.join(site.modules)})")
                continue
            contenders, lines = rounds.present(options, candidates(environment, site.application, variables, files, form.pinned))
            report.text(*lines)
            with compare.running(contenders, OURS, folder, report) as up:
                for server in up if site.names_client else ():
                    if server.name.startswith(OURS):
                        fronts.known(server, CLIENT_PATH, CLIENT_ANSWER)
                loaded = _Loaded(options, environment.program("maitred"), folder, report)
                results += [loaded.case(up, case, form) for case in site.cases]
    _write(report, results)


def candidates(environment: peers.Environment, application: str, variables: dict[str, str], files: Path,
               pinned: bool) -> list[servers.Contender]:
    """The same server alone and behind haproxy, and the form that people know."""
    def ours(*words: str, **more: object) -> servers.Contender:
        made = python_servers.ours(environment, application, "wsgi", words=["--static", f"{PREFIX}={files}", *words],
                                   variables=variables, pinned=pinned)
        return dataclasses.replace(made, options={**made.options, **more}, unix="listen" in more)

    gunicorn = python_servers.Wsgi(environment, application, variables, pinned).gunicorn(THREADS, WORKERS)
    return [ours(),
            fronts.haproxy(TCP, ours("--trusted-proxies", "127.0.0.1")),
            *(fronts.haproxy(name, ours("--trusted-proxies", "unix", listen=",proxy-protocol=on"), reuse)
              for name, reuse in ((UNIX, "safe"), (NEVER, "never"))),
            fronts.nginx(PEER, dataclasses.replace(gunicorn, unix=True), PREFIX, files)]


def _skip(report: Report, what: str) -> None:
    say(f"skipped: {what}")
    report.text(f"skipped: {what}")


def _method(environment: peers.Environment, report: Report) -> None:
    """What is measured, and how, for the report."""
    versions = ", ".join([peers.versions(environment, ("maitred", "gunicorn", "django")), *map(fronts.version, ("haproxy", "nginx"))])
    report.text(
        f"{environment.description}; {versions}.", "",
        f"\"{OURS}\" answers the client itself. \"{TCP}\" stands behind haproxy, which adds `X-Forwarded-For`, by loopback TCP "
        f"(`--trusted-proxies 127.0.0.1`). \"{UNIX}\" stands behind haproxy by a Unix socket with `send-proxy-v2` (`--listen "
        "unix:PATH,proxy-protocol=on --trusted-proxies unix`). haproxy has `mode http` and its default, `http-reuse safe`, in both; in "
        f"\"{NEVER}\" it has `http-reuse never`. \"{PEER}\": gunicorn with {WORKERS} workers of {THREADS} threads (gthread) behind "
        f"nginx by a Unix socket; nginx serves the file itself, and the {WORKERS} workers may compute at the same time, where maitred is one "
        "process with one interpreter. Everything else as it comes, no access log, keep-alive on both sides of a proxy. haproxy's threads "
        f"and nginx's workers: {fronts.threads(False)} on both cores, {fronts.threads(True)} on one.",
        "",
        "haproxy uses a connection to the server for another client only if its PROXY header would be the same, and the header names the "
        "client's address and port. With `http-reuse safe` it also closes most connections that become idle, so that a request often makes "
        "a new one: \"connections per 100 requests\" are those that maitred has accepted. With `never` each client's connection keeps "
        "one of its own. maitred alone accepts those of the load, "
        f"{compare.CONNECTIONS} in each round.", "",
        "Requests have the twelve fields of a browser. CPU-seconds are user and system, of the proxy and of all processes of the "
        f"server behind it apart, per 100,000 right answers. \"Busy\": {compare.CONNECTIONS} keep-alive connections that always "
        f"wait for an answer. \"Schedule\": a Poisson schedule over {compare.CONNECTIONS} connections, the same for all, at "
        f"{SHARE:.0%} of what the slowest of them answers when busy; latency from the scheduled time, all rounds together; its "
        f"CPU time includes the warm-up. \"{compare.USERS.name}\" is the form that users run: all processes share them with the load. "
        f"\"{compare.PINNED.name}\": proxy and server share one, the load has the other. {rounds.INTERVAL_NOTE}")


class _Loaded:
    """Rounds over servers; a peer that answers wrong leaves the case, one of ours ends the bench."""

    def __init__(self, options: rounds.Options, program: Path, folder: Path, report: Report) -> None:
        self._options, self._program, self._folder, self._report = options, program, folder, report

    def case(self, up: Sequence[servers.Server], case: Case, form: compare.Form) -> Result:
        """A case with all these servers."""
        options, folder, result = self._options, self._folder, Result(f"{case.name}, {form.name}")
        right, requests = compare.settled(up, OURS, result.name, case.requests, folder, self._report)
        if wrong := [server.name for server in up if server not in right and server.name.startswith(OURS)]:
            raise load.WrongAnswer(f"{result.name}: {', '.join(wrong)} answers something else than {OURS}")
        loop = Loop(compare.CONNECTIONS, BUSY_S, WARM_UP, spin=form.pinned, pinned=form.pinned)
        busy, scheduled = PAIRS[form.name]

        def in_loop(server: servers.Server, _: int, series: Series) -> Watch:
            return in_closed_loop(options, server, requests, series, loop)

        def by_schedule(server: servers.Server, number: int, series: Series) -> Watch:
            schedule = Schedule(result.rate, SCHEDULE_S, SCHEDULE_WARM_UP)
            return on_schedule(options, schedule, server, requests, number, series, folder, pinned=form.pinned)

        right = self._rounds(options.rounds(busy, smoke=1), right, result, result.busy, "busy", in_loop)
        result.rate = SHARE * min(of.series.median("rate") for of in result.busy.values())
        self._rounds(options.rounds(scheduled, smoke=1), right, result, result.schedule, "schedule", by_schedule)
        return result

    def _rounds(self, count: int, up: Sequence[servers.Server], result: Result, table: dict[str, Measured], what: str,
                work: Callable[[servers.Server, int, Series], Watch]) -> list[servers.Server]:
        """Rounds of all, into this table of the result; gives who is still there at the end."""
        left = list(up)
        for number in range(count):
            say(f"front, {result.name}, {what}: round {number + 1}")
            for server in list(left):
                try:
                    measured = table.setdefault(server.name, Measured())
                    before = self._counts(server)
                    watch = work(server, number, measured.series)
                    measured.note(watch, before, self._counts(server))
                    result.others.append(watch.meter.others)
                except load.WrongAnswer as error:
                    if server.name.startswith(OURS):
                        raise
                    left.remove(server)
                    for each in (result.busy, result.schedule):
                        each.pop(server.name, None)
                    say(f"left out: {error}")
                    self._report.text(f"left out of {result.name}: {error}")
                rounds.rest(server)
        return left

    def _counts(self, server: servers.Server) -> fronts.Counts | None:
        return fronts.counts(self._program, server) if server.name.startswith(OURS) else None


def _write(report: Report, results: Sequence[Result]) -> None:
    if not results:
        raise rounds.Missing("no case can be measured")
    names = [name for name in (TCP, UNIX, NEVER, PEER) if any(name in result.busy for result in results)]
    report.text("## Summary", "", f"CPU of proxy and server together, as a multiple of that of \"{OURS}\" alone, busy; p50 of the schedule likewise.")
    report.table(["", *(f"{name}: {what}" for what in ("CPU", "p50") for name in names)],
                 [[result.name, *_summary(result, names)] for result in results])
    for result in results:
        _write_case(report, result)
    report.chart(chart.bars("CPU of the proxy (pale) and of the server behind it, busy", "CPU-seconds per 100,000 requests",
                            [(result.name, _bars(result)) for result in results]))


def _summary(result: Result, names: Sequence[str]) -> list[str]:
    """CPU, then p50, of each to ours alone: the medians of the rounds' ratios."""
    def cell(table: dict[str, Measured], name: str, values: Callable[[Series], list[float]]) -> str:
        if OURS not in table or name not in table:
            return "–"
        ratio = figures.ratios(values(table[name].series), values(table[OURS].series)).median
        return rounds.TOO_SHORT if math.isnan(ratio) else f"{ratio:.2f}"

    return [*(cell(result.busy, name, lambda series: series.cpu) for name in names),
            *(cell(result.schedule, name, lambda series: series.percentiles[0.5]) for name in names)]


def _write_case(report: Report, result: Result) -> None:
    report.text(f"## {result.name[0].upper()}{result.name[1:]}")
    rates = {name: of.series.rate for name, of in result.busy.items()}
    _table(report, "busy", result.busy, lambda name: [
        f"{result.busy[name].series.median('rate'):,.0f}", rounds.against(rates, name, OURS)],
        ["requests/s", f"to {OURS} alone (requests/s)"])
    _table(report, f"schedule, {result.rate:,.0f} requests/s", result.schedule, lambda name: [
        *(f"{result.schedule[name].series.together(share):.2f}" for share in (0.5, 0.99)),
        f"{result.schedule[name].series.median('finished'):.1%}"], ["p50 ms", "p99 ms", "answered"])
    report.text(rounds.others_text(result.others, "the cores in use"))


def _table(report: Report, head: str, table: dict[str, Measured], last: Callable[[str], list[str]], heads: list[str]) -> None:
    """CPU time of each process, then the cells that `last` gives."""
    cpu = {name: of.series.cpu for name, of in table.items()}
    rows = []
    for name, of in table.items():
        both = figures.spread(of.series.cpu)
        proxy = f"{figures.spread(of.proxy).median:.3f}" if any(of.proxy) else "–"
        rows.append([name, proxy, f"{figures.spread(of.behind).median:.3f}", f"{both.median:.3f} [{both.lower:.3f}, {both.upper:.3f}]",
                     rounds.against(cpu, name, OURS), f"{100 * figures.spread(of.connections).median:.2f}" if of.connections else "–",
                     *last(name)])
    report.table([head, "CPU-s per 100,000: proxy", "server", "both", f"to {OURS} alone (CPU)", "connections per 100 requests", *heads],
                 rows)


def _bars(result: Result) -> list[chart.Bar]:
    bars = []
    for name, of in result.busy.items():
        both = figures.spread(of.series.cpu)
        bars.append(chart.Bar(name, both.median, both.lower, both.upper, figures.spread(of.proxy).median))
    return bars
