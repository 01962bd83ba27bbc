"""TLS: what requests, bytes and handshakes cost in CPU beside nginx, haproxy and granian, with one certificate, group and cipher suite."""

from __future__ import annotations

import os
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchlib import clients, costs, load, peers, rounds, secured, servers
from benchlib.compare import running
from benchlib.report import Report, say
from benchlib.secured import FULL, RESUMED, Load

TITLE = "TLS: CPU of requests, bytes and handshakes"
OURS, BASE = "maitred", servers.NGINX.name
#: Keep-alive connections; of the largest file; clients that connect for each request.
CONNECTIONS, FEW, CONNECTING = 64, 16, 16
SECONDS, PROBE_SECONDS, SMOKE_SECONDS, PAIRS = 2.0, 0.1, 0.05, 9
KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
LARGE, LARGEST = f"{secured.FOLDER}/64k", f"{secured.FOLDER}/10m"
#: Path and length of the files.
FILES = {secured.SMALL: KIB, LARGE: 64 * KIB, LARGEST: 10 * MIB}
REQUESTS = costs.Columns("CPU-s per 100,000 requests", 1e4, 3, "requests/s")
BYTES = costs.Columns("CPU-s per GiB", 1e9 / GIB, 3, "MiB/s", 1 / MIB)
HANDSHAKES = costs.Columns("CPU-s per 10,000 handshakes", 1e5, 3, "handshakes/s")


@dataclass(frozen=True)
class Row:
    name: str
    load: Load
    columns: costs.Columns
    #: At most so many times the CPU of nginx; none where nginx has nothing of the kind.
    target: float | None = None

    @property
    def unit(self) -> str:
        return self.columns.cpu.removeprefix("CPU-s ")


def _handshakes(version: str, kind: str, group: str = "x25519", target: float | None = 1.0) -> Row:
    named = "X25519" if group == "x25519" else "X25519MLKEM768"
    what = Load(secured.SMALL, KIB, CONNECTING, kind, version, group)
    return Row(f"{kind.capitalize()} handshakes, TLS {version}, {named}", what, HANDSHAKES, target)


ROWS = (
    Row("1 KiB, kept connections", Load(secured.SMALL, KIB, CONNECTIONS), REQUESTS, 1.0),
    Row("64 KiB, kept connections", Load(LARGE, 64 * KIB, CONNECTIONS), REQUESTS, 1.2),
    Row("10 MiB, kept connections", Load(LARGEST, 10 * MIB, FEW), BYTES, 1.2),
    _handshakes("1.3", FULL),
    _handshakes("1.3", RESUMED),
    _handshakes("1.2", FULL),
    _handshakes("1.2", RESUMED),
    _handshakes("1.3", FULL, "hybrid", None),
    _handshakes("1.3", RESUMED, "hybrid", None),
)


def run(options: rounds.Options, folder: Path, report: Report) -> None:
    rounds.need("openssl", "taskset")
    clients.build()
    files = secured.pair(folder)
    root = folder / "root"
    (root / secured.FOLDER[1:]).mkdir(parents=True)
    for path, length in FILES.items():
        (root / path[1:]).write_bytes(os.urandom(length))
    candidates = [secured.maitred(files, options.threads), secured.nginx(files), secured.haproxy(files)]
    lines: list[str] = []
    try:
        candidates.append(secured.granian(files, peers.environment(options)))
    except rounds.Missing as error:
        if not options.smoke:
            raise
        lines.append(f"skipped: granian ({error})")
        say(lines[-1])
    contenders, skipped = rounds.present(options, candidates)
    report.text(f"One certificate, self-signed, ECDSA P-256. Our own client (rustls) offers one group and one cipher suite (AES-128-GCM), so "
                f"that all do the same. {CONNECTIONS} connections that are kept, {FEW} of the largest file; for handshakes {CONNECTING} clients that connect, "
                f"ask for 1 KiB and to close. The connection, the request and, in TLS 1.3, new tickets are in the cost of a handshake. haproxy answers 1 KiB from memory and "
                f"has no files; all others send files. {servers.version('nginx')}, {servers.version('haproxy')}, {openssl()}. {rounds.INTERVAL_NOTE}",
                *lines, *skipped)
    gates, groups = [], []
    with running(contenders, OURS, folder, report, root) as up:
        for row in ROWS[::2] if options.smoke else ROWS:
            able = [server for server in up if _can(server, row, root, files, report, SMOKE_SECONDS if options.smoke else PROBE_SECONDS)]
            cpu = _measure(options, able, row, report)
            groups.append((f"{row.name}, {row.unit}", cpu))
            ratio = costs.ratios(cpu, OURS).get(BASE)
            if row.target and ratio is not None:
                gates.append(rounds.verdict(f"Target, CPU against {BASE}, {row.name}", ratio, row.target))
    report.text("## Targets", "", *gates)
    report.chart(costs.bars(TITLE, "CPU-seconds", groups))


def openssl() -> str:
    """The library of nginx and haproxy, as the interpreter of this bench has it: all take the system's."""
    return ssl.OPENSSL_VERSION


def _can(server: servers.Server, row: Row, root: Path, files: secured.Pair, report: Report, seconds: float) -> bool:
    """Whether the server has what the row needs, and answers right.  It is warm afterwards."""
    if server.name == "haproxy" and row.load.path != secured.SMALL:
        return False
    try:
        context = ssl.create_default_context(cafile=files.certificate)
        load.verify(server.name, server.port, row.load.path, (root / row.load.path[1:]).read_bytes(), row.load.length, context)
        outcome = secured.probe(server, row.load, seconds)
        say(f"{row.name}: {server.name}: {outcome.suite}, {outcome.group}")
        return True
    except clients.CannotDo as error:
        line = f"left out of \"{row.name}\": {server.name} ({error})"
        say(line)
        report.text(line)
        return False


def _measure(options: rounds.Options, able: Sequence[servers.Server], row: Row, report: Report) -> dict[str, list[float]]:
    seconds = options.duration(SECONDS, SMOKE_SECONDS)
    resumed: dict[str, list[float]] = {}

    def work(server: servers.Server) -> rounds.Timed[load.Closed]:
        done = secured.run(server, row.load, seconds)
        closed = done.outcome.closed
        resumed.setdefault(server.name, []).append(done.outcome.resumed / max(closed.requests, 1))
        # Of the largest file only a few are complete; the bytes count those on their way.
        counted = closed.bytes if row.columns is BYTES else closed.requests
        return rounds.Timed(load.Closed(counted, closed.seconds, closed.failed), done.cpu_ns, done.others)

    cpu = costs.measure_timed(row.name, able, OURS, options.rounds(PAIRS, smoke=1), work, row.columns, report)
    if row.load.kind == RESUMED:
        report.text(f"Resumed at least: {', '.join(f'{server} {min(shares):.1%}' for server, shares in resumed.items())}.")
    return cpu
