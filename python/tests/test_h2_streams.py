"""Streams of one HTTP/2 connection: all of them run at once, and what the connection needs is done whoever keeps the threads."""

from __future__ import annotations

import hashlib
import json
import random
import socket
from collections.abc import Iterator
from pathlib import Path

import frames
import pytest
from conftest import Serve, Server
from frames import Code, Connection, Kind, Setting

MIB = 1 << 20

WSGI = """
import hashlib, json, threading, time

GO = threading.Event()
#: All of so many threads are inside.
TOGETHER = threading.Barrier(2)

def app(environ, start_response):
    path = environ["PATH_INFO"]
    name, _, number = path[1:].partition("/")
    status, fields, body = "200 OK", [("Content-Type", "text/plain")], f"{name} {number}".encode()
    if name == "slow":
        time.sleep(0.05)
    elif name == "go":
        GO.set()
    elif name == "stay":
        print("stays", flush=True)
        GO.wait(120)
    elif name == "meet":
        TOGETHER.wait(120)
    elif name == "digest":
        body = hashlib.sha256(environ["wsgi.input"].read(1 << 30)).hexdigest().encode()
    elif name == "unread":
        body = b"not read"
    elif name == "large":
        body = bytes(range(256)) * (4096 * int(number))
    elif name == "status":
        status, fields, body = f"{number} Anything", [], b""
    elif name == "environ":
        shown = {key: value for key, value in environ.items() if isinstance(value, str)}
        body = json.dumps(shown).encode()
    if name != "status":
        fields.append(("Content-Length", str(len(body))))
    start_response(status, fields)
    return [body]
"""

ASGI = """
import asyncio, json
GO = asyncio.Event()

async def app(scope, receive, send):
    if scope["type"] != "http":
        return
    start = {"type": "http.response.start", "status": 200, "headers": []}
    if scope["path"] == "/trailers":
        assert "http.response.trailers" in scope["extensions"]
        await send(start | {"trailers": True})
        await send({"type": "http.response.body", "body": b"body"})
        await send({"type": "http.response.trailers", "headers": [(b"x-sum", b"7")], "more_trailers": True})
        await send({"type": "http.response.trailers", "headers": [(b"x-more", b"8")]})
    elif scope["path"] == "/version":
        await send(start)
        await send({"type": "http.response.body", "body": json.dumps([scope["http_version"], scope["scheme"]]).encode()})
    elif scope["path"] == "/go":
        GO.set()
        await send(start)
        await send({"type": "http.response.body", "body": b"gone"})
    else:
        await send(start)
        await send({"type": "http.response.body", "body": b"first", "more_body": True})
        message = await receive()
        while message["type"] == "http.request" and message.get("more_body"):
            message = await receive()
        if scope["path"] == "/leaves":
            print((await receive())["type"], flush=True)
        await GO.wait()
        await send({"type": "http.response.body", "body": b"second"})
"""

BLOCK = bytes(range(256)) * 4096
INCREMENTAL = [("priority", "i")]

#: Of a window that is opened little by little.
PART = 16 << 10


@pytest.fixture
def wsgi(serve: Serve) -> Server:
    return serve("--max-threads", "10", source=WSGI)


@pytest.fixture
def peer(wsgi: Server) -> Iterator[Connection]:
    with Connection.to(wsgi.port) as connection:
        yield connection


def test_a_thousand_requests_over_a_hundred_streams(peer: Connection) -> None:
    """Every tenth waits; all are answered, each with its own."""
    asked: dict[int, str] = {}
    numbers = iter(range(1000))
    open_streams: set[int] = set()
    while open_streams or len(asked) < 1000:
        while len(open_streams) < 100 and (number := next(numbers, None)) is not None:
            name = "slow" if number % 10 == 0 else "fast"
            stream = peer.ask(f"/{name}/{number}")
            asked[stream] = f"{name} {number}"
            open_streams.add(stream)
        peer.take()
        open_streams = {stream for stream in open_streams if not peer.answers[stream].is_complete}
    assert {stream: peer.answers[stream].body.decode() for stream in asked} == asked
    assert {peer.answers[stream].status for stream in asked} == {200} and not peer.goaways


def test_streams_of_one_connection_run_at_the_same_time(peer: Connection) -> None:
    """Each waits for the other inside of the application."""
    both = [peer.ask("/meet/1"), peer.ask("/meet/2")]
    assert [peer.answer(stream).status for stream in both] == [200, 200]


def test_with_every_thread_blocked_the_connection_goes_on(serve: Serve, tmp_path: Path) -> None:
    """Pings, settings, windows, files and resets, while the application keeps all threads there may be."""
    files = tmp_path / "files"
    files.mkdir()
    (files / "large").write_bytes(BLOCK * 4)
    server = serve("--max-threads", "2", "--static", f"/static={files}", source=WSGI)
    with Connection.to(server.port, grants=False) as peer:
        staying = [peer.ask("/stay/1"), peer.ask("/stay/2")]
        server.wait_for(r"(?s)stays\n.*stays\n")
        for number in range(8):
            peer.ping(b"%08d" % number)
        # A file, byte for byte by the windows that it gets.
        stream = peer.ask("/static/large")
        while not peer.answers[stream].is_complete:
            for each in peer.take():
                if each.kind == Kind.DATA and each.payload:
                    peer.send(frames.window_update(0, len(each.payload)), frames.window_update(stream, len(each.payload)))
        assert peer.answers[stream].body == BLOCK * 4
        # A window that grows by settings, for which nothing else comes.
        peer.send(frames.settings({Setting.INITIAL_WINDOW_SIZE: 4 * MIB}))
        peer.until(lambda each: each.kind == Kind.SETTINGS and bool(each.flags & frames.ACK))
        # What waits behind the threads of its route can be given up, and does not run.
        waiting = peer.ask("/stay/3")
        peer.send(frames.reset(waiting))
        peer.ping()
        assert server.said.count("stays") == 2
        assert not any(peer.answers[each].heads for each in staying)
        with Connection.to(server.port) as other:
            assert other.fetch("/static/large").status == 200
        peer.send(frames.reset(staying[0]), frames.reset(staying[1]))
        peer.ping()


def test_an_upload_is_taken_whole_and_in_any_frames(peer: Connection) -> None:
    body = random.Random(1).randbytes(3 * MIB + 17)
    stream = peer.ask("/digest", "POST", body=body)
    assert peer.answer(stream).body.decode() == hashlib.sha256(body).hexdigest()
    # Padding costs windows, too: they are given back (RFC 9113 §6.1).
    stream, sent = peer.ask("/digest", "POST", end=False), 0
    while sent < len(body):
        part = body[sent : sent + 1000]
        padded = frames.frame(Kind.DATA, frames.PADDED | frames.END_STREAM * (sent + 1000 >= len(body)), stream, b"\xff" + part + bytes(255))
        while min(peer.windows[0], peer.windows[stream]) < len(padded) - 9:
            peer.take()
        for each in (0, stream):
            peer.windows[each] -= len(padded) - 9
        peer.send(padded)
        sent += 1000
    assert peer.answer(stream).body.decode() == hashlib.sha256(body).hexdigest()


def test_windows_of_streams_that_were_given_up_come_back(peer: Connection) -> None:
    """More than the window of the connection, for streams that nobody reads (RFC 9113 §6.9)."""
    for _ in range(40):
        stream = peer.ask("/unread", "POST", end=False)
        peer.upload(stream, BLOCK[:65_536], end=False)
        peer.send(frames.reset(stream))
    assert peer.fetch("/digest", "POST", body=b"").status == 200
    assert not peer.goaways


def test_an_answer_before_the_end_of_the_upload_stops_it(serve: Serve) -> None:
    """Complete first, then a reset without an error (RFC 9113 §8.1)."""
    server = serve("--listen", "127.0.0.1:0,read-ahead=off", source=WSGI)
    with Connection.to(server.port) as peer:
        stream = peer.ask("/unread", "POST", end=False)
        peer.upload(stream, b"a beginning", end=False)
        answer = peer.answer(stream)
        assert answer.is_complete and answer.body == b"not read"
        peer.send(frames.data(stream, b"more"))
        assert peer.fetch("/digest", "POST", body=b"x").status == 200
        assert answer.reset in (None, Code.NO_ERROR)
        peer.send(frames.data(stream, b"and its end", end=True))
        assert peer.fetch().status == 200 and not peer.goaways


def test_large_answers_take_turns(peer: Connection) -> None:
    """Whose parts are of use (RFC 9218 §4.2)."""
    streams = [peer.ask(f"/large/{size}", fields=INCREMENTAL) for size in (8, 8, 8)]
    for stream in streams:
        assert peer.answer(stream).body == BLOCK * 8
    order = [each.stream for each in peer.frames if each.kind == Kind.DATA and each.payload]
    firsts = [order.index(stream) for stream in streams]
    ends = [len(order) - 1 - order[::-1].index(stream) for stream in streams]
    assert max(firsts) < min(ends), "each begins before one of the others is complete"


def test_a_small_answer_does_not_wait_for_large_ones(peer: Connection) -> None:
    large = [peer.ask("/large/8", fields=INCREMENTAL) for _ in range(3)]
    small = peer.ask("/fast/1", fields=INCREMENTAL)
    for stream in [*large, small]:
        peer.answer(stream)
    ends = [each.stream for each in peer.frames if each.ends]
    assert ends.index(small) == 0


def test_the_most_urgent_comes_first(wsgi: Server) -> None:
    """RFC 9218 §10, where a window has kept all of them waiting."""
    with Connection.to(wsgi.port, {Setting.INITIAL_WINDOW_SIZE: 16 * MIB}, grants=False) as peer:
        # So large that none is near its end when the urgent one is ready: each has one frame of 16 in its turn.
        usual = [peer.ask("/large/8") for _ in range(2)]
        while len(peer.answers[usual[0]].body) + len(peer.answers[usual[1]].body) < frames.WINDOW:
            peer.take()
        urgent = peer.ask("/large/1", fields=[("priority", "u=0")])
        later = peer.ask("/large/1", fields=[("priority", "u=7")])
        streams = (*usual, urgent, later)

        def received() -> int:
            return sum(len(peer.answers[stream].body) for stream in streams)

        # Its head may be here before its body waits: it does when it gets some of the window.
        while not peer.answers[urgent].body:
            expected = received() + PART
            peer.send(frames.window_update(0, PART))
            while received() < expected:
                peer.take()
        before = len(peer.frames)
        peer.send(frames.window_update(0, 32 * MIB))
        for stream in streams:
            assert peer.answer(stream).body == BLOCK * (8 if stream in usual else 1)
        ends = [each.stream for each in peer.frames[before:] if each.ends]
        assert ends[0] == urgent and ends[-1] == later


def test_a_window_may_become_negative(wsgi: Server) -> None:
    """RFC 9113 §6.9.2."""
    with Connection.to(wsgi.port, grants=False) as peer:
        stream = peer.ask("/large/1")
        while len(peer.answers[stream].body) < frames.WINDOW:
            peer.take()
        peer.send(frames.settings({Setting.INITIAL_WINDOW_SIZE: 1000}), frames.window_update(0, 4 * MIB))
        peer.send(frames.window_update(stream, frames.WINDOW - 1000))
        peer.ping()
        assert len(peer.answers[stream].body) == frames.WINDOW, "it was at its end, and is there again"
        peer.send(frames.window_update(stream, 1))
        peer.ping()
        assert len(peer.answers[stream].body) == frames.WINDOW + 1
        peer.send(frames.window_update(stream, 4 * MIB))
        assert peer.answer(stream).body == BLOCK


def test_frames_are_not_larger_than_the_peer_takes(wsgi: Server) -> None:
    with Connection.to(wsgi.port) as peer:
        assert peer.fetch("/large/1").body == BLOCK
        assert max(len(each.payload) for each in peer.frames) <= frames.MOST


@pytest.mark.parametrize("path,method", [("/large/1", "HEAD"), ("/status/204", "GET"), ("/status/304", "GET")])
def test_what_has_no_body_ends_with_its_head(path: str, method: str, peer: Connection) -> None:
    stream = peer.ask(path, method)
    answer = peer.answer(stream)
    assert answer.is_complete and not answer.body
    assert not any(each.kind == Kind.DATA and each.payload for each in peer.frames)
    assert peer.fetch().status == 200


def test_100_is_sent_when_the_body_is_wanted(serve: Serve) -> None:
    server = serve("--listen", "127.0.0.1:0,read-ahead=off", source=WSGI)
    with Connection.to(server.port) as peer:
        stream = peer.ask("/digest", "POST", [("expect", "100-continue")], end=False)
        peer.until(lambda each: each.kind == Kind.HEADERS)
        assert peer.answers[stream].heads == [[(":status", "100")]] and not peer.answers[stream].is_complete
        peer.upload(stream, b"body")
        assert peer.answer(stream).status == 200
        stream = peer.ask("/unread", "POST", [("expect", "100-continue")], end=False)
        assert peer.answer(stream).status == 200 and len(peer.answers[stream].heads) == 1


def test_what_an_application_is_told(peer: Connection) -> None:
    fields = [("cookie", "a=1"), ("cookie", "b=2"), ("x-own", "value")]
    seen = json.loads(bytes(peer.fetch("/environ?a=b", fields=fields).body))
    wanted = {"HTTP_COOKIE": "a=1; b=2", "HTTP_X_OWN": "value", "HTTP_HOST": "localhost", "QUERY_STRING": "a=b", "SERVER_PROTOCOL": "HTTP/2"}
    assert {name: seen.get(name) for name in wanted} == wanted


@pytest.fixture
def asgi(serve_asgi: Serve) -> Server:
    return serve_asgi(source=ASGI)


def test_trailers_of_an_asgi_application(asgi: Server) -> None:
    with Connection.to(asgi.port) as peer:
        answer = peer.fetch("/trailers", fields=[("te", "trailers")])
        assert answer.body == b"body" and answer.trailers == {"x-sum": "7", "x-more": "8"}
        assert json.loads(bytes(peer.fetch("/version").body)) == ["2", "http"]


def test_a_stream_is_sent_as_it_is_made(asgi: Server) -> None:
    with Connection.to(asgi.port) as peer:
        stream = peer.ask("/stream")
        while peer.answers[stream].body != b"first":
            peer.take()
        assert peer.fetch("/go").body == b"gone"
        assert peer.answer(stream).body == b"firstsecond"


def test_an_application_learns_that_its_stream_was_given_up(asgi: Server) -> None:
    with Connection.to(asgi.port) as peer:
        stream = peer.ask("/leaves")
        while peer.answers[stream].body != b"first":
            peer.take()
        peer.send(frames.reset(stream))
        asgi.wait_for("http.disconnect")
        assert peer.fetch("/go").body == b"gone", "the connection and its other streams go on"


def test_an_upgrade_is_not_taken_unless_it_is_wanted(serve: Serve) -> None:
    """A known way of smuggling through proxies: the request is answered by HTTP/1.1."""
    asks = b"GET /fast/1 HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n"
    assert serve(source=WSGI).ask(asks).status == 200
    taken = serve("--http2-upgrade", source=WSGI)
    with socket.create_connection(("127.0.0.1", taken.port), 30) as raw:
        raw.sendall(asks)
        received = b""
        while b"\r\n\r\n" not in received:
            received += raw.recv(1)
        assert received.startswith(b"HTTP/1.1 101 ") and b"h2c" in received
        peer = Connection(raw)
        # Its answer is that of stream 1.
        peer.stream()
        assert peer.answer(1).body == b"fast 1"
        assert peer.fetch("/fast/2").body == b"fast 2"


def test_it_can_be_switched_off(serve: Serve) -> None:
    server = serve("--http2", "off", source=WSGI)
    with Connection.to(server.port) as peer:
        assert peer.peer.recv(9) == b"HTTP/1.1 ", "to it the preface is a request that it cannot answer"
