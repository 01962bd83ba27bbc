"""The WebSocket part of the ASGI specification over the wire: handshakes, scopes, how one is accepted or refused.

asgi.readthedocs.io, "HTTP & WebSocket ASGI Message Format" 2.4 and its extension ``websocket.http.response``.
"""

from __future__ import annotations

import ast
from typing import Any

import pytest
import secured
from conftest import SERVER
from sites import Site
from websocket_frames import ping, text
from websocket_site import ACCEPT, CLOSE, Told, does, opened, ours, refusal, send, site, told, tried
from websocket_wire import KEY, Refused, accepted, refused, request

__all__ = ["site", "told"]


# Handshakes


def test_a_handshake_as_browsers_make_it(site: Site) -> None:
    plain = request("/echo", "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits", "Origin: http://localhost")
    with site.connection() as peer:
        peer.sendall(plain.replace(b"Connection: Upgrade", b"Connection: keep-alive, Upgrade").replace(b"websocket\r\n", b"WebSocket\r\n"))
        socket = accepted(peer)
        assert socket.deflate and socket.subprotocol is None
        assert socket.echo("compressed" * 100) == "compressed" * 100
        assert socket.close() == (1000, "")


@ours
@pytest.mark.parametrize("version", ["8", "12", "14", "130"])
def test_another_version_is_told_which_one_there_is(site: Site, version: str) -> None:
    head = refused(site.server.port, request("/echo", version=version))
    assert (head.status, head.field("sec-websocket-version")) == (426, "13")


@pytest.mark.parametrize("version", [None, "", "x", "13, 8"])
def test_no_version_is_refused(site: Site, version: str | None) -> None:
    assert refused(site.server.port, request("/echo", version=version)).status in {400, 426}


BAD_KEYS = {
    "none": None,
    "empty": "",
    "15 bytes": "dGhlIHNhbXBsZSBub25j",
    "17 bytes": "dGhlIHNhbXBsZSBub25jZSE=",
    "no padding": KEY.rstrip("="),
    "no base64": "!!!!!!!!!!!!!!!!!!!!!!==",
    "two": f"{KEY}\r\nSec-WebSocket-Key: {KEY}",
}


@ours
@pytest.mark.parametrize("key", BAD_KEYS)
def test_a_bad_key_is_refused(site: Site, key: str) -> None:
    """16 bytes in base64 (RFC 6455, section 4.2.1)."""
    assert refused(site.server.port, request("/echo", key=BAD_KEYS[key])).status == 400


@ours
@pytest.mark.parametrize("method", ["POST", "HEAD", "PUT", "OPTIONS"])
def test_a_handshake_is_a_get(site: Site, method: str) -> None:
    assert site.server.raw(request("/echo", "Connection: close", method=method)).startswith(b"HTTP/1.1 400 ")


@ours
def test_a_handshake_has_no_body(site: Site) -> None:
    assert refused(site.server.port, request("/echo", "Content-Length: 5") + b"hello").status == 400
    assert refused(site.server.port, request("/echo", "Transfer-Encoding: chunked") + b"0\r\n\r\n").status == 400


@ours
def test_what_asks_for_no_websocket_is_a_request(site: Site) -> None:
    for asked in (request("/hello", upgrade="h2c"), request("/hello", upgrade="foo"), request("/hello").replace(b"Connection: Upgrade\r\n", b"")):
        reply = site.server.ask(asked)
        assert (reply.status, reply.body) == (200, b'"hello"'), asked


@ours
def test_frames_that_come_with_the_handshake_are_read_when_it_is_accepted(site: Site) -> None:
    with site.connection() as peer:
        peer.sendall(request("/echo") + text("early") + ping(b"early"))
        socket = accepted(peer)
        assert {socket.event(), socket.event()} == {("text", "early"), ("pong", b"early")}


def test_requests_go_on_beside_websockets(site: Site) -> None:
    with opened(site, "/echo") as one, opened(site, "/echo") as other:
        assert site.json("/hello") == "hello"
        assert [one.echo("one"), other.echo("other"), one.echo("one again")] == ["one", "other", "one again"]
        assert one.close() == (1000, "")
        assert other.echo("still there") == "still there"


# Scopes


def scope(site: Site, path: str, *lines: str, **arguments: Any) -> tuple[dict[str, str], dict[str, Any]]:
    with opened(site, path, *lines, **arguments) as socket:
        kinds, values = ast.literal_eval(str(socket.message()))
        return kinds, values


def test_the_scope_has_what_the_specification_wants(site: Site) -> None:
    kinds, values = scope(site, "/caf%C3%A9/a%20b?c=d%20e", "X-Own: a  b", "X-Own: c", subprotocols=["chat.v2", "chat"])
    wanted = {
        "type": "str",
        "asgi": "dict",
        "http_version": "str",
        "scheme": "str",
        "path": "str",
        "raw_path": "bytes",
        "query_string": "bytes",
        "root_path": "str",
        "subprotocols": "list",
        "extensions": "dict",
        "state": "dict",
    }
    assert {name: kinds[name] for name in wanted} == wanted
    assert set(kinds) == set(wanted) | {"headers", "client", "server"}, "no method: it is always GET"
    assert (values["type"], values["scheme"], values["http_version"]) == ("websocket", secured.SCHEME.replace("http", "ws"), "1.1")
    assert (values["path"], values["raw_path"], values["query_string"]) == ("/caf\u00e9/a b", b"/caf%C3%A9/a%20b", b"c=d%20e")
    assert values["asgi"]["version"] == "3.0" and values["asgi"]["spec_version"] in {"2.3", "2.4", "2.5"}
    assert values["subprotocols"] == ["chat.v2", "chat"]
    assert "websocket.http.response" in values["extensions"]
    assert values["root_path"] == ""


@ours
def test_fields_are_pairs_in_order_with_lower_case_names(site: Site) -> None:
    _, values = scope(site, "/", "X-B: 1", "x-a: caf\u00e9", "X-B: 2", "Cookie: c=d")
    pairs = [tuple(pair) for pair in values["headers"]]
    assert all(type(part) is bytes for pair in pairs for part in pair)
    assert [value for name, value in pairs if name == b"x-b"] == [b"1", b"2"]
    assert (b"x-a", b"caf\xe9") in pairs and (b"cookie", b"c=d") in pairs
    assert (b"sec-websocket-key", KEY.encode()) in pairs and (b"sec-websocket-version", b"13") in pairs


def test_addresses(site: Site) -> None:
    with site.connection() as peer:
        peer.sendall(request("/"))
        _, values = ast.literal_eval(str(accepted(peer).message()))
        assert tuple(values["client"]) == peer.getsockname()
        assert tuple(values["server"]) == peer.getpeername()


def test_subprotocols_in_several_fields(site: Site) -> None:
    """RFC 6455, section 11.3.4."""
    _, values = scope(site, "/", "Sec-WebSocket-Protocol: a,b ,c", "Sec-WebSocket-Protocol: d")
    assert values["subprotocols"] == ["a", "b", "c", "d"]


def test_no_subprotocols(site: Site) -> None:
    assert scope(site, "/")[1]["subprotocols"] == []


def test_every_websocket_has_a_scope_of_its_own_and_the_state_of_the_lifespan(site: Site) -> None:
    counts = []
    for _ in range(2):
        with opened(site, "/state") as socket:
            own, plain, count, *spoiled = ast.literal_eval(str(socket.message()).replace("null", "None"))
            assert (own, plain, spoiled) == (None, "as started", [None, None])
            counts.append(count)
    assert counts[1] == counts[0] + 1, "what the values are is shared"


def test_every_websocket_has_a_context_and_a_task_of_its_own(site: Site) -> None:
    for _ in range(2):
        with opened(site, "/context") as socket:
            assert socket.message() == '["unset", "set", true]'


# Accepting


def test_accept(site: Site) -> None:
    headers = [(b"x-own", b"1"), (b"set-cookie", b"a=b"), (b"set-cookie", b"c=d")]
    with opened(site, does("receive", ACCEPT | {"subprotocol": "chat", "headers": headers}), subprotocols=["other", "chat"]) as socket:
        assert socket.subprotocol == "chat"
        assert [pair for pair in socket.head.fields if pair[0] in ("x-own", "set-cookie")] == [("x-own", "1"), ("set-cookie", "a=b"), ("set-cookie", "c=d")]
    with opened(site, does("receive", ACCEPT | {"subprotocol": None, "headers": []}), subprotocols=["other"]) as socket:
        assert socket.subprotocol is None


def test_what_comes_first_is_connect(site: Site, told: Told) -> None:
    with opened(site, does("receive", ACCEPT, "receive")) as socket:
        socket.say("hello")
        assert told.list() == [{"type": "websocket.connect"}, {"type": "websocket.receive", "text": "hello"}]


def test_accepting_before_connect_was_received(site: Site, told: Told) -> None:
    with opened(site, does(ACCEPT, "receive", send(text="accepted"))) as socket:
        assert socket.message() == "accepted"
        assert told.list() == [{"type": "websocket.connect"}]


WRONG_ACCEPTS: dict[str, dict[str, Any]] = {
    "a subprotocol that was not offered": {"subprotocol": "other"},
    "a subprotocol that is no string": {"subprotocol": b"chat"},
    "the subprotocol as a field": {"headers": [(b"sec-websocket-protocol", b"chat")]},
    "another key": {"headers": [(b"sec-websocket-accept", b"x")]},
    "extensions": {"headers": [(b"sec-websocket-extensions", b"permessage-deflate")]},
    "a field of the connection": {"headers": [(b"connection", b"close")]},
    "another protocol": {"headers": [(b"upgrade", b"h2c")]},
    "a line in a value": {"headers": [(b"x-own", b"a\r\nx-other: b")]},
    "no bytes": {"headers": [("x-own", "a")]},
}


@ours
@pytest.mark.parametrize("name", WRONG_ACCEPTS)
def test_accepting_wrongly_raises_and_is_a_500(site: Site, told: Told, name: str) -> None:
    with pytest.raises(Refused) as caught:
        opened(site, does("receive", ACCEPT | WRONG_ACCEPTS[name]), subprotocols=["chat"])
    assert caught.value.head.status == 500
    told.server.wait_for(r"(?:RuntimeError|ValueError|TypeError): .+\n", told.start)


@ours
def test_an_accept_has_no_body(site: Site) -> None:
    """What says otherwise is left out (RFC 9110, section 8.6); it is not there in any that is opened."""
    for field in ((b"content-length", b"0"), (b"transfer-encoding", b"chunked")):
        with opened(site, does("receive", ACCEPT | {"headers": [field]}, send(text="accepted"))) as socket:
            assert socket.message() == "accepted"


@ours
def test_after_a_wrong_accept_there_may_be_a_right_one(site: Site, told: Told) -> None:
    with opened(site, does("receive", tried(ACCEPT | {"subprotocol": "other"}), ACCEPT, send(text="accepted"))) as socket:
        assert socket.message() == "accepted"
    assert told.list()[1][0] in {"RuntimeError", "ValueError"}


WRONG_ORDERS: dict[str, list[dict[str, Any]]] = {
    "a second accept": [ACCEPT, ACCEPT],
    "a message before accept": [send(text="early")],
    "a response after accept": [ACCEPT, {"type": "websocket.http.response.start", "status": 200}],
    "a body without a response": [{"type": "websocket.http.response.body", "body": b""}],
    "accept after close": [CLOSE, ACCEPT],
    "accept after a response has begun": [{"type": "websocket.http.response.start", "status": 403, "headers": []}, ACCEPT],
    "close after a response has begun": [{"type": "websocket.http.response.start", "status": 403, "headers": []}, CLOSE],
    "a message of HTTP": [{"type": "http.response.start", "status": 200}],
    "a type nobody knows": [{"type": "websocket.unknown"}],
    "no type": [{"text": "a"}],
    "no dictionary": [[]],  # type: ignore[list-item]
}


@ours
@pytest.mark.parametrize("name", WRONG_ORDERS)
def test_messages_out_of_order_raise(site: Site, told: Told, name: str) -> None:
    *before, wrong = WRONG_ORDERS[name]
    try:
        opened(site, does("receive", *before, tried(wrong))).pipe.leave()
    except Refused:
        pass
    assert told.list()[-1][0] in {"RuntimeError", "ValueError", "TypeError", "KeyError"}, told.list()


# Refusing


def test_close_before_accept_is_a_403(site: Site, told: Told) -> None:
    head = refusal(site, does("receive", CLOSE | {"code": 1008, "reason": "not you"}))
    assert head.status == 403
    assert [name for name, _ in head.fields if name.startswith("sec-websocket") or name == "upgrade"] == []
    assert told.list() == [{"type": "websocket.connect"}]
    assert "Traceback" not in told.log


def test_before_accept_a_reason_goes_nowhere(site: Site) -> None:
    """FastAPI has a list for one there."""
    assert refusal(site, does("receive", CLOSE | {"code": 1008, "reason": [{"why": "a test"}]})).status == 403


def response(status: int, *parts: bytes, headers: Any = ()) -> list[dict[str, Any]]:
    body = [{"type": "websocket.http.response.body", "body": part, "more_body": True} for part in parts[:-1]]
    last = {"type": "websocket.http.response.body", "body": parts[-1]} if parts else {"type": "websocket.http.response.body"}
    return [{"type": "websocket.http.response.start", "status": status, "headers": list(headers)}, *body, last]


def test_a_response_instead(site: Site, told: Told) -> None:
    head = refusal(site, does("receive", *response(401, b"who ", b"are ", b"you?", headers=[(b"www-authenticate", b"Basic"), (b"x-own", b"1")])))
    assert (head.status, head.body) == (401, b"who are you?")
    assert (head.field("www-authenticate"), head.field("x-own")) == ("Basic", "1")
    head = refusal(site, does("receive", *response(404, b"not here", headers=[(b"content-length", b"8")])))
    assert (head.status, head.field("content-length"), head.body) == (404, "8", b"not here")
    assert "Traceback" not in told.log


@ours
def test_a_response_without_a_body_or_with_any_status(site: Site) -> None:
    assert refusal(site, does("receive", *response(503))).body == b""
    assert refusal(site, does("receive", *response(200, b"no error"))).body == b"no error"
    assert refusal(site, does("receive", *response(302, headers=[(b"location", b"/other")]))).field("location") == "/other"


@ours
def test_a_response_that_does_not_end_is_cut(site: Site, told: Told) -> None:
    """What came is no whole response, and the log says so."""
    start = {"type": "websocket.http.response.start", "status": 403, "headers": [(b"content-length", b"9")]}
    part = {"type": "websocket.http.response.body", "body": b"part", "more_body": True}
    received = site.server.raw(request(does("receive", start, part)))
    assert received.startswith(b"HTTP/1.1 403 ") and received.endswith(b"\r\n\r\npart")
    told.server.wait_for("error|warn", told.start)


def test_a_failure_before_accept_is_a_500(site: Site, told: Told) -> None:
    assert refusal(site, does("receive", "raise")).status == 500
    told.server.wait_for("ValueError: as told\n", told.start)


def test_a_return_before_accept_is_a_500_and_a_line_in_the_log(site: Site, told: Told) -> None:
    assert refusal(site, does("receive")).status == 500
    if SERVER == "maitred":
        told.server.wait_for(r"error .*/does", told.start)
