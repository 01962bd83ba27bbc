"""permessage-deflate (RFC 7692): what is agreed on, and what compressed messages may be and may not."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

import pytest
from conftest import Serve
from sites import Site, site, start_asgi
from test_websocket_cases import APP
from websocket_frames import RSV1, TAIL, Deflate, Opcode, fragments, frame, ping, text
from websocket_wire import WebSocket, connect

#: Compresses well, and no part of it is like another.
MESSAGE = " ".join(f"word {number}" for number in range(500))


@pytest.fixture(scope="module")
def echoes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("echoes")
    (folder / "echoes.py").write_text(APP)
    yield from site(start_asgi(folder, "echoes:app", "asyncio"))


@pytest.fixture
def peer(echoes: Site) -> Iterator[WebSocket]:
    with connect(echoes.server.port, deflate="permessage-deflate; client_max_window_bits") as opened:
        assert opened.deflate
        yield opened


def agreed(echoes: Site, offer: str) -> Deflate | None:
    """What a server answers to an offer; messages go through in any case."""
    with connect(echoes.server.port, deflate=offer) as peer:
        for _ in range(3):
            assert peer.echo(MESSAGE) == MESSAGE
        assert peer.close() == (1000, "")
        return peer.deflate


# Agreement


def test_an_offer_is_accepted(echoes: Site) -> None:
    plain = agreed(echoes, "permessage-deflate")
    assert plain and "client_max_window_bits" not in plain.said, "only who offers it is told (section 7.1.2.2)"


@pytest.mark.parametrize("bits", range(9, 16))
def test_windows_are_kept_to(echoes: Site, bits: int) -> None:
    """This client cannot inflate what refers to more."""
    made = agreed(echoes, f"permessage-deflate; server_max_window_bits={bits}; client_max_window_bits={bits}")
    assert made is None or (made.server_window <= bits and made.client_window <= bits)
    assert made is not None or bits < 10, "the server may decline a window that is of no use"


def test_contexts_are_given_up(echoes: Site) -> None:
    made = agreed(echoes, "permessage-deflate; server_no_context_takeover; client_no_context_takeover")
    assert made and not made.server_takes_over


@pytest.mark.parametrize(
    "offer",
    [
        "permessage-deflate; unknown",
        "permessage-deflate; unknown=1",
        "permessage-deflate; server_max_window_bits=16",
        "permessage-deflate; server_max_window_bits=7",
        "permessage-deflate; server_max_window_bits",
        "permessage-deflate; client_max_window_bits=16",
        "permessage-deflate; client_max_window_bits=x",
        "permessage-deflate; server_no_context_takeover=1",
        "permessage-deflate; server_no_context_takeover; server_no_context_takeover",
        "permessage-deflate; server_max_window_bits=10; server_max_window_bits=10",
        "x-webkit-deflate-frame",
        "permessage-bzip2; level=9",
    ],
)
def test_an_offer_that_is_none_is_declined(echoes: Site, offer: str) -> None:
    assert agreed(echoes, offer) is None


def test_the_next_offer_is_looked_at(echoes: Site) -> None:
    made = agreed(echoes, 'x-own; a=b, permessage-deflate; unknown, permessage-deflate; server_max_window_bits="11"')
    assert made and made.server_window <= 11


def test_it_may_be_off(serve_asgi: Serve) -> None:
    server = serve_asgi("--no-websocket-deflate", source=APP)
    with connect(server.port, deflate="permessage-deflate") as peer:
        assert peer.deflate is None
        assert peer.echo(MESSAGE) == MESSAGE


# Messages


def test_large_messages_are_compressed_and_contexts_are_kept(peer: WebSocket) -> None:
    short = MESSAGE[:2000]  # Shorter than any window that is of use.
    assert peer.echo(short) == short
    first = peer.bytes_received
    assert first < len(short) // 2
    assert peer.echo(short) == short
    if peer.deflate and peer.deflate.server_takes_over:
        assert peer.bytes_received - first < first // 4, "it refers to the message before"


def test_messages_may_be_compressed_or_not(peer: WebSocket) -> None:
    for message in ("compressed", "plain", "compressed again"):
        if message == "plain":
            peer.send(text(message))
        else:
            peer.say(message)
        assert peer.message() == message


@pytest.mark.parametrize("message", ["", b"", "x", "\u00e9" * 10_000, bytes(100_000)])
def test_messages_of_all_kinds(peer: WebSocket, message: str | bytes) -> None:
    for size in (0, 1, 7, 1000):
        peer.say(message, size)
        assert peer.message() == message


def test_a_fragmented_message_has_the_bit_once_and_pings_between(peer: WebSocket) -> None:
    assert peer.deflate
    first, *others, last = fragments(Opcode.TEXT, peer.deflate.compress(MESSAGE.encode()), 50, RSV1)
    peer.send(first, ping(b"1"), *others, ping(b"2"), last)
    assert [peer.event(), peer.event(), peer.event()] == [("pong", b"1"), ("pong", b"2"), ("text", MESSAGE)]


def test_blocks_of_all_kinds(peer: WebSocket) -> None:
    """Stored, with fixed codes, several in one message, one of them the last (section 7.2.3)."""
    assert peer.deflate
    for level, strategy in ((0, zlib.Z_DEFAULT_STRATEGY), (9, zlib.Z_FIXED), (6, zlib.Z_HUFFMAN_ONLY)):
        made = zlib.compressobj(level, zlib.DEFLATED, -15, 8, strategy)
        body = made.compress(MESSAGE.encode()) + made.flush(zlib.Z_SYNC_FLUSH)
        peer.send(frame(Opcode.TEXT, body.removesuffix(TAIL), rsv=RSV1))
        assert peer.message() == MESSAGE
    made = zlib.compressobj(6, zlib.DEFLATED, -15)
    several = b"".join(made.compress(word.encode()) + made.flush(zlib.Z_SYNC_FLUSH) for word in ("one ", "two ", "three"))
    peer.send(frame(Opcode.TEXT, several.removesuffix(TAIL), rsv=RSV1))
    assert peer.message() == "one two three"
    last = zlib.compressobj(6, zlib.DEFLATED, -15)
    peer.send(frame(Opcode.TEXT, last.compress(b"last") + last.flush() + b"\x00", rsv=RSV1))
    assert peer.message() == "last"
    peer.send(frame(Opcode.TEXT, b"\x00", rsv=RSV1))
    assert peer.message() == ""


WRONG = {
    "a bit in a ping": frame(Opcode.PING, b"ping", rsv=RSV1),
    "a bit in a close": frame(Opcode.CLOSE, b"", rsv=RSV1),
    "another bit": frame(Opcode.TEXT, b"\x00", rsv=RSV1 | 2),
    "a bit in a continuation": text("a", fin=False) + frame(Opcode.CONTINUATION, b"b", rsv=RSV1),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_bit_where_none_may_be_closes_with_1002(peer: WebSocket, name: str) -> None:
    peer.send(WRONG[name])
    assert peer.closed()[0] == 1002


GARBAGE = {
    "a block of no kind": b"\x07",
    "codes that are none": b"\xed\xfd\x01\x02\x03\x04\x05\x06",
    "far before the beginning": b"\x02\x7e\xff",
    "random bytes": bytes(range(1, 200, 7)),
}


@pytest.mark.parametrize("name", GARBAGE)
def test_what_cannot_be_inflated_closes_with_1007_or_1002(peer: WebSocket, name: str) -> None:
    with pytest.raises(zlib.error):
        zlib.decompressobj(-15).decompress(GARBAGE[name] + TAIL)
    peer.send(frame(Opcode.BINARY, GARBAGE[name], rsv=RSV1))
    assert peer.closed()[0] in {1002, 1007}


def test_text_is_utf_8_when_it_is_inflated(peer: WebSocket) -> None:
    assert peer.deflate
    peer.send(frame(Opcode.TEXT, peer.deflate.compress("\u00e9".encode()), rsv=RSV1))
    assert peer.message() == "\u00e9"
    peer.send(frame(Opcode.TEXT, peer.deflate.compress(b"a\xe9b"), rsv=RSV1))
    assert peer.closed()[0] == 1007


def test_what_refers_to_a_context_that_was_given_up_is_a_fault(echoes: Site) -> None:
    with connect(echoes.server.port, deflate="permessage-deflate; client_no_context_takeover") as peer:
        assert peer.deflate
        if peer.deflate.client_takes_over:
            pytest.skip("the server keeps contexts of clients")
        kept = Deflate()
        peer.send(frame(Opcode.TEXT, kept.compress(MESSAGE.encode()), rsv=RSV1))
        assert peer.message() == MESSAGE
        peer.send(frame(Opcode.TEXT, kept.compress(MESSAGE.encode()), rsv=RSV1))
        assert peer.closed()[0] in {1002, 1007}
