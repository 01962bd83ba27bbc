"""Slow readers of large responses beside a fast client: threads, memory of the process and of the kernel, latency."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import http.client
import math
import re
import socket
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from benchlib import chart, crowd, figures, load, machine, peers, python_servers, rounds, servers, threads, traffic
from benchlib.report import Report, say
from benchlib.servers import Contender, Server

TITLE = "Slow readers of large responses, 4 threads"
THREADS = 4
#: Readers, what each of them reads, and how fast.
READERS, LENGTH, READ_RATE = 200, 8 << 20, 10 << 10
SMOKE_READERS, SMOKE_LENGTH = 20, 2 << 20
#: How long they are watched, once the server has made all responses. Some never have.
SECONDS, SETTLE_S = 8.0, 40.0
#: How long the fast client is watched from the moment on in which the readers ask: while their responses are made.
MAKING_S, SMOKE_MAKING_S = 2.5, 1.0
#: Without threads that could be counted: it answers the fast client at once so often in a row.
SETTLED, AT_ONCE_S = 20, 0.05
#: The fast client: requests a second, over so many connections.
RATE, CONNECTIONS = 100, 8
#: How often memory is looked at; the most counts. It takes milliseconds in which the server stands still: while latency
#: is measured, so rarely that it is less than one of its requests in a hundred.
LOOK_S, RARE_LOOK_S = 0.5, 4.0
#: What the responses are made of; those of a file on the disk are the engine's own or nginx's.
KINDS, ASGI_KINDS, STATIC = ("constant", "fresh", "generator", "write", "file"), ("constant", "fresh", "generator"), "static"
GATE_SHARED_MIB, GATE_MIB, GATE_KERNEL_MIB, GATE_P99, GATE_MAKING_MS = 24, 64, 64, 2.0, 50.0
MIB = 1 << 20
OURS, OURS_ASGI = f"{python_servers.OURS}, {THREADS} threads", f"{python_servers.OURS}, ASGI"
#: What is behind the name of a server that may use both cores, as may the load. Only what is made is measured so.
UNPINNED, MADE = ", both cores", ("fresh", "generator", "write")


@dataclass(frozen=True)
class Outcome:
    """What was seen of one server with one kind of response."""

    #: None where there are no threads to hold.
    held: int | None
    #: The fast client while the responses are made.
    making_p50: float
    making_p99: float
    #: When the fast client was answered as if nothing were; None if it never was.
    settled_s: float | None
    process_mib: float
    kernel_mib: float
    quiet_p99: float
    p99: float
    answered: float


def run(options: rounds.Options, folder: Path, report: Report) -> None:
    rounds.need("taskset", "ss")
    servers.cargo_build("openloop")
    environment = peers.environment(options)
    readers, length = (SMOKE_READERS, SMOKE_LENGTH) if options.smoke else (READERS, LENGTH)
    seconds = options.duration(SECONDS)
    making = SMOKE_MAKING_S if options.smoke else MAKING_S
    (folder / "files").mkdir()
    (folder / "files/large").write_bytes(bytes(length))
    (folder / "files/index.html").write_bytes(b"Hello, world!")
    variables = {"BENCH_BODY": str(length)}
    cases = _cases(options, environment, variables, folder)
    chosen, skipped = rounds.present(options, list({id(each): each for each, _ in cases}.values()))
    report.text(
        f"{environment.description}; {peers.versions(environment, python_servers.PACKAGES)}.", "",
        f"{readers} clients read {length / MIB:g} MiB each at {READ_RATE >> 10} KiB/s, through segments and buffers as on an "
        f"Ethernet; a fast client asks for 13 bytes {RATE} times a second: before, while the responses are made (the first {making:g} s), "
        "and when they are made. A fresh server for each row, on one core and the load on the other, or both on both. \"Held\" is how many of the threads do not come when as many requests as there are threads wait for "
        "one another in the application. \"Made after\" is when all come again (or, without threads, when the fast client is answered "
        "within 50 ms, 20 times in a row): what cannot stay in memory has to be written to the disk until then, and from then on is measured. Memory is the growth to the "
        "most seen, after each thread has made such responses for fast readers: of the process (PSS, looked at twice a second until then, and every four seconds), and of "
        "the kernel for the server's sockets (`ss -m`). Latencies in ms from the scheduled time.")
    report.text(*skipped)
    outcomes: dict[tuple[str, str], Outcome] = {}
    for contender, kind in cases:
        if contender not in chosen:
            continue
        say(f"slow-readers: {contender.name}, {kind}")
        try:
            with servers.running(contender, folder / "files", folder) as server:
                outcomes[contender.name, kind] = _measure(server, kind, readers, (seconds, making), folder)
        except load.WrongAnswer as error:
            if contender.name.startswith(python_servers.OURS):
                raise
            report.text(f"left out: {contender.name}, {kind}: {error}")
    _write(report, outcomes)


def _cases(options: rounds.Options, environment: peers.Environment, variables: dict[str, str],
           folder: Path) -> list[tuple[Contender, str]]:
    wsgi, asgi = "slow_wsgi:application", "slow_asgi:application"
    # So that no other disk is measured than that of the system's own temporary files.
    (folder / "spool").mkdir()
    words = ["--spool", str(folder / "spool"), "--static", f"/static={folder}/files"]
    *others, _ = python_servers.wsgi(environment, wsgi, THREADS, variables)
    mine = python_servers.ours(environment, wsgi, "wsgi", OURS, THREADS, words, variables)
    if options.smoke:
        others = []
    peregrine = [each for each in python_servers.wsgi(environment, wsgi, None, variables) if each.name == "peregrine"]
    loops = [python_servers.ours(environment, asgi, "asgi", OURS_ASGI, None, words, variables)]
    if not options.smoke:
        others += peregrine
        named = (each for each in python_servers.asgi(environment, asgi) if each.name == "uvicorn")
        loops += [Contender(each.name, each.program, each.command, each.options, each.environment | variables)
                  for each in named]
    cases = [(mine, STATIC), *([] if options.smoke else [(servers.NGINX, STATIC)])]
    for kind in KINDS:
        cases += [(each, kind) for each in (mine, *others)]
        cases += [(each, kind) for each in loops if kind in ASGI_KINDS]
        if kind in MADE:
            free = (mine, *(each for each in others if each.name.startswith("granian")), *(loops if kind in ASGI_KINDS else ()))
            cases += [(dataclasses.replace(each, name=each.name + UNPINNED, pinned=False), kind) for each in free]
    return cases


def _measure(server: Server, kind: str, readers: int, times: tuple[float, float], folder: Path) -> Outcome:
    seconds, making = times
    fast = traffic.bare("/index.html" if server.name == servers.NGINX.name else "/", b"Hello, world!")
    path = {STATIC: "/large" if server.name == servers.NGINX.name else "/static/large"}.get(kind, f"/{kind}")
    traffic.settle(server.name, server.port, [fast])
    requests = load.listed(traffic.write(folder / "requests", [fast]))

    def measure(seconds: float) -> load.Open:
        seen = load.openloop(server.port, requests, RATE, seconds, 0.0, CONNECTIONS, folder, poisson=1, pinned=server.pinned)
        if seen.wrong:
            raise load.WrongAnswer(f"{server.name}: {seen.wrong} wrong answers")
        return seen

    quiet = measure(seconds)
    _warm_up(server, path)
    watch = _Watch(server)
    begun = time.monotonic()
    with crowd.running(server.port, [crowd.Kind(readers, traffic.bare(path).wire, MIB, READ_RATE)], server.pinned), watch:
        during = measure(making)
        has_threads = server.name.removesuffix(UNPINNED) not in (servers.NGINX.name, "uvicorn", OURS_ASGI)
        settled = _free(server, begun) if has_threads else _settle(server.port, fast, begun)
        watch.every = RARE_LOOK_S
        seen = measure(seconds)
        held = threads.held(server.port, THREADS) if has_threads else None
    before, beside = (figures.percentile(each.latencies or [math.inf], 0.99) / 1e3 for each in (quiet, seen))
    # Who was not answered has waited for ever.
    all_during = during.latencies + [math.inf] * (during.scheduled - len(during.latencies))
    making_p50, making_p99 = (figures.percentile(all_during, part) / 1e3 for part in (0.5, 0.99))
    return Outcome(held, making_p50, making_p99, settled, watch.process / MIB, watch.kernel / MIB, before, beside, seen.answered / seen.scheduled)


def _warm_up(server: Server, path: str) -> None:
    """Have every thread make such a response for a reader that is fast: what the allocator keeps of that is no growth."""
    def ask(_: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
        try:
            connection.request("GET", path)
            connection.getresponse().read()
        finally:
            connection.close()

    with concurrent.futures.ThreadPoolExecutor(2 * THREADS) as pool:
        list(pool.map(ask, range(8 * THREADS)))


def _free(server: Server, begun: float) -> float | None:
    """Wait until all threads are free; how long that took."""
    while time.monotonic() - begun < SETTLE_S:
        asked = time.monotonic()
        if threads.held(server.port, THREADS) == 0:
            return asked - begun
    return None


def _settle(port: int, fast: traffic.Request, begun: float) -> float | None:
    """Wait until the server has time; how long that took."""
    row, since = 0, 0.0
    while time.monotonic() - begun < SETTLE_S:
        asked = time.monotonic()
        try:
            with socket.create_connection(("127.0.0.1", port), AT_ONCE_S * 10) as connection:
                connection.sendall(fast.wire)
                row = row + 1 if connection.recv(1) and time.monotonic() - asked < AT_ONCE_S else 0
        except OSError:
            row = 0
        if row == 1:
            since = asked - begun
        if row == SETTLED:
            return since
        time.sleep(AT_ONCE_S)
    return None


class _Watch:
    """The growth of memory while it is entered."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._before = machine.memory(server.pid).pss, self._sockets()
        self._ended = threading.Event()
        self.every = LOOK_S
        self.process = self.kernel = 0

    def __enter__(self) -> None:
        self._thread = threading.Thread(target=self._look)
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _look(self) -> None:
        with machine.on_core(machine.cores()[1]):
            while not self._ended.wait(self.every):
                process, kernel = self._before
                self.process = max(self.process, machine.memory(self._server.pid).pss - process)
                self.kernel = max(self.kernel, self._sockets() - kernel)

    def _sockets(self) -> int:
        """What the kernel has queued and set aside for the server's connections (ss(8), skmem)."""
        command = ["ss", "-tnmH", "state", "established", f"sport = :{self._server.port}"]
        said = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout
        return sum(sum(map(int, found)) for found in re.findall(r"skmem:\(r(\d+),rb\d+,t\d+,tb\d+,f(\d+),w(\d+)", said))


def _write(report: Report, outcomes: dict[tuple[str, str], Outcome]) -> None:
    rows = []
    for (name, kind), seen in outcomes.items():
        held = "–" if seen.held is None else f"{seen.held} of {THREADS}"
        settled = "never" if seen.settled_s is None else f"{seen.settled_s:.1f} s"
        making = [f"{seen.making_p50:.1f}", f"{seen.making_p99:.1f}"]
        rows.append([kind, name, held, *making, settled, f"{seen.process_mib:.0f}", f"{seen.kernel_mib:.0f}", f"{seen.quiet_p99:.2f}",
                     f"{seen.p99:.2f}", f"{100 * seen.answered:.0f} %"])
    report.table(["response", "server", "threads held", "fast p50 in the making", "fast p99 in the making", "made after", "process MiB", "kernel MiB", "fast p99 quiet", "fast p99 beside",
                  "answered"], rows)
    gates = []
    for (name, kind), seen in outcomes.items():
        if not name.startswith(python_servers.OURS):
            continue
        what = f"Gate, {name}, {kind}"
        if seen.held is not None:
            gates.append(rounds.verdict(f"{what}: threads held", seen.held, 0))
        gates.append(rounds.verdict(f"{what}: fast p99 in the making in ms", seen.making_p99, GATE_MAKING_MS))
        shared = kind in ("constant", STATIC, "file")
        gates += [rounds.verdict(f"{what}: growth of the process in MiB", seen.process_mib,
                                 GATE_SHARED_MIB if shared else GATE_MIB),
                  rounds.verdict(f"{what}: growth of the kernel in MiB", seen.kernel_mib, GATE_KERNEL_MIB),
                  rounds.verdict(f"{what}: fast p99 to its quiet one", seen.p99 / seen.quiet_p99, GATE_P99)]
    report.text("## Gates", "", *gates)
    names = list(dict.fromkeys(name for name, _ in outcomes))
    groups = []
    for kind in dict.fromkeys(kind for _, kind in outcomes):
        grown = [(name, outcomes[name, kind].process_mib) for name in names if (name, kind) in outcomes]
        groups.append((f"{kind}: growth of the process in MiB", [chart.Bar(name, mib, mib, mib) for name, mib in grown]))
    report.chart(chart.bars(TITLE, "", groups))
