"""Directly assigned requests: how long from the client's send to the handler's entry, on an idle server."""

from __future__ import annotations

import random
import re
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchlib import chart, figures, load, machine, rounds, servers, traffic, workbench
from benchlib.report import Report, say

TITLE = "Directly assigned requests: from the send to the handler's entry"
#: The loopback's own delay.
ECHO = "echo thread"
REQUEST = traffic.bare("/clock")
#: Of each server.
REQUESTS, SMOKE_REQUESTS = 3000, 50
#: Seconds before each request: every thread and core has gone to sleep by then.
PAUSE_S = (0.002, 0.005)
#: Not measured first, of each server.
WARM_UP = 20
#: Digits of the time in an answer.
DIGITS = 20
#: Parts of a `Server-Timing` field, and those that are a wait for a thread or its interpreter.
TOLD = re.compile(rb"([a-z]+);dur=([0-9.]+)")
WAITS = (b"queue", b"gate")
#: Median above the echo's, µs.
GATE_US = 50.0


@dataclass
class Client:
    """One keep-alive connection, and the spans in µs."""

    name: str
    connection: socket.socket
    spans: list[float] = field(default_factory=list)
    #: The queue span with the wait for the interpreter, as the server tells it.
    queues: list[float] = field(default_factory=list)

    def ask(self) -> tuple[float, float | None]:
        """From just before the send to the server's reading of the same clock, and the queue span, in µs."""
        sent = time.monotonic_ns()
        self.connection.sendall(REQUEST.wire)
        answer = self.connection.recv(4096)
        # A head and its body come in one segment from every contender here; else the digits are not at the end.
        text = answer[-DIGITS:]
        if not answer.startswith(b"HTTP/1.1 200 ") or not text.isdigit():
            raise load.WrongAnswer(f"{self.name} answered {answer[:200]!r}")
        told = dict(TOLD.findall(answer))
        queue = sum(float(told[name]) for name in WAITS) * 1e3 if told else None
        return (int(text) - sent) / 1e3, queue


def run(options: rounds.Options, folder: Path, report: Report) -> None:
    rounds.need("taskset")
    workbench.build()
    lines: list[str] = []
    contenders = [workbench.echo(ECHO), *(workbench.contender(environment, name, ["--server-timing"])
                                          for name, environment in workbench.languages(options, lines).items())]
    chosen, skipped = rounds.present(options, contenders)
    count = options.pairs or (SMOKE_REQUESTS if options.smoke else REQUESTS)
    report.text(
        f"{count:,} requests to each server over one connection, in turn, {PAUSE_S[0] * 1e3:g} to "
        f"{PAUSE_S[1] * 1e3:g} ms apart, so that everything sleeps when one comes. The client reads `CLOCK_MONOTONIC` "
        f"before it sends, the handler at its entry. \"{ECHO}\" blocks in `recv` and answers with the same clock: what "
        "loopback and waking a thread take by themselves. Servers are on one core, the client on another. \"Above\" is "
        "formed pair by pair. The queue span is what the server tells in `Server-Timing` (`--server-timing`): from the "
        "kernel's receipt until a thread that runs the request had it, and its interpreter; of the echo until it had "
        "read it.")
    report.text(*lines, *skipped)
    with rounds.all_running(chosen, folder, folder) as up:
        clients = _ask(up, count)
    _write(report, clients)


def _ask(up: Sequence[servers.Server], count: int) -> list[Client]:
    clients = []
    pauses = random.Random(1)
    # The servers run already: they are not held to the client's core with it.
    with machine.on_core(machine.cores()[1]):
        try:
            for server in up:
                connection = socket.create_connection(("127.0.0.1", server.port), timeout=10)
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                clients.append(Client(server.name, connection))
            for number in range(WARM_UP + count):
                if number % 500 == WARM_UP:
                    say(f"assigned: request {number - WARM_UP + 1}")
                for client in clients:
                    time.sleep(pauses.uniform(*PAUSE_S))
                    span, queue = client.ask()
                    if number >= WARM_UP:
                        client.spans.append(span)
                        client.queues += [] if queue is None else [queue]
        finally:
            for client in clients:
                client.connection.close()
    return clients


def _write(report: Report, clients: Sequence[Client]) -> None:
    echo = next((client for client in clients if client.name == ECHO), None)
    rows, bars, gates = [], [], []
    for client in clients:
        of = figures.spread(client.spans)
        above = told = "–"
        if echo and client is not echo:
            difference = figures.spread([a - b for a, b in zip(client.spans, echo.spans, strict=True)])
            above = f"{difference.median:.1f} [{difference.lower:.1f}, {difference.upper:.1f}]"
            what = f"For comparison, {client.name}: from the send to the handler's entry, median above the {ECHO}, µs"
            gates.append(rounds.verdict(what, difference.median, GATE_US))
        if client.queues:
            queue = figures.spread(client.queues)
            told = f"{queue.median:.0f} [{queue.lower:.0f}, {queue.upper:.0f}]"
        if echo and client is not echo:
            difference = figures.spread([a - b for a, b in zip(client.queues, echo.queues, strict=True)])
            what = f"Gate, {client.name}: queue span, median above the {ECHO}'s, µs"
            gates.append(rounds.verdict(what, difference.median, GATE_US))
        ordered = sorted(client.spans)
        rows.append([client.name, f"{of.median:.1f} [{of.lower:.1f}, {of.upper:.1f}]",
                     *(f"{figures.percentile(ordered, share):.1f}" for share in (0.9, 0.99)), above, told])
        bars.append(chart.Bar(client.name, of.median, of.lower, of.upper))
    report.table(["server", "µs, median with quartiles", "p90", "p99", f"above the {ECHO}", "queue span"], rows)
    if gates:
        report.text("## Gates", "", *gates)
    report.chart(chart.bars(TITLE, "µs, median with quartiles", [("all", bars)]))
