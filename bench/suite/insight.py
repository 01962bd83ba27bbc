"""What insight costs: spans, statistics and access log on and off in one process, in turn."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchlib import chart, figures, load, rounds, servers, workbench
from benchlib.report import Report, say

TITLE = "What insight costs: CPU per request with everything on, to everything off"
CONNECTIONS = 64
PAIRS, WINDOW_S = 40, 2.0
#: Settings of `maitred ctl set`, with their values on and off.
SETTINGS = (("spans", "kernel", "off"), ("statistics", "on", "off"), ("access-log", "on", "off"))
#: Bytes of the static file.
SIZE = 1024


@dataclass(frozen=True)
class Case:
    """A server, what is asked of it, and the most that insight may cost there."""

    name: str
    path: str
    size: int
    gate: float


STATIC = Case("static, 1 KiB", "/files/1k", SIZE, 1.05)
HELLO = Case("WSGI hello", "/", len(workbench.HELLO), 1.03)


def run(options: rounds.Options, folder: Path, report: Report) -> None:
    rounds.need("wrk", "taskset")
    workbench.build()
    lines: list[str] = []
    root = folder / "files"
    root.mkdir()
    (root / "1k").write_bytes(bytes(SIZE))
    report.text(
        f"One process for each row, {CONNECTIONS} keep-alive connections of wrk, the server on one core. `maitred ctl` "
        f"sets {', '.join(f'`{name}`' for name, _, _ in SETTINGS)} on for one window, off for the next, and the other way "
        "round in every second pair; the access log is the default line, written to a file by its own thread. "
        "CPU-seconds (user and system, all threads) per 100,000 requests. "
        f"{rounds.INTERVAL_NOTE}")
    environments = workbench.languages(options, lines)
    report.text(*lines)
    rows, gates, bars = [], [], []
    for case, environment in ((STATIC, None), (HELLO, environments.get(workbench.WSGI))):
        if case is HELLO and environment is None:
            continue
        socket = folder / f"{len(rows)}.sock"
        words = ["--control", str(socket), "--access-log", str(folder / f"{len(rows)}.log"),
                 "--static", f"/files={root}", *(["--max-threads", "1"] if case is STATIC else [])]
        contender = workbench.contender(environment, case.name, words)
        with rounds.all_running([contender], folder, folder) as up:
            on, off = _measure(options, case, up[0], socket, folder)
        ratio = figures.ratios(on, off)
        spreads = [figures.spread(on), figures.spread(off)]
        rows.append([case.name, str(len(on)), *(f"{each.median:.3f} [{each.lower:.3f}, {each.upper:.3f}]"
                                               for each in spreads), rounds.ratio_text(ratio)])
        gates.append(rounds.verdict(f"Gate, {case.name}: everything on to everything off", ratio.median, case.gate))
        bars.append((case.name, [chart.Bar(word, each.median, each.lower, each.upper)
                                 for word, each in zip(("on", "off"), spreads, strict=True)]))
    report.table(["what", "pairs", "CPU-s per 100,000, on", "off", "on / off"], rows)
    report.text("## Gates", "", *gates)
    report.chart(chart.bars(TITLE, "CPU-seconds per 100,000 requests", bars))


def _switch(socket: Path, on: bool) -> None:
    for name, yes, no in SETTINGS:
        words: Sequence[str] = ["ctl", "--socket", str(socket), "set", name, yes if on else no]
        done = subprocess.run([str(workbench.PROGRAM), *words], capture_output=True, text=True, timeout=10, check=False)
        if done.returncode:
            raise RuntimeError(f"{' '.join(words)}: {done.stderr.strip()}")


def _measure(options: rounds.Options, case: Case, server: servers.Server, socket: Path,
             folder: Path) -> tuple[list[float], list[float]]:
    samples: dict[bool, list[float]] = {True: [], False: []}
    seconds = options.duration(WINDOW_S)
    load.wrk(server.port, case.path, CONNECTIONS, seconds, folder)
    for number in range(options.rounds(PAIRS)):
        say(f"insight, {case.name}: pair {number + 1}")
        for on in (True, False) if number % 2 else (False, True):
            _switch(socket, on)
            meter = rounds.Meter(server)
            meter.start()
            closed = load.wrk(server.port, case.path, CONNECTIONS, seconds, folder)
            meter.stop()
            if closed.failed:
                raise load.WrongAnswer(f"{server.name}: {closed.failed} failed requests")
            samples[on].append(meter.cpu_ns / closed.requests / 1e4)
    return samples[True], samples[False]
