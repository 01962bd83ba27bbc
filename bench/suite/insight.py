"""What insight costs: spans, statistics and access log on and off in one process, in turn; and peers' access logs."""

from __future__ import annotations

import dataclasses
import functools
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchlib import chart, figures, load, peers, python_servers, rounds, servers, work
from benchlib.report import Report, say

TITLE = "What insight costs: CPU per request with everything on, to everything off"
CONNECTIONS = 64
PAIRS, PEER_PAIRS, WINDOW_S, WARM_UP_S = 40, 15, 2.0, 1.0
#: Two processes of one server differ a little by where they happen to lie in memory: new ones after so many pairs.
PAIRS_OF_PROCESSES = 5
#: Settings of `maitred ctl set`, with their values on and off.
SETTINGS = (("spans", "kernel", "off"), ("statistics", "on", "off"), ("access-log", "on", "off"))
#: The one of them that peers have.
LOG = "access-log"
#: Bytes of the static file.
SIZE = 1024
#: What nginx writes: its combined line and the time, as our default line has it.
NGINX_LINE = ('log_format timed \'$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent '
              '"$http_referer" "$http_user_agent" $request_time\';')
NGINX_LOGS = (("nginx, log in a buffer", "buffer=64k flush=1s"), ("nginx, a write for each line", ""))
PACKAGES = ("maitred", "peregrine-server", "weft-server", "granian", "gunicorn")
PYTHON_PEERS = ("peregrine", "weft", "granian, 1 thread", "gunicorn gthread, 4 threads")
LOADS = {"wrk": "wrk, which sleeps while nothing has come, so that the server pays for waking it, the slower the more often",
         "own": "our own generator, which never sleeps"}
ALL, ALONE, PEER = "all", "alone", "peer"
#: The folder of what is served.
SITE = "site"
#: In every line of every log, once.
MARK = b"GET /"


@dataclass(frozen=True)
class Case:
    """What is asked of a server, and the most that our insight may cost there."""

    name: str
    path: str
    size: int
    gate: float


STATIC = Case("static, 1 KiB", "/files/1k", SIZE, 1.05)
HELLO = Case("WSGI hello", "/", len(work.HELLO), 1.03)


@dataclass(frozen=True)
class Ours:
    """One process, in which insight is set on and off: all of it, or only what peers have too."""

    case: Case
    on: servers.Contender
    socket: Path
    log: Path
    alone: bool

    def switch(self, on: bool) -> None:
        for name, yes, no in SETTINGS:
            value = yes if on and (name == LOG or not self.alone) else no
            words: Sequence[str] = ["ctl", "--socket", str(self.socket), "set", name, value]
            done = subprocess.run([str(servers.maitred().program), *words], capture_output=True, text=True, timeout=10, check=False)
            if done.returncode:
                raise RuntimeError(f"{' '.join(words)}: {done.stderr.strip()}")


@dataclass(frozen=True)
class Peer:
    """Two processes, one with an access log: a file of this name beside its output, or that itself."""

    case: Case
    on: servers.Contender
    off: servers.Contender
    log: str


@dataclass
class Row:
    """CPU-seconds per 100,000 requests, pair by pair; and the mean length of a line in the log."""

    case: Case
    server: str
    #: What is on: `ALL` that ours has, the access log `ALONE`, or that of a `PEER`.
    kind: str
    on: list[float] = field(default_factory=list)
    off: list[float] = field(default_factory=list)
    line: float = 0.0

    def ratio(self) -> figures.Spread:
        return figures.ratios(self.on, self.off)

    def micros(self) -> figures.Spread:
        """What a request costs more."""
        return figures.spread([10 * (on - off) for on, off in zip(self.on, self.off, strict=True)])


@dataclass
class Log:
    """An access log, and how many lines it has to have."""

    file: Path
    asked: int = 0
    #: What was under way when a load ended is in the log or not.
    under_way: int = 0

    def check(self, name: str) -> float:
        """The mean length of the lines. Raise unless there is one for each request; then the file has done its duty."""
        count = length = 0
        if self.file.exists():
            with self.file.open("rb") as lines:
                for line in lines:
                    if MARK in line:
                        count, length = count + 1, length + len(line)
            self.file.unlink()
        if not self.asked <= count <= self.asked + self.under_way:
            raise load.WrongAnswer(f"{name}: {count} lines in the access log, for {self.asked} requests and at most "
                                   f"{self.under_way} that were under way")
        return length / max(1, count)


def run(options: rounds.Options, folder: Path, report: Report) -> None:
    rounds.need("wrk", "taskset")
    servers.cargo_build("openloop")
    lines: list[str] = []
    (folder / SITE / "files").mkdir(parents=True)
    (folder / SITE / "files/1k").write_bytes(bytes(SIZE))
    environment = peers.environment(options)
    candidates: list[Ours | Peer] = [*_ours(STATIC, "files", _files, folder), *_nginx(),
                                     *_ours(HELLO, "WSGI", functools.partial(work.ours, environment), folder), *_python(environment)]
    chosen, skipped = rounds.present(options, [each.on for each in candidates])
    report.text(
        f"{CONNECTIONS} keep-alive connections of {LOADS[options.load]}, the server on one core. maitred is one process: "
        "`maitred ctl` sets "
        f"{', '.join(f'`{name}`' for name, _, _ in SETTINGS)} on for one window, off for the next, and the other way "
        "round in every second pair; the access log is the default line, written to a file by its own thread. "
        "CPU-seconds (user and system, all threads) per 100,000 requests; in µs the difference for one request. "
        f"{rounds.INTERVAL_NOTE}", "",
        "Peers have no spans and no statistics like these, only an access log: each is two processes, one with it and one "
        f"without, loaded in the same order, and new ones after {PAIRS_OF_PROCESSES} pairs. nginx writes its combined line "
        "with `$request_time`, through a buffer (`buffer=64k flush=1s`) or, its default, with a write for each line; the "
        "Python servers write their own line to standard output, which is a file. A line of peregrine or weft has neither "
        f"date nor address. All logs were counted: a line for each request. {peers.versions(environment, PACKAGES)}.")
    rows = []
    for each in candidates:
        if each.on not in chosen:
            continue
        try:
            rows.append(_measure_ours(options, each, folder) if isinstance(each, Ours)
                        else _measure_peer(options, each, folder))
        except servers.CannotStart as error:
            if isinstance(each, Ours):
                raise
            lines.append(f"skipped: {error}".replace("\n", " "))
            say(lines[-1])
    report.text(*lines, *skipped)
    _write(report, rows)


def _ours(case: Case, kind: str, contender: Callable[[str, Sequence[str]], servers.Contender], folder: Path) -> list[Ours]:
    found = []
    for name, alone in ((f"{python_servers.OURS}, {kind}", False), (f"{python_servers.OURS}, {kind}, log alone", True)):
        socket, log = (folder / f"{kind}-{alone}.{what}" for what in ("sock", "log"))
        found.append(Ours(case, contender(name, ["--control", str(socket), "--access-log", str(log)]), socket, log, alone))
    return found


def _files(name: str, words: Sequence[str]) -> servers.Contender:
    """Ours, without an application."""
    def command(contender: servers.Contender, place: servers.Place) -> list[str]:
        return [str(contender.program), f"{place.root}/", "--listen", f"127.0.0.1:{place.port}", "--max-threads", "1", *words]

    return servers.Contender(name, servers.maitred().program, command)


def _nginx() -> list[Peer]:
    off = servers.nginx("nginx, no log", "")
    return [Peer(STATIC, servers.nginx(name, NGINX_LINE, f"access.log timed {how}"), off, "access.log")
            for name, how in NGINX_LOGS]


def _python(environment: peers.Environment) -> list[Peer]:
    contenders = python_servers.wsgi(environment, work.APPLICATION, variables=work.spins(environment))
    return [Peer(HELLO, python_servers.with_access_log(each), dataclasses.replace(each, name=f"{each.name}, no log"), "output")
            for each in contenders if each.name in PYTHON_PEERS]


def _measure_ours(options: rounds.Options, ours: Ours, folder: Path) -> Row:
    row = Row(ours.case, ours.on.name, ALONE if ours.alone else ALL)
    log = Log(ours.log)
    with rounds.all_running([ours.on], folder / SITE, folder) as (server,):
        def window(on: bool) -> float:
            ours.switch(on)
            return _window(options, ours.case, server, log if on else None, folder)

        _warm_up(options, ours.case, server, log, folder)
        _pairs(row, range(options.rounds(PEER_PAIRS if ours.alone else PAIRS)), window)
    row.line = log.check(server.name)
    return row


def _measure_peer(options: rounds.Options, peer: Peer, folder: Path) -> Row:
    row = Row(peer.case, peer.on.name, PEER)
    pairs = options.rounds(PEER_PAIRS)
    for first in range(0, pairs, PAIRS_OF_PROCESSES):
        with rounds.all_running([peer.on, peer.off], folder / SITE, folder) as up:
            logs = {server.name: Log(server.output.with_name(peer.log)) for server in up}

            def window(on: bool) -> float:
                server = up[0] if on else up[1]
                return _window(options, peer.case, server, logs[server.name] if on else None, folder)

            for server in up:
                _warm_up(options, peer.case, server, logs[server.name] if server is up[0] else None, folder)
            _pairs(row, range(first, min(pairs, first + PAIRS_OF_PROCESSES)), window)
        # Only now, as a server writes what is still in its buffer when it ends. The one without a log has no lines.
        row.line, _ = (log.check(name) for name, log in logs.items())
    return row


def _pairs(row: Row, numbers: range, window: Callable[[bool], float]) -> None:
    for number in numbers:
        say(f"insight, {row.case.name}, {row.server}: pair {number + 1}")
        for on in (True, False) if number % 2 else (False, True):
            (row.on if on else row.off).append(window(on))


def _warm_up(options: rounds.Options, case: Case, server: servers.Server, log: Log | None, folder: Path) -> None:
    load.verify(server.name, server.port, case.path, None, case.size)
    closed = load.wrk(server.port, case.path, CONNECTIONS, options.duration(WARM_UP_S), folder)
    if log is not None:
        log.asked += 2 + closed.requests
        log.under_way += CONNECTIONS


def _window(options: rounds.Options, case: Case, server: servers.Server, log: Log | None, folder: Path) -> float:
    closed, meter = rounds.busy(options, server, case.path, case.size, CONNECTIONS, options.duration(WINDOW_S), folder)
    if closed.failed:
        raise load.WrongAnswer(f"{server.name}: {closed.failed} failed requests")
    if log is not None:
        log.asked += closed.requests
        # The warm-up of our own generator is in the log, too.
        log.under_way += CONNECTIONS if options.load == "wrk" else closed.requests
    return meter.cpu_ns / closed.requests / 1e4


def _write(report: Report, rows: Sequence[Row]) -> None:
    table, gates, bars = [], [], []
    for row in rows:
        spreads = [figures.spread(row.on), figures.spread(row.off)]
        micros = row.micros()
        table.append([row.case.name, row.server, str(len(row.on)),
                      *(f"{each.median:.3f} [{each.lower:.3f}, {each.upper:.3f}]" for each in spreads),
                      rounds.ratio_text(row.ratio()), f"{micros.median:.2f} ({micros.low:.2f}–{micros.high:.2f})",
                      f"{row.line:.0f}"])
        gates += _gates(row, [each for each in rows if each.case is row.case and each.kind == PEER])
        bars.append((f"{row.case.name}: {row.server}", [chart.Bar(word, each.median, each.lower, each.upper)
                                                        for word, each in zip(("on", "off"), spreads, strict=True)]))
    report.table(["what", "server", "pairs", "CPU-s per 100,000, on", "off", "on / off", "µs, on − off",
                  "bytes of a line"], table)
    if gates:
        report.text("## Gates", "", *gates)
    report.chart(chart.bars(TITLE, "CPU-seconds per 100,000 requests", bars))


def _gates(row: Row, others: Sequence[Row]) -> list[str]:
    if row.kind == PEER:
        return []
    ratio = row.ratio().median
    what = f"{row.case.name}: " + {ALL: "everything", ALONE: "the access log alone"}[row.kind]
    lines = []
    if row.kind == ALL:
        lines.append(rounds.verdict(f"Gate, {what}, on to off", ratio, row.case.gate))
    if others:
        lowest = min(others, key=lambda row: row.ratio().median)
        lines.append(rounds.verdict(f"Gate, {what}, ahead of every peer's log; lowest of them ({lowest.server})", ratio,
                                    lowest.ratio().median))
    return lines
