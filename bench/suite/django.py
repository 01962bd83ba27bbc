"""Frameworks at work: a Django page with ten SQLite queries, and a FastAPI endpoint that validates what it gets."""

from __future__ import annotations

import json
from pathlib import Path

from benchlib import compare, pages, peers, python_servers, rounds, servers, traffic
from benchlib.report import Report, say

TITLE = "Django and FastAPI: whole requests"
#: The same number for every server.
THREADS = 4
PAGE = "shop.wsgi:application"
ENDPOINT = "small_fastapi:application"
PEERS = ("granian", "uvicorn", "gunicorn")
PAGES = compare.Workload("Django page, ten queries", [
    traffic.browser(number, f"/categories/{1 + number}") for number in range(traffic.VARIANTS)])
_ITEMS = [{"name": f"Item {place}", "price": 1.5 * (place + 1), "tags": ["new", "heavy"]} for place in range(5)]
ORDERS = compare.Workload("FastAPI endpoint, validated", [
    traffic.bare(f"/orders/{number}?currency=EUR", body=json.dumps({"customer": number, "items": _ITEMS}).encode(),
                 media="application/json") for number in range(traffic.VARIANTS)])


def run(options: rounds.Options, folder: Path, report: Report) -> None:
    rounds.need("taskset")
    servers.cargo_build("openloop")
    environment = peers.environment(options)
    report.text(f"{environment.description}; {peers.versions(environment, python_servers.PACKAGES)}.", "",
                f"{compare.method(options)} Django: {THREADS} threads each, connections to the database are kept. FastAPI: "
                "`async def`, so on each server's event loop.")
    results = []
    django, fastapi = environment.has("django"), environment.has("fastapi")
    variables = pages.sqlite(environment, folder) if django else {}
    for form in compare.forms(options):
        if django:
            contenders = python_servers.wsgi(environment, PAGE, THREADS, variables, form.pinned)
            results.append(_measure(options, contenders, f"{python_servers.OURS}, {THREADS} threads", PAGES, form, folder,
                                    report))
        if fastapi:
            contenders = [each for each in python_servers.asgi(environment, ENDPOINT, pinned=form.pinned)
                          if each.name.startswith((python_servers.OURS, *PEERS))]
            results.append(_measure(options, contenders, python_servers.OURS, ORDERS, form, folder, report))
    for there, workload, module in ((django, PAGES, "django"), (fastapi, ORDERS, "fastapi")):
        if not there:
            _skip(report, workload.name, module)
    results = [each for each in results if each.samples]
    if not results:
        raise rounds.Missing("neither django nor fastapi is installed")
    report.chart(compare.bars(TITLE, results))


def _measure(options: rounds.Options, candidates: list[servers.Contender], ours: str, workload: compare.Workload,
             form: compare.Form, folder: Path, report: Report) -> compare.Result:
    contenders, skipped = rounds.present(options, candidates)
    if skipped:
        report.text(*skipped)
    with compare.running(contenders, ours, folder, report) as up:
        return compare.measure(options, up, ours, workload, form, folder, report)


def _skip(report: Report, what: str, module: str) -> None:
    line = f"skipped: {what} ({module} is not installed)"
    say(line)
    report.text(line)
