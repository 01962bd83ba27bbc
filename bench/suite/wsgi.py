"""WSGI: CPU, throughput and latency for a hello and a 10 KiB echo, bare and as browsers ask."""

from __future__ import annotations

from pathlib import Path

from benchlib import compare, peers, python_servers, rounds, servers, traffic
from benchlib.report import Report

TITLE = "WSGI: CPU per request"
APPLICATION = "plain_wsgi:application"
HELLO = b"Hello, world!"
BODY = bytes(range(256)) * 40
WORKLOADS = (
    compare.Workload("hello, bare", [traffic.bare("/", HELLO)]),
    compare.Workload("hello, bare, load that sleeps", [traffic.bare("/", HELLO)], spin=False),
    compare.Workload("hello, varied paths and 12 fields", traffic.varied(HELLO)),
    compare.Workload("10 KiB echo, bare", [traffic.bare("/echo", BODY, BODY)]),
    compare.Workload("10 KiB echo, varied paths and 12 fields", traffic.varied(BODY, BODY)),
)
OURS = python_servers.OURS
BELOW = ("granian, 1 thread", "granian, 4 threads", "gunicorn gthread, 4 threads")
#: At most so many times the best peer.
GOAL = 0.85


def run(options: rounds.Options, folder: Path, report: Report) -> None:
    rounds.need("taskset")
    servers.cargo_build("openloop")
    environment = peers.environment(options)
    report.text(f"{environment.description}; {peers.versions(environment, python_servers.PACKAGES)}.", "",
                f"{compare.method(options)} \"maitred\" has its default of 1 to 10 threads, peregrine and weft theirs; "
                "freastal has one (these three run the application on the thread that polls).")
    results = []
    for form in compare.forms(options):
        freastal = python_servers.Wsgi(environment, APPLICATION, pinned=form.pinned).freastal()
        contenders, skipped = rounds.present(options, [freastal, *python_servers.wsgi(environment, APPLICATION, pinned=form.pinned)])
        report.text(*skipped)
        with compare.running(contenders, OURS, folder, report) as up:
            # Where the load always sleeps, the workload that says so is there already.
            results += [compare.measure(options, up, OURS, workload, form, folder, report)
                        for workload in WORKLOADS if form.pinned or workload.spin]
    compare.gates(report, results, OURS, BELOW, GOAL)
    report.chart(compare.bars(TITLE, results))
