"""What tracing costs: the same application without spans and with 1, 10 and 100 % of its requests sent to a collector, in turn."""

from __future__ import annotations

import contextlib
import functools
import http.client
import json
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchlib import chart, compare, figures, load, pages, peers, python_servers, rounds, servers, taking, traffic
from benchlib.report import Report, say

TITLE = "What tracing costs: CPU per request with spans, to none"
PAIRS, WINDOW_S = 40, 3.0
#: Two processes of one server differ a little by where they happen to lie in memory: new ones after so many rounds.
ROUNDS_OF_PROCESSES = 5
THREADS = 4
OFF = "off"
#: Share of the requests that are sampled, and the most that a WSGI hello may cost then, to one without tracing.
RATES = {"1 %": (0.01, 1.01), "10 %": (0.1, 1.03), "100 %": (1.0, 1.10)}
HELLO = b"Hello, world!"
#: Until an application must have been loaded.
LOADING_S = 60
#: Milliseconds until a batch leaves that is not full: within the window of its requests. The default is 5,000.
DELAY = 200


@dataclass(frozen=True)
class Case:
    name: str
    path: str
    requests: Sequence[traffic.Request]
    #: By its name, words of the command line and variables.
    contender: Callable[[str, Sequence[str], dict[str, str]], servers.Contender]
    gated: bool = False


@dataclass
class Row:
    """Of one case and rate: CPU-seconds per 100,000 requests, round by round; and the spans of its requests."""

    cpu: list[float] = field(default_factory=list)
    requests: int = 0
    sent: int = 0
    dropped: int = 0


def run(options: rounds.Options, folder: Path, report: Report) -> None:
    rounds.need("taskset")
    servers.cargo_build("openloop")
    environment = peers.environment(options)
    cases = [_hello(environment)]
    if environment.has("django"):
        cases.append(_page(environment, folder))
    else:
        report.text("skipped: Django page (django is not installed)")
        say("skipped: Django page (django is not installed)")
    report.text(
        f"{environment.description}; {peers.versions(environment, ('maitred', 'django'))}. {compare.CONNECTIONS} keep-alive connections "
        "that are busy all the time, from our own generator, which sleeps when nothing has come; a server is on one core, the load and "
        "the collector, which takes everything, on the other. Each rate is a process of its own, without an access log, and new ones "
        f"follow after {ROUNDS_OF_PROCESSES} rounds. A batch leaves when it has 512 spans, or after {DELAY} ms (default: 5 s), so that a "
        "window pays for its own spans. CPU-seconds (user and system, all threads) per 100,000 requests; in µs the difference for one "
        f"request. {rounds.INTERVAL_NOTE}")
    bars, gates = [], []
    with taking.collector() as url:
        for case in cases:
            rows = _measure(options, case, url, folder)
            bars.append(_write(report, case, rows))
            gates += _gates(case, rows)
    report.text("## Gates", "", *gates)
    report.chart(chart.bars(TITLE, "CPU-seconds per 100,000 requests", bars))


def _hello(environment: peers.Environment) -> Case:
    of = functools.partial(_ours, environment, "plain_wsgi:application", None, {})
    return Case("WSGI hello", "/", [traffic.bare("/", HELLO)], of, gated=True)


def _page(environment: peers.Environment, folder: Path) -> Case:
    of = functools.partial(_ours, environment, "shop.wsgi:application", THREADS, pages.sqlite(environment, folder))
    requests = [traffic.browser(number, f"/categories/{1 + number}") for number in range(traffic.VARIANTS)]
    return Case("Django page, ten queries", "/categories/1", requests, of)


def _ours(environment: peers.Environment, application: str, threads: int | None, own: dict[str, str], name: str, words: Sequence[str],
          variables: dict[str, str]) -> servers.Contender:
    return python_servers.ours(environment, application, "wsgi", name, threads, words, own | variables)


def _contenders(case: Case, url: str, folder: Path) -> dict[str, servers.Contender]:
    found = {OFF: case.contender(OFF, ["--control", "off"], {})}
    for name, (rate, _) in RATES.items():
        words = ["--otlp", url, "--trace-slow", "0", "--control", str(_socket(folder, name))]
        variables = {"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": str(rate), "OTEL_BSP_SCHEDULE_DELAY": str(DELAY)}
        found[name] = case.contender(name, words, variables)
    return found


def _socket(folder: Path, name: str) -> Path:
    return folder / f"{name.split()[0]}.sock"


def _measure(options: rounds.Options, case: Case, url: str, folder: Path) -> dict[str, Row]:
    contenders = _contenders(case, url, folder)
    rows = {name: Row() for name in contenders}
    count = options.rounds(PAIRS)
    for first in range(0, count, ROUNDS_OF_PROCESSES):
        with rounds.all_running(list(contenders.values()), folder, folder) as up:
            requests = list(case.requests)
            for server in up:
                # The servers load the application beside each other, on one core.
                with contextlib.closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=LOADING_S)) as connection:
                    connection.request("GET", case.path, headers={"Host": "localhost"})
                    connection.getresponse().read()
                requests = traffic.settle(server.name, server.port, requests)
            sent = traffic.write(folder / "requests", requests)
            for number in range(first, min(count, first + ROUNDS_OF_PROCESSES)):
                say(f"tracing, {case.name}: round {number + 1}")
                for server in reversed(up) if number % 2 else up:
                    _window(options, server, rows[server.name], sent)
            for name in RATES:
                _count(rows[name], contenders[name], _socket(folder, name))
    return rows


def _window(options: rounds.Options, server: servers.Server, row: Row, requests: Path) -> None:
    seconds = options.duration(WINDOW_S)
    meter = rounds.Meter(server)
    marks = {"measuring": meter.start, "measured": meter.stop}
    closed = load.busy(server.port, load.listed(requests), compare.CONNECTIONS, 1, seconds, seconds / 4, marks, spin=False)
    if closed.failed or not closed.requests:
        raise load.WrongAnswer(f"{server.name}: {closed.requests} right answers, {closed.failed} failed requests")
    row.cpu.append(meter.cpu_ns / closed.requests / 1e4)
    rounds.rest(server)


def _count(row: Row, contender: servers.Contender, socket: Path) -> None:
    """What the exporter of a server has counted."""
    for word, path in (("requests", "stats"), ("spans", "otlp")):
        command = [str(contender.program), "ctl", "--socket", str(socket), path, "--json"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
        if done.returncode:
            raise RuntimeError(f"ctl {path}: {done.stderr.strip()}")
        said = json.loads(done.stdout)
        if word == "requests":
            row.requests += said["requests"]
        else:
            [traces] = [each for each in said["otlp"] if each["signal"] == "traces"]
            row.sent += traces["sent"]
            row.dropped += traces["dropped"]


def _write(report: Report, case: Case, rows: dict[str, Row]) -> tuple[str, list[chart.Bar]]:
    table, bars = [], []
    off = rows[OFF]
    for name, row in rows.items():
        of = figures.spread(row.cpu)
        bars.append(chart.Bar(name, of.median, of.lower, of.upper))
        cells = [name, f"{of.median:.3f} [{of.lower:.3f}, {of.upper:.3f}]"]
        if row is off:
            table.append([*cells, "–", "–", "–", "–"])
            continue
        micros = figures.spread([10 * (on - base) for on, base in zip(row.cpu, off.cpu, strict=True)])
        table.append([*cells, rounds.ratio_text(figures.ratios(row.cpu, off.cpu)), f"{micros.median:.2f} ({micros.low:.2f}–{micros.high:.2f})",
                      f"{100 * row.sent / max(1, row.requests):.2f} %", f"{100 * row.dropped / max(1, row.sent + row.dropped):.2f} %"])
    report.text(f"## {case.name}, {len(off.cpu)} rounds")
    report.table(["sampled", "CPU-s per 100,000", "to off", "µs, more than off", "spans of requests", "spans dropped"], table)
    return case.name, bars


def _gates(case: Case, rows: dict[str, Row]) -> list[str]:
    if not case.gated:
        return []
    return [rounds.verdict(f"Gate, {case.name}, {name} sampled, to off", figures.ratios(rows[name].cpu, rows[OFF].cpu).median, limit)
            for name, (_, limit) in RATES.items()]
