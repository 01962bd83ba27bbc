"""200 uploads at once beside a fast client: memory of the process, of bodies and on the disk, threads, latency."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import math
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from benchlib import chart, figures, load, machine, metrics, peers, python_servers, rounds, servers, threads, traffic, uploads
from benchlib.report import Report, say
from benchlib.servers import Contender, Server

TITLE = "200 uploads at once, 4 threads"
THREADS = 4
MIB = 1 << 20
#: How many upload, how much each of them, and the bytes a second of each; None: as fast as the server takes them.
COUNT, LENGTH, RATES = 200, 8 * MIB, (None, 1e6)
SMOKE_COUNT, SMOKE_LENGTH = 40, 3 * MIB
#: Who has no answer by then gets none.
LIMIT_S, SMOKE_LIMIT_S = 90.0, 20.0
#: The fast client: requests a second, over so many connections, in pieces of this length until the uploads are done.
RATE, CONNECTIONS, PIECE_S = 100, 8, 0.5
#: How often memory and files are looked at; the most counts.
LOOK_S = 0.05
#: The threads that the uploads hold are counted between these shares of the time that the uploads take at least.
COUNTED_FROM, COUNTED_TO = 0.25, 0.75
BODIES = "maitred_body_memory_bytes"
GATE_BODIES_MIB, GATE_P99_MS = 64.0, 50.0
OURS = python_servers.OURS
#: The spool folder, below that of the bench: so that no other disk is measured than that of the system's temporary files.
SPOOL = "spool"


@dataclass(frozen=True)
class Case:
    """One row: a server with uploads at a rate."""

    interface: str
    contender: Contender
    rate: float | None

    @property
    def ours(self) -> bool:
        return self.contender.name.startswith(OURS)

    @property
    def how(self) -> str:
        pace = "as fast as possible" if self.rate is None else f"{self.rate / 1e6:g} MB/s each"
        return f"{self.interface.upper()}, {pace}"


@dataclass(frozen=True)
class Outcome:
    """What was seen of one server; None where it has no such thing, or never answered."""

    right: int
    wrong: int
    #: When the last right answer came.
    seconds: float | None
    before_mib: float
    peak_mib: float
    bodies_mib: float | None
    files_mib: float | None
    p50_ms: float | None
    p99_ms: float | None
    #: How late the fast client sent, p99 of its worst piece: the load's own share, and waits for a free connection.
    lag_p99_ms: float
    #: The share of the fast client's requests that were answered.
    answered: float
    held: int | None


def run(options: rounds.Options, folder: Path, report: Report) -> None:
    rounds.need("taskset")
    servers.cargo_build("openloop")
    environment = peers.environment(options)
    count, length = (SMOKE_COUNT, SMOKE_LENGTH) if options.smoke else (COUNT, LENGTH)
    limit = SMOKE_LIMIT_S if options.smoke else LIMIT_S
    (folder / SPOOL).mkdir()
    cases = _cases(environment, folder)
    chosen, skipped = rounds.present(options, list({each.contender.name: each.contender for each in cases}.values()))
    report.text(
        f"{environment.description}; {peers.versions(environment, ('maitred', 'granian', 'uvloop'))}.", "",
        f"{count} clients upload {length / MIB:g} MiB each at the same time, as fast as the server takes it or each at its rate; a fast "
        f"client asks {RATE} times a second for another path, at random intervals over {CONNECTIONS} connections, until they are done (to the half second). "
        "The application takes the body and answers with its length. A fresh server for each row, on one core and all the load on the "
        f"other. WSGI with {THREADS} threads, everything else by default. An upload without an answer after {limit:g} s has none.", "",
        "The memory of the process is resident memory of all its processes, before the uploads and the most of twenty looks a second; "
        f"\"bodies\" is the most of the metric `{BODIES}`, \"files\" the most that open files in the spool folder are long. Latencies are in "
        "ms, from the scheduled time; a request without an answer has waited for ever. \"Send lag\" is how late the fast client "
        "sent: the load's own share and waits for a free connection, of its worst half second. \"Threads held\" is how many do not come "
        "when as many requests as there are threads wait for one another in the application; it is counted with such uploads again, after the latency.")
    report.text(*skipped)
    names = [each.name for each in chosen]
    outcomes: list[tuple[Case, Outcome]] = []
    rows = []
    for case in cases:
        if case.contender.name not in names:
            continue
        say(f"crowd-uploads: {case.how}, {case.contender.name}")
        plan = uploads.Plan(count, length, "/upload", case.rate, limit)
        try:
            with servers.running(case.contender, folder, folder) as server:
                seen, wrong = _measure(server, case, plan, folder)
        except (load.WrongAnswer, servers.CannotStart, subprocess.SubprocessError, OSError) as error:
            if case.ours:
                raise
            report.text(f"left out: {case.how}, {case.contender.name}: {error}".replace("\n", " "))
            continue
        outcomes.append((case, seen))
        rows.append(_row(case, seen, count))
        if wrong:
            report.text(f"{case.how}, {case.contender.name}: the first wrong answer: {wrong[0]}")
    report.table(["uploads", "server", "right", "done after s", "process before MiB", "process most MiB", "bodies most MiB", "files most MiB",
                  "fast p50", "fast p99", "send lag p99", "fast answered", "threads held"], rows)
    report.text("## Gates", "", *_gates(outcomes, count))
    report.data({"date": report.date, "machine": machine.model(), "python": environment.description, "uploads": count, "bytes": length,
                 "rows": [{"interface": case.interface, "rate": case.rate, "server": case.contender.name, **dataclasses.asdict(seen)}
                          for case, seen in outcomes]})
    report.chart(_chart(outcomes))


def _cases(environment: peers.Environment, folder: Path) -> list[Case]:
    words = [*metrics.WORDS, "--spool", str(folder / SPOOL)]
    of_wsgi, of_asgi = "crowd_wsgi:application", "upload_asgi:application"
    wsgi = [python_servers.Wsgi(environment, of_wsgi).granian(THREADS),
            python_servers.ours(environment, of_wsgi, "wsgi", f"{OURS}, {THREADS} threads", THREADS, words)]
    asgi = [*(each for each in python_servers.asgi(environment, of_asgi) if each.name == "granian"),
            python_servers.ours(environment, of_asgi, "asgi", words=words)]
    return [Case(interface, each, rate) for interface, both in (("wsgi", wsgi), ("asgi", asgi)) for rate in RATES for each in both]


def _measure(server: Server, case: Case, plan: uploads.Plan, folder: Path) -> tuple[Outcome, list[str]]:
    """The figures of one server, and the answers that were wrong."""
    fast = traffic.bare("/", b"0")
    traffic.settle(server.name, server.port, [fast])
    requests = load.listed(traffic.write(folder / "requests", [fast]))
    watch = _Watch(server, (folder / SPOOL).resolve() if case.ours else None)
    with watch, uploads.running(server.port, plan) as crowd:
        latencies, lag = _latencies(server.port, requests, crowd, folder)
        seen = crowd.result()
    rounds.rest(server)
    held = None
    if case.interface == "wsgi" and plan.rate is not None:
        with uploads.running(server.port, plan):
            least = plan.length / plan.rate
            time.sleep(COUNTED_FROM * least)
            held = threads.held(server.port, THREADS, (COUNTED_TO - COUNTED_FROM) * least)
    p50, p99 = (_ms(figures.percentile(latencies, share)) for share in (0.5, 0.99))
    answered = sum(map(math.isfinite, latencies)) / len(latencies)
    return Outcome(seen.right, len(seen.wrong), seen.times[-1] if seen.times else None, watch.before / MIB, watch.process / MIB,
                   watch.bodies / MIB if case.ours else None, watch.files / MIB if case.ours else None, p50, p99, lag, answered, held), seen.wrong


def _latencies(port: int, requests: list[str], crowd: concurrent.futures.Future[uploads.Outcome],
               folder: Path) -> tuple[list[float], float]:
    """Those of the fast client until the uploads are done, in microseconds, sorted; without an answer it is infinite. And how late it
    sent, in milliseconds."""
    latencies: list[float] = []
    lag, number = 0.0, 0
    while not (number and crowd.done()):
        number += 1
        seen = load.openloop(port, requests, RATE, PIECE_S, 0.0, CONNECTIONS, folder, poisson=number)
        if seen.wrong:
            raise load.WrongAnswer(f"the fast client got {seen.wrong} wrong answers")
        latencies += seen.latencies + [math.inf] * (seen.scheduled - len(seen.latencies))
        lag = max(lag, seen.lag_p99 / 1e3)
    return sorted(latencies), lag


def _ms(microseconds: float) -> float | None:
    return microseconds / 1e3 if math.isfinite(microseconds) else None


class _Watch:
    """The most that was seen while it is entered, in bytes; bodies and files only with a spool folder."""

    def __init__(self, server: Server, spool: Path | None) -> None:
        self._server, self._spool = server, spool
        self._ended = threading.Event()
        self._pool = concurrent.futures.ThreadPoolExecutor(1)
        self.before = self.process = machine.resident(server.pid)
        self.bodies = self.files = 0

    def __enter__(self) -> None:
        self._looks = self._pool.submit(self._look)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._ended.set()
        self._pool.shutdown()
        if kind is None:
            self._looks.result()

    def _look(self) -> None:
        with machine.on_core(machine.cores()[1]):
            while True:
                self.process = max(self.process, machine.resident(self._server.pid))
                if self._spool is not None:
                    self.files = max(self.files, machine.files_below(self._server.pid, self._spool))
                    bodies = next((each.value for each in metrics.read(self._server.port) if each.name == BODIES), None)
                    if bodies is None:
                        raise load.WrongAnswer(f"{self._server.name} has no metric {BODIES}")
                    self.bodies = max(self.bodies, int(bodies))
                if self._ended.wait(LOOK_S):
                    return


def _row(case: Case, seen: Outcome, count: int) -> list[str]:
    def text(value: float | None, digits: int = 0, absent: str = "–") -> str:
        return absent if value is None else f"{value:.{digits}f}"

    return [case.how, case.contender.name, f"{seen.right} of {count}", text(seen.seconds, 1, "never"), text(seen.before_mib),
            text(seen.peak_mib), text(seen.bodies_mib), text(seen.files_mib), text(seen.p50_ms, 1, "never"),
            text(seen.p99_ms, 1, "never"), text(seen.lag_p99_ms, 1), f"{100 * seen.answered:.0f} %", "–" if seen.held is None else f"{seen.held} of {THREADS}"]


def _gates(outcomes: list[tuple[Case, Outcome]], count: int) -> list[str]:
    gates = []
    for case, seen in outcomes:
        if not case.ours or seen.bodies_mib is None:
            continue
        what = f"Gate, {case.contender.name}, {case.how}"
        p99 = math.inf if seen.p99_ms is None else seen.p99_ms
        gates += [rounds.verdict(f"{what}: uploads answered right", seen.right, count, least=True),
                  rounds.verdict(f"{what}: bodies in memory in MiB", seen.bodies_mib, GATE_BODIES_MIB),
                  rounds.verdict(f"{what}: fast p99 in ms", p99, GATE_P99_MS)]
    return gates


def _chart(outcomes: list[tuple[Case, Outcome]]) -> str:
    groups: dict[str, list[chart.Bar]] = {}
    for case, seen in outcomes:
        groups.setdefault(f"{case.how}: most memory of the process in MiB", []).append(
            chart.Bar(case.contender.name, seen.peak_mib, seen.peak_mib, seen.peak_mib))
    return chart.bars(TITLE, "", list(groups.items()))
