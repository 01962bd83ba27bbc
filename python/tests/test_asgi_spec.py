"""The ASGI specification over the wire: scopes, messages and their order.

asgi.readthedocs.io, "ASGI Specification" and "HTTP & WebSocket ASGI Message Format" 2.x. What they leave to the server
is not asked for.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import by_h2
import httpx
import pytest
import secured
from sites import LARGE, RAW_COMMON, SERVER, Site, asgi_site, differs, streamed

SOURCE = RAW_COMMON + """
import ast

async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        return await lifespan(scope, receive, send)
    await routes.get(scope["path"].removeprefix(scope["root_path"]), scope_)(scope, receive, send)

async def scope_(scope, receive, send):
    kinds = {name: type(value).__name__ for name, value in scope.items()}
    values = {name: list(value) if name == "headers" else value for name, value in scope.items()}
    body = repr((kinds, values)).encode()
    await begin(send, 200, [(b"content-length", b"%d" % len(body))])
    await finish(send, body)

@route
async def messages(scope, receive, send):
    received = []
    while not received or received[-1].get("more_body"):
        received.append(await receive())
    kinds = {type(message["body"]).__name__ for message in received if "body" in message}
    keys = {key for message in received for key in message}
    body = b"".join(message.get("body", b"") for message in received)
    empty = sum(not message.get("body") and message.get("more_body", False) for message in received)
    types = {message["type"] for message in received}
    more = [message.get("more_body", False) for message in received]
    report = {"kinds": kinds, "keys": keys, "types": types, "digest": digest(body), "size": len(body),
              "more": set(more[:-1]), "last": more[-1], "empty": empty, "plain": {type(m) for m in received} == {dict}}
    await begin(send)
    await finish(send, repr(report).encode())

@route
async def spoil(scope, receive, send):
    found = scope.get("spoiled"), scope["asgi"].get("spoiled"), (scope.get("extensions") or {}).get("spoiled")
    scope["spoiled"] = scope["asgi"]["spoiled"] = True
    if scope.get("extensions") is not None:
        scope["extensions"]["spoiled"] = {}
    await reply(send, found[0])

@route
async def say(scope, receive, send):
    # Sends the messages of the body's list; those that are refused answer with the exception's name.
    for message in ast.literal_eval((await read(receive)).decode()):
        await send(message)

@route
async def refused(scope, receive, send):
    # What send says to each of the messages; the response is another one, or already there.
    before, wrong, after = ast.literal_eval((await read(receive)).decode())
    for message in before:
        await send(message)
    said = []
    for message in wrong:
        try:
            said.append(repr(await send(message)))
        except Exception as error:
            said.append("raised")
    print("said", said, flush=True)
    for message in after:
        await send(message)

@route
async def returns(scope, receive, send):
    found = [await send({"type": "http.response.start", "status": 200}),
             await send({"type": "http.response.body", "body": b"a", "more_body": True})]
    await finish(send, repr(found).encode())

@route
async def generated_headers(scope, receive, send):
    fields = ([name, value] for name, value in [(b"x-a", b"1"), (b"x-b", b"caf\\xe9")])
    await send({"type": "http.response.start", "status": 200, "headers": fields})
    await finish(send, b"x")

@route
async def bodies(scope, receive, send):
    await begin(send)
    await block(send, b"")
    await block(send, b"bytes ")
    await send({"type": "http.response.body", "more_body": True})
    await send({"type": "http.response.body"})

@route
async def views(scope, receive, send):
    await begin(send)
    await block(send, memoryview(b"a view"))
    await finish(send, bytearray(b", an array"))

@route
async def reused(scope, receive, send):
    # A message may be changed and sent again.
    message = {"type": "http.response.body", "body": b"one ", "more_body": True}
    await begin(send)
    await send(message)
    message["body"] = b"two"
    message["more_body"] = False
    await send(message)

@route
async def start_waits(scope, receive, send):
    await begin(send, 203)
    happen("begun")
    await gone()
    await finish(send, b"now")

@route
async def stream(scope, receive, send):
    await begin(send)
    async for row in rows():
        await block(send, row)
    await finish(send)

@route
async def trailers(scope, receive, send):
    if "http.response.trailers" not in (scope.get("extensions") or {}):
        return await reply(send, "no extension", 501)
    await send({"type": "http.response.start", "status": 200, "trailers": True,
                "headers": [(b"trailer", b"x-sum")]})
    await finish(send, b"body")
    await send({"type": "http.response.trailers", "headers": [(b"x-sum", b"7")]})

@route
async def pathsend(scope, receive, send):
    if "http.response.pathsend" not in (scope.get("extensions") or {}):
        return await reply(send, "no extension", 501)
    file = HERE / "large.bin"
    await begin(send, 200, [(b"content-length", b"%d" % file.stat().st_size)])
    await send({"type": "http.response.pathsend", "path": str(file)})
"""


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory, loop: str) -> Iterator[Site]:
    arguments = ("--pathsend",) if SERVER == "maitred" else ()
    yield from asgi_site(tmp_path_factory.mktemp("spec"), "site_spec", SOURCE, loop, *arguments)


def scope(site: Site, request: bytes) -> tuple[dict[str, str], dict[str, Any]]:
    """The names of the types in the scope of a raw request, and the scope."""
    reply = site.server.ask(request)
    assert reply.status == 200, reply.body
    kinds, values = ast.literal_eval(reply.body.decode())
    return kinds, values


def get(target: bytes, *lines: bytes, method: bytes = b"GET", version: bytes = b"1.1") -> bytes:
    head = [method + b" " + target + b" HTTP/" + version, b"Host: a.example", *lines, b"", b""]
    return b"\r\n".join(head)


# Scopes


def test_the_scope_has_what_the_specification_wants(spec: Site) -> None:
    kinds, values = scope(spec, get(b"/a?b=c"))
    wanted = {
        "type": "str",
        "asgi": "dict",
        "http_version": "str",
        "method": "str",
        "scheme": "str",
        "path": "str",
        "query_string": "bytes",
    }
    assert {name: kinds[name] for name in wanted} == wanted
    assert kinds.get("raw_path", "bytes") == "bytes"
    assert kinds.get("root_path", "str") == "str"
    assert kinds.get("extensions", "dict") in {"dict", "NoneType"}
    assert kinds.get("state", "dict") == "dict"
    assert (values["type"], values["scheme"], values["method"], values["http_version"]) == ("http", secured.SCHEME, "GET", by_h2.VERSION)
    assert values["asgi"]["version"] == "3.0"
    assert values["asgi"].get("spec_version", "2.0") in {"2.0", "2.1", "2.2", "2.3", "2.4", "2.5"}
    known = {"type", "asgi", "http_version", "method", "scheme", "path", "raw_path", "query_string", "root_path"}
    assert set(kinds) <= known | {"headers", "client", "server", "state", "extensions"}


def test_addresses(spec: Site) -> None:
    with spec.connection() as peer:
        peer.sendall(get(b"/a", b"Connection: close"))
        received = b""
        while part := peer.recv(65536):
            received += part
        _, values = ast.literal_eval(received.partition(b"\r\n\r\n")[2].decode())
        assert tuple(values["client"]) == peer.getsockname()
        assert tuple(values["server"]) == peer.getpeername()
        assert [type(part) for part in values["client"]] == [type(part) for part in values["server"]] == [str, int]


@pytest.mark.parametrize(
    ("target", "path", "raw_path", "query"),
    [
        (b"/a/b", "/a/b", b"/a/b", b""),
        (b"/caf%C3%A9", "/café", b"/caf%C3%A9", b""),
        (b"/a%20b%2Fc%25?q=%C3%A9&r=a+b", "/a b/c%", b"/a%20b%2Fc%25", b"q=%C3%A9&r=a+b"),
        (b"/a?b?c", "/a", b"/a", b"b?c"),
        (b"/a?", "/a", b"/a", b""),
        (b"//a//b", "//a//b", b"//a//b", b""),
    ],
)
def test_targets(spec: Site, target: bytes, path: str, raw_path: bytes, query: bytes) -> None:
    _, values = scope(spec, get(target))
    assert (values["path"], values["query_string"]) == (path, query)
    assert values.get("raw_path") in {raw_path, None}, "without the query, as it came"


def test_targets_of_other_forms(spec: Site) -> None:
    reply = spec.server.ask(get(b"*", method=b"OPTIONS"))
    # Of the server as a whole (RFC 9110, section 9.3.7): it may answer by itself.
    assert reply.status in {200, 204}
    if reply.status == 200:
        _, values = ast.literal_eval(reply.body.decode())
        assert values["path"] in {"*", ""}


@differs("the path of a target in absolute form is the path (RFC 9112, section 3.2.2)", "uvicorn")
def test_targets_with_an_authority(spec: Site) -> None:
    _, values = scope(spec, get(b"http://a.example/b?c"))
    assert (values["path"], values["query_string"]) == ("/b", b"c")


def test_a_path_that_is_no_utf_8_ends_nothing(spec: Site) -> None:
    reply = spec.server.ask(get(b"/%ff%fe"))
    assert reply.status in {200, 400}
    assert spec.server.ask(get(b"/hello")).status == 200


def test_methods_and_versions(spec: Site) -> None:
    for method in ("PUT", "DELETE", "PATCH", "PROPFIND"):
        _, values = scope(spec, get(b"/a", b"Content-Length: 0", method=method.encode()))
        assert values["method"] == method
    _, values = scope(spec, get(b"/a", version=b"1.0"))
    assert values["http_version"] == "1.0"


def test_fields_are_pairs_in_order_with_lower_case_names(spec: Site) -> None:
    _, values = scope(spec, get(b"/a", b"X-B: 1", b"x-a: caf\xc3\xa9 \xe9", b"X-B: 2, 3", b"X-Empty:", b"Cookie: c=d"))
    pairs = [(name, value) for name, value in values["headers"]]
    assert all(type(part) is bytes for pair in pairs for part in pair)
    assert (b"host", b"a.example") in pairs
    assert (b"x-a", b"caf\xc3\xa9 \xe9") in pairs
    assert (b"x-empty", b"") in pairs
    assert (b"cookie", b"c=d") in pairs
    assert [value for name, value in pairs if name == b"x-b"] == [b"1", b"2, 3"]


def test_values_have_no_white_space_around_them(spec: Site) -> None:
    _, values = scope(spec, get(b"/a", b"X-A:  \t b c\t "))
    assert (b"x-a", b"b c") in [tuple(pair) for pair in values["headers"]]


def test_every_request_has_a_scope_of_its_own(spec: Site) -> None:
    assert spec.json("/spoil") is None
    assert spec.json("/spoil") is None


@pytest.mark.skipif(SERVER == "uvicorn", reason="uvicorn adds the root path to every path, also to one that has it")
def test_the_root_path_is_part_of_the_path(tmp_path: Path) -> None:
    for site in asgi_site(tmp_path, "site_spec", SOURCE, "asyncio", "--root-path", "/site"):
        _, values = scope(site, get(b"/site/caf%C3%A9"))
        assert (values["root_path"], values["path"]) == ("/site", "/site/café")
        assert values["raw_path"] == b"/site/caf%C3%A9"


# Messages received


@pytest.mark.parametrize("size", [0, 1, 65536, len(LARGE)])
@pytest.mark.parametrize("chunked", [False, True])
def test_request_messages(spec: Site, size: int, chunked: bool) -> None:
    data = LARGE[:size]
    parts = (data[at : at + 10_000] for at in range(0, size, 10_000))
    reply = spec.client.post("/messages", content=parts if chunked else data)
    report = ast.literal_eval(reply.text)
    assert (report["size"], report["digest"]) == (size, hashlib.sha256(data).hexdigest())
    assert (report["types"], report["last"], report["plain"]) == ({"http.request"}, False, True)
    assert report["kinds"] <= {"bytes"} and report["keys"] <= {"type", "body", "more_body"}
    assert report["more"] <= {True}
    assert report["empty"] <= 1


# Messages sent


def say(site: Site, *messages: dict[str, Any]) -> httpx.Response:
    return site.client.post("/say", content=repr(list(messages)).encode())


def start(status: Any = 200, *fields: tuple[bytes, bytes]) -> dict[str, Any]:
    return {"type": "http.response.start", "status": status, "headers": list(fields)}


def body(data: bytes = b"", more: bool = False) -> dict[str, Any]:
    return {"type": "http.response.body", "body": data, "more_body": more}


def test_defaults_of_messages(spec: Site) -> None:
    reply = say(spec, {"type": "http.response.start", "status": 201}, {"type": "http.response.body"})
    assert (reply.status_code, reply.content) == (201, b"")
    assert spec.client.get("/bodies").content == b"bytes "
    assert ast.literal_eval(spec.client.get("/returns").text[1:]) == [None, None]


def test_keys_that_are_not_known_are_ignored(spec: Site) -> None:
    reply = say(spec, start() | {"new": 1}, body(b"x") | {"newer": None})
    assert (reply.status_code, reply.content) == (200, b"x")


def test_fields_are_sent_as_they_are_and_in_order(spec: Site) -> None:
    fields = [(b"x-a", b"1"), (b"set-cookie", b"a=1"), (b"x-b", b"2"), (b"set-cookie", b"b=2"), (b"x-a", b"3")]
    reply = say(spec, start(200, *fields), body(b"x"))
    sent = [(name.lower(), value) for name, value in reply.headers.raw if name.lower() in {b"x-a", b"x-b", b"set-cookie"}]
    assert sent == fields
    spec.client.cookies.clear()
    raw = spec.client.get("/generated_headers").headers.raw
    assert [(name, value) for name, value in raw if name.lower().startswith(b"x-")] == [(b"x-a", b"1"), (b"x-b", b"caf\xe9")]


def test_buffers_are_bodies(spec: Site) -> None:
    """Not in the specification, but Starlette passes memory views on."""
    assert spec.client.get("/views").content == b"a view, an array"


def test_a_message_may_be_used_again(spec: Site) -> None:
    assert spec.client.get("/reused").content == b"one two"


@pytest.mark.parametrize("status", [200, 204, 205, 299, 304, 404, 451, 500, 599])
def test_statuses(spec: Site, status: int) -> None:
    reply = say(spec, start(status), body())
    assert (reply.status_code, reply.content) == (status, b"")
    assert spec.json("/hello") == "hello", "the connection is in order"


def test_framing(spec: Site) -> None:
    given = say(spec, start(200, (b"content-length", b"3")), body(b"abc"))
    assert given.headers.get_list("content-length") == ["3"]
    assert "transfer-encoding" not in given.headers
    parts = say(spec, start(), body(b"ab", True), body(b"c"))
    assert (parts.content, "content-length" in parts.headers) == (b"abc", False)
    declared = say(spec, start(200, (b"content-length", b"3")), body(b"ab", True), body(b"c", True), body())
    assert (declared.content, declared.headers["content-length"]) == (b"abc", "3")


def test_a_stream_to_a_client_of_http_1_0_ends_with_the_connection(spec: Site) -> None:
    old = spec.server.raw(get(b"/bodies", version=b"1.0"))
    assert old.endswith(b"\r\n\r\nbytes ") and b"chunked" not in old


def test_head_has_no_body(spec: Site) -> None:
    received = spec.server.raw(get(b"/bodies", method=b"HEAD") + get(b"/hello", b"Connection: close"))
    first, _, rest = received.partition(b"\r\n\r\n")
    assert first.startswith(b"HTTP/1.1 200 ") and rest.startswith(b"HTTP/1.1 200 ")
    assert rest.endswith(b'\r\n\r\n"hello"')


def test_a_stream_arrives_block_by_block(spec: Site) -> None:
    streamed(spec.client, "/stream", [b"first\n", b"second\n"])


@differs("nothing is sent before the first http.response.body", "uvicorn")
def test_the_start_alone_sends_nothing(spec: Site) -> None:
    with spec.connection() as peer:
        peer.sendall(get(b"/start_waits", b"Connection: close"))
        begun = spec.seen("begun")
        peer.setblocking(False)
        try:
            early = peer.recv(1)
        except BlockingIOError:
            early = b""
        assert spec.client.get("/go").status_code == 204
        peer.setblocking(True)
        received = b""
        while part := peer.recv(65536):
            received += part
        assert begun and (early + received).startswith(b"HTTP/1.1 203 ")
        assert early == b""


WRONG = {
    "no type": {"status": 200},
    "unknown type": {"type": "http.response.strange"},
    "of another protocol": {"type": "websocket.send", "text": "x"},
    "no status": {"type": "http.response.start"},
    "body first": {"type": "http.response.body", "body": b"x"},
    "status as text": {"type": "http.response.start", "status": "200"},
    "name as text": {"type": "http.response.start", "status": 200, "headers": [("x-a", b"1")]},
    "value as text": {"type": "http.response.start", "status": 200, "headers": [(b"x-a", "1")]},
    "no pair": {"type": "http.response.start", "status": 200, "headers": [(b"x-a",)]},
    "no list": {"type": "http.response.start", "status": 200, "headers": 7},
    "a split value": {"type": "http.response.start", "status": 200, "headers": [(b"x-a", b"1\r\nx-b: 2")]},
}
#: What uvicorn takes, or refuses only after it has sent a part.
LENIENT = {"no status", "name as text", "value as text", "a split value", "no list", "status as text", "no pair"}


def refused(site: Site, before: list[Any], wrong: list[Any], after: list[Any]) -> tuple[list[str], httpx.Response]:
    """What send said to each of the wrong messages, and the response."""
    at = len(site.server.said)
    reply = site.client.post("/refused", content=repr((before, wrong, after)).encode())
    return ast.literal_eval(site.server.wait_for(r"said (\[.*\])", at)[1]), reply


lenient = differs("a message of the wrong type raises, and nothing of it is sent", "uvicorn")


@pytest.mark.parametrize("name", [pytest.param(name, marks=lenient) if name in LENIENT else name for name in WRONG])
def test_send_refuses_a_wrong_message_and_the_response_may_follow(spec: Site, name: str) -> None:
    said, reply = refused(spec, [], [WRONG[name]], [start(202), body(b"right")])
    assert (said, reply.status_code, reply.content) == (["raised"], 202, b"right")


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param(start(404), id="second start"),
        pytest.param({"type": "http.response.body", "body": "text", "more_body": True}, id="body as text"),
        pytest.param({"type": "http.response.strange"}, id="unknown type"),
    ],
)
def test_send_refuses_a_wrong_message_in_the_middle(spec: Site, wrong: dict[str, Any]) -> None:
    said, reply = refused(spec, [start(), body(b"a", True)], [wrong], [body(b"b")])
    assert (said, reply.status_code, reply.content) == (["raised"], 200, b"ab")


@differs("messages after the end of the response are ignored", "uvicorn")
def test_messages_after_the_end_are_ignored(spec: Site) -> None:
    said, reply = refused(spec, [start(), body(b"all")], [body(b"more"), body(b"", True), start(500)], [])
    assert (said, reply.status_code, reply.content) == (["None"] * 3, 200, b"all")
    assert spec.json("/hello") == "hello"


def test_an_exception_of_send_that_is_not_caught_is_a_500(spec: Site) -> None:
    assert say(spec, {"type": "http.response.strange"}).status_code == 500
    assert spec.server.fetch("/hello").status == 200


def test_a_body_longer_than_its_length_is_not_sent(spec: Site) -> None:
    request = repr([start(200, (b"content-length", b"3")), body(b"abcdef")]).encode()
    head = get(b"/say", b"Content-Length: %d" % len(request), method=b"POST")
    with spec.connection() as peer:
        peer.sendall(head + request + get(b"/hello", b"Connection: close"))
        received = b""
        try:
            while part := peer.recv(65536):
                received += part
        except ConnectionResetError:
            pass
    assert b"def" not in received, "it would be taken for the next response"


def test_trailers_if_there_are_any(spec: Site) -> None:
    received = spec.server.raw(get(b"/trailers", b"TE: trailers", b"Connection: close, TE"))
    if received.startswith(b"HTTP/1.1 501 "):
        pytest.skip("the server has no http.response.trailers")
    assert received.lower().endswith(b"\r\nbody\r\n0\r\nx-sum: 7\r\n\r\n")


def test_files_by_their_path_if_the_server_sends_them(spec: Site) -> None:
    reply = spec.client.get("/pathsend")
    if reply.status_code == 501:
        pytest.skip("the server has no http.response.pathsend")
    assert (reply.status_code, reply.content == LARGE) == (200, True)
    assert reply.headers["content-length"] == str(len(LARGE))
