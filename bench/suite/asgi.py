"""ASGI: CPU, throughput and latency for a hello, a 10 KiB echo and FastAPI's hello, bare and as browsers ask."""

from __future__ import annotations

import itertools
from pathlib import Path

from benchlib import compare, peers, python_servers, rounds, servers, traffic
from benchlib.report import Report, say

TITLE = "ASGI: CPU per request"
HELLO = b"Hello, world!"
BODY = bytes(range(256)) * 40
JSON = b'{"message":"Hello, world!"}'
#: Application, the module it needs, workloads.
GROUPS = (
    ("plain_asgi:application", None, (
        compare.Workload("hello, bare", [traffic.bare("/", HELLO)]),
        compare.Workload("hello, bare, load that sleeps", [traffic.bare("/", HELLO)], spin=False),
        compare.Workload("hello, varied paths and 12 fields", traffic.varied(HELLO)),
        compare.Workload("10 KiB echo, bare", [traffic.bare("/echo", BODY, BODY)]),
        compare.Workload("10 KiB echo, varied paths and 12 fields", traffic.varied(BODY, BODY)),
    )),
    ("small_fastapi:application", "fastapi", (
        compare.Workload("FastAPI hello, bare", [traffic.bare("/", JSON)]),
        compare.Workload("FastAPI hello, 12 fields", [traffic.browser(number, f"/?page={number}", JSON)
                                                      for number in range(traffic.VARIANTS)]),
    )),
)
OURS = python_servers.OURS
BELOW = ("granian", "uvicorn")
#: At most so many times the best peer.
GOAL = 0.85


def run(options: rounds.Options, folder: Path, report: Report) -> None:
    rounds.need("taskset")
    servers.cargo_build("openloop")
    environment = peers.environment(options)
    report.text(f"{environment.description}; {peers.versions(environment, python_servers.PACKAGES)}.", "",
                f"{compare.method(options)} All on uvloop where it is installed; lifespan as each server has it.")
    results = []
    for form, (application, module, workloads) in itertools.product(compare.forms(options), GROUPS):
        if module and not environment.has(module):
            line = f"skipped: {workloads[0].name} ({module} is not installed)"
            say(line)
            report.text(line)
            continue
        contenders, skipped = rounds.present(options, python_servers.asgi(environment, application,
                                                                               pinned=form.pinned))
        if skipped:
            report.text(*skipped)
        with compare.running(contenders, OURS, folder, report) as up:
            # Where the load always sleeps, the workload that says so is there already.
            results += [compare.measure(options, up, OURS, workload, form, folder, report) for workload in workloads
                        if up and (form.pinned or workload.spin)]
    if not results:
        raise rounds.Missing("no ASGI server starts")
    compare.gates(report, results, OURS, BELOW, GOAL)
    report.chart(compare.bars(TITLE, results))
