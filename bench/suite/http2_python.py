"""HTTP/2 and Python: CPU of a WSGI and an ASGI hello over h2load, and one connection with many WSGI streams of which some wait."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchlib import compare, costs, figures, h2, load, peers, python_servers, rounds, servers, streams
from benchlib.report import Report, say

TITLE = "HTTP/2 and Python: CPU per request"
OURS = python_servers.OURS
HELLO = b"Hello, world!"
APPLICATIONS = {"wsgi": "plain_wsgi:application", "asgi": "plain_asgi:application"}
#: More than one connection's worth.
PATHS = 64
SECONDS, SMOKE_SECONDS, PAIRS = 2.0, 0.4, 9
REQUESTS = costs.Columns("CPU-s per 100,000 requests", 1e4, 3, "requests/s")
#: At most so many times each of the others.
GOAL = 1.0

#: One connection: so many streams at once, requests in all, and every which of them waits.
STREAMS, ALL, EVERY = 100, 1000, 10
#: The gate: the p99 of the others, in milliseconds.
MOST_P99_MS = 10.0
#: With every thread blocked: how often a ping is sent, how many, and the longest that one may take, in milliseconds.
PING_S, PINGS, MOST_PING_MS = 0.05, 50, 50.0
BLOCK = 256 << 10


@dataclass(frozen=True)
class Workload:
    name: str
    interface: str
    fields: tuple[str, ...] = ()


WORKLOADS = tuple(Workload(f"{interface.upper()} hello, {name}", interface, fields)
                  for interface in APPLICATIONS for name, fields in (("varied paths", ()), ("varied paths and 12 fields", h2.FIELDS)))


def run(options: rounds.Options, folder: Path, report: Report) -> None:
    rounds.need("taskset", "h2load")
    environment = peers.environment(options)
    report.text(f"{environment.description}; {peers.versions(environment, (*python_servers.PACKAGES, 'hypercorn'))}; {h2.version()}.", "",
                f"In clear text by prior knowledge; one worker process each, {h2.CONNECTIONS} connections with {h2.STREAMS} streams, {PATHS} paths. "
                f"\"maitred\" has its default of 1 to 10 threads. {rounds.INTERVAL_NOTE}")
    gates: list[str] = []
    groups = []
    for form in compare.forms(options):
        for interface, application in APPLICATIONS.items():
            contenders, skipped = rounds.present(options, h2.python(environment, application, interface, form.pinned))
            report.text(*skipped)
            with compare.running(contenders, OURS, folder, report) as up:
                for workload in (each for each in WORKLOADS if each.interface == interface):
                    cpu = _measure(options, form, workload, up, folder, report)
                    groups.append((f"{workload.name}, {form.name}", cpu))
                    gates += [rounds.verdict(f"Target, CPU against {peer}, {workload.name}, {form.name}", ratio, GOAL)
                              for peer, ratio in costs.ratios(cpu, OURS).items()]
    if not options.only or OURS in options.only:
        gates += _one_connection(options, environment, folder, report)
    report.text("## Gates", "", *gates)
    report.chart(costs.bars(TITLE, "CPU-seconds per 100,000 requests", groups))


def _measure(options: rounds.Options, form: compare.Form, workload: Workload, up: Sequence[servers.Server], folder: Path,
             report: Report) -> dict[str, list[float]]:
    paths = [f"/shop/items/{number:05d}?ref=list&page={number % 9}" for number in range(PATHS)]
    what = h2.Load(h2.CLEAR, paths, len(HELLO), workload.fields)
    able = h2.able(up, what, [HELLO] * PATHS, OURS, report)
    seconds = options.duration(SECONDS, SMOKE_SECONDS)

    def work(server: servers.Server) -> rounds.Timed[load.Closed]:
        done = h2.run(server, what, seconds, folder, form.pinned)
        return rounds.Timed(done.outcome.closed, done.cpu_ns, done.others)

    pairs = options.rounds(PAIRS if form.pinned else form.pairs, smoke=1)
    return costs.measure_timed(f"{workload.name}, {form.name}", able, OURS, pairs, work, REQUESTS, report)


# One connection


def _one_connection(options: rounds.Options, environment: peers.Environment, folder: Path, report: Report) -> list[str]:
    """Gate 4: streams that wait cost the others nothing, and threads that are blocked cost the connection nothing."""
    root = folder / "static"
    root.mkdir(exist_ok=True)
    (root / "block").write_bytes(b"x" * BLOCK)
    words = ["--static", f"/static={root}"]
    report.text("## One connection with many WSGI streams",
                f"Server and client on both cores. First {STREAMS} streams at once, {ALL:,} requests, every {EVERY}th sleeps 50 ms, 10 threads: from a "
                f"request to the last byte of its answer. Then 2 threads, both asleep for 3 s: a ping every {1e3 * PING_S:.0f} ms, and between them a file of "
                f"{BLOCK >> 10} KiB by windows of 64 KiB. Medians of the rounds.")
    mixed = python_servers.ours(environment, "streams_wsgi:application", "wsgi", "streams", 10, pinned=False)
    blocked = python_servers.ours(environment, "streams_wsgi:application", "wsgi", "blocked", 2, words, pinned=False)
    count = options.rounds(5, smoke=1)
    with servers.running(mixed, folder, folder) as server:
        p99 = [_mixed(server.port) for _ in range(count)]
    with servers.running(blocked, folder, folder) as server:
        pings = [_blocked(server.port, 5 if options.smoke else PINGS) for _ in range(count)]
    fast, slow, ping, file = (figures.spread(values).median * 1e3 for values in zip(*(a + b for a, b in zip(p99, pings, strict=True)), strict=True))
    report.table(["", "ms"], [["requests that do not wait, p99", f"{fast:.2f}"], ["requests that sleep 50 ms, p99", f"{slow:.2f}"],
                              ["every thread blocked: the slowest ping", f"{ping:.2f}"], ["… the slowest file", f"{file:.2f}"]])
    return [rounds.verdict(f"Gate, p99 in ms of the requests beside those that wait, {STREAMS} streams", fast, MOST_P99_MS),
            rounds.verdict("Gate, the slowest ping in ms with every thread blocked", ping, MOST_PING_MS)]


def _mixed(port: int) -> tuple[float, float]:
    """The p99 of those that do not wait, and of those that do, in seconds."""
    slow: dict[bool, list[float]] = {True: [], False: []}
    with streams.Connection(port) as connection:
        # Threads are made while there is work; they are there before it is measured.
        for _ in range(2):
            asked = {connection.ask(b"/slow" if number % EVERY == 0 else b"/"): number for number in range(STREAMS)}
            _await(connection, set(asked))
        waiting: dict[int, bool] = {}
        number = 0
        while number < ALL or waiting:
            while number < ALL and len(waiting) < STREAMS:
                waits = number % EVERY == 0
                waiting[connection.ask(b"/slow" if waits else b"/")] = waits
                number += 1
            for stream in connection.take():
                answer = connection.answers[stream]
                if not answer.is_right:
                    raise load.WrongAnswer("a stream was not answered with 200")
                slow[waiting.pop(stream)].append(answer.seconds)
            if connection.is_over:
                raise load.WrongAnswer(f"the connection was ended with {connection.code}")
    return figures.percentile(sorted(slow[False]), 0.99), figures.percentile(sorted(slow[True]), 0.99)


def _await(connection: streams.Connection, waiting: set[int]) -> None:
    while waiting and not connection.is_over:
        waiting.difference_update(connection.take())


def _blocked(port: int, count: int) -> tuple[float, float]:
    """The slowest ping and the slowest file while every thread is blocked, in seconds, all on one connection."""
    say("http2-python: every thread blocked")
    pings: list[float] = []
    files: list[float] = []
    with streams.Connection(port) as connection:
        staying = [connection.answers[connection.ask(b"/stay")] for _ in range(2)]
        time.sleep(0.2)
        while len(pings) < count:
            begun = time.perf_counter()
            connection.ping(b"%08d" % len(pings))
            ping, file = time.perf_counter() - begun, connection.fetch(b"/static/block").seconds
            if any(each.ended for each in staying):
                break
            pings.append(ping)
            files.append(file)
            time.sleep(PING_S)
    if not pings:
        raise load.WrongAnswer("nothing was answered while every thread was blocked")
    return max(pings), max(files)
