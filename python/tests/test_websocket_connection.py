"""What the engine does for WebSockets whatever the application does: pings, timeouts, back-pressure both ways, and the end of the server."""

from __future__ import annotations

import re
import selectors
import signal
import socket
from pathlib import Path

import pytest
import secured
from conftest import PATIENCE, Serve, Server
from crews import Start, crew, until
from websocket_frames import MASK, Opcode, close, frame, pong, text
from websocket_wire import SocketPipe, WebSocket, complaints, connect, over

__all__ = ["crew"]

KIB, MIB = 1 << 10, 1 << 20

APP = """
import asyncio, json, os, time

going = asyncio.Event()
sent = 0

async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        raise RuntimeError("no lifespan")
    if scope["type"] == "http":
        if scope["path"] == "/go":
            going.set()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        return await send({"type": "http.response.body", "body": str(sent).encode()})
    await receive()
    await send({"type": "websocket.accept"})
    await globals()[scope["path"][1:]](receive, send)

async def echo(receive, send):
    while (message := await receive())["type"] == "websocket.receive":
        await send({"type": "websocket.send"} | {name: message[name] for name in ("text", "bytes") if message.get(name) is not None})
    print("disconnect", message["code"], repr(message.get("reason", "")), flush=True)

async def blocks(receive, send):
    while (message := await receive())["type"] == "websocket.receive":
        print("blocks", flush=True)
        while not os.path.exists("go"):
            time.sleep(0.01)
        await send({"type": "websocket.send", "text": message["text"]})

async def floods(receive, send):
    global sent
    try:
        for sent in range(10_000):
            await send({"type": "websocket.send", "bytes": b"%08d" % sent + bytes(65528)})
    except OSError as error:
        print("flooded", sent, type(error).__name__, flush=True)
        raise

async def reads_later(receive, send):
    await going.wait()
    size = count = 0
    while (message := await receive())["type"] == "websocket.receive":
        size, count = size + len(message["bytes"]), count + 1
    print("read", count, size, flush=True)

async def stays(receive, send):
    try:
        await asyncio.Event().wait()
    finally:
        print("cancelled", flush=True)

async def says_farewell(receive, send):
    message = await receive()
    print("disconnect", message["code"], repr(message.get("reason", "")), flush=True)
    try:
        await send({"type": "websocket.send", "text": "farewell"})
    except OSError:
        print("too late", flush=True)

async def closes(receive, send):
    await send({"type": "websocket.close", "code": 4000})
    print("closed, then", (await receive())["code"], flush=True)
"""


@pytest.fixture
def server(serve_asgi: Serve) -> Server:
    return serve_asgi(source=APP)


def disconnected(server: Server, start: int = 0) -> tuple[int, str]:
    """What the application was told of the end."""
    found = server.wait_for(r"disconnect (\d+) '(.*)'\n", start)
    return int(found[1]), found[2]


# Pings


def test_pings_are_answered_while_the_loop_is_blocked(server: Server, tmp_path: Path) -> None:
    with connect(server.port, "/blocks") as peer, connect(server.port, "/echo") as other:
        peer.say("through")
        server.wait_for("blocks\n")
        for number in range(10):
            assert peer.ping(b"%d" % number) == []
            assert other.ping(b"other %d" % number) == []
        other.send(text("later"))
        (tmp_path / "go").touch()
        assert peer.message() == "through"
        assert other.message() == "later"


def test_a_silent_peer_is_pinged_and_stays_while_it_answers(serve_asgi: Serve) -> None:
    """However short the limits of requests are."""
    requests = ["--request-timeout", "0.3", "--keep-alive", "0.2", "--body-timeout", "0.3", "--head-timeout", "0.3"]
    server = serve_asgi("--websocket-ping", "0.2", "--websocket-timeout", "30", *requests, source=APP)
    with connect(server.port, "/echo") as peer:
        for _ in range(5):
            kind, payload = peer.event() or ("", b"")
            assert kind == "ping"
            peer.send(pong(payload))
        assert peer.echo("still there") == "still there"
        assert peer.close() == (1000, "")
    assert not complaints(server.said), complaints(server.said)


def test_a_peer_that_answers_nothing_is_closed_with_1011(serve_asgi: Serve) -> None:
    server = serve_asgi("--websocket-ping", "0.2", "--websocket-timeout", "0.3", source=APP)
    with connect(server.port, "/echo") as peer:
        events = [peer.event()]
        while events[-1] is not None and events[-1][0] == "ping":
            events.append(peer.event())
        assert len(events) > 1, "there was a ping before"
        kind, (code, _) = events[-1] or ("", (0, ""))
        assert (kind, code) == ("close", 1011)
        assert disconnected(server)[0] in {1006, 1011}
        assert peer.event() is None, "a peer that answers nothing is not waited for"


def test_every_byte_is_a_sign_of_life(serve_asgi: Serve) -> None:
    """A peer in the middle of a large frame cannot answer a ping, and need not."""
    server = serve_asgi("--websocket-ping", "0.1", "--websocket-timeout", "0.5", source=APP)
    message = text("x" * 20)
    with connect(server.port, "/echo") as peer:
        for byte in message[:-1]:
            peer.send(bytes([byte]))
            assert (peer.event() or "")[0] == "ping"
        peer.send(message[-1:])
        assert peer.message() == "x" * 20


def test_pings_may_be_turned_off(serve_asgi: Serve) -> None:
    server = serve_asgi("--websocket-ping", "0", "--websocket-timeout", "0.1", source=APP)
    with connect(server.port, "/echo") as silent:
        for number in range(50):
            # Each takes its time: more together than the timeout.
            with connect(server.port, "/echo") as other:
                assert other.echo(f"{number}") == f"{number}"
                assert other.close() == (1000, "")
        assert silent.echo("still there") == "still there"


# Faults


WRONG_FRAMES = {
    "not masked": frame(Opcode.TEXT, b"hello", mask=None),
    "an empty frame that is not masked": frame(Opcode.TEXT, b"", mask=None),
    "a short length in two bytes": frame(Opcode.TEXT, b"hello", form=126),
    "a short length in eight bytes": frame(Opcode.TEXT, b"hello", form=127),
    "a length of two bytes in eight": frame(Opcode.BINARY, bytes(300), form=127),
    "a length with its highest bit set": frame(Opcode.BINARY, b"", length=1 << 63),
    "a ping with a length in two bytes": frame(Opcode.PING, b"hello", form=126),
}


@pytest.mark.parametrize("name", WRONG_FRAMES)
def test_frames_that_break_the_protocol_close_with_1002(server: Server, name: str) -> None:
    with connect(server.port, "/echo") as peer:
        assert peer.echo("before") == "before"
        peer.send(WRONG_FRAMES[name])
        code, _ = peer.closed()
        assert code == 1002 or (code == 1009 and "highest" in name)
    assert disconnected(server)[0] in {1002, 1006, 1009}


@pytest.mark.parametrize("mask", [bytes(4), b"\xff\xff\xff\xff", MASK])
def test_every_mask_is_a_mask(server: Server, mask: bytes) -> None:
    with connect(server.port, "/echo") as peer:
        for size in (0, 1, 2, 3, 4, 5, 7, 8, 9, 31, 33, 125, 1000, 65537):
            message = bytes(number & 0xFF for number in range(size))
            peer.send(frame(Opcode.BINARY, message, mask=mask))
            assert peer.message() == message


def test_a_close_that_is_not_answered_is_not_waited_for_long(serve_asgi: Serve) -> None:
    server = serve_asgi("--websocket-timeout", "0.3", source=APP)
    with connect(server.port, "/closes") as peer:
        assert peer.event() == ("close", (4000, ""))
        peer.send(text("what comes now is not read"))
        assert peer.event() is None, "the server ends the connection"
    server.wait_for(r"closed, then \d+\n")


# Readers and writers that are slow


def slow(server: Server, path: str) -> WebSocket:
    """One with a small buffer, which is easily too slow."""
    peer = socket.socket()
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 * KIB)
    peer.settimeout(PATIENCE)
    peer.connect(("127.0.0.1", server.port))
    return over(secured.wrapped(peer, server.port), path)


def sent(server: Server) -> int:
    """How many messages the application has sent when it can send no more."""
    counts = [-1]

    def stands_still() -> bool:
        counts.append(int(server.fetch("/sent").body))
        return len(counts) > 20 and len(set(counts[-20:])) == 1

    until("send waits", stands_still)
    return counts[-1]


def test_send_waits_for_a_reader_that_stops(serve_asgi: Serve) -> None:
    server = serve_asgi("--body-timeout", "60", source=APP)
    memory = server.settled_memory()
    with slow(server, "/floods") as peer:
        waiting = sent(server)
        assert 0 < waiting < 128, "a few messages wait, and what the kernel takes"
        assert server.memory() - memory < 16 * MIB
        # It goes on where it was.
        for number in range(300):
            message = peer.message()
            assert isinstance(message, bytes) and message[:8] == b"%08d" % number
        assert sent(server) > waiting
        assert server.memory("VmHWM") - memory < 24 * MIB
    server.wait_for(r"flooded \d+ ClientDisconnected\n")


def test_a_reader_that_stops_is_closed_when_it_takes_nothing_for_too_long(serve_asgi: Serve) -> None:
    server = serve_asgi("--body-timeout", "0.5", source=APP)
    with slow(server, "/floods") as peer:
        server.wait_for(r"flooded \d+ ClientDisconnected\n")
        # What is on the way comes, and then nothing.
        with pytest.raises((AssertionError, ConnectionError)):
            while peer.event() is not None:
                pass
            raise ConnectionError("it ended between two frames")
    assert "Traceback" not in server.said, server.said


def test_a_slow_application_is_read_ahead_of_a_little(server: Server) -> None:
    """64 KiB and a message; then TCP holds the peer back, and nothing is lost."""
    memory = server.settled_memory()
    message = frame(Opcode.BINARY, bytes(64 * KIB))
    total = 512
    with slow(server, "/reads_later") as peer:
        assert isinstance(peer.pipe, SocketPipe)
        pushed = push(peer.pipe.peer, message * total, server)
        assert pushed < total * len(message) // 2, "most of it waits at the peer"
        assert server.memory("VmHWM") - memory < 16 * MIB
        server.fetch("/go")
        peer.pipe.peer.settimeout(PATIENCE)
        peer.send((message * total)[pushed:])
        assert peer.close() == (1000, "")
    server.wait_for(rf"read {total} {total * 64 * KIB}\n")
    assert server.memory("VmHWM") - memory < 24 * MIB


def push(peer: socket.socket, data: bytes, server: Server) -> int:
    """Writes as long as the peer takes it: not any more for so long as the server answers twenty other requests."""
    peer.setblocking(False)
    pushed = rounds = 0
    with selectors.DefaultSelector() as selector:
        selector.register(peer, selectors.EVENT_WRITE)
        while rounds < 20 and pushed < len(data):
            if not selector.select(0):
                server.fetch("/sent")
                rounds += 1
                continue
            try:
                pushed += peer.send(data[pushed : pushed + 16 * KIB])
                rounds = 0
            except BlockingIOError:
                pass
    return pushed


def test_pings_and_a_close_pass_a_slow_application(server: Server) -> None:
    """Up to where it is read ahead: the engine answers, and the application reads what came before."""
    with connect(server.port, "/reads_later") as peer:
        peer.send(*(frame(Opcode.BINARY, b"a message") for _ in range(100)))
        assert peer.ping() == []
        peer.send(close(4001))
        assert peer.event() == ("close", (4001, ""))
        assert peer.event() is None
        server.fetch("/go")
        server.wait_for("read 100 900\n")


# The end of the server


def test_a_stop_closes_with_1012_and_tells_the_application(server: Server) -> None:
    with connect(server.port, "/echo") as peer, connect(server.port, "/says_farewell") as other:
        assert peer.echo("open") == "open"
        assert other.ping() == []
        server.process.send_signal(signal.SIGTERM)
        for each in (peer, other):
            event = each.event()
            if event == ("text", "farewell"):
                event = each.event()
            assert event is not None and event[0] == "close" and event[1][0] == 1012, event
            each.answer_close(1012)
            assert each.event() is None
            each.pipe.leave()
        assert server.process.wait(PATIENCE) == 0
    server.wait_for("(?s)disconnect 1012.*disconnect 1012")
    assert not complaints(server.said), complaints(server.said)


def test_an_application_that_hears_nothing_is_cancelled_at_the_end(serve_asgi: Serve) -> None:
    server = serve_asgi("--events-timeout", "0.2", "--drain-timeout", "1", source=APP)
    with connect(server.port, "/stays") as peer:
        assert peer.ping() == []
        server.process.send_signal(signal.SIGTERM)
        event = peer.event()
        assert event is not None and event[1][0] == 1012
        assert server.process.wait(PATIENCE) == 0
        # The peer has not answered, and is not waited for.
        assert peer.event() is None
    server.wait_for("cancelled\n")


def test_sighup_of_one_process_keeps_them(serve_asgi: Serve, tmp_path: Path) -> None:
    (tmp_path / "maitred.toml").write_text("max-threads = 8\n")
    server = serve_asgi(source=APP)
    with connect(server.port, "/echo") as peer:
        assert peer.echo("before") == "before"
        server.process.send_signal(signal.SIGHUP)
        server.wait_for("info SIGHUP: the configuration has been read again")
        assert peer.echo("after") == "after"
        assert peer.close() == (1000, "")


def test_workers_that_are_replaced_close_with_1012(crew: Start) -> None:
    server = crew(source=APP)
    before = server.workers()
    peers = [connect(server.port, "/echo") for _ in range(20)]
    assert [peer.echo("open") for peer in peers] == ["open"] * 20
    server.tell(signal.SIGHUP)
    for peer in peers:
        assert peer.closed()[0] == 1012
        peer.pipe.leave()
    # Before that an old one may take a client that comes again, and close it in its turn.
    until("the workers are replaced", lambda: len(server.workers()) == 2 and not server.workers() & before)
    with connect(server.port, "/echo") as again:
        assert again.echo("again") == "again"
        assert again.close() == (1000, "")
    assert len(re.findall("disconnect 1012", server.said)) == 20
    assert not complaints(server.said), complaints(server.said)
    server.ends()
