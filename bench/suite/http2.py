"""HTTP/2: CPU of the server for static files of 1 KiB, 64 KiB and 10 MiB, in clear text and by TLS, beside h2o, nginx and Apache."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from benchlib import compare, costs, h2, load, rounds, secured, servers
from benchlib.report import Report

TITLE = "HTTP/2: CPU per static request"
OURS, BASE, TARGET = "maitred", servers.NGINX.name, servers.H2O.name
SECONDS, SMOKE_SECONDS, PAIRS = 2.0, 0.4, 9
KIB, MIB = 1 << 10, 1 << 20
#: Of each size; in a smoke run so many.
FILES, FEW_FILES = 64, 4
REQUESTS = costs.Columns("CPU-s per 100,000 requests", 1e4, 3, "requests/s")


@dataclass(frozen=True)
class Row:
    name: str
    folder: str
    length: int
    fields: tuple[str, ...] = ()
    #: At most so many times the CPU of nginx.
    gate: float = 1.0
    seconds: float = SECONDS


ROWS = (
    Row("1 KiB", "1k", KIB, gate=1 / 3),
    Row("1 KiB, 12 fields more", "1k", KIB, h2.FIELDS, 1 / 3),
    Row("64 KiB", "64k", 64 * KIB),
    # nginx with sendfile answers 1 to 16 of them a second in clear text.
    Row("10 MiB", "10m", 10 * MIB, seconds=5 * SECONDS),
)


def run(options: rounds.Options, folder: Path, report: Report) -> None:
    rounds.need("openssl", "taskset", "h2load")
    pair = secured.pair(folder)
    # Apache's workers are another user's.
    folder.chmod(0o711)
    root = folder / "root"
    bodies = _files(root, FEW_FILES if options.smoke else FILES)
    report.text(f"{h2.CONNECTIONS} connections with {h2.STREAMS} streams each, by h2load; {len(bodies['1k'])} files of each size, asked for in turn. By TLS one "
                "certificate, self-signed, ECDSA P-256. All send files from the disk's cache, as they come configured but for one thread or worker where the "
                f"server has one core. {servers.version('nginx')}, {servers.version('h2o')}, {servers.version('apache2')}, {h2.version()}. {rounds.INTERVAL_NOTE}")
    gates: list[str] = []
    groups = []
    for form in compare.forms(options):
        for way in h2.WAYS:
            contenders, skipped = rounds.present(options, h2.files(way, pair, options.threads if form.pinned else None, form.pinned))
            report.text(*skipped)
            with compare.running(contenders, OURS, folder, report, root) as up:
                for row in ROWS if form.pinned else ROWS[::2]:
                    cpu = _measure(options, form, way, row, up, bodies[row.folder], pair, folder, report)
                    if form.pinned:
                        groups.append((f"{row.name}, {way}", cpu))
                        gates += _gates(row, way, cpu)
    report.text("## Gates", "", *gates)
    report.chart(costs.bars(TITLE, "CPU-seconds per 100,000 requests", groups))


def _files(root: Path, count: int) -> dict[str, list[bytes]]:
    """Files with other bytes each, by the name of their folder."""
    bodies: dict[str, list[bytes]] = {}
    for row in ROWS:
        below = root / row.folder
        if row.folder in bodies:
            continue
        below.mkdir(parents=True)
        bodies[row.folder] = [os.urandom(row.length) for _ in range(count)]
        for number, body in enumerate(bodies[row.folder]):
            (below / f"{number:02d}.bin").write_bytes(body)
    return bodies


def _measure(options: rounds.Options, form: compare.Form, way: str, row: Row, up: list[servers.Server], bodies: list[bytes], pair: secured.Pair,
             folder: Path, report: Report) -> dict[str, list[float]]:
    what = h2.Load(way, [f"/{row.folder}/{number:02d}.bin" for number in range(len(bodies))], row.length, row.fields)
    able = h2.able(up, what, bodies, OURS, report, pair.certificate)
    heads: dict[str, list[float]] = {server.name: [] for server in able}
    seconds = options.duration(row.seconds, SMOKE_SECONDS)

    def work(server: servers.Server) -> rounds.Timed[load.Closed]:
        done = h2.run(server, what, seconds, folder, form.pinned)
        heads[server.name].append(done.outcome.head)
        return rounds.Timed(done.outcome.closed, done.cpu_ns, done.others)

    pairs = options.rounds(PAIRS if form.pinned else form.pairs, smoke=1)
    cpu = costs.measure_timed(f"{row.name}, {way}, {form.name}", able, OURS, pairs, work, REQUESTS, report)
    if row.length < MIB:
        report.text(h2.heads(heads))
    return cpu


def _gates(row: Row, way: str, cpu: dict[str, list[float]]) -> list[str]:
    ratios, lines = costs.ratios(cpu, OURS), []
    # One line for each: in clear text nginx with sendfile may stand still, and then says nothing.
    lines += [rounds.verdict(f"Gate, CPU against {name}, {row.name}, {way}", ratio, row.gate) for name, ratio in ratios.items() if name.startswith(BASE)]
    if TARGET in ratios:
        lines.append(rounds.verdict(f"Target, CPU against {TARGET}, {row.name}, {way}", ratios[TARGET], 1.0))
    return lines
