"""WebSockets over HTTP/2 (RFC 8441): each is a stream, by extended CONNECT. The cases of websocket_cases.py are tested so, too."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import frames
import pytest
from certificates import authority, needs_openssl
from conftest import PATIENCE, Serve, Server
from crews import Start, crew, until
from frames import Code, Connection, Setting
from test_control import asked
from websocket_frames import text
from websocket_wire import Refused, StreamPipe, WebSocket, complaints, connect_h2, extended

__all__ = ["authority", "crew"]

MIB = 1 << 20

APP = """
import asyncio, json, os, time

going = asyncio.Event()
sent = 0

async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        raise RuntimeError("no lifespan")
    if scope["type"] == "http":
        while (await receive()).get("more_body"):
            pass
        await send({"type": "http.response.start", "status": 200, "headers": []})
        return await send({"type": "http.response.body", "body": str(sent).encode()})
    assert (await receive())["type"] == "websocket.connect"
    if scope["path"] == "/refuses":
        return await send({"type": "websocket.close"})
    if scope["path"] == "/answers":
        await send({"type": "websocket.http.response.start", "status": 401, "headers": [(b"x-own", b"1")]})
        return await send({"type": "websocket.http.response.body", "body": b"who are you?"})
    await send({"type": "websocket.accept", "subprotocol": "chat" if "chat" in scope["subprotocols"] else None, "headers": [(b"x-own", b"1"), (b"content-length", b"5")]})
    await globals().get(scope["path"][1:], echo)(scope, receive, send)

async def echo(scope, receive, send):
    while (message := await receive())["type"] == "websocket.receive":
        await send({"type": "websocket.send"} | {name: message[name] for name in ("text", "bytes") if message.get(name) is not None})
    print("disconnect", message["code"], flush=True)

async def shows(scope, receive, send):
    names = ("type", "http_version", "scheme", "path", "query_string", "subprotocols", "headers", "extensions")
    await send({"type": "websocket.send", "text": repr({name: list(scope[name]) if name == "headers" else scope[name] for name in names})})

async def blocks(scope, receive, send):
    while (message := await receive())["type"] == "websocket.receive":
        print("blocks", flush=True)
        while not os.path.exists("go"):
            time.sleep(0.01)
        await send({"type": "websocket.send", "text": message["text"]})

async def floods(scope, receive, send):
    global sent
    try:
        for sent in range(10_000):
            await send({"type": "websocket.send", "bytes": b"%08d" % sent + bytes(65528)})
    except OSError as error:
        print("flooded", sent, type(error).__name__, flush=True)
        raise

async def closes(scope, receive, send):
    await send({"type": "websocket.close", "code": 4000, "reason": "enough"})
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("h2")
    (folder / "app.py").write_text(APP)
    server = Server(["app.py", "--control", "ctl.sock"], folder, {})
    server.folder = folder  # type: ignore[attr-defined]
    try:
        yield server
        assert server.stop() == 0, server.said
        assert "Traceback" not in server.said
    finally:
        server.kill()


@pytest.fixture
def connection(server: Server) -> Iterator[Connection]:
    with Connection.to(server.port) as opened:
        opened.ping()
        yield opened


# The handshake


def test_the_server_says_that_it_knows_extended_connect(connection: Connection) -> None:
    assert connection.theirs[Setting.ENABLE_CONNECT_PROTOCOL] == 1


def test_without_websockets_it_does_not_say_so(serve_asgi: Serve) -> None:
    server = serve_asgi("--no-websockets", source=APP)
    with Connection.to(server.port) as connection:
        connection.ping()
        assert connection.theirs.get(Setting.ENABLE_CONNECT_PROTOCOL, 0) == 0
        with pytest.raises(Refused):
            connect_h2(connection)


def test_a_websocket_is_a_stream(connection: Connection) -> None:
    peer = connect_h2(connection, "/caf%C3%A9?a=b", ("x-own", "1"), subprotocols=["other", "chat"])
    assert (peer.head.status, peer.subprotocol, peer.head.field("x-own")) == (200, "chat", "1")
    assert peer.head.field("content-length") is None, "a 2xx to CONNECT has none (RFC 9110 §8.6)"
    for message in ("text", b"bytes", "", "x" * 70_000, bytes(200_000)):
        assert peer.echo(message) == message
    assert peer.close(4000) == (4000, "")
    assert connection.fetch("/").status == 200, "the connection goes on"


def test_the_scope_is_that_of_http_2(connection: Connection) -> None:
    peer = connect_h2(connection, "/shows?a=b", ("x-own", "1"), subprotocols=["a", "b"])
    shown = eval(str(peer.message()))  # Our own application's repr.
    assert (shown["type"], shown["http_version"], shown["scheme"]) == ("websocket", "2", "ws")
    assert (shown["path"], shown["query_string"], shown["subprotocols"]) == ("/shows", b"a=b", ["a", "b"])
    names = [bytes(name) for name, _ in shown["headers"]]
    assert b"x-own" in names and b"host" in names and not any(name.startswith(b":") for name in names)
    assert b"sec-websocket-key" not in names
    assert "websocket.http.response" in shown["extensions"]
    assert peer.closed() == (1000, "")


def test_many_on_one_connection_with_requests_between(connection: Connection) -> None:
    peers = [connect_h2(connection, deflate="permessage-deflate" if number % 2 else None) for number in range(50)]
    for number, peer in enumerate(peers):
        peer.say(f"message of {number}")
    assert connection.fetch("/").status == 200
    assert [peer.message() for peer in peers] == [f"message of {number}" for number in range(50)]
    for peer in peers:
        assert peer.close() == (1000, "")


def test_refusals(connection: Connection) -> None:
    for path, status, body in (("/refuses", 403, None), ("/answers", 401, b"who are you?")):
        with pytest.raises(Refused) as caught:
            connect_h2(connection, path)
        assert caught.value.head.status == status
        assert body is None or caught.value.head.body == body
    assert connect_h2(connection).echo("accepted") == "accepted"


def test_another_version_is_refused(connection: Connection) -> None:
    stream = extended(connection, "/", [("sec-websocket-version", "12")])
    answer = connection.answer(stream)
    assert (answer.status, answer.fields.get("sec-websocket-version")) == (426, "13")


def test_another_protocol_is_not_spoken(connection: Connection) -> None:
    """RFC 9220 §3 names 501; a CONNECT without a protocol is one to a proxy."""
    stream = extended(connection, "/", [("sec-websocket-version", "13")], protocol="connect-udp")
    assert connection.answer(stream).status in {400, 501} or connection.answers[stream].reset is not None
    assert connect_h2(connection).echo("goes on") == "goes on"


WRONG = {
    "the protocol of another method": [(":method", "GET"), (":protocol", "websocket"), (":scheme", "http"), (":path", "/"), (":authority", "localhost")],
    "no path": [(":method", "CONNECT"), (":protocol", "websocket"), (":scheme", "http"), (":authority", "localhost")],
    "no scheme": [(":method", "CONNECT"), (":protocol", "websocket"), (":path", "/"), (":authority", "localhost")],
    "two protocols": [(":method", "CONNECT"), *[(":protocol", "websocket")] * 2, (":scheme", "http"), (":path", "/"), (":authority", "localhost")],
}


@pytest.mark.parametrize("name", WRONG)
def test_malformed_heads_reset_the_stream(connection: Connection, name: str) -> None:
    """RFC 8441 §4, RFC 9113 §8.1.1."""
    stream = connection.stream()
    block = connection.encoder.encode([(each, value, True) for each, value in [*WRONG[name], ("sec-websocket-version", "13")]])
    connection.send(frames.headers(stream, block, end=False))
    answer = connection.answer(stream)
    assert answer.reset == Code.PROTOCOL_ERROR or answer.status == 400
    assert connect_h2(connection).echo("goes on") == "goes on"


def test_a_head_that_ends_the_stream_is_no_websocket(connection: Connection) -> None:
    """There is no way left for its frames."""
    stream = extended(connection, "/", [("sec-websocket-version", "13")], end=True)
    answer = connection.answer(stream)
    assert answer.reset is not None or answer.status in {200, 400}
    assert answer.is_complete or answer.reset is not None
    assert connect_h2(connection).echo("goes on") == "goes on"


# The end


def test_the_server_ends_the_stream_after_its_close(connection: Connection) -> None:
    """And does not reset it, before the peer's close or after it: browsers take that for a failure, and lose the code."""
    peer = connect_h2(connection, "/closes")
    assert peer.event() == ("close", (4000, "enough"))
    answer = connection.answers[stream_of(peer)]
    connection.ping()
    assert answer.reset is None, "the peer has not answered yet"
    peer.answer_close(4000)
    assert peer.event() is None
    connection.ping()
    assert answer.is_complete or answer.reset == Code.NO_ERROR


def stream_of(peer: WebSocket) -> int:
    assert isinstance(peer.pipe, StreamPipe)
    return peer.pipe.stream


def test_an_end_of_the_stream_is_a_disconnect_with_1006(server: Server, connection: Connection) -> None:
    """As that of TCP, where a close should have been."""
    for how in ("finish", "abort"):
        start = len(server.said)
        peer = connect_h2(connection)
        assert peer.echo("open") == "open"
        getattr(peer.pipe, how)()
        assert server.wait_for(r"disconnect (\d+)\n", start)[1] == "1006"
    assert connect_h2(connection).echo("goes on") == "goes on"


def test_the_end_of_the_connection_is_the_end_of_all(serve_asgi: Serve) -> None:
    """At once: no ping is needed to find out."""
    server = serve_asgi("--websocket-ping", "0", source=APP)
    with Connection.to(server.port) as connection:
        for peer in [connect_h2(connection) for _ in range(10)]:
            assert peer.echo("open") == "open"
    server.wait_for(r"(?s)(?:disconnect 1006\n.*?){10}")


def test_a_fault_closes_the_stream_alone(connection: Connection) -> None:
    peer, other = connect_h2(connection), connect_h2(connection)
    peer.send(text(b"\xff"))
    assert peer.closed()[0] == 1007
    assert other.echo("goes on") == "goes on"


def test_a_reset_in_the_middle_of_messages(connection: Connection, server: Server) -> None:
    """What is on the way is lost, and nothing else."""
    other = connect_h2(connection)
    for _ in range(100):
        peer = connect_h2(connection)
        peer.send(text("x" * 1000), text("y" * 1000))
        peer.pipe.abort()
    assert other.echo("goes on") == "goes on"
    assert not connection.goaways


def test_control_shows_which_protocol(connection: Connection, server: Server) -> None:
    peer = connect_h2(connection, "/echo?over=h2")
    assert peer.echo("open") == "open"
    assert "/echo" in str(asked(server.folder, "websockets"))  # type: ignore[attr-defined]


# Flow


def test_pings_are_answered_while_the_loop_is_blocked(serve_asgi: Serve, tmp_path: Path) -> None:
    server = serve_asgi(source=APP)
    with Connection.to(server.port) as connection:
        peer, other = connect_h2(connection, "/blocks"), connect_h2(connection)
        peer.say("through")
        server.wait_for("blocks\n")
        for number in range(5):
            assert peer.ping(b"%d" % number) == [] and other.ping(b"%d" % number) == []
        (tmp_path / "go").touch()
        assert peer.message() == "through"


def test_a_stream_without_a_window_waits_and_others_go_on(serve_asgi: Serve) -> None:
    server = serve_asgi(source=APP)
    memory = server.settled_memory()
    with Connection.to(server.port, grants=False) as connection:
        connection.ping()
        connection.send(frames.window_update(0, 64 * MIB))
        flood = connect_h2(connection, "/floods")
        counts = [-1]

        def stands_still() -> bool:
            with Connection.to(server.port) as another:
                counts.append(int(another.fetch("/sent").body))
            return len(counts) > 20 and len(set(counts[-20:])) == 1

        until("send waits", stands_still)
        assert 0 <= counts[-1] < 128
        other = connect_h2(connection)
        assert other.echo("goes on") == "goes on"
        assert other.ping() == []
        assert server.memory("VmHWM") - memory < 16 * MIB
        # Its window lets it go on, where it was.
        connection.send(frames.window_update(stream_of(flood), 32 * MIB))
        for number in range(200):
            message = flood.message()
            assert isinstance(message, bytes) and message[:8] == b"%08d" % number
        flood.pipe.abort()
        server.wait_for(r"flooded \d+ ClientDisconnected\n")
        assert other.echo("still") == "still"


def test_a_silent_stream_is_pinged_and_closed_with_1011(serve_asgi: Serve) -> None:
    server = serve_asgi("--websocket-ping", "0.2", "--websocket-timeout", "0.3", source=APP)
    with Connection.to(server.port) as connection:
        peer = connect_h2(connection)
        kinds = []
        while (event := peer.event()) is not None and event[0] == "ping":
            kinds.append(event[0])
        assert kinds and event is not None and event[1][0] == 1011
        # HTTP/2 is alive.
        assert connection.fetch("/").status == 200


def test_a_stop_closes_all_with_1012(serve_asgi: Serve) -> None:
    server = serve_asgi(source=APP)
    with Connection.to(server.port) as connection:
        peers = [connect_h2(connection) for _ in range(10)]
        assert [peer.echo("open") for peer in peers] == ["open"] * 10
        server.process.send_signal(signal.SIGTERM)
        for peer in peers:
            event = peer.event()
            assert event is not None and event[0] == "close" and event[1][0] == 1012, event
            peer.answer_close(1012)
        assert connection.ended() == Code.NO_ERROR
        assert server.process.wait(PATIENCE) == 0
    assert server.said.count("disconnect 1012") == 10
    assert "Traceback" not in server.said


def test_workers_that_are_replaced_close_with_1012(crew: Start) -> None:
    server = crew(source=APP)
    with Connection.to(server.port) as connection:
        peers = [connect_h2(connection) for _ in range(10)]
        assert [peer.echo("open") for peer in peers] == ["open"] * 10
        server.tell(signal.SIGHUP)
        for peer in peers:
            event = peer.event()
            assert event is not None and event[1][0] == 1012, event
            peer.answer_close(1012)
        assert connection.ended() == Code.NO_ERROR
    with Connection.to(server.port) as connection:
        assert connect_h2(connection).echo("again") == "again"
    assert not complaints(server.said), complaints(server.said)
    server.ends()


@needs_openssl
def test_by_tls(serve_asgi: Serve, authority) -> None:  # type: ignore[no-untyped-def]
    """Agreed on in the handshake of TLS, as browsers do it."""
    import socket

    pair = authority.issue("localhost")
    server = serve_asgi(*pair.options, source=APP)
    context = authority.client()
    context.set_alpn_protocols(["h2"])
    with socket.create_connection(("127.0.0.1", server.port), PATIENCE) as plain:
        with context.wrap_socket(plain, server_hostname="localhost") as peer:
            with Connection(peer) as connection:
                connection.ping()
                shown = str(connect_h2(connection, "/shows", scheme="https").message())
                assert "'scheme': 'wss'" in shown and "'tls'" in shown, shown
                assert connect_h2(connection, deflate="permessage-deflate", scheme="https").echo("x" * 5000) == "x" * 5000
