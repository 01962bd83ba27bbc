"""A storm of TLS handshakes: 500 a second on new connections, and how long kept connections wait for a fast page beside it."""

from __future__ import annotations

import dataclasses
import functools
import heapq
import os
import ssl
from dataclasses import dataclass, field
from pathlib import Path

from benchlib import chart, figures, fronts, load, peers, python_servers, rounds, secured, servers, workbench
from benchlib.compare import running
from benchlib.report import Report, say

TITLE = "A storm of TLS handshakes"
OURS = "maitred"
#: The same with an application in Python, which answers 13 bytes.
OURS_WSGI, APPLICATION, HELLO = "maitred, WSGI", "plain_wsgi:application", b"Hello, world!"
#: New connections a second, requests a second on kept connections, and how many of these.
HANDSHAKES, REQUESTS, CONNECTIONS = 500, 500, 16
SECONDS, SMOKE_SECONDS, ROUNDS = 10.0, 0.5, 5
KIB = 1 << 10
#: Milliseconds of p99 beside the storm, at most.
GATE = 5.0
#: New connections that are answered, at least so many of those that the pace asks for.
GATE_ANSWERED = 0.99
SHARES = ((0.5, "p50"), (0.99, "p99"), (0.999, "p99.9"), (1.0, "max"))


@dataclass
class Seen:
    """Of one server, alone or beside the storm: every round."""

    rounds: list[secured.Storm] = field(default_factory=list)
    #: Cores.
    cpu: list[float] = field(default_factory=list)

    def latencies(self) -> list[float]:
        return list(heapq.merge(*(each.latencies for each in self.rounds)))

    def percentile(self, share: float) -> float:
        """In milliseconds, over all rounds."""
        return figures.percentile(self.latencies(), share) / 1e3


def run(options: rounds.Options, folder: Path, report: Report) -> None:
    rounds.need("openssl", "taskset")
    workbench.build()
    files = secured.pair(folder)
    root = folder / "root"
    (root / secured.FOLDER[1:]).mkdir(parents=True)
    (root / secured.SMALL[1:]).write_bytes(os.urandom(KIB))
    candidates, lines = [secured.maitred(files, options.threads), secured.nginx(files), secured.haproxy(files)], []
    try:
        environment = peers.environment(options)
        candidates[1:1] = [_wsgi(environment, files)]
        candidates.append(secured.granian(files, environment))
    except rounds.Missing as error:
        if not options.smoke:
            raise
        workbench.left_out(lines, f"Python ({error})")
    contenders, skipped = rounds.present(options, candidates)
    seconds, count = options.duration(SECONDS, SMOKE_SECONDS), options.rounds(ROUNDS, smoke=1)
    report.text(f"{CONNECTIONS} kept connections ask {REQUESTS} times a second in all, alone and beside {HANDSHAKES} new connections a second, each with a full handshake of "
                f"TLS 1.3 (X25519, ECDSA P-256) and one request. {count} rounds of {seconds:g} s each, in turn. Latency is that of the kept connections and counts from the time "
                "that a request was due; all are kept. Server on one core, the client with both loads on another. The answer is a file of 1 KiB; of "
                f"\"{OURS_WSGI}\" 13 bytes of an application. {fronts.version('nginx')}, {fronts.version('haproxy')}, {ssl.OPENSSL_VERSION}.", *lines, *skipped)
    seen: dict[str, tuple[Seen, Seen]] = {}
    shares = []
    with running(contenders, OURS, folder, report, root) as up:
        for server in up:
            body = HELLO if server.name == OURS_WSGI else (root / secured.SMALL[1:]).read_bytes()
            load.verify(server.name, server.port, secured.SMALL, body, len(body), ssl.create_default_context(cafile=files.certificate))
            seen[server.name] = (Seen(), Seen())
        for number in range(count):
            for server in up:
                say(f"tls-storm: round {number + 1}: {server.name}")
                length = len(HELLO) if server.name == OURS_WSGI else KIB
                what = secured.Load(secured.SMALL, length, CONNECTIONS)
                for handshakes, into in zip((0, HANDSHAKES), seen[server.name], strict=True):
                    done = secured.storm(server, what, REQUESTS, handshakes, seconds, folder)
                    into.rounds.append(done.outcome)
                    into.cpu.append(done.cpu_ns / 1e9 / seconds)
                    shares.append(done.others)
                rounds.rest(server)
    _write(report, seen)
    report.text(rounds.others_text(shares))


def _wsgi(environment: peers.Environment, files: secured.Pair) -> servers.Contender:
    made = python_servers.ours(environment, APPLICATION, "wsgi", OURS_WSGI)
    return dataclasses.replace(made, command=functools.partial(_secured, files, made.command))


def _secured(files: secured.Pair, command: python_servers.Command, contender: servers.Contender, place: servers.Place) -> list[str]:
    return [*command(contender, place), "--tls-cert", str(files.certificate), "--tls-key", str(files.key)]


def _write(report: Report, seen: dict[str, tuple[Seen, Seen]]) -> None:
    rows, bars = [], []
    for name, both in seen.items():
        for way, each in zip(("alone", "storm"), both, strict=True):
            storm = figures.spread([each.answered for each in each.rounds]).median
            rows.append([f"{name}, {way}", *(f"{each.percentile(share):.2f}" for share, _ in SHARES),
                         f"{figures.spread([each.lag_p99 for each in each.rounds]).median / 1e3:.2f}",
                         f"{storm:.0f}" if way == "storm" else "–", str(sum(each.broken for each in each.rounds)),
                         f"{figures.spread(each.cpu).median:.3f}"])
        of = [figures.percentile(each.latencies, 0.99) / 1e3 for each in both[1].rounds]
        bars.append(chart.Bar(name, figures.spread(of).median, min(of), max(of)))
    report.table(["server", *(f"{name} ms" for _, name in SHARES), "client late by, p99 ms", "handshakes/s", "broken", "cores"], rows)
    lines = []
    for name in (OURS, OURS_WSGI):
        if name in seen:
            storm = seen[name][1]
            answered = sum(each.answered for each in storm.rounds) / sum(each.opened for each in storm.rounds)
            lines.append(rounds.verdict(f"Gate, {name}: p99 of kept connections beside {HANDSHAKES} handshakes a second, ms", storm.percentile(0.99), GATE))
            lines.append(rounds.verdict(f"Gate, {name}: new connections that are answered", answered, GATE_ANSWERED, least=True))
    report.text("## Gates", "", *lines)
    report.chart(chart.bars(TITLE, "p99 of kept connections beside the storm, ms (median, least and most of the rounds)", [("all", bars)]))
