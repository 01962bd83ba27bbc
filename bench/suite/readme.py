"""The figures of README.md: pages and files in the form that users run, and the steadier form beside it.

The run is stored as JSON; `benchlib/stored.py` makes README's tables of it.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchlib import compare, figures, load, machine, pages, peers, postgres, python_servers, rounds, servers, stored, traffic
from benchlib.report import Report, say
from benchlib.series import Loop, Series, in_closed_loop
from benchlib.stored import BOTH, ONE, OURS
from suite import idle_memory

TITLE = "The figures of README.md"
#: How often, by form.
PAIRS = {BOTH: 5, ONE: 3}
SECONDS, LARGE_SECONDS = 1.5, 3.0
WARM_UP = 0.15
#: The schedule: its rounds, their seconds and those before them, requests a second, connections.
SCHEDULES, SCHEDULE_S, SCHEDULE_WARM_UP_S, RATE, CONNECTIONS = 3, 4.0, 1.0, 4000, 64
#: The file that is asked for on the schedule.
PATH, BODY = "/hello", b"hello\n"
PAGES = ("django-sqlite", "django-postgresql", "flask", "fastapi", "fastapi-sqlalchemy")
SMOKE_PAGES = PAGES[1:2]
HELLO = b"Hello, world!"
FILES = (("1 KiB file", 1 << 10, SECONDS), ("64 KiB file", 64 << 10, SECONDS), ("10 MiB file", 10 << 20, LARGE_SECONDS))

#: Contenders in a form: whether they are held to a core.
Candidates = Callable[[bool], list[servers.Contender]]


def run(options: rounds.Options, folder: Path, report: Report) -> None:
    rounds.need("taskset")
    servers.cargo_build("openloop")
    environment = peers.environment(options)
    chosen = _pages(options)
    missing = {module for page in chosen for module in page.modules if not environment.has(module)}
    if missing:
        raise rounds.Missing(f"not installed: {', '.join(sorted(missing))}")
    measured: list[dict[str, Any]] = []
    with contextlib.ExitStack() as stack:
        database = {"BENCH_POSTGRES": str(stack.enter_context(postgres.running()))}
        pages.fill(environment, database)
        variables = pages.sqlite(environment, folder)
        for name, requests, candidates in _rows(environment, chosen, variables, database):
            measured.append({"name": name, **_in_both_forms(options, name, requests, candidates, SECONDS, folder, report)})
    run = {"date": report.date, "machine": machine.model(), "python": environment.description,
           "versions": peers.versions(environment, ("maitred", "gunicorn", "uvicorn", "granian", "weft-server",
                                                    "peregrine-server", "django", "flask", "fastapi")),
           "pages": measured, **_static(options, folder, report)}
    report.data(run)
    report.text("Made by `bench/run readme`; the rounds are in readme.json.", "", stored.section(run))


def _pages(options: rounds.Options) -> list[pages.Page]:
    return [page for page in pages.PAGES if page.name in (SMOKE_PAGES if options.smoke else PAGES)]


def _rows(environment: peers.Environment, chosen: Sequence[pages.Page], variables: dict[str, str],
          database: dict[str, str]) -> list[tuple[str, Sequence[traffic.Request], Candidates]]:
    """A row's name, what is asked for, and of whom."""
    def one_each(found: list[servers.Contender]) -> list[servers.Contender]:
        """With four threads where threads are to be told."""
        return [each for each in found if not pages.threads_of(each.name) or each.name.endswith("4 threads")
                and not each.name.startswith(OURS)]

    def of_page(page: pages.Page) -> Candidates:
        place = pages.Place(environment, variables | (database if page.postgres else {}))
        return lambda pinned: [dataclasses.replace(each, pinned=pinned) for each in one_each(page.contenders(place))]

    hello = traffic.varied(HELLO)
    return [("WSGI, a small page", hello, lambda pinned: one_each(
                python_servers.wsgi(environment, "plain_wsgi:application", pinned=pinned))),
            ("ASGI, a small page", hello, lambda pinned: python_servers.asgi(
                environment, "plain_asgi:application", pinned=pinned)),
            *((page.title, page.requests, of_page(page)) for page in chosen)]


def _in_both_forms(options: rounds.Options, name: str, requests: Sequence[traffic.Request], candidates: Candidates,
                   seconds: float, folder: Path, report: Report) -> dict[str, stored.Rounds]:
    found = {}
    for form in (BOTH, ONE):
        pinned = form == ONE
        loop = Loop(compare.CONNECTIONS, seconds, WARM_UP, spin=pinned, pinned=pinned)
        contenders, skipped = rounds.present(dataclasses.replace(options, only=()), candidates(pinned))
        report.text(*skipped)
        table: dict[str, Series] = {}
        with compare.running(contenders, OURS, folder, report) as up:
            right, file = compare.settled(up, OURS, name, requests, folder, report)
            for number in range(options.rounds(PAIRS[form], smoke=1)):
                say(f"readme, {name}, {form}: round {number + 1}")
                for server in right:
                    in_closed_loop(options, server, file, table.setdefault(server.name, Series()), loop)
                    rounds.rest(server)
        found[form] = {server: {"rate": series.rate, "cpu": series.cpu, "p99": series.percentiles[0.99]}
                       for server, series in table.items()}
    return found


def _static(options: rounds.Options, folder: Path, report: Report) -> dict[str, Any]:
    """Files, the fixed schedule and the memory of connections, beside nginx."""
    root = folder / "root"
    root.mkdir()
    (root / PATH[1:]).write_bytes(BODY)
    (root / idle_memory.PATH[1:]).write_bytes(idle_memory.BODY)
    files = []
    for name, size, seconds in FILES:
        (root / str(size)).write_bytes(bytes(size))
        requests = [traffic.bare(f"/{size}", bytes(size))]
        files.append({"name": name, **_in_both_forms(options, name, requests, lambda pinned: _file_servers(root, pinned),
                                                     seconds, folder, report)})
    schedule = {form: _schedule(options, root, form == ONE, folder) for form in (BOTH, ONE)}
    return {"files": files, "schedule": schedule, "memory": _memory(options, root, folder)}


def _file_servers(root: Path, pinned: bool) -> list[servers.Contender]:
    """With this root, whatever they are started with."""
    def rooted(contender: servers.Contender) -> servers.Contender:
        return dataclasses.replace(contender, pinned=pinned, command=lambda each, place: contender.command(
            each, dataclasses.replace(place, root=root)))

    return [rooted(each) for each in (servers.NGINX, servers.NGINX_CACHE, servers.maitred())]


def _schedule(options: rounds.Options, root: Path, pinned: bool, folder: Path) -> stored.Rounds:
    found: stored.Rounds = {}
    contenders, _ = rounds.present(dataclasses.replace(options, only=()),
                                   [dataclasses.replace(each, pinned=pinned) for each in (servers.NGINX, servers.maitred())])
    seconds = options.duration(SCHEDULE_S, 0.5)
    with rounds.all_running(contenders, root, folder) as up:
        for number in range(options.rounds(SCHEDULES, smoke=1)):
            say(f"readme, schedule, {ONE if pinned else BOTH}: round {number + 1}")
            for server in up:
                seen = load.openloop(server.port, load.one_path(PATH, len(BODY)), RATE, seconds,
                                     SCHEDULE_WARM_UP_S, CONNECTIONS, folder, pinned=pinned)
                if seen.wrong or seen.broken or not seen.latencies:
                    raise load.WrongAnswer(f"{server.name}: {seen.wrong} wrong answers, {seen.broken} connections broke")
                figure = found.setdefault(server.name, {"p50": [], "p90": []})
                figure["p50"].append(figures.percentile(seen.latencies, 0.5))
                figure["p90"].append(figures.percentile(seen.latencies, 0.9))
    return found


def _memory(options: rounds.Options, root: Path, folder: Path) -> dict[str, list[float]]:
    few, many = (idle_memory.SMOKE_FEW, idle_memory.SMOKE_MANY) if options.smoke else (idle_memory.FEW, idle_memory.MANY)
    found = {}
    for contender in (servers.NGINX, servers.maitred()):
        say(f"readme, memory: {contender.name}")
        with servers.running(contender, root, folder, many) as server:
            found[contender.name] = [idle_memory.per_connection(server, few, many)]
    return found
