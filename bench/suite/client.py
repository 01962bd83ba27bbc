"""Calls to another service: CPU of the calling process and latency of a call, blocking and awaitable, beside other clients."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchlib import calls, costs, figures, peers, rounds, servers
from benchlib.report import Report, say

TITLE = "Calls to another service: CPU of the caller"
OURS = "maitred.http"
ROUNDS, SECONDS, SMOKE_SECONDS = 9, 1.0, 0.05
SIZES = {"1 KiB": 1 << 10, "64 KiB": 64 << 10}
BLOCKING, AWAITABLE = "blocking", "awaitable"
CURL = "curl, a process for each call"
#: Our transports are for these; `maitred.http` has a module of each name.
FRAMEWORKS = ("httpx", "httpx2", "requests")
PEERS = {BLOCKING: ("pycurl", "pyreqwest", "http.client", "urllib3", "requests", "httpx", "httpx2", "niquests"),
         AWAITABLE: ("pyreqwest", "aiohttp", "httpx", "httpx2", "niquests")}
PACKAGES = ("maitred", "pycurl", "pyreqwest", "aiohttp", "urllib3", "requests", "httpx", "httpx2")
#: The gates: at most so many times the CPU of a peer, of the call by one task, of floor and native call together; at least so many times
#: less than a program that is started.
BEST = {BLOCKING: ("pycurl", 1.5), AWAITABLE: ("pyreqwest", 1.0)}
FLAT, TRANSPORT, PROGRAM = 1.1, 1.1, 50.0


@dataclass(frozen=True)
class Workload:
    """What is called, and by how many callers at once."""

    form: str
    size: str
    callers: int

    @property
    def name(self) -> str:
        many = "1 caller" if self.callers == 1 else f"{self.callers} at once"
        return f"{self.form}, {self.size}, {many}"


#: The awaitable form also at 100, where a client that looks through its pool shows it.
WORKLOADS = (*(Workload(form, size, callers) for form in PEERS for size in SIZES for callers in (1, 32)),
             Workload(AWAITABLE, "1 KiB", 100))
SMOKE = (Workload(BLOCKING, "1 KiB", 1), Workload(AWAITABLE, "1 KiB", 32))

Samples = dict[str, list[calls.Measured]]


def run(options: rounds.Options, folder: Path, report: Report) -> None:
    rounds.need("taskset")
    root = folder / "site"
    root.mkdir()
    for name, size in SIZES.items():
        (root / name.replace(" ", "-")).write_bytes(bytes(size))
    environment = peers.environment(options)
    server = servers.NGINX if servers.NGINX.found() else servers.maitred()
    chosen, skipped = rounds.present(options, libraries(environment))
    report.text(
        f"{environment.description}; {peers.versions(environment, PACKAGES)}, {peers.versions(environment, ('niquests',), alone=True)}; "
        f"{servers.version('curl', '-V')}. The service is {server.name} with one worker on a core of its own, the callers have the other core; kept "
        "connections, clear text.", "",
        "CPU is user and system time of the calling process with all of its threads, and of `curl` where it is started for each call. Blocking "
        "callers are threads with one client (pycurl, http.client: a handle for each thread); awaitable callers are tasks on asyncio's own "
        "loop. Every pool has room for all callers. \"over maitred\" is the framework with our transport; \"floor\" the framework with a "
        "transport that has the answer ready and sends nothing. niquests has an environment of its own: its urllib3-future takes the place "
        f"of urllib3. {rounds.INTERVAL_NOTE}", *skipped)
    found: dict[Workload, Samples] = {}
    with servers.running(server, root, folder, 1024) as service:
        for workload in SMOKE if options.smoke else WORKLOADS:
            url = f"http://127.0.0.1:{service.port}/{workload.size.replace(' ', '-')}"
            found[workload] = _measure(options, workload, chosen, url)
            _table(report, workload, found[workload])
    report.text(rounds.others_text([each.others for samples in found.values() for of in samples.values() for each in of], "the callers' core"))
    report.text("## Gates", "", *(gates(found) or [f"None: they compare {OURS}, which has not been measured."]))
    report.chart(costs.bars(TITLE, "CPU µs for a call", [(workload.name, _cpu(samples)) for workload, samples in found.items()]))


def libraries(environment: peers.Environment) -> list[calls.Library]:
    """All contenders of both forms, ours last."""
    names = dict.fromkeys(name for of in PEERS.values() for name in of)
    others = [calls.Library(environment, name, (name,), alone=name == "niquests") for name in names]
    floors = [calls.Library(environment, f"{name}, floor", (name,)) for name in FRAMEWORKS]
    over = [calls.Library(environment, f"{name} over maitred", (name, f"maitred.http.{name}")) for name in FRAMEWORKS]
    return [*others, calls.Library(environment, CURL, program="curl"), *floors, *over, calls.Library(environment, OURS, ("maitred.http",))]


def takes_part(workload: Workload, name: str) -> bool:
    if name == CURL:
        return workload == Workload(BLOCKING, "1 KiB", 1)
    framework = name.removesuffix(" over maitred").removesuffix(", floor")
    return name == OURS or framework in PEERS[workload.form]


def _measure(options: rounds.Options, workload: Workload, chosen: Sequence[calls.Library], url: str) -> Samples:
    taking = [each for each in chosen if takes_part(workload, each.name)]
    samples: Samples = {each.name: [] for each in taking}
    with contextlib.ExitStack() as stack:
        callers = [stack.enter_context(calls.running(each, workload.form, workload.callers, SIZES[workload.size], url)) for each in taking]
        for number in range(options.rounds(ROUNDS, smoke=1)):
            say(f"client, {workload.name}: round {number + 1}")
            for caller in callers:
                samples[caller.name].append(caller.measure(options.duration(SECONDS, SMOKE_SECONDS)))
    return samples


def _cpu(samples: Samples) -> dict[str, list[float]]:
    return {name: [each.cpu for each in of] for name, of in samples.items() if of}


def _table(report: Report, workload: Workload, samples: Samples) -> None:
    cpu = _cpu(samples)
    rows = []
    for name, values in cpu.items():
        of = figures.spread(values)
        p50, p99 = (figures.spread([getattr(each, what) for each in samples[name]]).median for what in ("p50", "p99"))
        rows.append([name, f"{of.median:.1f} [{of.lower:.1f}, {of.upper:.1f}]",
                     rounds.against(cpu, OURS, name) if OURS in cpu else "–", f"{p50:,.0f}", f"{p99:,.0f}"])
    report.text(f"## {workload.name[0].upper()}{workload.name[1:]}")
    report.table(["client", "CPU µs for a call", f"{OURS} / this (CPU)", "p50, µs", "p99, µs"], rows)


def gates(found: dict[Workload, Samples]) -> list[str]:
    lines = []
    for workload, samples in found.items():
        cpu = _cpu(samples)
        peer, most = BEST[workload.form]
        if OURS in cpu and peer in cpu:
            lines.append(rounds.verdict(f"Gate, {workload.name}: CPU against {peer}", figures.ratios(cpu[OURS], cpu[peer]).median, most))
        if OURS in cpu and CURL in cpu:
            lines.append(rounds.verdict(f"Gate, {workload.name}: CPU of a process for each call, to ours",
                                        figures.ratios(cpu[CURL], cpu[OURS]).median, PROGRAM, least=True))
        lines += _of_transports(workload, cpu)
    return lines + _of_growth(found)


def _of_transports(workload: Workload, cpu: dict[str, list[float]]) -> list[str]:
    lines = []
    for name in FRAMEWORKS:
        over, floor = f"{name} over maitred", f"{name}, floor"
        if OURS in cpu and over in cpu and floor in cpu:
            sums = [first + second for first, second in zip(cpu[floor], cpu[OURS], strict=True)]
            lines.append(rounds.verdict(f"Gate, {workload.name}: CPU of {over} to its floor and our own call",
                                        figures.ratios(cpu[over], sums).median, TRANSPORT))
    return lines


def _of_growth(found: dict[Workload, Samples]) -> list[str]:
    """From one call to a hundred at once. The workloads are measured one after the other: medians, not pairs."""
    medians = {workload.callers: figures.spread(_cpu(samples)[OURS]).median for workload, samples in found.items()
               if workload.form == AWAITABLE and workload.size == "1 KiB" and samples.get(OURS)}
    return [rounds.verdict(f"Gate, {AWAITABLE}, 1 KiB: CPU of {OURS} with {many} at once, to {few}", medians[many] / medians[few], FLAT)
            for few, many in ((1, 32), (1, 100), (32, 100)) if few in medians and many in medians]
