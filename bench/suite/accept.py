"""How two workers share connections: 64 at once, 1,000 in turn, 200 clients whose requests compute and who connect for each."""

from __future__ import annotations

import collections
import dataclasses
import random
import statistics
import subprocess
import time
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchlib import chart, machine, peers, python_servers, rounds, servers, workbench
from benchlib.report import Report, say
from benchlib.servers import Contender, Place, Server

TITLE = "Two workers take connections"
#: For the line about the machine.
ONE_CORE = False
WORKERS = 2
APPLICATION = "accept_wsgi:application"
#: At once, and how often; in turn; the crowd, and for how long.
AT_ONCE, TIMES, IN_TURN, CROWD, SECONDS = 64, 20, 1000, 200, 60.0
SMOKE_TIMES, SMOKE_IN_TURN, SMOKE_CROWD, SMOKE_SECONDS = 3, 50, 20, 1.0
#: As few clients as leave a worker idle if two of them meet at the other one.
FEW = WORKERS + 1
#: What a request of a crowd computes, in microseconds.
WORK_US = 5000
SHARED, REUSEPORT, SINGLE = "maitred, shared", "maitred, reuseport", "maitred, one process"
BLOCKING, NGINX, NGINX_REUSEPORT = "blocking accept", "nginx", "nginx, reuseport"
#: Of the larger share of processor time to the smaller; of the larger share of 64; of the time in which a worker is idle while
#: requests wait.
GATE_CPU, GATE_AT_ONCE, GATE_IDLE = 1.15, 0.60, 0.01
#: Cloudflare's figures for nginx with 200 clients, in milliseconds ("Why does one NGINX worker take all the load?", 2017).
PUBLISHED = {"shared": (30.4, 72.7, 1.6), "reuseport": (31.4, 144.6, 25.3)}
#: Upper ends of the columns of the histogram, in milliseconds.
COLUMNS = (10, 20, 50, 100, 200, 300, 400, 500, 600, 700, 800, 1000, 1500, 2000, 5000)
_PROGRAMS = workbench.PROGRAM.parent


@dataclass(frozen=True)
class Crowd:
    """Latencies of a crowd of clients, and the CPU time of each worker."""

    seconds: float
    latencies_ms: Sequence[float]
    #: Requests and processor time in seconds of each worker.
    served: Sequence[int]
    cpu: Sequence[float]
    #: The part of all looks that found a worker idle while requests waited.
    idle: float
    failed: int

    @property
    def cpu_ratio(self) -> float:
        return max(self.cpu) / max(min(self.cpu), 1e-9)


@dataclass(frozen=True)
class Outcome:
    #: The larger share of each round of 64 at once.
    at_once: Sequence[float]
    #: How many of those in turn each worker had.
    in_turn: Sequence[int]
    crowd: Crowd
    few: Crowd


def run(options: rounds.Options, folder: Path, report: Report) -> None:
    workbench.build()
    environment = peers.environment(options)
    count = SMOKE_CROWD if options.smoke else CROWD
    seconds = options.duration(SECONDS, SMOKE_SECONDS)
    (folder / "files").mkdir()
    page = _page()
    (folder / "files/cpu").mkdir()
    (folder / f"files/cpu/{WORK_US}").write_bytes(page)
    (folder / "files/index.html").write_bytes(b"Hello, world!")
    chosen, skipped = rounds.present(options, contenders(environment))
    outcomes: dict[str, Outcome] = {}
    for contender in chosen:
        say(f"accept: {contender.name}")
        try:
            with servers.running(contender, folder / "files", folder, CROWD) as server:
                outcomes[contender.name] = _measure(options, server, count, seconds)
        except servers.CannotStart as error:
            skipped.append(f"skipped: {contender.name} ({str(error).strip().splitlines()[-1]})")
            say(skipped[-1])
    report.text(
        f"{environment.description}; {peers.versions(environment, python_servers.PACKAGES)}.", "",
        f"{WORKERS} workers on both cores, which they share with the clients. Each request has a connection of its own, and says which "
        f"process served it. First {AT_ONCE} connections are opened at once, then a request is sent on each; then {IN_TURN} follow one after "
        f"the other; then {count} clients ask without a pause for {seconds:g} s for what takes a core {WORK_US / 1000:g} ms: of Python with ours, "
        f"of a counted loop with the processes that block in accept, of gzip with nginx ({len(page) >> 10} KiB at level 9). Last {FEW} such clients: "
        "two of them must not meet at one worker while the other one is idle. Idle is the part of looks, one every 3 ms, that found a "
        "worker with all threads asleep although more requests were open than workers busy, and found so again a fifth of a millisecond later.")
    report.text(*skipped)
    if SHARED in outcomes:
        report.text("## Gates", "", *gates(outcomes[SHARED]))
    _tables(report, outcomes, count)
    report.chart(_chart(outcomes, count))


def contenders(environment: peers.Environment) -> list[Contender]:
    def ours(name: str, *words: str) -> Contender:
        return python_servers.ours(environment, APPLICATION, "wsgi", name, words=["--access-log", "off", *words],
                                   variables=workbench.spins(environment), pinned=False)

    with_two = ["--workers", str(WORKERS)]
    return [
        ours(SHARED, *with_two, "--accept", "shared"),
        ours(REUSEPORT, *with_two, "--accept", "reuseport"),
        ours(SINGLE),
        Contender(BLOCKING, _PROGRAMS / "blocking", _blocking, environment=workbench.turns(), pinned=False),
        *[dataclasses.replace(servers.NGINX, name=name, pinned=False, options={
            "cache": False, "workers": WORKERS, "listen": listen,
            "more": "gzip on; gzip_comp_level 9; gzip_min_length 100; gzip_types *; add_header X-Worker $pid;"})
          for name, listen in ((NGINX, ""), (NGINX_REUSEPORT, "reuseport"))],
    ]


def _blocking(contender: Contender, place: Place) -> list[str]:
    return [str(contender.found()), str(place.port), str(WORKERS)]


def _page() -> bytes:
    """A text that gzip takes as long for as a request shall take; as a whole, which is nearly proportional."""
    sample = bytes(random.Random(1).choices(b"abcdefghijklmnop \n", k=200_000))
    best = min(_seconds(sample) for _ in range(5))
    return sample * (1 + int(WORK_US / 1e6 / best)) if best < WORK_US / 1e6 else sample[:int(len(sample) * WORK_US / 1e6 / best)]


def _seconds(sample: bytes) -> float:
    begin = time.perf_counter()
    zlib.compress(sample, 9)
    return time.perf_counter() - begin


# ---- What is measured ----


def _measure(options: rounds.Options, server: Server, count: int, seconds: float) -> Outcome:
    workers = _workers(server)
    times, in_turn = (SMOKE_TIMES, SMOKE_IN_TURN) if options.smoke else (TIMES, IN_TURN)
    # Each has loaded what it needs.
    _clients(server, "/", "turn", 50)
    turn = _clients(server, "/", "turn", in_turn)
    shares, part = [], collections.Counter[str]()
    for words in _clients(server, "/", "burst", AT_ONCE, times):
        if words[0] == "request":
            part[words[1]] += 1
        elif words[0] == "round":
            shares.append(max(part.values(), default=0) / max(1, part.total()))
            part.clear()
    crowd = _crowd(server, count, seconds, workers)
    return Outcome(shares, _served(turn, workers), crowd, _crowd(server, FEW, seconds / 4, workers))


def _workers(server: Server) -> list[int]:
    """The processes that serve: all below the first one, or that one."""
    return machine.process_tree(server.pid)[1:] or [server.pid]


def _crowd(server: Server, count: int, seconds: float, workers: list[int]) -> Crowd:
    path = f"/cpu/{WORK_US}"
    before = [machine.cpu_ns(worker) for worker in workers]
    lines = _clients(server, path, "crowd", count, seconds, *workers)
    cpu = [(machine.cpu_ns(worker) - then) / 1e9 for worker, then in zip(workers, before, strict=True)]
    times = [(int(words[2]), int(words[5])) for words in lines if words[0] == "request"]
    looks, idle = next((int(words[1]), int(words[2])) for words in lines if words[0] == "idle")
    failed = sum(words[0] == "failed" for words in lines)
    return Crowd(seconds, [(done - sent) / 1e6 for sent, done in times], _served(lines, workers), cpu, idle / max(1, looks), failed)


def _served(lines: list[list[str]], workers: list[int]) -> list[int]:
    counts = collections.Counter(words[1] for words in lines if words[0] == "request")
    return [counts[str(worker)] for worker in workers]


def _clients(server: Server, path: str, *words: object) -> list[list[str]]:
    command = [str(_PROGRAMS / "newcomers"), str(server.port), path, *(f"{word}" for word in words)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [line.split() for line in done.stdout.splitlines()]


# ---- What is shown ----


def gates(shared: Outcome) -> list[str]:
    return [
        rounds.verdict(f"Gate, CPU time of one worker to the other, {CROWD} clients", shared.crowd.cpu_ratio, GATE_CPU),
        rounds.verdict(f"Gate, larger share of {AT_ONCE} at once, median of {len(shared.at_once)}",
                       statistics.median(shared.at_once), GATE_AT_ONCE),
        rounds.verdict("Gate, larger share of those in turn", max(shared.in_turn) / max(1, sum(shared.in_turn)), 0.51),
        rounds.verdict(f"Gate, idle while requests wait, {CROWD} clients", shared.crowd.idle, GATE_IDLE),
        rounds.verdict(f"Gate, idle while requests wait, {FEW} clients", shared.few.idle, GATE_IDLE),
        rounds.verdict("Gate, failed requests", float(shared.crowd.failed + shared.few.failed), 0.0),
    ]


def _tables(report: Report, outcomes: dict[str, Outcome], count: int) -> None:
    report.text("## Distribution over the workers")
    report.table(["server", f"larger share of {AT_ONCE} at once: median, most", "in turn"],
                 [[name, f"{statistics.median(each.at_once):.2f}, {max(each.at_once):.2f}", " / ".join(map(str, each.in_turn))]
                  for name, each in outcomes.items()])
    for title, of in ((f"## {count} clients", "crowd"), (f"## {FEW} clients", "few")):
        report.text(title)
        rows = []
        for name, outcome in outcomes.items():
            crowd: Crowd = getattr(outcome, of)
            rows.append([name, f"{len(crowd.latencies_ms) / crowd.seconds:,.0f}", " / ".join(map(str, crowd.served)),
                         " / ".join(f"{cpu:.1f}" for cpu in crowd.cpu), *_spread(crowd.latencies_ms), f"{100 * crowd.idle:.2f}",
                         str(crowd.failed)])
        report.table(["server", "requests/s", "served by each", "CPU s of each", "ms: min", "mean", "median", "deviation", "max",
                      "idle while requests wait, %", "failed"], rows)
    published = "; ".join(f"{name}: mean {mean}, max {most}, deviation {deviation}" for name, (mean, most, deviation) in PUBLISHED.items())
    report.text(f"Published for nginx on another machine and with other work, in ms: {published}.")
    report.text(f"## Latency of {count} clients: requests in thousandths, by milliseconds")
    heads = ["server", *(f"≤ {end}" for end in COLUMNS), "more"]
    report.table(heads, [[name, *(f"{1000 * share:.0f}" for share in _histogram(each.crowd.latencies_ms))] for name, each in outcomes.items()])


def _spread(latencies: Sequence[float]) -> list[str]:
    if not latencies:
        return ["–"] * 5
    of = (min(latencies), statistics.fmean(latencies), statistics.median(latencies), statistics.pstdev(latencies), max(latencies))
    return [f"{value:,.1f}" for value in of]


def _histogram(latencies: Sequence[float]) -> list[float]:
    """Shares of the columns, and of what is above the last one."""
    counts = [0] * (len(COLUMNS) + 1)
    for latency in latencies:
        counts[next((number for number, end in enumerate(COLUMNS) if latency <= end), len(COLUMNS))] += 1
    return [count / max(1, len(latencies)) for count in counts]


def _chart(outcomes: dict[str, Outcome], count: int) -> str:
    groups = []
    for name, outcome in outcomes.items():
        shares = _histogram(outcome.crowd.latencies_ms)
        ends = [*(f"≤ {end} ms" for end in COLUMNS), "more"]
        bars = [chart.Bar(end, 100 * share, 100 * share, 100 * share) for end, share in zip(ends, shares, strict=True) if share > 0]
        if bars:
            groups.append((name, bars))
    return chart.bars(f"Latency of {count} clients with a connection for each request", "% of requests", groups)
