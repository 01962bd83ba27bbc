"""Memory per idle keep-alive connection that has served one request."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Sequence
from pathlib import Path

from benchlib import chart, figures, machine, rounds, servers
from benchlib.load import WrongAnswer, verify
from benchlib.report import Report, say

TITLE = "Memory per idle connection"
FEW, MANY = 1000, 11000
SMOKE_FEW, SMOKE_MANY = 100, 600
RUNS = 3
BODY = b"x" * 1024
PATH = "/1k"
OURS = "maitred"
GATE_BYTES, GOAL_BYTES = 1024, 517

#: Per connection PSS and private bytes; then PSS of the whole server with few and with many connections.
Figures = tuple[float, float, int, int]


def run(options: rounds.Options, folder: Path, report: Report) -> None:
    rounds.need("taskset")
    limit = machine.raise_descriptor_limit()
    few, many = (SMOKE_FEW, SMOKE_MANY) if options.smoke else (FEW, MANY)
    if many + 100 > limit:
        raise rounds.Missing(f"{many:,} connections need a higher limit of open files than {limit:,}")
    contenders, skipped = rounds.present(
        options, [servers.maitred(options.threads), servers.NGINX, servers.H2O])
    root = folder / "root"
    root.mkdir()
    (root / PATH[1:]).write_bytes(BODY)
    report.text(f"Bytes for each further connection from {few:,} to {many:,} connections, every one idle after one "
                f"answered request of {len(BODY):,} bytes. From smaps_rollup, all processes of the server; kernel "
                "memory (sockets, epoll) is not in it. Each run has a fresh server. nginx allocates and clears its "
                "array of connections and events when it starts, so that part is in its base and not in its "
                "figure per connection.", *skipped)
    samples: dict[str, list[Figures]] = {each.name: [] for each in contenders}
    for number in range(options.rounds(RUNS, smoke=1)):
        say(f"idle-memory: run {number + 1}")
        for contender in contenders:
            # As many as nginx must be told in advance; the others do not ask.
            with servers.running(contender, root, folder, MANY) as server:
                samples[contender.name].append(_measure(server, few, many))
    _write(report, samples, few, many)


def _measure(server: servers.Server, few: int, many: int) -> Figures:
    verify(server.name, server.port, PATH, BODY, len(BODY))
    with contextlib.ExitStack() as stack:
        _open(server, few, stack)
        before = machine.settled_memory(server.pid)
        _open(server, many - few, stack)
        after = machine.settled_memory(server.pid)
    count = many - few
    return (after.pss - before.pss) / count, (after.private - before.private) / count, before.pss, after.pss


def per_connection(server: servers.Server, few: int, many: int) -> float:
    """PSS bytes of each further connection beyond the first `few`."""
    return _measure(server, few, many)[0]


def _open(server: servers.Server, count: int, stack: contextlib.ExitStack) -> None:
    request = f"GET {PATH} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()
    for _ in range(count):
        connection = stack.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=10))
        connection.sendall(request)
        said = b""
        while not said.endswith(BODY):
            part = connection.recv(65536)
            if not part:
                raise WrongAnswer(f"{server.name} closed a connection after {said[:80]!r}")
            said += part
        if not said.startswith(b"HTTP/1.1 200"):
            raise WrongAnswer(f"{server.name} answered {said[:80]!r}")


def _write(report: Report, samples: dict[str, list[Figures]], few: int, many: int) -> None:
    rows, bars = [], []
    for name, values in samples.items():
        pss, private = (figures.spread([each[index] for each in values]) for index in (0, 1))
        base, full = (figures.spread([each[index] for each in values]).median / 2**20 for index in (2, 3))
        rows.append([name, f"{pss.median:,.0f} [{pss.low:,.0f}, {pss.high:,.0f}]", f"{private.median:,.0f}",
                     f"{base:.1f}", f"{full:.1f}", str(len(values))])
        bars.append(chart.Bar(name, pss.median, pss.low, pss.high))
    report.table(["server", "PSS bytes per connection [least, most]", "private bytes per connection",
                  f"PSS MiB at {few:,}", f"PSS MiB at {many:,}", "runs"], rows)
    report.chart(chart.bars(TITLE, "bytes", [("PSS per idle connection", bars)]))
    _verdicts(report, samples.get(OURS, ()))


def _verdicts(report: Report, values: Sequence[Figures]) -> None:
    if values:
        median = figures.spread([each[0] for each in values]).median
        report.text(rounds.verdict("Gate, bytes per connection", median, GATE_BYTES),
                    rounds.verdict("Goal, bytes per connection", median, GOAL_BYTES))
