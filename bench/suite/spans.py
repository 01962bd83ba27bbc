"""The server's spans against the client's own clock: both times of each request, joined by its id."""

from __future__ import annotations

import concurrent.futures
import json
import socket
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

from benchlib import chart, figures, load, machine, rounds, servers, workbench
from benchlib.report import Report, say

TITLE = "Spans against the client's clock"
SPANS = ("accept", "queue", "gate", "filter", "run", "receive", "write")
#: One after the other over one connection; and over several at once.
CONNECTIONS = (1, 4)
SMOKE_DIVISOR, LEAST = 100, 2
#: A body in drips: so many pieces of so many bytes, seconds apart.
PIECES, PIECE, PIECE_EVERY_S = 8, 2048, 0.005
#: A slow reader takes at most so many bytes at once, seconds apart, over segments as on an Ethernet: with the loopback's
#: own the kernel's buffers would hold still more.
TAKEN, TAKEN_EVERY_S, SEGMENT, RECEIVE_BUFFER = 128 << 10, 0.0025, 1448, 128 << 10
#: Until the last lines are in a log.
LOG_LIMIT_S = 10.0
#: From here on a request is a long one, ms by the client's clock.
LONG_MS = 10.0
GATE_LONG_PERCENT, GATE_SHORT_US = 5.0, 200.0


@dataclass(frozen=True)
class Kind:
    """Requests of a kind, and how many."""

    name: str
    path: str
    count: int
    drips: bool = False
    slow: bool = False
    gated: bool = True


KINDS = (Kind("no work", "/", 1000), Kind("sleep 1 ms", "/sleep/1", 500), Kind("CPU 1 ms", "/cpu/1000", 500),
         *(Kind(f"sleep {each} ms", f"/sleep/{each}", 80) for each in (10, 20, 50)),
         *(Kind(f"CPU {each} ms", f"/cpu/{each}000", 80) for each in (10, 20, 50)),
         Kind("body in drips", "/", 100, drips=True), Kind("64 MiB, slow reader", "/large/64", 12, slow=True),
         Kind("8 MiB, slow reader", "/large/8", 20, slow=True, gated=False))


@dataclass
class Times:
    """Times of the requests of one row in ms, and what the server says of their parts."""

    client: list[float] = field(default_factory=list)
    server: list[float] = field(default_factory=list)
    spans: dict[str, list[float]] = field(default_factory=lambda: {span: [] for span in SPANS})
    #: Requests in place of which others were asked, as the client had lost its core.
    again: int = 0

    def apart(self, long: bool | None = None) -> tuple[list[float], list[float]]:
        """How far the server's are from the client's, sorted: µs, and per cent; of long requests, of shorter ones, of all."""
        pairs = [(mine, abs(mine - its)) for mine, its in zip(self.client, self.server, strict=True)
                 if long is None or (mine >= LONG_MS) == long]
        return sorted(apart * 1e3 for _, apart in pairs), sorted(100 * apart / mine for mine, apart in pairs)

    def longest(self) -> str:
        """The span that took most of the time, and its median."""
        name = max(self.spans, key=lambda span: sum(self.spans[span]))
        return f"{name} {figures.spread(self.spans[name]).median:.3f}"


#: By server, number of connections and kind.
Table = dict[tuple[str, int, Kind], Times]


def run(options: rounds.Options, folder: Path, report: Report) -> None:
    rounds.need("taskset")
    workbench.build()
    lines: list[str] = []
    contenders = []
    for name, environment in workbench.languages(options, lines).items():
        words = ["--access-log", str(folder / name), "--access-log-format", "json"]
        contenders.append(workbench.contender(environment, name, words))
    chosen, skipped = rounds.present(options, contenders)
    report.text(
        "The client reads `CLOCK_MONOTONIC` before it sends the first byte of a request and after it has received the last "
        "one of the answer. The server's time is the `total` of the same request, by its `X-Request-ID`, in an access log "
        "in the format `json`. The difference has what only the client sees: its own system calls. One thread of its own "
        "core asks over all connections; it never sleeps, so that it need not be woken, but for slow readers. Where another "
        "program takes its core just when a request goes or its answer comes, it does not know the time and asks again (last "
        "column: how often). Where threads of the server contend for its core, one may lose it after its send, before it has "
        "read the clock: then the server's time is longer than the client's, in `write`. Nothing is subtracted.", "",
        f"{PIECES} pieces of {PIECE:,} bytes make a body in drips, {PIECE_EVERY_S * 1e3:g} ms apart; a slow reader takes at "
        f"most 128 KiB every {TAKEN_EVERY_S * 1e3:g} ms, with a receive buffer of 128 KiB and segments of {SEGMENT:,} "
        "bytes. The server's time ends when the kernel has taken the last byte: what the kernel still holds then, a "
        "megabyte or more, is in the client's time alone. The gates have the slow reader of 64 MiB, of which that is a "
        "small part; the one of 8 MiB shows how far a smaller one is off.", "",
        "Servers are on one core, the client is on another. Times in ms, differences without their sign; the longest span "
        "is the one that took most of the server's time, with its median.")
    report.text(*lines, *skipped)
    table: Table = {}
    with rounds.all_running(chosen, folder, folder) as up, machine.on_core(machine.cores()[1]):
        for connections in CONNECTIONS:
            for kind in KINDS:
                say(f"spans: {kind.name}, {connections} at once")
                for server in up:
                    each = -(-_count(options, kind) // connections)
                    table[server.name, connections, kind] = _measure(server, kind, connections, each, folder)
    _write(report, table)


def _count(options: rounds.Options, kind: Kind) -> int:
    return max(LEAST, kind.count // SMOKE_DIVISOR) if options.smoke else kind.count


def _measure(server: servers.Server, kind: Kind, connections: int, each: int, folder: Path) -> Times:
    asked, again = (_sip if kind.slow else _stop)(server, kind, connections, each)
    told = _told(folder / server.name, set(asked))
    times = Times(again=again)
    for ident, client in asked.items():
        times.client.append(client)
        times.server.append(told[ident]["total"] * 1e3)
        for span in SPANS:
            times.spans[span].append(told[ident][span] * 1e3)
    return times


def _name(kind: Kind, connections: int) -> str:
    return f"{kind.path}{'-drips' * kind.drips}-{connections}"


def _stop(server: servers.Server, kind: Kind, connections: int, each: int) -> tuple[dict[str, float], int]:
    """So many requests over each connection, by the stopwatch; the client's times in ms, by their ids, and how many requests
    it asked again."""
    drips = [str(PIECES), str(PIECE), str(int(PIECE_EVERY_S * 1e6))] if kind.drips else []
    command = [*machine.pinned(machine.cores()[1]), str(workbench.STOPWATCH), str(server.port), kind.path,
               _name(kind, connections), str(connections), str(each), *drips]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode:
        raise load.WrongAnswer(f"{server.name}: {done.stderr.strip()}")
    lines = (line.split() for line in done.stdout.splitlines())
    return {ident: int(nanos) / 1e6 for ident, nanos in lines}, int(done.stderr or 0)


def _sip(server: servers.Server, kind: Kind, connections: int, each: int) -> tuple[dict[str, float], int]:
    """The same with slow readers, who take what comes."""
    with concurrent.futures.ThreadPoolExecutor(connections) as pool:
        parts = list(pool.map(lambda number: _read(server, kind, f"{_name(kind, connections)}-{number}", each),
                              range(connections)))
    return {ident: taken for part in parts for ident, taken in part.items()}, 0


def _read(server: servers.Server, kind: Kind, who: str, count: int) -> dict[str, float]:
    taken = {}
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, SEGMENT)
        connection.settimeout(30)
        connection.connect(("127.0.0.1", server.port))
        for number in range(count):
            ident = f"{who}-{number}"
            start = time.monotonic_ns()
            connection.sendall(f"GET {kind.path} HTTP/1.1\r\nHost: localhost\r\nX-Request-ID: {ident}\r\n\r\n".encode())
            _drain(server, connection)
            taken[ident] = (time.monotonic_ns() - start) / 1e6
    return taken


def _drain(server: servers.Server, connection: socket.socket) -> None:
    """Take an answer, slowly."""
    answer = connection.recv(TAKEN)
    head, _, body = answer.partition(b"\r\n\r\n")
    fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
    if not head.startswith(b"HTTP/1.1 200 ") or not body:
        raise load.WrongAnswer(f"{server.name} answered {answer[:200]!r}")
    left = int(fields[b"content-length"]) - len(body)
    due = time.monotonic()
    while left > 0:
        due += TAKEN_EVERY_S
        time.sleep(max(0.0, due - time.monotonic()))
        piece = connection.recv(min(left, TAKEN))
        if not piece:
            raise load.WrongAnswer(f"{server.name} ended in the middle of an answer")
        left -= len(piece)


def _told(log: Path, idents: set[str]) -> dict[str, dict[str, float]]:
    """The lines of these requests; they are written a little later."""
    until = time.monotonic() + LOG_LIMIT_S
    while True:
        text = log.read_text() if log.exists() else ""
        lines = (json.loads(line) for line in text[:text.rfind("\n") + 1].splitlines())
        told = {line["id"]: line for line in lines if line["id"] in idents}
        if len(told) == len(idents):
            return told
        if time.monotonic() > until:
            raise load.WrongAnswer(f"{len(idents) - len(told)} requests are missing in {log.name}'s access log")
        time.sleep(0.05)


def _write(report: Report, table: Table) -> None:
    rows = []
    for (server, connections, kind), times in table.items():
        micros, percents = times.apart()
        rows.append([server, str(connections), kind.name, str(len(micros)),
                     f"{figures.spread(times.client).median:.3f}", times.longest(),
                     *(f"{figures.percentile(micros, share):.0f}" for share in (0.5, 0.99)),
                     *(f"{figures.percentile(percents, share):.2f}" for share in (0.5, 0.99)), str(times.again)])
    report.table(["server", "connections", "requests", "count", "client p50", "longest span", "apart, µs, p50", "p99",
                  "apart, %, p50", "p99", "again"], rows)
    gates = []
    bars: dict[bool, list[chart.Bar]] = {False: [], True: []}
    for server, connections in dict.fromkeys(key[:2] for key in table):
        who = f"{server}, {connections} connection{'s' * (connections > 1)}"
        for long, what, limit in ((True, f"{LONG_MS:g} ms and more, p99, %", GATE_LONG_PERCENT),
                                  (False, "shorter, p99, µs", GATE_SHORT_US)):
            mine = [times for key, times in table.items() if key[:2] == (server, connections) and key[2].gated]
            values = sorted(value for times in mine for value in times.apart(long)[long])
            p50, p99 = (figures.percentile(values, share) for share in (0.5, 0.99))
            gates.append(rounds.verdict(f"Gate, {who}, {what}", p99, limit))
            bars[long].append(chart.Bar(who, p99, p50, p99))
    report.text("## Gates", "", *gates)
    report.chart(chart.bars(TITLE, "p99, whisker from p50", [("shorter than 10 ms, µs apart", bars[False]),
                                                             ("10 ms and more, % apart", bars[True])]))
