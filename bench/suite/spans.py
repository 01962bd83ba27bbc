"""The server's spans against the client's own clock: both times of each request, joined by its id."""

from __future__ import annotations

import concurrent.futures
import json
import random
import socket
import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchlib import chart, figures, load, machine, rounds, servers, workbench
from benchlib.report import Report, say

TITLE = "Spans against the client's clock"
ECHO = "echo thread"
SPANS = ("accept", "queue", "gate", "filter", "run", "write")
#: One after the other over one connection; and over several at once.
CONNECTIONS = (1, 4)
SMOKE_DIVISOR, LEAST = 100, 2
#: Seconds between an answer and the next request.
PAUSE_S = (0.0, 0.002)
#: A body in drips: so many pieces of so many bytes, seconds apart.
PIECES, PIECE, PIECE_EVERY_S = 8, 2048, 0.005
#: A slow reader takes at most so many bytes at once, seconds apart, over segments as on an Ethernet: with the loopback's
#: own the kernel's buffers would hold still more.
TAKEN, TAKEN_EVERY_S, SEGMENT, RECEIVE_BUFFER = 128 << 10, 0.0025, 1448, 128 << 10
#: The kernel's stamp of receipt of what is read (socket(7)): seconds and nanoseconds of `CLOCK_REALTIME`.
SO_TIMESTAMPNS, STAMP = 35, struct.Struct("qq")
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
    #: The client's, until its kernel had the last byte.
    kernel: list[float] = field(default_factory=list)
    server: list[float] = field(default_factory=list)
    spans: dict[str, list[float]] = field(default_factory=lambda: {span: [] for span in SPANS})

    def apart(self, until: list[float], long: bool | None = None) -> tuple[list[float], list[float]]:
        """How far the server's are from these, sorted: µs, and per cent; of long requests, of shorter ones, of all."""
        pairs = [(mine, abs(mine - its)) for mine, its, whole in zip(until, self.server, self.client, strict=True)
                 if long is None or (whole >= LONG_MS) == long]
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
    contenders = [workbench.echo(ECHO)]
    for name, environment in workbench.languages(options, lines).items():
        words = ["--access-log", str(folder / name), "--access-log-format", "json"]
        contenders.append(workbench.contender(environment, name, words))
    chosen, skipped = rounds.present(options, contenders)
    report.text(
        "The client reads `CLOCK_MONOTONIC` before it sends the first byte of a request and after it has received the last "
        "one of the answer. The server's time is the `total` of the same request, by its `X-Request-ID`, in an access log "
        "in the format `json`. The difference has what only the client sees: its own system calls, and until it is "
        "woken. Nothing is subtracted. For comparison there is the time until the client's kernel had received the last "
        "byte, by its own stamp: without the client's wait for its core.", "",
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
        back: list[float] = []
        for server in up:
            if server.name == ECHO:
                back = _back(server, _count(options, KINDS[0]))
        for connections in CONNECTIONS:
            for kind in KINDS:
                say(f"spans: {kind.name}, {connections} at once")
                for server in (each for each in up if each.name != ECHO):
                    each = -(-_count(options, kind) // connections)
                    table[server.name, connections, kind] = _measure(server, kind, connections, each, folder)
    _write(report, table, back)


def _count(options: rounds.Options, kind: Kind) -> int:
    return max(LEAST, kind.count // SMOKE_DIVISOR) if options.smoke else kind.count


def _back(server: servers.Server, count: int) -> list[float]:
    """From the echo's look at the clock until this client has its answer, in µs, sorted."""
    spans = []
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
        for _ in range(count):
            time.sleep(random.uniform(*PAUSE_S))
            connection.sendall(b"GET /clock HTTP/1.1\r\nHost: localhost\r\n\r\n")
            answer = connection.recv(4096)
            spans.append((time.monotonic_ns() - int(answer[-20:])) / 1e3)
    return sorted(spans)


def _measure(server: servers.Server, kind: Kind, connections: int, each: int, folder: Path) -> Times:
    with concurrent.futures.ThreadPoolExecutor(connections) as pool:
        parts = list(pool.map(lambda number: _ask(server, kind, f"{connections}-{number}", each), range(connections)))
    asked = {ident: taken for part in parts for ident, taken in part.items()}
    told = _told(folder / server.name, set(asked))
    times = Times()
    for ident, (client, kernel) in asked.items():
        times.client.append(client)
        times.kernel.append(kernel)
        times.server.append(told[ident]["total"] * 1e3)
        for span in SPANS:
            times.spans[span].append(told[ident][span] * 1e3)
    return times


def _ask(server: servers.Server, kind: Kind, who: str, count: int) -> dict[str, tuple[float, float]]:
    """So many requests over a connection; the client's times and those until its kernel's receipt in ms, by their ids."""
    taken = {}
    with socket.socket() as connection:
        if kind.slow:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, SEGMENT)
        connection.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        connection.settimeout(30)
        connection.connect(("127.0.0.1", server.port))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for number in range(count):
            ident = f"{kind.path}{'-drips' * kind.drips}-{who}-{number}"
            method, length = ("POST", f"Content-Length: {PIECES * PIECE}\r\n") if kind.drips else ("GET", "")
            head = f"{method} {kind.path} HTTP/1.1\r\nHost: localhost\r\nX-Request-ID: {ident}\r\n{length}\r\n"
            time.sleep(random.uniform(*PAUSE_S))
            start = time.monotonic_ns()
            connection.sendall(head.encode())
            for _ in range(PIECES * kind.drips):
                time.sleep(PIECE_EVERY_S)
                connection.sendall(b"x" * PIECE)
            client, kernel = _received(server, connection, kind.slow)
            taken[ident] = (client - start) / 1e6, (kernel - start) / 1e6
    return taken


def _receive(connection: socket.socket, most: int) -> tuple[bytes, int, int]:
    """A piece; when it was here, and when the kernel had its end."""
    piece, stamps, _, _ = connection.recvmsg(most, socket.CMSG_SPACE(STAMP.size))
    here = time.monotonic_ns()
    # Of no piece there is no stamp.
    seconds, nanos = STAMP.unpack(stamps[0][2]) if stamps else (0, 0)
    return piece, here, seconds * 1_000_000_000 + nanos - (time.time_ns() - time.monotonic_ns())


def _received(server: servers.Server, connection: socket.socket, slow: bool) -> tuple[int, int]:
    """When the last byte of the answer was here, and when the kernel had it."""
    answer, end, kernel = _receive(connection, TAKEN)
    head, _, body = answer.partition(b"\r\n\r\n")
    fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
    if not head.startswith(b"HTTP/1.1 200 ") or not body:
        raise load.WrongAnswer(f"{server.name} answered {answer[:200]!r}")
    left = int(fields[b"content-length"]) - len(body)
    due = time.monotonic()
    while left > 0:
        due += TAKEN_EVERY_S
        time.sleep(max(0.0, due - time.monotonic()) if slow else 0)
        piece, end, kernel = _receive(connection, min(left, TAKEN))
        if not piece:
            raise load.WrongAnswer(f"{server.name} ended in the middle of an answer")
        left -= len(piece)
    return end, kernel


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


def _write(report: Report, table: Table, back: Sequence[float]) -> None:
    rows = []
    for (server, connections, kind), times in table.items():
        micros, percents = times.apart(times.client)
        received, _ = times.apart(times.kernel)
        rows.append([server, str(connections), kind.name, str(len(micros)),
                     f"{figures.spread(times.client).median:.3f}", times.longest(),
                     *(f"{figures.percentile(micros, share):.0f}" for share in (0.5, 0.99)),
                     *(f"{figures.percentile(percents, share):.2f}" for share in (0.5, 0.99)),
                     *(f"{figures.percentile(received, share):.0f}" for share in (0.5, 0.99))])
    report.table(["server", "connections", "requests", "count", "client p50", "longest span", "apart, µs, p50", "p99",
                  "apart, %, p50", "p99", "kernel, µs, p50", "p99"], rows)
    if back:
        p50, p99 = (figures.percentile(back, share) for share in (0.5, 0.99))
        report.text(f"What the client's side adds by itself: from the {ECHO}'s look at the same clock, before it answers, "
                    f"until this client has the answer: p50 {p50:.0f} µs, p99 {p99:.0f} µs.")
    gates, compared = [], []
    bars: dict[bool, list[chart.Bar]] = {False: [], True: []}
    for server, connections in dict.fromkeys(key[:2] for key in table):
        who = f"{server}, {connections} connection{'s' * (connections > 1)}"
        for long, what, limit in ((True, f"{LONG_MS:g} ms and more, p99, %", GATE_LONG_PERCENT),
                                  (False, "shorter, p99, µs", GATE_SHORT_US)):
            mine = [times for key, times in table.items() if key[:2] == (server, connections) and key[2].gated]
            values = sorted(value for times in mine for value in times.apart(times.client, long)[long])
            received = sorted(value for times in mine for value in times.apart(times.kernel, long)[long])
            p50, p99 = (figures.percentile(values, share) for share in (0.5, 0.99))
            gates.append(rounds.verdict(f"Gate, {who}, {what}", p99, limit))
            compared.append(rounds.verdict(f"For comparison, to the kernel's receipt, {who}, {what}",
                                           figures.percentile(received, 0.99), limit))
            bars[long].append(chart.Bar(who, p99, p50, p99))
    report.text("## Gates", "", *gates, *compared)
    report.chart(chart.bars(TITLE, "p99, whisker from p50", [("shorter than 10 ms, µs apart", bars[False]),
                                                             ("10 ms and more, % apart", bars[True])]))
