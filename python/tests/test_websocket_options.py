"""Options for WebSockets, and what holds for them as for requests: limits, filters, hosts, proxies, the access log, statistics and control."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import MAITRED, Serve, Server
from crews import until
from test_control import asked, ctl
from websocket_frames import RSV1, Opcode, frame, fragments, more, text
from websocket_wire import Head, Refused, connect, refused, request

APP = """
import json

async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        raise RuntimeError("no lifespan")
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"4")]})
        return await send({"type": "http.response.body", "body": b"http"})
    await receive()
    if scope["path"] == "/refuses":
        return await send({"type": "websocket.close"})
    if scope["path"] == "/answers":
        await send({"type": "websocket.http.response.start", "status": 418, "headers": []})
        return await send({"type": "websocket.http.response.body", "body": b"short"})
    if scope["path"] == "/fails":
        raise ValueError("as told")
    await send({"type": "websocket.accept"})
    if scope["path"] == "/scope":
        shown = {name: scope[name] for name in ("scheme", "client", "path", "root_path")}
        await send({"type": "websocket.send", "text": json.dumps(shown)})
    if scope["path"] == "/sends":
        await send({"type": "websocket.send", "bytes": bytes(100_000)})
    while (message := await receive())["type"] == "websocket.receive":
        await send({"type": "websocket.send"} | {name: message[name] for name in ("text", "bytes") if message.get(name) is not None})
    print("disconnect", message["code"], flush=True)
"""

WSGI = """
def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [environ["REQUEST_METHOD"].encode() + b" " + environ.get("HTTP_UPGRADE", "-").encode()]
"""


def refusal(server: Server, path: str, *lines: str) -> Head:
    with pytest.raises(Refused) as caught:
        connect(server.port, path, *lines)
    return caught.value.head


# Options


def test_a_wsgi_application_sees_a_get(serve: Serve) -> None:
    server = serve(source=WSGI)
    reply = server.ask(request("/"))
    assert (reply.status, reply.body) == (200, b"GET websocket")


def test_websockets_may_be_off(serve_asgi: Serve) -> None:
    server = serve_asgi("--no-websockets", source=APP)
    reply = server.ask(request("/echo"))
    assert (reply.status, reply.body) == (200, b"http")


LARGEST = 1000
TOO_LARGE = {
    "in one frame": [text("x" * (LARGEST + 1))],
    "in two": [text("x" * LARGEST, fin=False), more("x")],
    "in many": list(fragments(Opcode.TEXT, b"x" * (LARGEST + 1), 7)),
    "by its head alone": [frame(Opcode.BINARY, length=1 << 40)],
    "by the head of its second frame": [text("x" * LARGEST, fin=False), frame(Opcode.CONTINUATION, length=1 << 20)],
}


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("limited")
    (folder / "app.py").write_text(APP)
    server = Server(["app.py", "--websocket-max-message", str(LARGEST), "--metrics-path", "/metrics"], folder, {})
    try:
        yield server
        assert server.stop() == 0, server.said
        assert "Traceback" not in server.said
    finally:
        server.kill()


@pytest.mark.parametrize("way", TOO_LARGE)
def test_a_message_that_is_too_large_closes_with_1009(limited: Server, way: str) -> None:
    start = len(limited.said)
    with connect(limited.port, "/echo") as peer:
        peer.say("x" * LARGEST)
        assert peer.message() == "x" * LARGEST
        peer.send(*TOO_LARGE[way])
        assert peer.closed()[0] == 1009
    assert limited.wait_for(r"disconnect (\d+)\n", start)[1] in {"1006", "1009"}


def test_a_message_that_becomes_too_large_closes_with_1009(limited: Server) -> None:
    """A hundred bytes that inflate to a million; and what is just not too large."""
    with connect(limited.port, "/echo", deflate="permessage-deflate") as peer:
        assert peer.echo("x" * LARGEST) == "x" * LARGEST
        assert peer.deflate
        bomb = peer.deflate.compress(bytes(1_000_000))
        assert len(bomb) < 10 * LARGEST
        peer.send(*fragments(Opcode.BINARY, bomb, 100, RSV1))
        assert peer.closed()[0] == 1009


def test_what_the_application_sends_may_be_larger(limited: Server) -> None:
    with connect(limited.port, "/sends") as peer:
        assert peer.message() == bytes(100_000)


@pytest.mark.parametrize(
    "arguments",
    [
        ("--websocket-max-message", "-1"),
        ("--websocket-max-message", "many"),
        ("--websocket-ping", "soon"),
        ("--websocket-timeout", "-1"),
        ("--websocket-deflate-memory", "much"),
    ],
)
def test_options_that_cannot_be_are_told(serve_asgi: Serve, arguments: tuple[str, str]) -> None:
    with pytest.raises(AssertionError, match=arguments[0]):
        serve_asgi(*arguments, source=APP)


# As for requests


FILTERS = """
trusted-proxies = ["127.0.0.1"]
[[filter]]
path = "/staff/*"
basic-auth = "users.txt"
[[filter]]
path = "/closed/*"
access = "deny all"
[[filter]]
path = "/old"
redirect = "/echo"
[[filter]]
path = "/echo"
set-response = ["X-Own: 1"]
"""


@pytest.fixture
def filtered(serve_asgi: Serve, tmp_path: Path) -> Server:
    (tmp_path / "maitred.toml").write_text(FILTERS)
    subprocess.run([MAITRED, "passwd", "users.txt", "ann"], cwd=tmp_path, input="secret\n", text=True, check=True, capture_output=True)
    return serve_asgi(source=APP)


def test_filters_refuse_and_redirect(filtered: Server) -> None:
    assert refusal(filtered, "/staff/a").status == 401
    assert refusal(filtered, "/closed/a").status == 403
    head = refusal(filtered, "/old")
    assert head.status in {301, 302, 307, 308} and str(head.field("location")).endswith("/echo")


def test_fields_of_filters_are_in_the_handshake(filtered: Server) -> None:
    with connect(filtered.port, "/echo") as peer:
        assert peer.head.field("x-own") == "1"
        assert peer.echo("echo") == "echo"


def test_a_proxy_in_front_is_believed(filtered: Server) -> None:
    with connect(filtered.port, "/scope", "X-Forwarded-For: 192.0.2.7", "X-Forwarded-Proto: https") as peer:
        shown = str(peer.message())
        assert '"scheme": "wss"' in shown and '"192.0.2.7"' in shown, shown
    with connect(filtered.port, "/scope", "X-Forwarded-For: 192.0.2.7", "X-Forwarded-Proto: wss") as peer:
        assert '"scheme": "wss"' in str(peer.message())


# What is told


def log_of(folder: Path) -> list[str]:
    file = folder / "access.log"
    return file.read_text().splitlines() if file.exists() else []


def test_a_line_in_the_access_log_at_the_end(serve_asgi: Serve, tmp_path: Path) -> None:
    shown = "$request_method $request_uri $status $body_bytes_sent $ended $total"
    server = serve_asgi("--access-log", "access.log", "--access-log-format", shown, source=APP)
    with connect(server.port, "/echo?a=b") as peer:
        assert peer.echo("x" * 1000) == "x" * 1000
        assert log_of(tmp_path) == [], "it is not over yet"
        assert peer.close() == (1000, "")
    until("there is a line", lambda: len(log_of(tmp_path)) == 1)
    found = re.fullmatch(r"GET /echo\?a=b 101 (\d+) complete \d+\.\d+", log_of(tmp_path)[0])
    assert found and 1000 <= int(found[1]) <= 1010, log_of(tmp_path)
    with connect(server.port, "/echo") as peer:
        peer.pipe.abort()
        server.wait_for("disconnect 1006\n")
    for path, status in (("/refuses", 403), ("/answers", 418), ("/fails", 500)):
        assert refusal(server, path).status == status
    assert refused(server.port, request("/echo", version="12")).status == 426
    assert refused(server.port, request("/echo", key="short")).status == 400
    assert server.stop() == 0
    lines = [line.split() for line in log_of(tmp_path)]
    assert [line[2] for line in lines] == ["101", "101", "403", "418", "500", "426", "400"], lines
    assert lines[1][4] == "peer-gone"


def count(server: Server, name: str, **labels: str) -> float:
    metrics = server.fetch("/metrics").body.decode()
    wanted = {f'{label}="{value}"' for label, value in labels.items()}
    found = re.findall(rf"^{name}(?:\{{(.*?)\}})? (\S+)$", metrics, re.MULTILINE)
    assert found, f"there is no {name}"
    return sum(float(value) for shown, value in found if wanted <= set(shown.split(",")))


def test_counters(serve_asgi: Serve) -> None:
    server = serve_asgi("--metrics-path", "/metrics", source=APP)
    with connect(server.port, "/echo") as peer:
        assert peer.echo("x" * 1000) == "x" * 1000
        assert count(server, "maitred_websockets_accepted_total") == 1
        peer.close(4000)
    with connect(server.port, "/echo") as peer:
        peer.send(text(b"\xff"))
        assert peer.closed()[0] == 1007
    with connect(server.port, "/echo", deflate="permessage-deflate") as peer:
        assert peer.echo("x" * 1000) == "x" * 1000
        peer.close(1001)
    refusal(server, "/refuses")
    assert count(server, "maitred_websockets_accepted_total") == 3
    assert count(server, "maitred_websockets_refused_total") == 1
    for direction in ("received", "sent"):
        assert count(server, "maitred_websocket_messages_total", direction=direction) == 2
        assert count(server, "maitred_websocket_message_bytes_total", direction=direction) == 2000, "as the application has them"
    until("all ends are counted", lambda: count(server, "maitred_websockets_ended_total") == 3)
    assert count(server, "maitred_websockets_ended_total", code="1001") == 1
    assert count(server, "maitred_websockets_ended_total", code="1007") == 1


def test_ctl_shows_them(serve_asgi: Serve, tmp_path: Path) -> None:
    server = serve_asgi("--control", "ctl.sock", source=APP)
    with connect(server.port, "/echo?room=1", subprotocols=["chat"]) as peer, connect(server.port, "/sends", deflate="permessage-deflate") as other:
        assert peer.echo("hello") == "hello"
        other.message()
        shown = ctl(tmp_path, "websockets")
        assert shown.returncode == 0, shown.stderr
        assert "/echo" in shown.stdout and "/sends" in shown.stdout and "127.0.0.1" in shown.stdout, shown.stdout
        answer = asked(tmp_path, "websockets")
        assert answer["open"] == 2 and answer["counts"]["accepted"] == 2, answer
        each = {entry["path"]: entry for entry in answer["websockets"]}
        assert set(each) == {"/echo", "/sends"}
        assert each["/echo"]["peer"].startswith("127.0.0.1") and each["/echo"]["open_seconds"] >= 0
        assert (each["/echo"]["received"], each["/echo"]["received_bytes"]) == (each["/echo"]["sent"], each["/echo"]["sent_bytes"]) == (1, 5)
        assert (each["/sends"]["sent"], each["/sends"]["sent_bytes"], each["/sends"]["waiting_bytes"]) == (1, 100_000, 0)
        assert (each["/echo"]["compressed"], each["/sends"]["compressed"]) == (False, True)
        peer.close()
        server.wait_for("disconnect 1000\n")
        until("it is gone", lambda: asked(tmp_path, "websockets")["open"] == 1)
        assert [each["path"] for each in asked(tmp_path, "websockets")["websockets"]] == ["/sends"]
