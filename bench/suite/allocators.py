"""The engine with the system's allocator, with mimalloc and with jemalloc: memory over a long mixed run, CPU, requests."""

from __future__ import annotations

import dataclasses
import socket
from dataclasses import dataclass, field
from pathlib import Path

from benchlib import chart, compare, crowd, figures, load, machine, rounds, servers, traffic, workbench
from benchlib.report import Report, say

TITLE = "Allocators: memory over a long mixed run"
SYSTEM = "system"
ALLOCATORS = (SYSTEM, "mimalloc", "jemalloc")
#: The system's, told by its own variable (mallopt(3)) not to make an arena for each thread.
ONE_ARENA, ARENAS = "system, one arena", {"MALLOC_ARENA_MAX": "1"}
THREADS = 10
#: Turns of every server, and the length of the closed loop in each.
TURNS, SMOKE_TURNS, WINDOW_S = 40, 1, 4.0
#: Static files, by their sizes in KiB.
FILES = (1, 16, 200)
#: Slow readers of 2 MiB at so many bytes a second: they leave much behind in the server.
READERS, READ_RATE = 40, 400 << 10
#: Uploads in drips: the bodies are gathered in memory.
UPLOADERS, UPLOAD, UPLOAD_RATE = 40, 128 << 10, 200 << 10
#: Connections that come, ask once and stay until the turn is over.
VISITORS, SMOKE_VISITORS = 1000, 50
MIB = 2**20


@dataclass
class Series:
    """All turns of one server: CPU-seconds per 100,000 requests, requests per second, memory under load and at rest."""

    cpu: list[float] = field(default_factory=list)
    rate: list[float] = field(default_factory=list)
    loaded: list[float] = field(default_factory=list)
    rest: list[float] = field(default_factory=list)


def run(options: rounds.Options, folder: Path, report: Report) -> None:
    rounds.need("taskset")
    machine.raise_descriptor_limit()
    workbench.build()
    # Each takes minutes to build.
    names = ALLOCATORS[:1] if options.smoke else ALLOCATORS
    for name in names[1:]:
        workbench.build_with(name)
    root = folder / "root"
    root.mkdir()
    for size in FILES:
        (root / str(size)).write_bytes(bytes(size << 10))
    turns = options.rounds(TURNS, SMOKE_TURNS)
    visitors = SMOKE_VISITORS if options.smoke else VISITORS
    seconds = options.duration(WINDOW_S)
    report.text(
        f"The engine with a native handler, {THREADS} threads, server on one core, load on another; each server is loaded in "
        f"turn, {turns} times. A turn: {compare.CONNECTIONS} busy connections for {seconds:g} s (60 % hello with the fields of a "
        f"browser, 36 % static files of {', '.join(map(str, FILES))} KiB, 4 % bodies of 1 MiB), beside them "
        f"{READERS} clients that read 2 MiB at {READ_RATE >> 10} KiB/s and {UPLOADERS} that send {UPLOAD >> 10} KiB at "
        f"{UPLOAD_RATE >> 10} KiB/s, and {visitors:,} connections that ask once and stay until its end. Memory is PSS: loaded "
        "with all of that there, at rest when they have left. One arena: `MALLOC_ARENA_MAX=1`. "
        f"{rounds.INTERVAL_NOTE}")
    contenders = [workbench.allocating(name, ["--min-threads", str(THREADS), "--max-threads", str(THREADS),
                                              "--static", f"/files={root}"]) for name in names]
    contenders.append(dataclasses.replace(contenders[0], name=ONE_ARENA, environment={**contenders[0].environment, **ARENAS}))
    chosen, skipped = rounds.present(options, contenders)
    report.text(*skipped)
    table = {each.name: Series() for each in chosen}
    with rounds.all_running(chosen, root, folder, visitors) as up:
        wanted = _requests(up[0], folder)
        for number in range(turns):
            say(f"allocators: turn {number + 1}")
            for server in up:
                _turn(server, wanted, seconds, visitors, table[server.name])
    _write(report, table)


def _requests(server: servers.Server, folder: Path) -> list[str]:
    pages = [(request, 0.6 / traffic.VARIANTS) for request in _pages()]
    files = [(traffic.bare(f"/files/{size}", bytes(size << 10)), 0.36 / len(FILES)) for size in FILES]
    large = [(traffic.bare("/large/1"), 0.04)]
    requests = traffic.settle(server.name, server.port, traffic.blend([*pages, *files, *large]))
    return load.listed(traffic.write(folder / "requests", requests))


def _pages() -> list[traffic.Request]:
    return [traffic.browser(number, "/", workbench.HELLO) for number in range(traffic.VARIANTS)]


def _turn(server: servers.Server, wanted: list[str], seconds: float, visitors: int, series: Series) -> None:
    meter = rounds.Meter(server)
    slow = [crowd.Kind(READERS, traffic.bare("/large/2").wire, 1 << 20, READ_RATE),
            crowd.Kind(UPLOADERS, traffic.bare("/", body=bytes(UPLOAD)).wire, UPLOAD_RATE, 1 << 20)]
    stayed = [_visit(server.port) for _ in range(visitors)]
    try:
        with crowd.running(server.port, slow):
            closed = load.busy(server.port, wanted, compare.CONNECTIONS, 1, seconds, seconds / 4,
                               {"measuring": meter.start, "measured": meter.stop}, spin=False)
            series.loaded.append(machine.memory(server.pid).pss / MIB)
    finally:
        for connection in stayed:
            connection.close()
    if closed.failed or not closed.requests:
        raise load.WrongAnswer(f"{server.name}: {closed.failed} failed requests, {closed.requests} right ones")
    rounds.rest(server)
    series.rest.append(machine.memory(server.pid).pss / MIB)
    series.cpu.append(meter.cpu_ns / closed.requests / 1e4)
    series.rate.append(closed.rate)


def _visit(port: int) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), timeout=10)
    connection.sendall(traffic.browser(0, "/", workbench.HELLO).wire)
    said = b""
    while not said.endswith(workbench.HELLO):
        part = connection.recv(4096)
        if not part:
            raise load.WrongAnswer(f"a connection was closed after {said[:80]!r}")
        said += part
    return connection


def _write(report: Report, table: dict[str, Series]) -> None:
    rows = []
    for name, series in table.items():
        base = table.get(SYSTEM)
        cpu = "–" if base is None or name == SYSTEM else rounds.ratio_text(figures.ratios(series.cpu, base.cpu))
        rest = series.rest
        thirds = max(1, len(rest) // 3)
        rows.append([name, f"{figures.spread(series.cpu).median:.3f}", cpu, f"{figures.spread(series.rate).median:,.0f}",
                     f"{figures.spread(series.loaded).median:.1f}", f"{max(series.loaded):.1f}",
                     f"{figures.spread(rest[:thirds]).median:.1f}", f"{figures.spread(rest[-thirds:]).median:.1f}",
                     f"{max(rest):.1f}"])
    report.table(["allocator", "CPU-s per 100,000", "to the system's", "requests/s", "loaded, MiB", "most",
                  "at rest, first third", "last third", "most"], rows)
    lines = [chart.Line(f"{name}, {what}", list(enumerate(values, 1)), colour, dash)
             for colour, (name, series) in enumerate(table.items())
             for dash, (what, values) in enumerate((("at rest", series.rest), ("loaded", series.loaded)))]
    report.chart(chart.lines(TITLE, "turn", "PSS, MiB", lines))
