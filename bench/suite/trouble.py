"""A site in trouble: slow readers, uploads in drips, slow pages and a slow log disk; where the time of fast pages goes."""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import fcntl
import itertools
import json
import math
import os
import select
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchlib import chart, crowd, figures, load, peers, rounds, servers, traffic, workbench
from benchlib.report import Report, say

TITLE = "A site in trouble: where the time of fast pages goes"
THREADS = 5
SECONDS = 10.0
#: Requests a second on a schedule, over so many connections; and the shares of static files and of slow pages.
RATE, CONNECTIONS = 200, 64
STATIC_SHARE, SLOW_SHARE = 0.2, 0.05
FILE, FILE_BODY = "style.css", b"x" * 1024
FAST, FAST_ROUTE = traffic.bare("/", workbench.HELLO), "GET /"
SLOW = traffic.bare("/sleep/50", workbench.HELLO)
#: Clients of each slow kind, and their bytes a second.
MANY, UPLOAD, UPLOAD_RATE, READ_RATE = 20, 64 << 10, 20 << 10, 50 << 10
#: The log disk takes so many bytes, then nothing for a while; its pipe holds a page. On the whole it keeps up.
LOG_TAKES, LOG_RESTS_S, LOG_PIPE = 16 << 10, 0.5, 4096
GOAL_QUEUE_MS = 0.1
COLUMNS = ("mean", "deviation", "min", "p50", "max")


@dataclass(frozen=True)
class Row:
    """One variant: what it goes without."""

    synchronous: bool = False
    read_ahead: bool = True
    writer: bool = True

    @property
    def name(self) -> str:
        log = "synchronous" if self.synchronous else "asynchronous"
        return f"log {log}, read-ahead {'on' if self.read_ahead else 'off'}, writer {'on' if self.writer else 'off'}"

    @property
    def listen(self) -> str:
        return ",read-ahead=off" * (not self.read_ahead) + ",writer=off" * (not self.writer)


ROWS = tuple(itertools.starmap(Row, itertools.product((False, True), (True, False), (True, False))))
BEST = ROWS[0]


@dataclass(frozen=True)
class Outcome:
    """What the schedule saw, and what the server says: its counts, its spans, and those of fast pages."""

    seen: load.Open
    said: dict[str, Any]
    spans: dict[str, list[dict[str, float]]]


def run(options: rounds.Options, folder: Path, report: Report) -> None:
    rounds.need("taskset")
    workbench.build()
    environment = peers.environment(options)
    seconds = options.duration(SECONDS)
    report.text(
        f"A WSGI application with {THREADS} threads; server on one core, load on another; {seconds:g} s for each row, "
        f"a fresh server each time. {RATE} requests a second at random intervals over {CONNECTIONS} connections, of which "
        f"{100 * STATIC_SHARE:.0f} % are a static file of 1 KiB, {100 * SLOW_SHARE:.0f} % slow pages (sleep 50 ms) and the "
        f"rest fast pages. Beside them {MANY} clients that upload 64 KiB at {UPLOAD_RATE >> 10} KiB/s, and {MANY} that read "
        f"1 MiB at {READ_RATE >> 10} KiB/s, all through segments and buffers as on an Ethernet. The access log is a pipe of "
        f"{LOG_PIPE >> 10} KiB whose reader takes {LOG_TAKES >> 10} KiB and then rests for {LOG_RESTS_S:g} s.", "",
        "Figures are the server's own, by `maitred ctl stats --json`, since the log may lose lines; slow clients that were "
        "in the middle have been ended before. Spans that took no time are left out. Latency is the schedule's: of "
        "fast pages, from the scheduled time, also while no connection was free to send them; \"answered\" is the share of "
        "all scheduled requests. Without the writer a thread of the application waits until the kernel has taken its "
        "response.")
    measured = {row: _measure(environment, row, seconds, folder) for row in ROWS}
    _write(report, measured)


def _measure(environment: peers.Environment, row: Row, seconds: float, folder: Path) -> Outcome:
    say(f"trouble: {row.name}")
    own = folder / row.name.replace(" ", "-").replace(",", "")
    files = own / "files"
    files.mkdir(parents=True)
    (files / FILE).write_bytes(FILE_BODY)
    log, control = own / "log", own / "ctl"
    os.mkfifo(log)
    words = ["--min-threads", str(THREADS), "--max-threads", str(THREADS), "--static", f"/static={files}", "--statistics",
             "--control", str(control), "--access-log", str(log), *["--access-log-sync"] * row.synchronous]
    contender = _listening(workbench.wsgi(environment, row.name, words), row.listen)
    file = traffic.bare(f"/static/{FILE}", FILE_BODY)
    requests = traffic.write(own / "requests", traffic.blend([
        (FAST, 1 - STATIC_SHARE - SLOW_SHARE), (dataclasses.replace(file, background=True), STATIC_SHARE),
        (dataclasses.replace(SLOW, background=True), SLOW_SHARE)]))
    slow = [crowd.Kind(MANY, traffic.bare("/echo", body=b"x" * UPLOAD).wire, UPLOAD_RATE, 1 << 20),
            crowd.Kind(MANY, traffic.bare("/large/1").wire, 1 << 20, READ_RATE)]
    with _slow_disk(log), servers.running(contender, folder, own) as server:
        traffic.settle(row.name, server.port, [FAST, file])
        with crowd.running(server.port, slow):
            seen = load.openloop(server.port, load.listed(requests), RATE, seconds, 0.0, CONNECTIONS, own, poisson=1)
        if seen.wrong or seen.broken:
            raise load.WrongAnswer(f"{row.name}: {seen.wrong} wrong answers, {seen.broken} connections broke")
        rounds.rest(server)
        said = _stats(environment, control)
        fast = _stats(environment, control, "--route", FAST_ROUTE)
    return Outcome(seen, said, {"fast pages": fast["spans"], "all": said["spans"]})


def _listening(contender: servers.Contender, how: str) -> servers.Contender:
    def command(its: servers.Contender, place: servers.Place) -> list[str]:
        words = contender.command(its, place)
        words[words.index("--listen") + 1] += how
        return words

    return dataclasses.replace(contender, command=command)


def _stats(environment: peers.Environment, control: Path, *words: str) -> dict[str, Any]:
    command = [str(environment.program("maitred")), "ctl", "stats", *words, "--json", "--socket", str(control)]
    return json.loads(subprocess.run(command, capture_output=True, timeout=30, check=True).stdout)


@contextlib.contextmanager
def _slow_disk(pipe: Path) -> Iterator[None]:
    """Somebody who reads this pipe, in his own time."""
    # Opened for both, it needs no writer, and does not end when one goes.
    descriptor = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)
    fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, LOG_PIPE)
    ended = threading.Event()

    def read() -> None:
        taken = 0
        while not ended.is_set():
            if select.select([descriptor], [], [], 0.1)[0]:
                taken += len(os.read(descriptor, LOG_PIPE))
            if taken >= LOG_TAKES:
                taken = 0
                ended.wait(LOG_RESTS_S)

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        reader = pool.submit(read)
        try:
            yield
        finally:
            ended.set()
            reader.result()
            os.close(descriptor)


def _write(report: Report, measured: dict[Row, Outcome]) -> None:
    rows, seen, queues = [], [], []
    for row, outcome in measured.items():
        for whose, spans in outcome.spans.items():
            for span in (each for each in spans if each["max_seconds"]):
                rows.append([row.name, whose, str(span["span"]), f"{span['count']:,}",
                             *(f"{1e3 * span[f'{column}_seconds']:.3f}" for column in COLUMNS)])
        answers = outcome.seen
        p50, p99 = (f"{figures.percentile(answers.latencies or [math.inf], share) / 1e3:.2f}" for share in (0.5, 0.99))
        dropped = outcome.said["log_lines_dropped"]["access"]
        seen.append([row.name, p50, p99, f"{100 * answers.answered / answers.scheduled:.0f} %", f"{dropped:,}"])
        queue = 1e3 * next(span["mean_seconds"] for span in outcome.spans["fast pages"] if span["span"] == "queue")
        queues.append((row, queue))
    report.table(["variant", "fast p50 ms", "fast p99 ms", "answered", "log lines lost"], seen)
    report.text("Times in ms.")
    report.table(["variant", "of", "span", "count", "mean", "deviation", "min", "median", "max"], rows)
    report.text("## Goal", "", *(rounds.verdict(f"Goal, {row.name}: mean queue span of fast pages, ms", queue, GOAL_QUEUE_MS)
                                 for row, queue in queues if row is BEST))
    bars = [chart.Bar(row.name, queue, queue, queue) for row, queue in queues]
    report.chart(chart.bars(TITLE, "mean queue span of fast pages, ms", [("all", bars)]))
