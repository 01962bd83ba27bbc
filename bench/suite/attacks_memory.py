"""Attacks that want the server to keep something for them, by every protocol: what it grows by, and a connection beside them."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import select
import socket
import ssl
import struct
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection as Pipe
from pathlib import Path

from benchlib import chart, honest_client, machine, peers, python_servers, rounds, secured, servers, streams
from benchlib.report import Report, say

TITLE = "Attacks on memory: growth, and a connection beside it"
SECONDS, SMOKE_SECONDS = 60.0, 1.5
#: Of the honest client alone, and beside as many clients that attack nothing.
QUIET_S, SMOKE_QUIET_S = 5.0, 0.5
CLIENTS = 50
#: A client that was ended comes again after this long.
AGAIN_S = 0.1
#: From one byte of a body that trickles to the next.
TRICKLE_S, SMOKE_TRICKLE_S = 20.0, 0.4
#: Gates: the growth in MiB, and the p99 beside the attack against the quiet one.
MOST_GROWTH, MOST_RATIO = 64, 2.0
MIB = 1 << 20
FIRST, SECOND = "HTTP/1.1", "HTTP/2"
HTTPS = " by TLS"
APPLICATION = "abused_asgi:application"


@dataclass(frozen=True)
class Way:
    """How a client comes, and until when it is there."""

    port: int
    until: float
    context: ssl.SSLContext | None
    trickle: float

    @property
    def left(self) -> float:
        return self.until - time.monotonic()

    def connect(self) -> socket.socket:
        peer = socket.create_connection(("127.0.0.1", self.port), 10)
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self.context:
            peer = self.context.wrap_socket(peer, server_hostname="localhost")
        return peer


#: One connection, from its begin until it is ended or the time is over; in a word how it ended.
Client = Callable[[Way], str]


@dataclass(frozen=True)
class Attack:
    name: str
    #: FIRST or SECOND.
    protocol: str
    client: Client


# Bytes that a server might keep


def _ping(payload: bytes) -> bytes:
    return b"\x89" + bytes([0x80 | len(payload)]) + bytes(4) + payload


def _deflated(size: int) -> bytes:
    """A compressed message of so many zeros."""
    compress = zlib.compressobj(wbits=-15)
    payload = (compress.compress(bytes(size)) + compress.flush(zlib.Z_SYNC_FLUSH))[:-4]
    return b"\xc2" + bytes([0x80 | 126]) + struct.pack(">H", len(payload)) + bytes(4) + payload


PINGS = _ping(b"x" * 125) * 100
#: The largest message that is taken, in some kilobytes.
MESSAGES = _deflated(4 * MIB) * 4
ASKS = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" * 100


def _integer(value: int, bits: int, first: int = 0) -> bytes:
    """RFC 7541 §5.1."""
    most = (1 << bits) - 1
    if value < most:
        return bytes([first | value])
    rest, made = value - most, [first | most]
    while rest >= 128:
        made.append(rest & 127 | 128)
        rest >>= 7
    return bytes([*made, rest])


def _field(name: bytes, value: bytes, indexed: bool = False) -> bytes:
    return bytes([0x40 * indexed]) + _integer(len(name), 7) + name + _integer(len(value), 7) + value


# Clients of HTTP/1.1


def _upgraded(way: Way, path: str, *lines: str) -> socket.socket:
    peer = way.connect()
    head = [f"GET {path} HTTP/1.1", "Host: localhost", "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13",
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", *lines, "", ""]
    peer.sendall("\r\n".join(head).encode())
    received = b""
    while b"\r\n\r\n" not in received:
        part = peer.recv(4096)
        if not part:
            break
        received += part
    if not received.startswith(b"HTTP/1.1 101"):
        raise OSError(received[:100])
    return peer


def _fill(peer: socket.socket, way: Way, piece: bytes) -> str:
    """Send without end, and read nothing."""
    peer.settimeout(0.5)
    rest = memoryview(piece)
    while way.left > 0:
        try:
            rest = rest[peer.send(rest):] or memoryview(piece)
        except (TimeoutError, ssl.SSLWantWriteError):
            continue
        except OSError:
            return "closed"
    return "held until the end"


def _pongs(way: Way) -> str:
    with _upgraded(way, "/takes") as peer:
        return _fill(peer, way, PINGS)


def _messages(way: Way) -> str:
    with _upgraded(way, "/waits", "Sec-WebSocket-Extensions: permessage-deflate") as peer:
        return _fill(peer, way, MESSAGES)


def _pipelined(way: Way) -> str:
    with way.connect() as peer:
        return _fill(peer, way, ASKS)


def _answer(peer: socket.socket, way: Way, piece: Callable[[], bytes]) -> str:
    """Send a piece now and then, until the server says something."""
    peer.settimeout(way.trickle)
    while way.left > 0:
        try:
            peer.sendall(piece())
            peer.settimeout(min(way.trickle, max(way.left, 0.01)))
            said = peer.recv(4096)
        except TimeoutError:
            continue
        except OSError:
            return "closed"
        return said[9:12].decode() if said.startswith(b"HTTP/1.1 ") else "closed"
    return "held until the end"


def _trickled(way: Way) -> str:
    with way.connect() as peer:
        peer.sendall(b"POST /body HTTP/1.1\r\nHost: localhost\r\nContent-Length: 8000000\r\n\r\n")
        return _answer(peer, way, lambda: b"x")


def _trickled_chunks(way: Way) -> str:
    with way.connect() as peer:
        peer.sendall(b"POST /body HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
        return _answer(peer, way, lambda: b"1\r\nx\r\n")


def _head(way: Way) -> str:
    """A head as large as it may be, but for its end; another line now and then."""
    with way.connect() as peer:
        peer.sendall(b"POST /body HTTP/1.1\r\nHost: localhost\r\n" + b"".join(b"X-%d: %s\r\n" % (number, b"x" * 15_000) for number in range(4)))
        return _answer(peer, way, lambda: b"Y: y\r\n")


def _trailers(way: Way) -> str:
    """The same behind a body."""
    with way.connect() as peer:
        peer.sendall(b"POST /body HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n")
        peer.sendall(b"".join(b"X-%d: %s\r\n" % (number, b"x" * 15_000) for number in range(4)))
        return _answer(peer, way, lambda: b"Y: y\r\n")


# Clients of HTTP/2


class _Connection(streams.Connection):
    """One that knows how much it may send."""

    def __post_init__(self) -> None:
        self.room = collections.defaultdict(lambda: 65_535)
        super().__post_init__()

    def _frames(self) -> Iterator[tuple[int, int, int, bytes]]:
        for kind, flags, stream, payload in super()._frames():
            if kind == streams.WINDOW_UPDATE:
                self.room[stream] += int.from_bytes(payload, "big")
            elif kind == streams.SETTINGS and not flags & streams.ACK:
                values = dict(struct.iter_unpack(">HL", payload))
                first = values.get(streams.INITIAL_WINDOW_SIZE, 65_535)
                self.room.default_factory = lambda: first
            yield kind, flags, stream, payload

    def hold(self, way: Way) -> str:
        """Read until it is ended, or the time is over."""
        while not self.is_over and self.code is None and self.reset is None and way.left > 0:
            if select.select([self.peer], [], [], min(way.left, 0.5))[0] or _pending(self.peer):
                self.take()
        return self.how()

    def how(self) -> str:
        if self.code is not None:
            return f"code {self.code}"
        if self.reset is not None:
            return f"stream reset {self.reset}"
        return "closed" if self.is_over else "held until the end"


def _pending(peer: socket.socket) -> bool:
    return isinstance(peer, ssl.SSLSocket) and peer.pending() > 0


def _second(way: Way, values: dict[int, int] | None = None) -> _Connection:
    connection = _Connection(way.port, values or {}, context=way.context)
    connection.ping(b"begins..")
    return connection


def _flood(connection: _Connection, way: Way, stream: int, piece: bytes) -> str:
    """DATA without end, as far as the windows let it; what comes is read, and no window given back."""
    connection.grants = False
    rest = piece
    while way.left > 0 and not connection.is_over and connection.code is None and connection.reset is None:
        count = min(connection.room[0], connection.room[stream], len(rest), 16_384)
        if count <= 0:
            if select.select([connection.peer], [], [], min(max(way.left, 0.0), 0.5))[0] or _pending(connection.peer):
                connection.take()
            continue
        connection.room[0] -= count
        connection.room[stream] -= count
        try:
            connection.peer.sendall(streams.frame(streams.DATA, 0, stream, rest[:count]))
        except OSError:
            return "closed"
        rest = rest[count:] or piece
    return connection.how()


def _socket_stream(connection: _Connection, path: bytes, more: bytes = b"") -> int:
    """A WebSocket (RFC 8441 §4)."""
    stream = connection.stream()
    block = (streams.literal(2, b"CONNECT") + streams.HTTP + streams.literal(4, path) + streams.literal(1, b"localhost")
             + _field(b":protocol", b"websocket") + _field(b"sec-websocket-version", b"13") + more)
    connection.peer.sendall(streams.frame(streams.HEADERS, streams.END_HEADERS, stream, block))
    while not connection.answers[stream].is_right:
        connection.take()
        if connection.is_over or connection.answers[stream].reset is not None:
            raise OSError("no WebSocket")
    return stream


def _pongs_2(way: Way) -> str:
    with _second(way, {streams.INITIAL_WINDOW_SIZE: 0}) as connection:
        return _flood(connection, way, _socket_stream(connection, b"/takes"), PINGS)


def _messages_2(way: Way) -> str:
    with _second(way) as connection:
        stream = _socket_stream(connection, b"/waits", _field(b"sec-websocket-extensions", b"permessage-deflate"))
        return _flood(connection, way, stream, MESSAGES)


def _acknowledged_2(way: Way) -> str:
    """Pings and settings, of which each is acknowledged, and nothing is read."""
    with _second(way) as connection:
        piece = streams.frame(streams.PING, 0, 0, b"opaque!!") * 50 + streams.settings({streams.INITIAL_WINDOW_SIZE: 65_535}) * 50
        return _fill(connection.peer, way, piece)


def _trickled_2(way: Way) -> str:
    with _second(way) as connection:
        stream = connection.stream()
        block = streams.request(b"/body", streams.POST) + _field(b"content-length", b"8000000")
        connection.peer.sendall(streams.frame(streams.HEADERS, streams.END_HEADERS, stream, block))
        while way.left > 0 and connection.reset is None and connection.code is None and not connection.is_over:
            if connection.answers[stream].ended:
                return "answered"
            connection.peer.sendall(streams.frame(streams.DATA, 0, stream, b"x"))
            next_one = min(time.monotonic() + way.trickle, way.until)
            while (left := next_one - time.monotonic()) > 0 and connection.reset is None and not connection.is_over:
                if select.select([connection.peer], [], [], left)[0] or _pending(connection.peer):
                    connection.take()
        return connection.how()


def _heads_2(way: Way) -> str:
    """128 requests without their bodies, each of which names one large entry of the table fifteen times."""
    with _second(way) as connection:
        entry = _field(b"x", b"y" * 4000, indexed=True)
        wire = b""
        for number in range(128):
            block = streams.request(b"/body", streams.POST) + (entry if number == 0 else b"") + bytes([0x80 | 62]) * 15
            wire += streams.frame(streams.HEADERS, streams.END_HEADERS, connection.stream(), block)
        return _send_and_hold(connection, way, wire)


def _large_heads_2(way: Way) -> str:
    """128 requests without their bodies, each with fields of 15 KiB."""
    with _second(way) as connection:
        block = streams.request(b"/body", streams.POST) + _field(b"x", b"y" * 15_000)
        wire = b"".join(streams.frame(streams.HEADERS, streams.END_HEADERS, connection.stream(), block) for _ in range(128))
        return _send_and_hold(connection, way, wire)


def _send_and_hold(connection: _Connection, way: Way, wire: bytes) -> str:
    rest = memoryview(wire)
    while rest and connection.code is None and not connection.is_over and way.left > 0:
        try:
            rest = rest[connection.peer.send(rest[:65_536]):]
        except OSError:
            break
        while select.select([connection.peer], [], [], 0)[0] and not connection.is_over:
            connection.take()
    # Streams that are refused are no end: the others are held.
    connection.reset = None
    while not connection.is_over and connection.code is None and way.left > 0:
        if select.select([connection.peer], [], [], min(way.left, 0.5))[0] or _pending(connection.peer):
            connection.take()
    return connection.how()


def _polite(way: Way) -> str:
    """Ask once, and end."""
    with way.connect() as peer:
        peer.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        while peer.recv(4096):
            pass
    return "answered"


ATTACKS = (
    Attack("pongs that nobody takes", FIRST, _pongs),
    Attack("pongs that nobody takes", SECOND, _pongs_2),
    Attack("answers that nobody takes", FIRST, _pipelined),
    Attack("acknowledgements that nobody takes", SECOND, _acknowledged_2),
    Attack("compressed messages that are not received", FIRST, _messages),
    Attack("compressed messages that are not received", SECOND, _messages_2),
    Attack("a body byte by byte, of a known length", FIRST, _trickled),
    Attack("a body byte by byte, in chunks", FIRST, _trickled_chunks),
    Attack("a body byte by byte", SECOND, _trickled_2),
    Attack("heads that do not end", FIRST, _head),
    Attack("trailers that do not end", FIRST, _trailers),
    Attack("heads of one table entry, without bodies", SECOND, _heads_2),
    Attack("large heads without bodies", SECOND, _large_heads_2),
)


@dataclass(frozen=True)
class Outcome:
    #: p99 in ms: alone, beside as many clients that attack nothing, beside the attack.
    quiet: float
    polite: float
    beside: float
    lost: int
    #: In MiB.
    growth: float
    ends: dict[str, int]
    #: How long the server's core, and the attackers', was busy.
    busy: tuple[float, float]


def run(options: rounds.Options, folder: Path, report: Report) -> None:
    rounds.need("taskset", "openssl")
    environment = peers.environment(options)
    seconds = options.duration(SECONDS, SMOKE_SECONDS)
    report.text(
        f"{environment.description}. An ASGI application with default settings{', limits of a second' * options.smoke}, on one core. A client that does no harm asks for a hello of 13 bytes, on a kept connection, a "
        f"millisecond after each answer, on the server's core in real time: alone, beside {CLIENTS} clients that ask once on a connection and come again after {AGAIN_S:g} s, and beside the attack: {CLIENTS} clients for "
        f"{seconds:g} s on the other core, in one process; who was ended comes again after {AGAIN_S:g} s. A fresh server for each. Growth is what was resident at most beside the attack, less what was before it.")
    pair = secured.pair(folder)
    outcomes = {}
    for attack, by_tls in _chosen(options):
        say(f"attacks-memory: {attack.name}, {attack.protocol}{HTTPS * by_tls}")
        outcomes[attack, by_tls] = _measure(attack, by_tls, pair, environment, folder, seconds, options.smoke)
    _write(report, outcomes)


def _chosen(options: rounds.Options) -> list[tuple[Attack, bool]]:
    """All of them, or those whose names have one of the words of `--only`; in a smoke run every sixth."""
    all_of_them = [(attack, by_tls) for by_tls in (False, True) for attack in ATTACKS]
    named = [(attack, by_tls) for attack, by_tls in all_of_them
             if any(word in f"{attack.name}, {attack.protocol}{HTTPS * by_tls}." for word in options.only)]
    return named or (all_of_them[::6] if options.smoke else all_of_them)


def _measure(attack: Attack, by_tls: bool, pair: secured.Pair, environment: peers.Environment, folder: Path, seconds: float,
             smoke: bool) -> Outcome:
    words = ["--error-log", "/dev/null"]
    words += ["--tls-cert", str(pair.certificate), "--tls-key", str(pair.key)] if by_tls else []
    words += ["--min-rate-grace", "1", "--head-timeout", "1"] if smoke else []
    contender = python_servers.ours(environment, APPLICATION, "asgi", "server", words=words)
    if by_tls:
        contender = dataclasses.replace(contender, options={**contender.options, "scheme": "https://"})
    context = secured.trusting("http/1.1") if by_tls else None
    quiet_seconds = SMOKE_QUIET_S if smoke else min(QUIET_S, seconds)
    trickle = SMOKE_TRICKLE_S if smoke else TRICKLE_S
    polite = dataclasses.replace(attack, protocol=FIRST, client=_polite)
    with machine.on_core(machine.cores()[1]), servers.running(contender, folder, folder) as server:
        honest_client.p99(server.port, quiet_seconds / 5, context)
        quiet, lost = honest_client.p99(server.port, quiet_seconds, context)
        with _attacking(polite, server.port, quiet_seconds, by_tls, trickle):
            among, more = honest_client.p99(server.port, quiet_seconds, context)
        before, core = machine.resident(server.pid), _cores()
        with _attacking(attack, server.port, seconds, by_tls, trickle) as results, honest_client.watching(server.pid) as most:
            beside, most_lost = honest_client.p99(server.port, seconds, context)
            busy = tuple((now - then) / 1e9 / seconds for now, then in zip(_cores(), core))
        return Outcome(quiet, among, beside, lost + more + most_lost, (most() - before) / MIB, results(), busy)


def _cores() -> tuple[int, ...]:
    return tuple(machine.core_busy_ns(core) for core in machine.cores())


def _attacking(
    attack: Attack, port: int, seconds: float, by_tls: bool, trickle: float
) -> contextlib.AbstractContextManager[Callable[[], dict[str, int]]]:
    return honest_client.apart(_attackers, attack, port, seconds, by_tls, trickle, limit=seconds + 30)


def _attackers(attack: Attack, port: int, seconds: float, by_tls: bool, trickle: float, result: Pipe) -> None:
    until = time.monotonic() + seconds
    ends: collections.Counter[str] = collections.Counter()
    lock = threading.Lock()
    context = secured.trusting("h2" if attack.protocol == SECOND else "http/1.1") if by_tls else None
    result.send("begins")

    def attacks() -> None:
        while time.monotonic() < until:
            try:
                how = attack.client(Way(port, until, context, trickle))
            except OSError as error:
                how = f"refused: {type(error).__name__}"
            with lock:
                ends[how] += 1
            time.sleep(AGAIN_S)

    threads = [threading.Thread(target=attacks) for _ in range(CLIENTS)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    result.send(dict(ends))


def _write(report: Report, outcomes: dict[tuple[Attack, bool], Outcome]) -> None:
    rows, gates, growths, ratios = [], [], [], []
    for (attack, by_tls), seen in outcomes.items():
        protocol = f"{attack.protocol}{HTTPS * by_tls}"
        name, ratio = f"{attack.name}, {protocol}", seen.beside / seen.quiet
        ends = ", ".join(f"{how} {times:,}" for how, times in sorted(seen.ends.items(), key=lambda pair: -pair[1]))
        rows.append([attack.name, protocol, f"{seen.quiet:.2f}", f"{seen.polite:.2f}", f"{seen.beside:.2f}", f"{ratio:.2f}", f"{seen.lost:,}",
                     f"{seen.growth:.1f}", ends, " / ".join(f"{100 * part:.0f} %" for part in seen.busy)])
        gates.append(rounds.verdict(f"Gate, {name}: growth of the server, MiB", seen.growth, MOST_GROWTH))
        gates.append(rounds.verdict(f"Gate, {name}: p99 beside the attack against the quiet one", ratio, MOST_RATIO))
        growths.append(chart.Bar(name, seen.growth, seen.growth, seen.growth))
        ratios.append(chart.Bar(name, ratio, ratio, ratio))
    report.table(["attack", "protocol", "p99 ms quiet", "beside clients", "beside the attack", "attack to quiet", "lost", "growth MiB",
                  "how attackers ended", "server's core / attackers' core busy"], rows)
    report.text("## Gates", "", *gates)
    report.chart(chart.bars(TITLE, "", [("growth of the server, MiB", growths), ("p99 beside the attack / quiet", ratios)]))
