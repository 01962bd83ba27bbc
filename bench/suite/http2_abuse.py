"""HTTP/2 under attack: for each attack the memory of the server, the code with which the attacker is ended, and the latency of a connection beside it."""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection as Pipe
from pathlib import Path

from benchlib import chart, figures, honest_client, machine, peers, python_servers, rounds, servers, streams
from benchlib.report import Report, say
from benchlib.streams import ENHANCE_YOUR_CALM, frame, request

TITLE = "HTTP/2 abused: memory, and a connection beside it"
SECONDS, SMOKE_SECONDS, PAIRS = 3.0, 0.5, 5
#: An attacker that was ended comes again after this long.
AGAIN_S = 0.01
#: The shortest attack that a limit in time (1 s here) can end.
LEAST_S = 2.5
#: How long a client that has read nothing looks for its end.
LAST_LOOK_S = 0.5
#: From one request of the well-behaved connection to the next.
EVERY_S = 0.001
#: A gate: the p99 beside an attack against that beside as many clients that attack nothing.
MOST_RATIO = 2.0
#: A gate: by how much the server grows, in MiB.
MOST_GROWTH = 64
PIECE = 50
MIB = 1 << 20
LARGE = 8 * MIB
CALM = frozenset({ENHANCE_YOUR_CALM})
PROTOCOL_ERROR, FLOW_CONTROL_ERROR, STREAM_CLOSED, CANCEL, COMPRESSION_ERROR = 1, 3, 5, 8, 9

#: What one connection sends.
Wire = Callable[[], Iterator[bytes]]


@dataclass(frozen=True)
class Attack:
    name: str
    wire: Wire
    #: With one of these the server ends the connection.
    codes: frozenset[int] = CALM
    #: At once.
    connections: int = 4
    values: tuple[tuple[int, int], ...] = ()
    #: It gives no windows back.
    grants: bool = True
    #: It waits for the server to end it, which a limit in time does: within a run of seconds it may not be.
    waits: bool = False
    #: It attacks nothing: it asks for the hello once, and ends.
    leaves: bool = False


def _endless(one: Callable[[int], bytes]) -> Wire:
    """One thing for each odd number, fifty in a piece, without end."""
    def wire() -> Iterator[bytes]:
        for first in itertools.count(1, 2 * PIECE):
            yield b"".join(one(first + 2 * number) for number in range(PIECE))

    return wire


def _behind(head: Callable[[], bytes], one: Callable[[int], bytes]) -> Wire:
    """The same behind something that comes first."""
    return lambda: itertools.chain([head()], _endless(one)())


def _once(wire: bytes) -> Wire:
    return lambda: iter([wire])


def _ask(stream: int, path: bytes = b"/slow", ends: bool = True, method: bytes = streams.GET) -> bytes:
    return frame(streams.HEADERS, streams.END_HEADERS | ends * streams.END_STREAM, stream, request(path, method))


def _open(stream: int) -> bytes:
    """A request whose body is still to come."""
    return _ask(stream, ends=False, method=streams.POST)


def _reset(stream: int) -> bytes:
    return frame(streams.RST_STREAM, 0, stream, bytes([0, 0, 0, CANCEL]))


def _blocks(block: bytes) -> bytes:
    """A head in as many frames as it needs."""
    most = 16_384
    parts = [block[at : at + most] for at in range(0, len(block), most)]
    wire = frame(streams.HEADERS, streams.END_STREAM | streams.END_HEADERS * (len(parts) == 1), 1, parts[0])
    for number, part in enumerate(parts[1:], 2):
        wire += frame(streams.CONTINUATION, streams.END_HEADERS * (number == len(parts)), 1, part)
    return wire


def _bomb(name: bytes, value: bytes) -> bytes:
    """A field that goes into the table, and 16,000 references to it."""
    return _blocks(request(b"/") + streams.own(name, value, indexed=True) + bytes([0x80 | 62]) * 16_000)


def _begun() -> bytes:
    """A head that does not end."""
    return frame(streams.HEADERS, 0, 1, request(b"/"))


NO_WINDOW = ((streams.INITIAL_WINDOW_SIZE, 0),)
ATTACKS = (
    Attack("rapid reset", _endless(lambda stream: _ask(stream) + _reset(stream))),
    Attack("MadeYouReset, window of nothing", _endless(lambda stream: _open(stream) + streams.window_update(stream, 0))),
    Attack("MadeYouReset, window overflow", _endless(lambda stream: _open(stream) + streams.window_update(stream, streams.LARGEST_WINDOW))),
    Attack("malformed requests", _endless(lambda stream: frame(streams.HEADERS, 5, stream, request(b"/") + streams.own(b"connection", b"close")))),
    Attack("CONTINUATION flood", _behind(_begun, lambda _: frame(streams.CONTINUATION, 0, 1, streams.own(b"x", b"y")))),
    Attack("CONTINUATION flood, empty", _behind(_begun, lambda _: frame(streams.CONTINUATION, 0, 1))),
    Attack("CONTINUATION flood, full", _behind(_begun, lambda _: frame(streams.CONTINUATION, 0, 1, streams.own(b"x", b"y" * 100) * 150))),
    Attack("empty DATA", _behind(lambda: _open(1), lambda _: frame(streams.DATA, 0, 1))),
    Attack("DATA of one byte", _behind(lambda: _open(1), lambda _: frame(streams.DATA, 0, 1, b"x"))),
    Attack("SETTINGS flood", _endless(lambda stream: streams.settings({streams.INITIAL_WINDOW_SIZE: 65_535 + stream % 7}))),
    Attack("PING flood", _endless(lambda _: frame(streams.PING, 0, 0, b"opaque!!"))),
    Attack("PRIORITY flood", _endless(lambda stream: frame(streams.PRIORITY, 0, stream, b"\0\0\0\0\x10"))),
    Attack("WINDOW_UPDATE flood", _endless(lambda _: streams.window_update(0, 1))),
    Attack("unknown frames", _endless(lambda _: frame(0xEE, 0, 0, b"?"))),
    Attack("streams beyond the limit", _endless(_open)),
    Attack("HPACK bomb, large fields", _once(_bomb(b"x", b"y" * 120))),
    Attack("HPACK bomb, tiny fields", _once(_bomb(b"x", b"y"))),
    Attack("HPACK bomb, tiny fields, held", _once(_bomb(b"x", b"y")), values=NO_WINDOW, connections=16),
    Attack("cookie crumbs", _once(_bomb(b"cookie", b"a"))),
    Attack("cookie crumbs, held", _once(_bomb(b"cookie", b"a")), values=NO_WINDOW, connections=16),
    Attack("Huffman code that never ends", _once(frame(streams.HEADERS, 5, 1, b"\0\xff\xff" + b"\xff" * 60)), frozenset({COMPRESSION_ERROR})),
    Attack("even streams", _once(frame(streams.HEADERS, 5, 2, request(b"/"))), frozenset({PROTOCOL_ERROR})),
    Attack("falling streams", _once(_ask(3) + _ask(1)), frozenset({PROTOCOL_ERROR, STREAM_CLOSED})),
    Attack("window beyond its end", _once(streams.window_update(0, streams.LARGEST_WINDOW)), frozenset({FLOW_CONTROL_ERROR})),
    Attack("a window of nothing", _once(b"".join(_ask(stream, b"/static/large") for stream in range(1, 200, 2))), connections=16, values=NO_WINDOW, waits=True),
    Attack("a window byte by byte", lambda: itertools.chain([_ask(1, b"/static/large")], _slowly()), values=NO_WINDOW, connections=16, grants=False, waits=True),
    Attack("answers that nobody reads", _once(b"".join(_ask(stream, b"/static/large") for stream in range(1, 200, 2))), connections=16, grants=False, waits=True),
)


def _slowly() -> Iterator[bytes]:
    while True:
        time.sleep(0.05)
        yield streams.window_update(1, 1)


def _polite() -> Attack:
    """As many clients that attack nothing: each asks for the hello once, ends, and comes again."""
    return Attack("clients", lambda: iter([]), waits=True, leaves=True)


@dataclass(frozen=True)
class Outcome:
    #: p99 of the well-behaved connection in milliseconds, in each round: alone, beside as many clients that attack nothing, and
    #: beside the attack.
    alone: list[float]
    polite: list[float]
    beside: list[float]
    #: By how much the server's memory grew at most, in MiB.
    growth: float
    #: How often attackers were ended with which code; `None` is an end without one.
    codes: dict[int | None, int]
    sent: int


def run(options: rounds.Options, folder: Path, report: Report) -> None:
    rounds.need("taskset")
    environment = peers.environment(options)
    root = folder / "static"
    root.mkdir()
    with (root / "large").open("wb") as file:
        file.truncate(LARGE)
    seconds = options.duration(SECONDS, SMOKE_SECONDS)
    count = options.rounds(PAIRS, smoke=1)
    report.text(
        f"{environment.description}. The server with 4 threads and the WSGI hello, on one core. A well-behaved connection asks every "
        f"{1e3 * EVERY_S:.0f} ms for the hello and a file of 1 KiB in turn; {count} rounds of {seconds:g} s alone, {seconds:g} s beside as many clients that attack nothing (they connect, "
        f"ask once, end, and come again after {1e3 * AGAIN_S:.0f} ms) and {seconds:g} s beside each attack, a fresh server for each. That others connect at all costs "
        f"the well-behaved one something; what an attack costs is what it costs more than they do. Attackers have the other core for themselves; the well-behaved client is on the "
        f"server's core, in real time, so that it waits for nothing but the server. An attacker that was ended comes again after {1e3 * AGAIN_S:.0f} ms. Memory is what was resident at "
        "most beside the attack, less what was before it. Where it is a limit in time that ends attackers (--body-timeout, --min-rate-grace), it is 1 s here.")
    outcomes = {}
    for attack in _chosen(options):
        say(f"http2-abuse: {attack.name}")
        outcomes[attack] = _measure(attack, environment, root, folder, seconds, count)
    _write(report, outcomes)


def _chosen(options: rounds.Options) -> list[Attack]:
    """All of them; in a smoke run every fourth."""
    named = [each for each in ATTACKS if each.name in options.only]
    return named or list(ATTACKS[::4] if options.smoke else ATTACKS)


def _measure(attack: Attack, environment: peers.Environment, root: Path, folder: Path, seconds: float, count: int) -> Outcome:
    (root / "small").write_bytes(b"x" * 1024)
    seconds = max(seconds, LEAST_S) if attack.waits else seconds
    words = ["--static", f"/static={root}", "--body-timeout", "1", "--min-rate-grace", "1"]
    contender = python_servers.ours(environment, "streams_wsgi:application", "wsgi", "server", 4, words)
    alone: list[float] = []
    polite: list[float] = []
    beside: list[float] = []
    others = replace(_polite(), connections=attack.connections)
    growth, sent = 0.0, 0
    codes: dict[int | None, int] = {}
    with machine.on_core(machine.cores()[1]), servers.running(contender, root, folder) as server, streams.Connection(server.port) as honest:
        _ask_for(honest, seconds / 2)
        for _ in range(count):
            alone.append(_ask_for(honest, seconds))
            with _attacking(others, server.port, seconds) as results:
                polite.append(_ask_for(honest, seconds))
            results()
            before = machine.resident(server.pid)
            with _attacking(attack, server.port, seconds) as results, honest_client.watching(server.pid) as most:
                beside.append(_ask_for(honest, seconds))
            growth = max(growth, (most() - before) / MIB)
            ended, bytes_sent = results()
            sent += bytes_sent
            for code, times in ended.items():
                codes[code] = codes.get(code, 0) + times
    return Outcome(alone, polite, beside, growth, codes, sent)


def _ask_for(honest: streams.Connection, seconds: float) -> float:
    """The p99 in milliseconds."""
    until = time.monotonic() + seconds
    taken: list[float] = []
    with machine.on_core(machine.cores()[0]), honest_client.at_once():
        while time.monotonic() < until:
            taken.append(honest.fetch(b"/static/small" if len(taken) % 2 else b"/").seconds)
            time.sleep(EVERY_S)
    return 1e3 * figures.percentile(sorted(taken), 0.99)


Ended = tuple[dict[int | None, int], int]


def _attacking(attack: Attack, port: int, seconds: float) -> contextlib.AbstractContextManager[Callable[[], Ended]]:
    return honest_client.apart(_attacker, attack, port, seconds, limit=seconds + 10)


def _attacker(attack: Attack, port: int, seconds: float, result: Pipe) -> None:
    until = time.monotonic() + seconds
    codes: dict[int | None, int] = {}
    sent = [0]
    lock = threading.Lock()
    result.send("begins")

    def attacks() -> None:
        while time.monotonic() < until:
            with streams.Connection(port, dict(attack.values), attack.grants) as connection:
                # Settings are acknowledged before: nothing may stand within a block of fields.
                connection.ping(b"begins..")
                if attack.leaves:
                    connection.fetch(b"/")
                count = connection.flood(attack.wire(), until)
                code = None if attack.leaves else _end(connection, attack, until)
                with lock:
                    sent[0] += count
                    if connection.is_over or code is not None:
                        codes[code] = codes.get(code, 0) + 1
            time.sleep(AGAIN_S)

    threads = [threading.Thread(target=attacks) for _ in range(attack.connections)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    result.send((codes, sent[0]))


def _end(connection: streams.Connection, attack: Attack, until: float) -> int | None:
    if not attack.grants:
        # It reads what there is when its time is over: that the server has given up stands behind it.
        time.sleep(max(0.0, until - time.monotonic()))
        until = time.monotonic() + LAST_LOOK_S
    code = connection.end(until)
    return connection.reset if code is None and attack.waits else code


def _write(report: Report, outcomes: dict[Attack, Outcome]) -> None:
    rows, gates, bars, ratios = [], [], [], []
    for attack, outcome in outcomes.items():
        ratio = figures.ratios(outcome.beside, outcome.polite)
        whole = figures.ratios(outcome.beside, outcome.alone)
        codes = ", ".join(f"{'without a code' if code is None else code} {times:,}" for code, times in outcome.codes.items()) or "not ended"
        medians = [f"{figures.spread(each).median:.2f}" for each in (outcome.alone, outcome.polite, outcome.beside)]
        rows.append([attack.name, *medians, rounds.ratio_text(ratio), rounds.ratio_text(whole), f"{outcome.growth:.1f}", codes, f"{outcome.sent / MIB:.1f}"])
        gates.append(rounds.verdict(f"Gate, {attack.name}: p99 beside the attack against that beside as many clients", ratio.median, MOST_RATIO))
        gates.append(rounds.verdict(f"Gate, {attack.name}: the server grows, MiB", outcome.growth, MOST_GROWTH))
        # An end without a code is one of a peer that does not read; CANCEL ends a stream.
        right = bool(outcome.codes) and all(code in attack.codes or (attack.waits and code in (None, CANCEL)) for code in outcome.codes)
        gates.append(f"- Gate, {attack.name}: attackers are ended, with the right code: **{'met' if right else 'not met'}**")
        bars.append(chart.Bar(attack.name, outcome.growth, outcome.growth, outcome.growth))
        ratios.append(chart.Bar(attack.name, ratio.median, ratio.low, ratio.high))
    report.table(["attack", "p99 ms alone", "beside clients", "beside the attack", "attack to clients", "attack to alone", "growth MiB", "ended with", "MiB sent"], rows)
    report.text("Codes are those of RFC 9113 §7: 11 is ENHANCE_YOUR_CALM; 8, CANCEL, ends streams whose time is over, and not their connection.")
    report.text("## Gates", "", *gates)
    report.chart(chart.bars(TITLE, "", [("growth of the server, MiB", bars), ("p99 beside the attack / beside as many clients", ratios)]))
