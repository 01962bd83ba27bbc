"""The 517 cases of Autobahn's fuzzing client for servers that echo, as a table of ours: same numbers, same frames, without its waiting.

A case is a script of what is written, and of what has to come before the script goes on; then the server closes with one of the codes.
Autobahn waits a second to see that nothing comes; here a ping, a close or the end of the connection shows it.
"""

from __future__ import annotations

import functools
import json
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from websocket_frames import Event, Opcode, binary, chops, close, fragments, frame, more, ping, pong, text
from websocket_utf8 import SEQUENCES

KIB, MIB = 1 << 10, 1 << 20
PROTOCOL_ERROR, NO_UTF_8 = (1002,), (1007,)
HELLO = "Hello, world!"
ODD = b"\x00\xff\xfe\xfd\xfc\xfb\x00\xff"

#: What is written, or what comes.
Step = bytes | Event


@dataclass(frozen=True)
class Case:
    name: str
    script: Callable[[], Iterable[Step]]
    #: Of the server's close: any of these.
    codes: tuple[int, ...] = (1000,)
    #: The script has closed: the server answers, else it has found a fault.
    we_close: bool = True
    #: What may come, in this order, before the server's close: it may have seen the fault behind it first.
    optional: tuple[Event, ...] = ()


@dataclass(frozen=True)
class Rounds:
    """Messages that are echoed one by one; compressed by this offer, if there is one."""

    name: str
    messages: Callable[[], Iterable[str | bytes]]
    offer: str | None = None
    #: So large are fragments at most, if they are.
    fragment: int = 0
    #: The server compresses so: the largest window, and no taking over of contexts if True.
    window: int = 15
    is_fresh: bool = False


def echo(name: str, writes: Iterable[bytes], *events: Event) -> Case:
    """Everything is right: the events come, and the close is answered."""
    script: list[Step] = [*writes, *events, close()]
    return Case(name, lambda: script)


def fails(name: str, writes: Iterable[bytes], codes: tuple[int, ...] = PROTOCOL_ERROR, *optional: Event) -> Case:
    script = list(writes)
    return Case(name, lambda: script, codes, we_close=False, optional=optional)


def closes(name: str, writes: Iterable[bytes], codes: tuple[int, ...] = (1000,), *optional: Event) -> Case:
    script = list(writes)
    return Case(name, lambda: script, codes, optional=optional)


def by_octets(*frames: bytes) -> list[bytes]:
    return [part for each in frames for part in chops(each, 1)]


def together(*frames: bytes) -> list[bytes]:
    return [b"".join(frames)]


def framing() -> Iterator[Case]:
    """1: messages of all lengths of the length."""
    sizes = [0, 125, 126, 127, 128, 65535, 65536]
    for number, size in enumerate(sizes, 1):
        yield echo(f"1.1.{number}", [text("*" * size)], ("text", "*" * size))
    yield echo("1.1.8", chops(text("*" * 65536), 997), ("text", "*" * 65536))
    for number, size in enumerate(sizes, 1):
        yield echo(f"1.2.{number}", [binary(b"\xfe" * size)], ("binary", b"\xfe" * size))
    yield echo("1.2.8", chops(binary(b"\xfe" * 65536), 997), ("binary", b"\xfe" * 65536))


def pings() -> Iterator[Case]:
    """2: each is answered with what it carries; a pong nobody asked for is none of our business."""
    for number, payload in enumerate([b"", HELLO.encode(), ODD, b"\xfe" * 125], 1):
        yield echo(f"2.{number}", [ping(payload)], ("pong", payload))
    yield fails("2.5", [ping(b"\xfe" * 126)])
    yield echo("2.6", by_octets(ping(b"\xfe" * 125)), ("pong", b"\xfe" * 125))
    yield echo("2.7", [pong()])
    yield echo("2.8", [pong(b"unsolicited")])
    yield echo("2.9", together(pong(b"unsolicited"), ping(b"ping payload")), ("pong", b"ping payload"))
    ten = [b"payload-%d" % number for number in range(10)]
    answers: list[Event] = [("pong", each) for each in ten]
    yield echo("2.10", together(*map(ping, ten)), *answers)
    yield echo("2.11", by_octets(*map(ping, ten)), *answers)


def reserved() -> Iterator[Case]:
    """3 and 4: bits and opcodes that mean nothing. What stands before may be echoed; the ping behind is not answered."""
    said: Event = ("text", HELLO)
    hello = text(HELLO)

    def wrong(rsv: int) -> bytes:
        return frame(Opcode.TEXT, HELLO.encode(), rsv=rsv)

    yield fails("3.1", [wrong(1)])
    yield fails("3.2", together(hello, wrong(2), ping()), PROTOCOL_ERROR, said)
    yield fails("3.3", [hello, wrong(3), ping()], PROTOCOL_ERROR, said)
    yield fails("3.4", by_octets(hello, wrong(4), ping()), PROTOCOL_ERROR, said)
    yield fails("3.5", [frame(Opcode.BINARY, ODD, rsv=5)])
    yield fails("3.6", [frame(Opcode.PING, HELLO.encode(), rsv=6)])
    yield fails("3.7", [frame(Opcode.CLOSE, rsv=7)])
    for group, first in (("4.1", 3), ("4.2", 11)):
        yield fails(f"{group}.1", [frame(first)])
        yield fails(f"{group}.2", [frame(first + 1, b"reserved opcode payload")])
        yield fails(f"{group}.3", together(hello, frame(first + 2), ping()), PROTOCOL_ERROR, said)
        yield fails(f"{group}.4", together(hello, frame(first + 3, HELLO.encode()), ping()), PROTOCOL_ERROR, said)
        yield fails(f"{group}.5", by_octets(hello, frame(first + 4, HELLO.encode()), ping()), PROTOCOL_ERROR, said)


def fragmentation() -> Iterator[Case]:
    """5: what may come in several frames, and what between them."""
    whole: Event = ("text", "fragment1fragment2")
    asked: Event = ("pong", b"ping payload")
    two = [text("fragment1", fin=False), more("fragment2")]
    three = [two[0], ping(b"ping payload"), two[1]]
    yield fails("5.1", together(frame(Opcode.PING, b"fragment1", fin=False), more("fragment2")))
    yield fails("5.2", together(frame(Opcode.PONG, b"fragment1", fin=False), more("fragment2")))
    ways: list[Callable[..., list[bytes]]] = [together, lambda *frames: list(frames), by_octets]
    for number, way in enumerate(ways):
        yield echo(f"5.{3 + number}", way(*two), whole)
        yield echo(f"5.{6 + number}", way(*three), asked, whole)
        yield fails(f"5.{9 + number}", way(more("non-continuation payload"), text(HELLO)))
        yield fails(f"5.{12 + number}", way(more("non-continuation payload", fin=False), text(HELLO)))
    yield fails("5.15", together(*two, more("fragment3", fin=False), text("fragment4")), PROTOCOL_ERROR, whole)
    for number, fin in ((16, False), (17, True)):
        turn = [more("fragment1", fin=fin), text("fragment2", fin=False), more("fragment3")]
        yield fails(f"5.{number}", together(*turn, *turn))
    yield fails("5.18", together(text("fragment1", fin=False), text("fragment2")))
    first = [text("fragment1", fin=False), more("fragment2", fin=False), ping(b"pongme 1!")]
    second = [more("fragment3", fin=False), more("fragment4", fin=False), ping(b"pongme 2!"), more("fragment5")]
    message: Event = ("text", "".join(f"fragment{number}" for number in range(1, 6)))
    for number, way in ((19, together), (20, ways[1])):
        script = [*way(*first), ("pong", b"pongme 1!"), *way(*second), ("pong", b"pongme 2!"), message, close()]
        yield Case(f"5.{number}", lambda script=script: script)  # type: ignore[misc]


def utf8() -> Iterator[Case]:
    """6: text is UTF-8, however it is cut; what is none fails at the first byte that shows it."""
    yield echo("6.1.1", [text("")], ("text", ""))
    yield echo("6.1.2", together(text("", fin=False), more("", fin=False), more("")), ("text", ""))
    yield echo("6.1.3", together(text("", fin=False), more("middle frame payload", fin=False), more("")), ("text", "middle frame payload"))
    greek = "\u03ba\u1f79\u03c3\u03bc\u03b5"
    latin = "Hello-\u00b5@\u00df\u00f6\u00e4\u00fc\u00e0\u00e1-UTF-8!!"
    yield echo("6.2.1", [text(latin)], ("text", latin))
    yield echo("6.2.2", together(text(latin[:11], fin=False), more(latin[11:])), ("text", latin))
    for number, message in ((3, latin), (4, greek)):
        yield echo(f"6.2.{number}", together(*fragments(Opcode.TEXT, message.encode(), 1)), ("text", message))
    surrogate = greek.encode() + b"\xed\xa0\x80" + b"edited"
    yield fails("6.3.1", [text(surrogate)], NO_UTF_8)
    yield fails("6.3.2", together(*fragments(Opcode.TEXT, surrogate, 1)), NO_UTF_8)
    # Beyond the last code point from the second byte of the four on: what would follow is never written.
    parts = [greek.encode(), b"\xf4\x90\x80\x80", b"edited"]
    beyond = b"".join(parts)
    alive: list[Step] = [ping(b"still there"), ("pong", b"still there")]
    for number, at, to in ((1, len(parts[0]), len(parts[0]) + 4), (2, 12, 13)):
        script = [text(beyond[:at], fin=False), *alive, more(beyond[at:to], fin=False)]
        yield Case(f"6.4.{number}", lambda script=script: script, NO_UTF_8, we_close=False)  # type: ignore[misc]
    head = len(text(beyond)) - len(beyond)
    for number, at, to in ((3, len(parts[0]), len(parts[0]) + 4), (4, 12, 13)):
        whole = text(beyond)
        yield fails(f"6.4.{number}", [whole[: head + at], whole[head + at : head + to]], NO_UTF_8)
    for group, sequences in enumerate(SEQUENCES, 5):
        for number, sequence in enumerate(sequences, 1):
            try:
                yield echo(f"6.{group}.{number}", [text(sequence)], ("text", sequence.decode()))
            except UnicodeDecodeError:
                yield fails(f"6.{group}.{number}", [text(sequence)], NO_UTF_8)


def closing() -> Iterator[Case]:
    """7: the close handshake, and what a close may carry."""
    hello: Event = ("text", "Hello World!")
    yield echo("7.1.1", [text("Hello World!")], hello)
    yield closes("7.1.2", together(close(), close(None)))
    yield closes("7.1.3", together(close(), ping()))
    yield closes("7.1.4", together(close(), text("Hello World!")))
    yield closes("7.1.5", together(text("fragment1", fin=False), close(), more("fragment2")))
    large = ("BAsd7&jh23" * 26215)[: 256 * KIB]
    yield closes("7.1.6", together(text(large), text("Hello World!"), close(), ping()), (1000,), ("text", large), hello)
    yield closes("7.3.1", [close(None)], (1000, 1005))
    yield fails("7.3.2", [frame(Opcode.CLOSE, b"a")])
    yield closes("7.3.3", [close()])
    yield closes("7.3.4", [close(1000, "Hello World!")])
    yield closes("7.3.5", [close(1000, "*" * 123)])
    yield fails("7.3.6", [close(1000, "*" * 124)])
    yield fails("7.5.1", [close(1000, b"\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5\xed\xa0\x80edited")], (1002, 1007))
    valid = [1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 3999, 4000, 4999]
    for number, code in enumerate(valid, 1):
        yield closes(f"7.7.{number}", [close(code)], (code, 1000))
    for number, code in enumerate([0, 999, 1004, 1005, 1006, 1016, 1100, 2000, 2999], 1):
        yield fails(f"7.9.{number}", [close(code)])
    # Autobahn takes what comes; RFC 6455 §7.4.2 has no such codes.
    yield fails("7.13.1", [close(5000)])
    yield fails("7.13.2", [close(65535)])


def large(kinds: Sequence[tuple[str, bytes]], name: str, size: int, frames: Callable[[int, bytes], Iterable[bytes]]) -> Iterator[Case]:
    """The same as text and as binary, made only when its turn comes."""
    for group, pattern in kinds:
        opcode = Opcode.TEXT if pattern.isascii() else Opcode.BINARY

        def script(opcode: Opcode = opcode, pattern: bytes = pattern) -> Iterator[Step]:
            payload = (pattern * (size // len(pattern) + 1))[:size]
            yield from frames(opcode, payload)
            yield ("text", payload.decode()) if opcode == Opcode.TEXT else ("binary", payload)
            yield close()

        yield Case(f"{group}.{name}", script)


def limits(scale: int) -> Iterator[Case | Rounds]:
    """9 and 10: large messages, many fragments, small pieces, many turns. ``scale`` divides what takes time, but the largest message stays."""
    words, octets = b"BAsd7&jh23", b"\x00\xfe\x23\xfa\xf0"
    for number, size in enumerate([64 * KIB, 256 * KIB, MIB, 4 * MIB, 8 * MIB, 16 * MIB], 1):
        size //= 1 if number == 6 else scale
        yield from large([("9.1", words), ("9.2", octets)], str(number), size, lambda opcode, payload: [frame(opcode, payload)])
    for number, size in enumerate([64, 256, KIB, 4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB], 1):
        parts = functools.partial(fragments, size=size)
        yield from large([("9.3", b"*"), ("9.4", b"\xfe")], str(number), 4 * MIB // scale, lambda *made, parts=parts: [b"".join(parts(*made))])
    for number, size in enumerate([64, 128, 256, 512, KIB, 2 * KIB], 1):
        chopped = functools.partial(chops, size=size)
        yield from large([("9.5", words), ("9.6", octets)], str(number), MIB // scale, lambda *made, chopped=chopped: chopped(frame(*made)))
    turns: list[tuple[str, str | bytes]] = [("9.7", "*"), ("9.8", b"\xfe")]
    for group, one in turns:
        for number, size in enumerate([0, 16, 64, 256, KIB, 4 * KIB], 1):
            yield Rounds(f"{group}.{number}", lambda one=one, size=size: [one * size] * (1000 // scale))  # type: ignore[misc]
    yield Case("10.1.1", lambda: [*fragments(Opcode.TEXT, b"*" * 65536, 1300), ("text", "*" * 65536), close()])


#: Length of a message and of its fragments (0: none).
SIZES = [(16 << 2 * number, 0) for number in range(5)]
SIZES += [(size << 10, 0) for size in (8, 16, 32, 64, 128)]
SIZES += [(size << 10, 256) for size in (8, 16, 32, 64, 128)]
SIZES += [(128 << 10, fragment) for fragment in (KIB, 4 * KIB, 32 * KIB)]

OFFER = "permessage-deflate; client_no_context_takeover; client_max_window_bits"


def compression(budget: int) -> Iterator[Rounds]:
    """12 and 13: five kinds of content, seven kinds of offers. Of each size as many messages as ``budget`` bytes allow, 1,000 at most."""
    for group, source in enumerate(CONTENTS, 1):
        for number, (size, fragment) in enumerate(SIZES, 1):
            yield Rounds(f"12.{group}.{number}", pieces(source, size, budget), OFFER, fragment)
    offers = [("", 15, False), ("; server_no_context_takeover", 15, True)]
    offers += [(f"; server_max_window_bits={bits}", bits, False) for bits in (9, 15)]
    offers += [(f"; server_no_context_takeover; server_max_window_bits={bits}", bits, True) for bits in (9, 15)]
    # The first one that the server likes.
    offers += [(f"{offers[4][0]}, {OFFER}{offers[1][0]}, {OFFER}", 15, False)]
    for group, (parameters, window, is_fresh) in enumerate(offers, 1):
        for number, (size, fragment) in enumerate(SIZES, 1):
            yield Rounds(f"13.{group}.{number}", pieces(CONTENTS[0], size, budget), OFFER + parameters, fragment, window, is_fresh)


def pieces(source: Callable[[], str | bytes], size: int, budget: int) -> Callable[[], Iterator[str | bytes]]:
    """Messages of this size, one behind the other from a content that begins anew at its end."""

    def made() -> Iterator[str | bytes]:
        content = source()
        double = content + content  # type: ignore[operator]
        for number in range(max(2, min(1000, budget // size))):
            at = number * size % len(content)
            yield double[at : at + size]

    return made


@functools.cache
def documents() -> str:
    """JSON with text of several alphabets."""
    chance = random.Random(7)
    names = ["M\u00fcller", "\u0394\u03b7\u03bc\u03ae\u03c4\u03c1\u03b7\u03c2", "\u5c71\u7530", "O\u2019Neill", "\U0001f600"]
    rows = [{"id": number, "name": chance.choice(names), "balance": chance.randrange(10**6) / 100, "tags": chance.sample(names, 2)} for number in range(1800)]
    return json.dumps(rows, ensure_ascii=False)


@functools.cache
def picture() -> bytes:
    """Grey values that change slowly, with noise."""
    chance = random.Random(7)
    return bytes((row + column) // 3 + chance.randrange(8) & 0xFF for row in range(512) for column in range(512))


@functools.cache
def verses() -> bytes:
    chance = random.Random(7)
    words = "habe nun ach philosophie juristerei und medizin und leider auch theologie durchaus studiert mit hei\u00dfem bem\u00fchn".split()
    lines = (" ".join(chance.choice(words) for _ in range(8)).capitalize() for _ in range(4000))
    return "\r\n".join(lines).encode()


@functools.cache
def pages() -> str:
    chance = random.Random(7)
    rows = (f'<tr class="row{number % 2}"><td><a href="/item/{chance.randrange(10**5)}">item {number}</a></td></tr>\n' for number in range(4000))
    return f"<!doctype html><table>{''.join(rows)}</table>"


@functools.cache
def packed() -> bytes:
    """What cannot be compressed, with a little that can, as in a document with pictures."""
    chance = random.Random(7)
    return b"".join(b"%d 0 obj << /Length 4096 >> stream\n" % number + chance.randbytes(4096) + b"\nendstream\n" for number in range(240))


CONTENTS: list[Callable[[], str | bytes]] = [documents, picture, verses, pages, packed]


def table(is_long: bool) -> dict[str, list[Case | Rounds]]:
    """All cases by their group, as ``9.1``; the groups of one level have one number."""
    grouped: dict[str, list[Case | Rounds]] = {}
    scale, budget = (1, 2 * MIB) if is_long else (16, 24 * KIB)
    sources = [framing(), pings(), reserved(), fragmentation(), utf8(), closing(), limits(scale), compression(budget)]
    for source in sources:
        for case in source:
            grouped.setdefault(case.name.rpartition(".")[0], []).append(case)
    return grouped
