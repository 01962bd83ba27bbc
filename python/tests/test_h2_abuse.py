"""What an HTTP/2 peer does in vain or wrongly ends its own connection, with the code that says why; a connection beside it is served.

Each flood is larger than its budget (maitred-h2, budgets.rs) and what may come back to it meanwhile."""

from __future__ import annotations

import itertools
import re
import socket
from collections.abc import Callable, Iterable, Iterator

import frames
import pytest
from conftest import PATIENCE, Serve, Server
from frames import Code, Connection, Kind, Setting

MIB = 1 << 20
#: Of each flood: so many frames in one write, and how often at most.
PIECE, PIECES = 100, 500
#: A server that is attacked does not grow by more than this.
MOST_GROWTH = 64 * MIB

APP = """
import threading
GO = threading.Event()
LARGE = b"x" * (8 << 20)

def app(environ, start_response):
    path = environ["PATH_INFO"]
    if path == "/wait":
        GO.wait(120)
    elif path == "/go":
        GO.set()
    body = LARGE if path == "/large" else b"served"
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
    return [body]
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("abused")
    (folder / "app.py").write_text(APP)
    (folder / "index.html").write_text("a file")
    # A request that waits in the application is one whose head alone is there.
    arguments = ["app.py", "--static", f"/static={folder}", "--listen", "127.0.0.1:0", "--listen", "127.0.0.1:0,read-ahead=off"]
    limits = ["--max-threads", "4", "--body-timeout", "2", "--head-timeout", "2", "--drain-timeout", "1"]
    running = Server([*arguments, *limits], folder, {})
    try:
        yield running
        running.fetch("/go")
        assert "panicked" not in running.said, running.said
        assert running.stop() == 0, running.said
    finally:
        running.kill()


@pytest.fixture
def honest(server: Server) -> Iterator[Connection]:
    """A connection beside the attack, which is served before and after it, and the server has not grown by it."""
    before = server.settled_memory()
    with Connection.to(server.port) as connection:
        assert is_served(connection)
        yield connection
        assert is_served(connection)
    assert server.memory("VmHWM") - before < MOST_GROWTH


def is_served(connection: Connection) -> bool:
    answers = [connection.fetch(path) for path in ("/", "/static/index.html")]
    return [(each.status, bytes(each.body)) for each in answers] == [(200, b"served"), (200, b"a file")]


def endless(make: Callable[[], bytes]) -> Iterator[bytes]:
    """Much more than any budget."""
    for _ in range(PIECES):
        yield b"".join(make() for _ in range(PIECE))


def beside(honest: Connection, pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The same, with a request of the other connection now and then."""
    for number, piece in enumerate(pieces):
        if number % 8 == 1:
            assert honest.fetch().status == 200
        yield piece


# Floods: each has a budget


def resets(attacker: Connection) -> Iterator[bytes]:
    """CVE-2023-44487."""

    def one() -> bytes:
        stream = attacker.stream()
        return frames.headers(stream, attacker.block("/wait")) + frames.reset(stream)

    return endless(one)


def made_resets(attacker: Connection, wrong: Callable[[int], bytes]) -> Iterator[bytes]:
    """CVE-2025-8671: the server resets the streams, for something wrong on each."""

    def one() -> bytes:
        stream = attacker.stream()
        return frames.headers(stream, attacker.block("/wait", "POST"), end=False) + wrong(stream)

    return endless(one)


def zero_updates(attacker: Connection) -> Iterator[bytes]:
    return made_resets(attacker, lambda stream: frames.window_update(stream, 0))


def overflowing_updates(attacker: Connection) -> Iterator[bytes]:
    return made_resets(attacker, lambda stream: frames.window_update(stream, frames.LARGEST_WINDOW))


def short_priorities(attacker: Connection) -> Iterator[bytes]:
    return made_resets(attacker, lambda stream: frames.frame(Kind.PRIORITY, 0, stream, b"1234"))


def dependencies_on_themselves(attacker: Connection) -> Iterator[bytes]:
    """Where the old priorities are not looked at this is a flood of PRIORITY; where they are, each may also end the connection."""
    return made_resets(attacker, lambda stream: frames.priority(stream, depends_on=stream) * 2)


def bad_requests(attacker: Connection) -> Iterator[bytes]:
    return endless(lambda: frames.headers(attacker.stream(), attacker.block(fields=[("connection", "close")])))


def wrong_lengths(attacker: Connection) -> Iterator[bytes]:
    def one() -> bytes:
        stream = attacker.stream()
        return frames.headers(stream, attacker.block("/wait", "POST", [("content-length", "5")]), end=False) + frames.data(stream, b"", end=True)

    return endless(one)


def resets_of_what_is_over(attacker: Connection) -> Iterator[bytes]:
    stream = attacker.ask()
    attacker.answer(stream)
    return endless(lambda: frames.reset(stream))


def refused(attacker: Connection) -> Iterator[bytes]:
    """More streams than may be open, which never end."""
    return endless(lambda: frames.headers(attacker.stream(), attacker.block("/wait", "POST"), end=False))


def continuations(attacker: Connection) -> Iterator[bytes]:
    """CVE-2024-27316."""
    stream = attacker.stream()
    first = frames.headers(stream, attacker.block(), complete=False)
    field = frames.literal("x", "y")
    return itertools.chain([first], endless(lambda: frames.continuation(stream, field, complete=False)))


def empty_continuations(attacker: Connection) -> Iterator[bytes]:
    stream = attacker.stream()
    first = frames.headers(stream, attacker.block(), complete=False)
    return itertools.chain([first], endless(lambda: frames.continuation(stream, b"", complete=False)))


def full_continuations(attacker: Connection) -> Iterator[bytes]:
    """Of what no limit on their number would stop soon."""
    stream = attacker.stream()
    first = frames.headers(stream, attacker.block(), complete=False)
    field = frames.literal("x", "y" * 16_000)
    return itertools.chain([first], endless(lambda: frames.continuation(stream, field, complete=False)))


def empty_data(attacker: Connection) -> Iterator[bytes]:
    """CVE-2019-9518."""
    stream = attacker.ask("/wait", "POST", end=False)
    return endless(lambda: frames.data(stream))


def single_bytes(attacker: Connection) -> Iterator[bytes]:
    stream = attacker.ask("/wait", "POST", end=False)
    return endless(lambda: frames.data(stream, b"x"))


def settings(_: Connection) -> Iterator[bytes]:
    """CVE-2019-9515."""
    return endless(lambda: frames.settings({Setting.INITIAL_WINDOW_SIZE: 70_000}))


def empty_settings(_: Connection) -> Iterator[bytes]:
    return endless(frames.settings)


def pings(_: Connection) -> Iterator[bytes]:
    """CVE-2019-9512."""
    return endless(frames.ping)


def goaways(attacker: Connection) -> Iterator[bytes]:
    """Behind a request, so that the connection does not end with the first one."""
    attacker.ask("/wait", "POST", end=False)
    return endless(frames.goaway)


def priorities(_: Connection) -> Iterator[bytes]:
    """CVE-2019-9513."""
    numbers = itertools.count(1, 2)
    return endless(lambda: frames.priority(next(numbers), depends_on=0))


def priority_updates(_: Connection) -> Iterator[bytes]:
    return endless(lambda: frames.frame(Kind.PRIORITY_UPDATE, 0, 0, b"\0\0\0\1u=1"))


def updates(_: Connection) -> Iterator[bytes]:
    return endless(lambda: frames.window_update(0, 1))


def updates_of_a_stream(attacker: Connection) -> Iterator[bytes]:
    stream = attacker.ask("/wait", "POST", end=False)
    return endless(lambda: frames.window_update(stream, 1))


def unknown_frames(_: Connection) -> Iterator[bytes]:
    return endless(lambda: frames.frame(0xEE, 0, 0, b"?"))


FLOODS = [
    resets,
    zero_updates,
    overflowing_updates,
    short_priorities,
    dependencies_on_themselves,
    bad_requests,
    wrong_lengths,
    resets_of_what_is_over,
    refused,
    continuations,
    empty_continuations,
    full_continuations,
    empty_data,
    single_bytes,
    settings,
    empty_settings,
    pings,
    goaways,
    priorities,
    priority_updates,
    updates,
    updates_of_a_stream,
    unknown_frames,
]


@pytest.mark.parametrize("flood", FLOODS, ids=lambda flood: flood.__name__)
def test_a_flood_ends_its_connection_and_no_other(flood: Callable[[Connection], Iterator[bytes]], server: Server, honest: Connection) -> None:
    with Connection.to(server.port) as attacker:
        attacker.ping()
        code = attacker.flood(beside(honest, flood(attacker)))
        assert code == Code.ENHANCE_YOUR_CALM or (flood is dependencies_on_themselves and code == Code.PROTOCOL_ERROR)


@pytest.mark.parametrize("flood", [pings, empty_settings], ids=lambda flood: flood.__name__)
def test_who_reads_no_acknowledgements_is_ended_as_well(flood: Callable[[Connection], Iterator[bytes]], server: Server, honest: Connection) -> None:
    with Connection.to(server.port, acknowledges=False) as attacker:
        for piece in beside(honest, flood(attacker)):
            try:
                attacker.send(piece)
            except ConnectionError:
                break
        else:
            pytest.fail("the server takes all of it")


# Heads that grow when they are decoded


def indexed(attacker: Connection, name: str, value: str, count: int) -> bytes:
    """A field that goes into the table, and so many references to it."""
    return attacker.block() + frames.literal(name, value, indexed=True) + bytes([0x80 | 62]) * count


BOMBS = {
    # CVE-2016-6581: 48 MB.
    "large fields": ("x", "y" * 3_000, 16_000),
    # CVE-2026-49975: what each costs is counted, not its two bytes.
    "tiny fields": ("x", "y", 16_000),
    "empty fields": ("x", "", 16_000),
    "crumbs of a cookie": ("cookie", "a", 16_000),
    "empty crumbs": ("cookie", "", 16_000),
}


@pytest.mark.parametrize("held", [False, True], ids=["", "held by a window of nothing"])
@pytest.mark.parametrize("case", BOMBS)
def test_a_head_that_is_far_too_large_ends_its_connection(case: str, held: bool, server: Server, honest: Connection) -> None:
    with Connection.to(server.port, {Setting.INITIAL_WINDOW_SIZE: 0} if held else {}) as attacker:
        # The server's settings are acknowledged before, not in the middle of a frame.
        attacker.ping()
        block = indexed(attacker, *BOMBS[case])
        stream = attacker.stream()
        wire = [frames.headers(stream, block[: frames.MOST], complete=len(block) <= frames.MOST)]
        if len(block) > frames.MOST:
            wire.append(frames.continuation(stream, block[frames.MOST :], complete=True))
        assert attacker.flood(wire) in (None, Code.ENHANCE_YOUR_CALM)
        assert attacker.ended() == Code.ENHANCE_YOUR_CALM


@pytest.mark.parametrize(
    "name,value,count",
    [("x", "y" * 1_500, 8), ("x", "y", 200)],
    ids=["bytes", "fields"],
)
def test_a_head_that_is_too_large_is_answered_and_the_next_one_is_served(name: str, value: str, count: int, server: Server, honest: Connection) -> None:
    with Connection.to(server.port) as attacker:
        stream = attacker.stream()
        # What the table gives is a part of it; the rest is text.
        rest = frames.literal("z", "y" * 900) * 80
        block = indexed(attacker, name, value, count) + rest
        attacker.send(frames.headers(stream, block[:16_000], complete=False))
        parts = [block[at : at + 16_000] for at in range(16_000, len(block), 16_000)]
        for part in parts:
            attacker.send(frames.continuation(stream, part, complete=part is parts[-1]))
        assert attacker.answer(stream).status == 431
        # The table is as it was: what did not fit was decoded all the same.
        stream = attacker.stream()
        attacker.send(frames.headers(stream, attacker.block() + bytes([0x80 | 62])))
        assert attacker.answer(stream).status == 200
        assert not attacker.goaways


@pytest.mark.parametrize("name,value,count", [("x", "y" * 3_000, 30), ("cookie", "a", 3_000)], ids=["bytes", "crumbs"])
def test_a_head_that_repeats_the_table_ends_its_connection(name: str, value: str, count: int, server: Server, honest: Connection) -> None:
    with Connection.to(server.port) as attacker:
        attacker.send(frames.headers(attacker.stream(), indexed(attacker, name, value, count)))
        assert attacker.ended() == Code.ENHANCE_YOUR_CALM


# Wrong frames: the connection ends at once


def on_idle(make: Callable[[int], bytes]) -> Callable[[Connection], bytes]:
    return lambda attacker: make(attacker.stream())


def behind_a_request(make: Callable[[int], bytes]) -> Callable[[Connection], bytes]:
    return lambda attacker: make(attacker.ask("/wait", "POST", end=False))


def falling_number(attacker: Connection) -> bytes:
    low, high = attacker.stream(), attacker.stream()
    return frames.headers(high, attacker.block("/wait")) + frames.headers(low, attacker.block("/wait"))


def a_stream_again(attacker: Connection) -> bytes:
    stream = attacker.ask()
    attacker.answer(stream)
    return frames.headers(stream, attacker.block())


def another_frame_in_a_block(attacker: Connection) -> bytes:
    return frames.headers(attacker.stream(), attacker.block(), complete=False) + frames.ping()


def a_block_of_another_stream(attacker: Connection) -> bytes:
    first, second = attacker.stream(), attacker.stream()
    return frames.headers(first, attacker.block(), complete=False) + frames.continuation(second, b"", complete=True)


def window_beyond_its_end_by_settings(attacker: Connection) -> bytes:
    stream = attacker.ask("/wait", "POST", end=False)
    return frames.window_update(stream, frames.LARGEST_WINDOW - frames.WINDOW) + frames.settings({Setting.INITIAL_WINDOW_SIZE: frames.WINDOW + 1})


PROTOCOL, FLOW, SIZE = {Code.PROTOCOL_ERROR}, {Code.FLOW_CONTROL_ERROR}, {Code.FRAME_SIZE_ERROR}
OVER = {Code.STREAM_CLOSED, Code.PROTOCOL_ERROR}
COMPRESSION = {Code.COMPRESSION_ERROR}

#: Of RFC 9113, but for those of RFC 7541.
WRONG: dict[str, tuple[Callable[[Connection], bytes], set[Code]]] = {
    "even number (5.1.1)": (lambda each: frames.headers(2, each.block()), PROTOCOL),
    "falling number (5.1.1)": (falling_number, OVER),
    "a number again (5.1.1)": (a_stream_again, OVER),
    "no number (6.2)": (lambda each: frames.headers(0, each.block()), PROTOCOL),
    "DATA on no stream (6.1)": (lambda _: frames.data(0, b"x"), PROTOCOL),
    "DATA on an idle stream (5.1)": (on_idle(lambda stream: frames.data(stream, b"x")), OVER),
    "RST_STREAM on an idle stream (6.4)": (on_idle(frames.reset), PROTOCOL),
    "RST_STREAM on no stream (6.4)": (lambda _: frames.reset(0), PROTOCOL),
    "RST_STREAM of another length (6.4)": (behind_a_request(lambda stream: frames.frame(Kind.RST_STREAM, 0, stream, b"123")), SIZE),
    "WINDOW_UPDATE on an idle stream (5.1)": (on_idle(lambda stream: frames.window_update(stream, 1)), PROTOCOL),
    "WINDOW_UPDATE of nothing (6.9)": (lambda _: frames.window_update(0, 0), PROTOCOL),
    "WINDOW_UPDATE of another length (6.9)": (lambda _: frames.frame(Kind.WINDOW_UPDATE, 0, 0, b"123"), SIZE),
    "CONTINUATION behind nothing (6.10)": (on_idle(lambda stream: frames.continuation(stream, b"", True)), PROTOCOL),
    "a PING in a block (4.3)": (another_frame_in_a_block, PROTOCOL),
    "a block of another stream (6.10)": (a_block_of_another_stream, PROTOCOL),
    "PUSH_PROMISE (8.4)": (on_idle(lambda stream: frames.frame(Kind.PUSH_PROMISE, 4, stream, b"\0\0\0\2")), PROTOCOL),
    "SETTINGS on a stream (6.5)": (on_idle(lambda stream: frames.frame(Kind.SETTINGS, 0, stream)), PROTOCOL),
    "SETTINGS of another length (6.5)": (lambda _: frames.frame(Kind.SETTINGS, 0, 0, b"12345"), SIZE),
    "an acknowledgement with settings (6.5)": (lambda _: frames.frame(Kind.SETTINGS, frames.ACK, 0, b"123456"), SIZE),
    "ENABLE_PUSH of 2 (6.5.2)": (lambda _: frames.settings({Setting.ENABLE_PUSH: 2}), PROTOCOL),
    "MAX_FRAME_SIZE of 16,383 (6.5.2)": (lambda _: frames.settings({Setting.MAX_FRAME_SIZE: 16_383}), PROTOCOL),
    "MAX_FRAME_SIZE of 2^24 (6.5.2)": (lambda _: frames.settings({Setting.MAX_FRAME_SIZE: 1 << 24}), PROTOCOL),
    "INITIAL_WINDOW_SIZE of 2^31 (6.5.2)": (lambda _: frames.settings({Setting.INITIAL_WINDOW_SIZE: 1 << 31}), FLOW),
    "PING on a stream (6.7)": (on_idle(lambda stream: frames.frame(Kind.PING, 0, stream, b"12345678")), PROTOCOL),
    "PING of another length (6.7)": (lambda _: frames.ping(b"1234567"), SIZE),
    "GOAWAY on a stream (6.8)": (on_idle(lambda stream: frames.frame(Kind.GOAWAY, 0, stream, bytes(8))), PROTOCOL),
    "a window beyond 2^31 - 1 (6.9.1)": (lambda _: frames.window_update(0, frames.LARGEST_WINDOW), FLOW),
    "the same by SETTINGS (6.9.2)": (window_beyond_its_end_by_settings, FLOW),
    "a frame that is too long (4.2)": (behind_a_request(lambda stream: frames.data(stream, b"x" * 16_385)), SIZE),
    "padding as long as the frame (6.1)": (behind_a_request(lambda stream: frames.frame(Kind.DATA, frames.PADDED, stream, b"\x04" b"123")), PROTOCOL),
    "padding as long as the block (6.2)": (lambda _: frames.frame(Kind.HEADERS, 0xD, 1, b"\x04" b"123"), PROTOCOL),
    "index 0 (RFC 7541 6.1)": (on_idle(lambda stream: frames.headers(stream, b"\x80")), COMPRESSION),
    "an index behind the table (RFC 7541 2.3.3)": (on_idle(lambda stream: frames.headers(stream, b"\xff\x7f")), COMPRESSION),
    "an index without end (RFC 7541 5.1)": (on_idle(lambda stream: frames.headers(stream, b"\xff" * 40)), COMPRESSION),
    "a table that is too large (RFC 7541 6.3)": (on_idle(lambda stream: frames.headers(stream, frames.integer(1 << 20, 5, 0x20))), COMPRESSION),
    "padding of Huffman code (RFC 7541 5.2)": (on_idle(lambda stream: frames.headers(stream, b"\0\x81\xff\x81\x00")), COMPRESSION),
    "half a field (RFC 7541 6.2)": (on_idle(lambda stream: frames.headers(stream, b"\0\x05ab")), COMPRESSION),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_frame_ends_its_connection_with_the_reason(case: str, server: Server, honest: Connection) -> None:
    make, codes = WRONG[case]
    with Connection.to(server.port) as attacker:
        attacker.ping()
        attacker.send(make(attacker))
        assert attacker.ended() in codes


def test_more_data_than_the_window_is_an_error(server: Server, honest: Connection) -> None:
    with Connection.to(server.ports[1]) as attacker:
        stream = attacker.ask("/wait", "POST", end=False)
        attacker.ping()
        room = min(attacker.windows[0], attacker.windows[stream])
        for _ in range(room // frames.MOST + 1):
            attacker.send(frames.data(stream, b"x" * frames.MOST))
        while attacker.answers[stream].reset is None and not attacker.is_over:
            attacker.take_or_end()
        assert attacker.answers[stream].reset == Code.FLOW_CONTROL_ERROR or attacker.goaways[-1][1] == Code.FLOW_CONTROL_ERROR


# Wrong on a stream, and only there


ON_STREAM: dict[str, tuple[Callable[[int], bytes], Code]] = {
    "WINDOW_UPDATE of nothing (6.9)": (lambda stream: frames.window_update(stream, 0), Code.PROTOCOL_ERROR),
    "a window beyond 2^31 - 1 (6.9.1)": (lambda stream: frames.window_update(stream, frames.LARGEST_WINDOW), Code.FLOW_CONTROL_ERROR),
    "PRIORITY of another length (6.3)": (lambda stream: frames.frame(Kind.PRIORITY, 0, stream, b"1234"), Code.FRAME_SIZE_ERROR),
}


@pytest.mark.parametrize("case", ON_STREAM)
def test_what_is_wrong_with_a_stream_ends_that_alone(case: str, server: Server, honest: Connection) -> None:
    make, code = ON_STREAM[case]
    with Connection.to(server.port) as attacker:
        stream = attacker.ask("/wait", "POST", end=False)
        attacker.send(make(stream))
        assert attacker.answer(stream).reset == code
        assert attacker.fetch().status == 200
        assert not attacker.goaways


# Peers that wait


def test_streams_above_the_limit_are_refused_and_can_be_asked_again(server: Server, honest: Connection) -> None:
    with Connection.to(server.port) as attacker:
        attacker.ping()
        limit = attacker.theirs[Setting.MAX_CONCURRENT_STREAMS]
        streams = [attacker.ask("/wait", "POST", end=False) for _ in range(limit + 3)]
        for stream in streams[limit:]:
            assert attacker.answer(stream).reset == Code.REFUSED_STREAM
        assert all(attacker.answers[stream].reset is None for stream in streams[:limit])
        attacker.send(*(frames.reset(stream) for stream in streams[:limit]))
        assert attacker.fetch().status == 200
        assert not attacker.goaways


def test_who_gives_no_window_is_let_go(server: Server, honest: Connection) -> None:
    """Each stream has a response of 8 MiB; more than one stays behind (--body-timeout)."""
    with Connection.to(server.port, {Setting.INITIAL_WINDOW_SIZE: 0}) as attacker:
        streams = [attacker.ask("/large") for _ in range(64)]
        while not attacker.is_over and any(attacker.answers[stream].reset is None for stream in streams):
            attacker.take_or_end()
        assert {attacker.answers[stream].reset for stream in streams} <= {None, Code.CANCEL, Code.ENHANCE_YOUR_CALM}
        assert all(attacker.answers[stream].reset for stream in streams) or attacker.goaways[-1][1] == Code.ENHANCE_YOUR_CALM
        assert not any(attacker.answers[stream].body for stream in streams)


def test_who_gives_a_window_byte_by_byte_is_let_go(serve: Serve) -> None:
    server = serve("--min-rate-out", "1m", "--min-rate-grace", "1", source=APP)
    with Connection.to(server.port, {Setting.INITIAL_WINDOW_SIZE: 0}, grants=False) as attacker, Connection.to(server.port) as honest:
        stream = attacker.ask("/large")
        # Of a megabyte a second it takes a few hundredths.
        while attacker.answers[stream].reset is None and not attacker.is_over and len(attacker.answers[stream].body) < 200_000:
            attacker.send_or_end(frames.window_update(0, 1), frames.window_update(stream, 1))
            attacker.take_or_end()
        answer = attacker.answers[stream]
        codes = {answer.reset, *(code for _, code in attacker.goaways)}
        assert codes & {Code.CANCEL, Code.ENHANCE_YOUR_CALM}, codes
        assert 0 < len(answer.body) < 200_000
        assert honest.fetch().status == 200


BEGINNINGS: dict[str, bytes] = {
    "half a preface": frames.PREFACE[:10],
    "half of SETTINGS": frames.PREFACE + frames.settings({1: 4096})[:12],
    "half a block": frames.PREFACE + frames.settings() + frames.headers(1, b"\x82\x86\x84", complete=False),
    "half a frame": frames.PREFACE + frames.settings() + frames.headers(1, b"\x82\x86\x84")[:10],
}


@pytest.mark.parametrize("case", BEGINNINGS)
def test_who_does_not_go_on_is_let_go(case: str, server: Server) -> None:
    """--head-timeout."""
    with socket.create_connection(("127.0.0.1", server.port), PATIENCE) as peer:
        peer.sendall(BEGINNINGS[case])
        while peer.recv(65536):
            pass
    with Connection.to(server.port) as other:
        assert is_served(other)


def test_who_only_begins_is_an_idle_peer(serve: Serve) -> None:
    """--keep-alive."""
    server = serve("--keep-alive", "0.2", "--head-timeout", "0.2", source=APP)
    with socket.create_connection(("127.0.0.1", server.port), PATIENCE) as peer:
        peer.sendall(frames.PREFACE)
        while peer.recv(65536):
            pass
    assert server.fetch("/").status == 200


def test_a_body_of_nothing_on_head_and_statuses_without_one(server: Server, honest: Connection) -> None:
    with Connection.to(server.port) as peer:
        answer = peer.fetch("/large", "HEAD")
        assert answer.status == 200 and answer.fields["content-length"] == str(8 * MIB)
        assert not answer.body and not any(each.kind == Kind.DATA and each.payload for each in peer.frames)


def test_no_cause_is_told_in_words_of_the_peer(server: Server) -> None:
    """What a peer has sent stands in no line of the log."""
    with Connection.to(server.port) as attacker:
        stream = attacker.stream()
        attacker.send(frames.headers(stream, attacker.block() + frames.literal("evil\r\nname", "evil value")))
        attacker.send(frames.headers(2, attacker.block()))
        attacker.ended()
    with Connection.to(server.port) as peer:
        assert peer.fetch().status == 200
    assert not re.search("evil", server.said)
