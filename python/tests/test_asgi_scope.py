"""What an ASGI application sees of a request."""

from __future__ import annotations

import ast
import json
from typing import Any

import by_h2
import pytest
import secured
from conftest import Serve, Server


def scope_of(server: Server, request: str) -> dict[str, Any]:
    reply = server.ask(request.replace("\n", "\r\n").encode("latin-1"))
    assert reply.status == 200, reply.body
    scope: dict[str, Any] = ast.literal_eval(reply.body.decode())
    return scope


def test_the_scope_has_exactly_what_the_specification_says(asgi: Server) -> None:
    scope = scope_of(asgi, "GET /scope/%C3%A9?a=%20b HTTP/1.1\nHost: Site.example:8\nX_Under: 1\nPROXY: p\n\n")
    host, port = scope.pop("client")
    assert (host, type(port)) == ("127.0.0.1", int)
    if secured.WANTED:
        names = {"server_cert", "client_cert_chain", "client_cert_name", "client_cert_error", "tls_version", "cipher_suite"}
        assert set(scope["extensions"].pop("tls")) == names
    assert scope == {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": by_h2.VERSION,
        "server": ("127.0.0.1", asgi.port),
        "scheme": secured.SCHEME,
        "root_path": "",
        "method": "GET",
        "path": "/scope/é",
        "raw_path": b"/scope/%C3%A9",
        "query_string": b"a=%20b",
        "headers": [(b"host", b"Site.example:8"), (b"x_under", b"1")],
        "extensions": {
            "http.response.early_hint": {},
            "maitred.label": {},
            "maitred.accepts_encoding": ("identity",),
            **({"http.response.trailers": {}} if by_h2.WANTED else {}),
        },
    }
    assert list(map(type, scope["headers"])) == [tuple] * 2


def test_it_is_made_anew_for_every_request(asgi: Server) -> None:
    before, after = (json.loads(asgi.fetch("/changes_scope").body) for _ in range(2))
    assert before[:2] == after[:2] == [[None, None, before[0][2], None], "as started"]
    assert after[2] == before[2] + 1, "what the state refers to is shared"


@pytest.mark.parametrize(
    ("request_line", "key", "value"),
    [
        ("GET /scope HTTP/1.0", "http_version", "1.0"),
        ("GET /scope HTTP/1.1", "query_string", b""),
        ("GET /scope? HTTP/1.1", "query_string", b""),
        ("GET /scope?a?b HTTP/1.1", "query_string", b"a?b"),
        ("POST /scope HTTP/1.1", "method", "POST"),
        ("DELETE /scope HTTP/1.1", "method", "DELETE"),
        ("MkCol /scope HTTP/1.1", "method", "MKCOL"),
        ("GET /scope/%2F%25/ HTTP/1.1", "path", "/scope///%/".replace("///%", "//%")),
        ("GET /scope/%FF%zz HTTP/1.1", "path", "/scope/\ufffd%zz"),
        ("GET /scope/%2F HTTP/1.1", "raw_path", b"/scope/%2F"),
        ("GET http://other.example/scope?q HTTP/1.1", "raw_path", b"/scope"),
        ("GET http://other.example/scope HTTP/1.1", "headers", [(b"host", b"other.example")]),
    ],
)
def test_the_parts_of_the_request_line(asgi: Server, request_line: str, key: str, value: Any) -> None:
    assert scope_of(asgi, f"{request_line}\nHost: site.example\n\n")[key] == value


def test_fields_keep_their_order_and_are_not_joined(asgi: Server) -> None:
    for values in (["1", "2"], ["2", "1"]):
        lines = "".join(f"X-Twice: {value}\n" for value in values)
        scope = scope_of(asgi, f"GET /scope HTTP/1.1\nHost: a\n{lines}Cookie: a\ncookie: b\n\n")
        twice = [(b"x-twice", value.encode()) for value in values]
        assert scope["headers"] == [(b"host", b"a"), *twice, (b"cookie", b"a"), (b"cookie", b"b")]


def test_a_value_that_changes_is_not_remembered(asgi: Server) -> None:
    for value in ("a", "a", "b", "x" * 300, "", "a"):
        headers = scope_of(asgi, f"GET /scope HTTP/1.1\nHost: h\nX-Value: {value}\n\n")["headers"]
        assert headers[1] == (b"x-value", value.encode())


def test_a_chunked_body_has_a_length_and_no_transfer_coding(asgi: Server) -> None:
    request = "POST /scope HTTP/1.1\nHost: h\nTransfer-Encoding: chunked\n\n3\nabc\n0\n\n"
    assert scope_of(asgi, request)["headers"] == [(b"host", b"h"), (b"content-length", b"3")]


def test_without_host_in_http_1_0(asgi: Server) -> None:
    assert scope_of(asgi, "GET /scope HTTP/1.0\n\n")["headers"] == []


def test_the_root_path_stays_in_the_path(serve_asgi: Serve) -> None:
    source = """
async def app(scope, receive, send):
    assert scope["type"] == "http"
    await send({"type": "http.response.start", "status": 200})
    await send({"type": "http.response.body", "body": (scope["root_path"] + " " + scope["path"]).encode()})
"""
    server = serve_asgi("--root-path", "/site", source=source)
    assert server.fetch("/site/page").body == b"/site /site/page", server.said
    assert server.fetch("/page").body == b"/site /site/page", "a proxy has taken it off"
    assert server.fetch("/sites").body == b"/site /site/sites"


def test_files_by_their_path_are_offered_if_asked_for_and_a_loss_is_explained(serve_asgi: Serve) -> None:
    source = """
async def app(scope, receive, send):
    assert scope["type"] == "http"
    if "http.response.pathsend" not in scope["extensions"]:
        await send({"type": "http.response.start", "status": 200})
        await send({"type": "http.response.body", "body": b"not offered"})
    elif scope["path"] == "/begun":
        await send({"type": "http.response.start", "status": 200})
"""
    server = serve_asgi(source=source)
    assert server.fetch("/").body == b"not offered"
    server = serve_asgi("--pathsend", source=source)
    assert server.fetch("/").status == 500
    server.wait_for(r"GET /: the application returned without a response\n +--pathsend offers http.response.pathsend: a middleware")
    assert server.fetch("/begun").status == 500
    server.wait_for(r"GET /begun: (?:.*\n){2} +--pathsend offers http.response.pathsend")
