"""Endless responses that clients do not read (HEAD, 204, 304, leaving, never reading): the requests that stay behind, and the latency of an honest client."""

from __future__ import annotations

import contextlib
import collections
import dataclasses
import http.client
import json
import multiprocessing
import random
import select
import socket
import ssl
import struct
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchlib import chart, honest_client, machine, peers, python_servers, rounds, secured, servers, streams
from benchlib.report import Report, say

TITLE = "Responses without end that nobody wants: what is left, and a connection beside them"
SECONDS, SMOKE_SECONDS = 60.0, 2.0
QUIET_S, SMOKE_QUIET_S = 5.0, 0.5
CLIENTS, SMOKE_CLIENTS = 200, 24
#: From one request of a client to its next, on average: no more than the attackers' core can do.
PACE_S = 0.5
#: How much is taken of a response before its client leaves.
TAKEN = 20_000
#: How long after the last client has left something may still be there: a peer that had ended its side leaves without a sign, and a limit of time ends it.
LEFT_S = 60.0
#: A gate: the p99 beside them against the quiet one.
MOST_RATIO = 2.0
WSGI, ASGI = ("iterable", "write", "django"), ("raw", "starlette", "django")
FORMS = ("HEAD", "204", "304", "half-closed", "reset", "never reads")
#: By name: the version, and whether by TLS.
PROTOCOLS = {"HTTP/1.0": ("1.0", False), "HTTP/1.1": ("1.1", False), "HTTP/2": ("2", False), "HTTP/1.1 by TLS": ("1.1", True), "HTTP/2 by TLS": ("2", True)}


@dataclass(frozen=True)
class Case:
    interface: str
    kinds: tuple[str, ...]
    protocol: str

    @property
    def name(self) -> str:
        return f"{self.interface}, {self.protocol}"


@dataclass(frozen=True)
class Outcome:
    #: p99 in ms.
    quiet: float
    beside: float
    lost: int
    #: Responses that the application has begun, those that have not ended, other tasks of the event loop, and threads in application code.
    begun: int
    left: int
    tasks: int
    inside: int
    #: Clients' requests by form, and those that failed.
    asked: dict[str, int]
    failed: dict[str, int]
    busy: tuple[float, ...]


def run(options: rounds.Options, folder: Path, report: Report) -> None:
    rounds.need("taskset", "openssl")
    environment = peers.environment(options)
    absent = [name for name in ("django", "starlette") if not environment.has(name)]
    if absent:
        raise rounds.Missing(f"not installed: {', '.join(absent)}")
    seconds = options.duration(SECONDS, SMOKE_SECONDS)
    clients = SMOKE_CLIENTS if options.smoke else CLIENTS
    report.text(
        f"{environment.description}. Default settings, on one core. Responses without end, in blocks of 1,000 bytes: of a WSGI application by an iterable, by `write()` and by Django's StreamingHttpResponse; of an ASGI application "
        f"by itself, by Starlette's StreamingResponse and by Django's. {clients} anonymous clients, in one process on the other core, for {seconds:g} s: a sixth each asks with HEAD, asks for a 204 and for a 304, "
        f"ends its side and leaves after {TAKEN:,} bytes, resets after as many (the stream, by HTTP/2), and never reads until the end; one request a client each {PACE_S:g} s on average. A client that does no harm asks for a hello of 13 bytes, on a kept connection, a millisecond after each answer, on the "
        f"server's core in real time, before and meanwhile. Left is what the application has begun and has not ended {LEFT_S:g} s after the last client has gone.")
    pair = secured.pair(folder)
    outcomes = {}
    for case in _chosen(options):
        say(f"attacks-endless: {case.name}")
        outcomes[case] = _measure(case, pair, environment, folder, seconds, clients, options.smoke)
    _write(report, outcomes)


def _chosen(options: rounds.Options) -> list[Case]:
    cases = [Case(interface, kinds, protocol) for interface, kinds in (("WSGI", WSGI), ("ASGI", ASGI)) for protocol in PROTOCOLS]
    named = [case for case in cases if case.name in options.only]
    return named or ([cases[1], cases[7]] if options.smoke else cases)


def _measure(case: Case, pair: secured.Pair, environment: peers.Environment, folder: Path, seconds: float, clients: int, smoke: bool) -> Outcome:
    version, by_tls = PROTOCOLS[case.protocol]
    interface = case.interface.lower()
    words = ["--error-log", "/dev/null"]
    words += ["--tls-cert", str(pair.certificate), "--tls-key", str(pair.key)] if by_tls else []
    contender = python_servers.ours(environment, f"endless_{interface}:application", interface, "server", words=words)
    if by_tls:
        contender = dataclasses.replace(contender, options={**contender.options, "scheme": "https://"})
    context = secured.trusting("http/1.1") if by_tls else None
    quiet_seconds = SMOKE_QUIET_S if smoke else min(QUIET_S, seconds)
    with machine.on_core(machine.cores()[1]), servers.running(contender, folder, folder) as server:
        honest_client.p99(server.port, quiet_seconds / 5, context)
        quiet, lost = honest_client.p99(server.port, quiet_seconds, context)
        own = _ask(server.port, context).get("tasks", 0)
        cores = [machine.core_busy_ns(core) for core in machine.cores()]
        with _clients(case, server.port, seconds, clients) as results:
            beside, more = honest_client.p99(server.port, seconds, context)
            busy = tuple((machine.core_busy_ns(core) - then) / 1e9 / seconds for core, then in zip(machine.cores(), cores))
            asked, failed = results()
        found = _left(server.port, context, own)
        inside = _inside(environment, server.port)
        return Outcome(quiet, beside, lost + more, found["begun"], found["begun"] - found["ended"], max(found.get("tasks", own) - own, 0), inside,
                       asked, failed, busy)


def _left(port: int, context: ssl.SSLContext | None, own: int) -> dict[str, int]:
    """What the application says when all has ended, or when the time is over; `own` tasks are the server's and the question's."""
    until = time.monotonic() + LEFT_S
    while True:
        found = _ask(port, context)
        if found["begun"] == found["ended"] and found.get("tasks", own) <= own or time.monotonic() > until:
            return found
        time.sleep(0.1)


def _ask(port: int, context: ssl.SSLContext | None) -> dict[str, int]:
    connection = (http.client.HTTPSConnection("127.0.0.1", port, timeout=30, context=context) if context
                  else http.client.HTTPConnection("127.0.0.1", port, timeout=30))
    with contextlib.closing(connection):
        connection.request("GET", "/left")
        found: dict[str, int] = json.loads(connection.getresponse().read())
    return found


def _inside(environment: peers.Environment, port: int) -> int:
    """Requests that the server still has in the application, or waiting."""
    command = [str(environment.program("maitred")), "ctl", "--json", "--port", str(port), "all"]
    said = json.loads(subprocess.run(command, capture_output=True, timeout=30, check=True).stdout)
    return sum(len(rows) for rows in said.values() if isinstance(rows, list))


# The clients


Result = tuple[dict[str, int], dict[str, int]]


def _clients(case: Case, port: int, seconds: float, clients: int) -> contextlib.AbstractContextManager[Callable[[], Result]]:
    return honest_client.apart(_play, case, port, seconds, clients, limit=seconds + 30)


def _play(case: Case, port: int, seconds: float, clients: int, result: multiprocessing.connection.Connection) -> None:
    until = time.monotonic() + seconds
    asked: collections.Counter[str] = collections.Counter()
    failed: collections.Counter[str] = collections.Counter()
    lock = threading.Lock()
    version, by_tls = PROTOCOLS[case.protocol]
    context = secured.trusting("h2" if version == "2" else "http/1.1") if by_tls else None
    result.send("begins")

    def client(number: int) -> None:
        form, chance = FORMS[number % len(FORMS)], random.Random(number)
        act = _second if version == "2" else _first
        time.sleep(chance.uniform(0, PACE_S))
        while time.monotonic() < until:
            kind = case.kinds[chance.randrange(len(case.kinds))]
            try:
                act(port, context, version, form, kind, until)
                why = None
            except (OSError, ssl.SSLError) as error:
                why = error
            with lock:
                asked[form] += 1
                failed[f"{form}: {type(why).__name__} {str(why)[:60]}"] += why is not None
            time.sleep(min(chance.uniform(0, 2 * PACE_S), max(until - time.monotonic(), 0)))

    threads = [threading.Thread(target=client, args=(number,)) for number in range(clients)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    result.send((dict(asked), {why: times for why, times in failed.items() if times}))


def _target(form: str, kind: str) -> tuple[str, str, int]:
    """Method, path and status."""
    status = int(form) if form.isdigit() else 200
    return "HEAD" if form == "HEAD" else "GET", f"/{kind}/{status}", status


def _hold(peer: socket.socket, until: float) -> None:
    """Read nothing until the server has given up, or the time is over."""
    poll = select.poll()
    poll.register(peer, select.POLLHUP | select.POLLERR)
    poll.poll(max(0.0, 1000 * (until - time.monotonic())))


def _first(port: int, context: ssl.SSLContext | None, version: str, form: str, kind: str, until: float) -> None:
    method, path, status = _target(form, kind)
    with contextlib.ExitStack() as stack:
        plain = stack.enter_context(socket.create_connection(("127.0.0.1", port), 30))
        peer = stack.enter_context(context.wrap_socket(plain, server_hostname="localhost")) if context else plain
        peer.sendall(f"{method} {path} HTTP/{version}\r\nHost: localhost\r\n\r\n".encode())
        if form == "never reads":
            return _hold(peer, until)
        if form == "half-closed" and not context:
            peer.shutdown(socket.SHUT_WR)
        received = b""
        while b"\r\n\r\n" not in received:
            part = peer.recv(4096)
            if not part:
                raise OSError("no head")
            received += part
        if int(received[9:12]) != status:
            raise OSError(f"status {received[9:12]!r}")
        if form in ("half-closed", "reset"):
            taken = len(received)
            while taken < TAKEN:
                part = peer.recv(65536)
                if not part:
                    raise OSError("a response that ends")
                taken += len(part)
        if form == "reset":
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def _second(port: int, context: ssl.SSLContext | None, version: str, form: str, kind: str, until: float) -> None:
    method, path, status = _target(form, kind)
    values = {streams.INITIAL_WINDOW_SIZE: 0} if form == "never reads" else {}
    with streams.Connection(port, values, context=context) as connection:
        connection.ping(b"begins..")
        stream = connection.stream()
        block = (streams.literal(2, b"HEAD") if method == "HEAD" else streams.GET) + streams.HTTP + streams.literal(4, path.encode()) + streams.literal(1, b"localhost")
        connection.peer.sendall(streams.frame(streams.HEADERS, streams.END_HEADERS | streams.END_STREAM, stream, block))
        if form == "half-closed" and not context:
            connection.peer.shutdown(socket.SHUT_WR)
            connection.grants = False
        if form == "never reads":
            return _hold(connection.peer, until)
        answer = connection.answers[stream]
        while not (answer.ended or answer.length >= TAKEN):
            connection.take()
            if answer.length < TAKEN and (connection.is_over or answer.reset is not None):
                raise OSError(f"no answer: reset {answer.reset}, connection {connection.code}")
        if form == "reset":
            connection.peer.sendall(streams.frame(streams.RST_STREAM, 0, stream, bytes([0, 0, 0, 8])))
            connection.ping(b"is there")


def _write(report: Report, outcomes: dict[Case, Outcome]) -> None:
    rows, gates, bars, failures = [], [], [], []
    for case, seen in outcomes.items():
        ratio = seen.beside / seen.quiet
        failed = sum(seen.failed.values())
        rows.append([case.name, f"{seen.quiet:.2f}", f"{seen.beside:.2f}", f"{ratio:.2f}", f"{seen.lost:,}", f"{sum(seen.asked.values()):,}", f"{failed:,}",
                     f"{seen.begun:,}", f"{seen.left:,}", f"{seen.tasks:,}", f"{seen.inside:,}", " / ".join(f"{100 * part:.0f} %" for part in seen.busy)])
        failures += [f"- {case.name}, {why}: {times:,}" for why, times in seen.failed.items()]
        gates.append(f"- Gate, {case.name}: nothing is left of {seen.begun:,} responses: **{'met' if seen.left == seen.tasks == seen.inside == 0 else 'not met'}**")
        gates.append(rounds.verdict(f"Gate, {case.name}: p99 beside them against the quiet one", ratio, MOST_RATIO))
        bars.append(chart.Bar(case.name, ratio, ratio, ratio))
    report.table(["interface and protocol", "p99 ms quiet", "beside them", "to quiet", "lost", "requests of clients", "failed", "begun", "left", "tasks left",
                  "requests left", "server's core / clients' core busy"], rows)
    if failures:
        report.text("What failed, as the clients saw it:", "", *failures)
    report.text("## Gates", "", *gates)
    report.chart(chart.bars(TITLE, "p99 beside them / quiet", [("all", bars)]))
