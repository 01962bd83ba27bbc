"""Pages with two worker processes on both cores, as users run a site that computes: throughput and latency beside the peers with two workers,
and beside one of ours and one of a peer."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from benchlib import chart, compare, figures, pages, peers, python_servers, rounds, servers, work
from benchlib.pages import OURS, PAGES, Page
from benchlib.report import Report, say
from benchlib.series import Loop, Series, in_closed_loop

TITLE = "Two workers, both cores"
#: For the line about the machine.
ONE_CORE = False
WORKERS = 2
MANY = Loop(64, 3.0, warm_up=0.3, spin=False, pinned=False)
ROUNDS = 7
CHOSEN = ("django-sqlite", "flask", "fastapi")
_ONE = ", one process"
#: Ours with one process.
ALONE = OURS + _ONE
#: The peer whose gain is shown beside ours.
BESIDE = "peregrine"
#: Gates: two workers to one of ours, and to the best peer with two.
GAIN, PEER = 1.8, 0.95


def run(options: rounds.Options, folder: Path, report: Report) -> None:
    rounds.need("taskset")
    servers.cargo_build("openloop")
    environment = peers.environment(options)
    place = pages.Place(environment, work.spins(environment) | work.hashes(environment))
    if environment.has("django"):
        place.variables.update(pages.sqlite(environment, folder))
    wanted = options.pages or CHOSEN
    results = [(page, _measure(options, page, place, folder, report))
               for page in PAGES if page.name in wanted and environment.has(*page.modules)]
    if not results:
        raise rounds.Missing("no page can be measured")
    report.text(
        f"{environment.description}; {peers.versions(environment, python_servers.PACKAGES)}.", "",
        f"{WORKERS} worker processes each, no access log, both cores, which the servers share with the load. A closed loop with "
        f"{MANY.connections} keep-alive connections from our own generator, which sleeps when nothing has come. CPU-seconds are "
        f"user and system of all processes of the server. {rounds.INTERVAL_NOTE}")
    if lines := gates(results):
        report.text("## Gates", "", f"{sum('**met**' in line for line in lines)} of {len(lines)} met.", "", *lines)
    for page, table in results:
        _write_page(report, page, table)
    report.chart(chart.bars(TITLE, "requests/s", [(page.title, _bars(table)) for page, table in results]))


def contenders(page: Page, place: pages.Place) -> list[servers.Contender]:
    """Everybody with two workers; ours and a peer also with one process."""
    with_two = []
    for each in page.contenders(place):
        if each.name.startswith(f"{OURS}, "):
            continue
        words = [*each.options["words"], "--workers", str(WORKERS)]
        with_two.append(dataclasses.replace(each, options={**each.options, "words": words}))
        if each.name in (OURS, BESIDE):
            with_two.append(dataclasses.replace(each, name=each.name + _ONE))
    return with_two


def _measure(options: rounds.Options, page: Page, place: pages.Place, folder: Path, report: Report) -> dict[str, Series]:
    names = (OURS, ALONE, "uvicorn", "gunicorn gthread, 4 threads") if options.smoke else ()
    candidates = [each for each in contenders(page, place) if not names or each.name in names]
    present, lines = rounds.present(options, candidates)
    report.text(*lines)
    table: dict[str, Series] = {}
    with compare.running(present, OURS, folder, report) as up:
        right, requests = compare.settled(up, OURS, page.title, page.requests, folder, report)
        for number in range(options.rounds(ROUNDS, smoke=1)):
            say(f"workers, {page.name}: round {number + 1}")
            # Each round begins with another, so that nobody always follows the same one.
            cut = number % max(1, len(right))
            for server in [*right[cut:], *right[:cut]]:
                in_closed_loop(options, server, requests, table.setdefault(server.name, Series()), MANY)
                rounds.rest(server)
    return table


def gates(results: Sequence[tuple[Page, dict[str, Series]]]) -> list[str]:
    """Every gate that these results can decide."""
    lines = []
    for page, table in results:
        if OURS not in table:
            continue
        if ALONE in table:
            gain = figures.ratios(table[OURS].rate, table[ALONE].rate).median
            lines.append(rounds.verdict(f"{page.title}: throughput of {WORKERS} workers to one process", gain, GAIN, True))
        if peer := best_peer(table):
            ratio = figures.ratios(table[OURS].rate, table[peer].rate).median
            lines.append(rounds.verdict(f"{page.title}: throughput to {peer}", ratio, PEER, True))
    return lines


def best_peer(table: dict[str, Series]) -> str | None:
    """The peer with the highest throughput."""
    names = [name for name in table if not name.startswith(OURS) and not name.endswith(_ONE)]
    return max(names, key=lambda name: table[name].median("rate"), default=None)


def _write_page(report: Report, page: Page, table: dict[str, Series]) -> None:
    report.text(f"## {page.title}")
    peer = best_peer(table)
    rows = []
    for name, series in table.items():
        against = rounds.ratio_text(figures.ratios(series.rate, table[peer].rate)) if peer and name != peer else "–"
        rows.append([name, f"{series.median('rate'):,.0f}", against, f"{series.at(0.5):.2f}", f"{series.at(0.99):.2f}",
                     f"{series.median('cpu'):.2f}", f"{series.median('load'):.2f}"])
    report.table(["server", "requests/s", "to the best peer", "p50 ms", "p99 ms", "CPU-s per 100,000", "the load's"], rows)
    lines = []
    if OURS in table and ALONE in table:
        lines.append(f"The load has its part of both cores. If {WORKERS} workers took no more than one process for a request, they would "
                     f"answer {figures.spread(most_gain(table[OURS], table[ALONE])).median:.3f} times as many.")
    if BESIDE in table and BESIDE + _ONE in table:
        gain = figures.ratios(table[BESIDE].rate, table[BESIDE + _ONE].rate).median
        lines.append(f"{WORKERS} workers of {BESIDE} answer {gain:.3f} times as many as its one.")
    report.text(*lines, "")


def most_gain(two: Series, one: Series) -> list[float]:
    """What both cores allow, round by round: all of their time for one process's cost of a request, and the load's."""
    return [WORKERS * 1e5 / (cpu + load) / rate for load, cpu, rate in zip(two.load, one.cpu, one.rate, strict=True)]


def _bars(table: dict[str, Series]) -> list[chart.Bar]:
    spreads = {name: figures.spread(series.rate) for name, series in table.items()}
    return [chart.Bar(name, of.median, of.lower, of.upper) for name, of in spreads.items()]
