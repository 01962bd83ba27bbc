"""WebSockets: CPU of messages that are sent back, plain and compressed, and memory of idle sockets, beside servers for Python."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchlib import clients, costs, figures, load, peers, python_servers, rounds, servers, sockets
from benchlib.compare import running
from benchlib.report import Report, say
from benchlib.sockets import DEFLATE, PLAIN, Load

TITLE = "WebSockets: CPU per message, memory per idle socket"
OURS = python_servers.OURS
SIZES = {"16 B": 16, "1 KiB": 1 << 10, "64 KiB": 64 << 10}
CONNECTIONS, SMOKE_CONNECTIONS = (64, 1000), (8,)
FORMS = {PLAIN: "plain", DEFLATE: "permessage-deflate"}
SECONDS, PROBE_SECONDS, SMOKE_SECONDS, PAIRS = 1.0, 0.1, 0.05, 6
MESSAGES = costs.Columns("CPU-s per 100,000 messages", 1e4, 3, "messages/s")

#: Idle sockets: those that are there before, and those that are counted.
FEW, MANY, SMOKE_FEW, SMOKE_MANY = 500, 5000, 10, 40
RUNS = 3


@dataclass(frozen=True)
class Workload:
    size: str
    form: str
    connections: int

    @property
    def name(self) -> str:
        return f"{self.size}, {FORMS[self.form]}, {self.connections:,} sockets"


def workloads(smoke: bool) -> list[Workload]:
    sizes = list(SIZES)[:: 2 if smoke else 1]
    return [Workload(size, form, connections) for form in FORMS for size in sizes
            for connections in (SMOKE_CONNECTIONS if smoke else CONNECTIONS)]


def run(options: rounds.Options, folder: Path, report: Report) -> None:
    rounds.need("taskset")
    clients.build()
    environment = peers.environment(options)
    contenders, skipped = rounds.present(options, sockets.contenders(environment))
    report.text(f"{environment.description}; {peers.versions(environment, (*python_servers.PACKAGES, 'hypercorn', 'websockets', 'wsproto'))}.", "",
                "An ASGI application that sends every message back. One worker process each, with its defaults; uvicorn with uvloop, httptools and the protocol that it chooses "
                "where nothing else is said. Each socket has one text message on its way all the time, which looks like JSON, and is another one each time; "
                "compressed ones are compressed by themselves. Our own client offers what browsers offer, and never sleeps. It "
                f"compares the first answer on each socket and looks at the length of the others. {rounds.INTERVAL_NOTE}", *skipped)
    files = {size: sockets.write(folder / f"messages-{length}", sockets.texts(length)) for size, length in SIZES.items()}
    results: dict[str, dict[str, list[float]]] = {}
    with running(contenders, OURS, folder, report) as up:
        for each in workloads(options.smoke):
            what = Load(files[each.size], each.connections, each.form)
            able = [server for server in up if _can(server, each, what, options, report)]
            if able:
                results[each.name] = _measure(options, each, what, able, report)
    _summary(results, [each.name for each in contenders], report)
    # A short run shows that it works, not of whom.
    remembered = [each for each in contenders if not options.smoke or each.name in (contenders[0].name, OURS)]
    _memory(options, remembered, files["16 B"], folder, report)
    report.chart(costs.bars(TITLE, "CPU-seconds per 100,000 messages", list(results.items())))


def _can(server: servers.Server, each: Workload, what: Load, options: rounds.Options, report: Report) -> bool:
    """Whether the server has sockets of this form, and answers right.  It is warm afterwards."""
    try:
        sockets.run(server, what, SMOKE_SECONDS if options.smoke else PROBE_SECONDS)
        return True
    except clients.CannotDo as error:
        if server.name == OURS:
            raise load.WrongAnswer(f"{server.name}, {each.name}: {error}") from error
        line = f"left out of \"{each.name}\": {server.name} ({error})"
        say(line)
        report.text(line)
        return False


def _measure(options: rounds.Options, each: Workload, what: Load, able: Sequence[servers.Server], report: Report) -> dict[str, list[float]]:
    seconds = options.duration(SECONDS, SMOKE_SECONDS)
    outcomes: dict[str, list[sockets.Outcome]] = {}

    def work(server: servers.Server) -> rounds.Timed[load.Closed]:
        done = sockets.run(server, what, seconds)
        outcomes.setdefault(server.name, []).append(done.outcome)
        return rounds.Timed(done.outcome.closed, done.cpu_ns, done.others)

    cpu = costs.measure_timed(each.name, able, OURS, options.rounds(PAIRS, smoke=1), work, MESSAGES, report)
    report.text("The load had nothing to do for a part of the time, at least: "
                f"{_told(outcomes, lambda all_of: f'{min(one.idle for one in all_of):.0%}')}.")
    if each.form == DEFLATE:
        report.text("Bytes of an answer, and how many of them are compressed: "
                    f"{_told(outcomes, lambda all_of: f'{all_of[-1].answer_bytes:,.0f} ({all_of[-1].compressed:.0%})')}.")
    return cpu


def _told(outcomes: dict[str, list[sockets.Outcome]], text: Callable[[list[sockets.Outcome]], str]) -> str:
    return "; ".join(f"{name} {text(all_of)}" for name, all_of in outcomes.items())


def _summary(results: dict[str, dict[str, list[float]]], names: Sequence[str], report: Report) -> None:
    """One table shows the medians of all servers, and our CPU divided by theirs."""
    def cell(cpu: dict[str, list[float]], name: str) -> str:
        if name not in cpu:
            return "–"
        median = f"{figures.spread(cpu[name]).median:.2f}"
        ratio = costs.ratios(cpu, OURS).get(name)
        return median if ratio is None else f"{median} ({ratio:.2f})"

    report.text(f"## All of them: {MESSAGES.cpu}", "Medians; in brackets the CPU of maitred divided by that of this server, the median of the rounds.")
    report.table(["", *names], [[workload, *(cell(cpu, name) for name in names)] for workload, cpu in results.items()])


# Memory


def _memory(options: rounds.Options, contenders: Sequence[servers.Contender], messages: Path, folder: Path, report: Report) -> None:
    few, many = (SMOKE_FEW, SMOKE_MANY) if options.smoke else (FEW, MANY)
    report.text("## Memory of an idle socket",
                f"Bytes for each of {many:,} sockets beside {few}; all have had one answer of 16 B and are silent. PSS of a fresh server's processes; kernel "
                "memory (sockets, epoll) is not in it. The least and the most of the runs in brackets.")
    rows = []
    for contender in contenders:
        row = [contender.name]
        for form in FORMS:
            values = []
            try:
                for number in range(options.rounds(RUNS, smoke=1)):
                    say(f"memory: {contender.name}, {FORMS[form]}, run {number + 1}")
                    with servers.running(contender, folder, folder) as server:
                        values.append(sockets.per_socket(server, Load(messages, few, form), Load(messages, many, form)))
            except (clients.CannotDo, servers.CannotStart) as error:
                if contender.name == OURS:
                    raise load.WrongAnswer(f"{contender.name}: idle sockets, {FORMS[form]}: {error}") from error
                row.append("–")
                continue
            of = figures.spread(values)
            row.append(f"{of.median:,.0f} [{min(values):,.0f}, {max(values):,.0f}]")
        rows.append(row)
    report.table(["server", *(f"bytes, {name}" for name in FORMS.values())], rows)
    for contender in contenders:
        if contender.name == OURS:
            _objects(contender, Load(messages, few), Load(messages, many), folder, report)


def _objects(ours: servers.Contender, few: Load, more: Load, folder: Path, report: Report) -> None:
    """How much of ours is Python's: its own allocators count."""
    traced = dataclasses.replace(ours, environment={**ours.environment, "PYTHONTRACEMALLOC": "1"})
    with servers.running(traced, folder, folder) as server:
        of = sockets.objects(server, few, more)
    report.text(f"Of what maitred has for a plain one, Python's allocators have given {of.traced:,.0f} bytes; in that are the scope ({of.scope:,} bytes with what is in it and in no "
                f"other), the task ({of.task:,}) and the application's coroutine ({of.coroutine:,}).")
