"""Uploads from 1 KiB to 100 MiB: what one costs in CPU, WSGI and ASGI, beside the peers."""

from __future__ import annotations

import http.client
from collections.abc import Sequence
from pathlib import Path

from benchlib import costs, load, peers, python_servers, rounds, servers
from benchlib.compare import running
from benchlib.report import Report

TITLE = "Uploads: CPU per body"
KIB = 1024
#: By the length of the body: connections at a time, and seconds of a round.
SIZES = {KIB: (16, 2), 64 * KIB: (16, 2), 256 * KIB: (8, 2), 1024 * KIB: (8, 2), 10 * 1024 * KIB: (4, 3),
         100 * 1024 * KIB: (2, 4)}
SMOKE = (KIB, 1024 * KIB)
#: Those that are read in parts, too: shorter ones are one part, or few.
IN_PARTS_FROM = 1024 * KIB
#: How an application reads them.
WHOLE, PARTS = "/", "/parts"
PAIRS = 5
OURS = python_servers.OURS
#: Against the best peer of each size.
GATE, GOAL = 1.3, 1.0


def run(options: rounds.Options, folder: Path, report: Report) -> None:
    rounds.need("taskset", "wrk")
    environment = peers.environment(options)
    report.text(f"{environment.description}; {peers.versions(environment, python_servers.PACKAGES)}.", "",
                "One worker process on the server's core, the load (wrk) on the other. The application takes the whole body, or from 1 MiB on "
                f"in WSGI also parts of 64 KiB, and answers with its length. Default settings. CPU is user and system of the server. {rounds.INTERVAL_NOTE}")
    results: dict[str, dict[str, list[float]]] = {}
    for interface in ("wsgi", "asgi"):
        application = f"upload_{interface}:application"
        make = python_servers.wsgi if interface == "wsgi" else python_servers.asgi
        contenders = [each for each in make(environment, application) if each.name != f"{OURS}, 1 thread"]
        contenders, skipped = rounds.present(options, contenders)
        report.text(*skipped)
        with running(contenders, OURS, folder, report) as up:
            for size in SMOKE if options.smoke else SIZES:
                for path in (WHOLE, PARTS) if interface == "wsgi" and size >= IN_PARTS_FROM else (WHOLE,):
                    name = f"{interface.upper()}, {named(size)}{' in parts' if path == PARTS else ''}"
                    results[name] = measure(options, up, (name, path, size), folder, report)
    gates(report, results)
    report.chart(costs.bars(TITLE, "CPU ms per upload", list(results.items())))


def named(size: int) -> str:
    return f"{size // KIB // KIB} MiB" if size >= KIB * KIB else f"{size // KIB} KiB"


def measure(options: rounds.Options, up: Sequence[servers.Server], what: tuple[str, str, int], folder: Path,
            report: Report) -> dict[str, list[float]]:
    """CPU milliseconds for each upload, by server, and their table in the report. `what` is its name, its path and how long bodies are."""
    name, path, size = what
    right = [server for server in up if takes(server, path, size, name, report)]
    connections, seconds = SIZES[size]

    def work(server: servers.Server) -> load.Closed:
        return load.wrk(server.port, path, connections, options.duration(seconds, 1), folder, body=size)

    columns = costs.Columns("CPU ms per upload", 1e6, 3, "MiB/s", size / KIB / KIB)
    return costs.measure(name, right, OURS, options.rounds(PAIRS, smoke=1), work, columns, report)


def takes(server: servers.Server, path: str, size: int, name: str, report: Report) -> bool:
    """Whether it answers right; a peer that does not is left out with a line."""
    client = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    try:
        client.request("POST", path, b"x" * size)
        answer = client.getresponse()
        said = f"{answer.status} {answer.read()[:100]!r}"
    except (OSError, http.client.HTTPException) as error:
        said = str(error)
    finally:
        client.close()
    if said == f"200 {str(size).encode()!r}":
        return True
    if server.name == OURS:
        raise load.WrongAnswer(f"{server.name}, {name}: {said}")
    report.text(f"left out of {name}: {server.name}: {said}")
    return False


def gates(report: Report, results: dict[str, dict[str, list[float]]]) -> None:
    lines = []
    for name, of in results.items():
        best = max(costs.ratios(of, OURS).values(), default=None)
        if best is not None:
            lines.append(rounds.verdict(f"Gate, CPU against the best peer, {name}", best, GATE))
            lines.append(rounds.verdict(f"Goal, the same, {name}", best, GOAL))
    if lines:
        report.text("## Gates", "", *lines)
