"""start_response, write, the iterable and its close (PEP 3333)."""

from __future__ import annotations

import http.client
import socket
import uuid
from urllib.parse import quote, urlencode

import pytest
from conftest import PATIENCE, Server

KINDS = ["list", "generator"]


@pytest.mark.parametrize("kind", ["checked", "raw"])
def test_a_plain_response(apps: Server, kind: str) -> None:
    reply = apps.fetch(f"/{kind}/hello")
    assert (reply.status, reply.reason, reply.body) == (200, "OK", b"hello")
    assert reply.headers.get_all("Content-Length") == ["5"]
    assert reply.headers["Transfer-Encoding"] is None


def test_a_list_gets_its_length_and_a_generator_is_chunked(apps: Server) -> None:
    whole = apps.fetch("/raw/status?" + urlencode({"status": "200 OK", "kind": "list", "body": "abc"}))
    assert (whole.body, whole.headers["Content-Length"]) == (b"abc", "3")
    parts = apps.fetch("/raw/status?" + urlencode({"status": "200 OK", "kind": "generator", "body": "abc"}))
    assert (parts.body, parts.headers["Transfer-Encoding"]) == (b"abc", "chunked")
    assert parts.headers["Content-Length"] is None


@pytest.mark.parametrize("kind", [*KINDS, "empty"])
@pytest.mark.parametrize("status", ["204 No Content", "304 Not Modified"])
def test_statuses_without_body_never_have_one(apps: Server, status: str, kind: str) -> None:
    query = urlencode({"status": status, "kind": kind, "body": "forbidden"})
    received = apps.raw(
        f"GET /raw/status?{query} HTTP/1.1\r\nHost: a\r\n\r\n"
        "GET /raw/hello HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".encode()
    )
    first, rest = received.split(b"\r\n\r\n", 1)
    assert first.startswith(b"HTTP/1.1 " + status[:3].encode())
    assert b"forbidden" not in received
    # The next response follows at once, or the connection was closed: never anything between.
    assert rest == b"" or (rest.startswith(b"HTTP/1.1 200 ") and rest.endswith(b"\r\n\r\nhello"))


@pytest.mark.parametrize("kind", [*KINDS, "empty"])
def test_head_has_no_body(apps: Server, kind: str) -> None:
    query = urlencode({"status": "200 OK", "kind": kind, "body": "forbidden"})
    received = apps.raw(
        f"HEAD /raw/status?{query} HTTP/1.1\r\nHost: a\r\n\r\n"
        "GET /raw/hello HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".encode()
    )
    first, rest = received.split(b"\r\n\r\n", 1)
    assert first.startswith(b"HTTP/1.1 200 OK\r\n")
    assert (b"\r\nContent-Length: 9" in first) == (kind == "list")
    assert rest.startswith(b"HTTP/1.1 200 ") and rest.endswith(b"\r\n\r\nhello")


def test_head_keeps_the_length_the_application_declares(apps: Server) -> None:
    assert apps.fetch("/checked/hello", "HEAD").headers["Content-Length"] == "5"
    reply = apps.fetch("/raw/declared?declared=1000&kind=list&body=", "HEAD")
    assert reply.headers["Content-Length"] == "1000"


@pytest.mark.parametrize("kind", KINDS)
def test_a_body_longer_than_declared_is_cut(apps: Server, kind: str) -> None:
    start = len(apps.said)
    reply = apps.fetch(f"/raw/declared?declared=2&kind={kind}&body=abcdef")
    assert (reply.body, reply.headers["Content-Length"]) == (b"ab", "2")
    apps.wait_for("longer than its declared length of 2 bytes", start)


@pytest.mark.parametrize("kind", KINDS)
def test_a_body_shorter_than_declared_closes_the_connection(apps: Server, kind: str) -> None:
    with pytest.raises(http.client.IncompleteRead) as caught:
        apps.fetch(f"/raw/declared?declared=9&kind={kind}&body=abc")
    assert caught.value.partial == b"abc"


@pytest.mark.parametrize(
    ("which", "reason"),
    [
        ("never called", r"start_response\(\) must be called before"),
        ("never called, no body", r"start_response\(\) must be called before"),
        ("called twice", "a second time without exc_info"),
        ("status without digits", "the status must be like '200 OK'"),
        ("header injection", "has a CR, LF, NUL or another control character in it"),
        ("name injection", "invalid header name"),
        ("status injection", "the status must be like '200 OK'"),
        ("no list", "the headers must be a list of tuples, not dict"),
        ("text body", "yielded str, not bytes"),
        ("no iterable", "the application returned int"),
        ("exception", "ValueError: on purpose"),
        ("SystemExit", "SystemExit: 3"),
        ("KeyboardInterrupt", "KeyboardInterrupt"),
    ],
)
def test_misuse_is_a_500_and_the_reason_is_logged(apps: Server, which: str, reason: str) -> None:
    start = len(apps.said)
    reply = apps.fetch(f"/raw/misuse?which={quote(which)}")
    assert reply.status == 500
    assert reply.headers["Set-Cookie"] is None
    apps.wait_for(reason, start)
    assert apps.fetch("/checked/hello").body == b"hello", "the thread goes on"


@pytest.mark.parametrize("kind", ["checked", "raw"])
def test_a_head_that_was_not_sent_is_replaced(apps: Server, kind: str) -> None:
    reply = apps.fetch(f"/{kind}/replaced")
    assert (reply.status, reply.reason, reply.body) == (503, "Replaced", b"sorry")
    assert reply.headers["X-First"] is None


@pytest.mark.parametrize("kind", ["checked", "raw"])
def test_an_error_after_the_first_block_cuts_the_response(apps: Server, kind: str) -> None:
    start = len(apps.said)
    with pytest.raises(http.client.IncompleteRead) as caught:
        apps.fetch(f"/{kind}/too_late")
    assert caught.value.partial == b"first"
    apps.wait_for("ValueError: too late", start)


@pytest.mark.parametrize("kind", ["checked", "raw"])
def test_write_goes_before_the_iterable(apps: Server, kind: str) -> None:
    assert apps.fetch(f"/{kind}/writes").body == b"one two three four"


@pytest.mark.parametrize("blocks", ["[b'a', b'b']", "[]", "['text']", "[b'a', 'text']"])
def test_close_is_called_once(apps: Server, blocks: str) -> None:
    key = uuid.uuid4().hex
    try:
        apps.fetch(f"/raw/closing?key={key}&blocks={quote(blocks)}")
    except http.client.IncompleteRead:
        assert "b'a', 'text'" in blocks, "only a response with a part sent can be cut"
    assert apps.fetch(f"/checked/closed?key={key}").body == b"1"


@pytest.mark.parametrize("kind", ["checked", "raw"])
def test_each_block_of_a_generator_leaves_at_once(apps: Server, kind: str) -> None:
    key = uuid.uuid4().hex
    connection = apps.connect()
    connection.request("GET", f"/{kind}/step?key={key}")
    response = connection.getresponse()
    assert response.read(3) == b"one"
    # The generator waits for this request; so the first block did not wait for the second.
    assert apps.fetch(f"/checked/release?key={key}").body == b"released"
    assert response.read() == b"two"
    connection.close()


@pytest.mark.parametrize("kind", ["checked", "raw"])
def test_a_client_that_goes_ends_the_iteration(apps: Server, kind: str) -> None:
    key = uuid.uuid4().hex
    with socket.create_connection(("127.0.0.1", apps.port), PATIENCE) as peer:
        peer.sendall(f"GET /{kind}/endless?key={key} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        assert peer.recv(1000).startswith(b"HTTP/1.1 200 OK\r\n")
    assert apps.fetch(f"/checked/closed?key={key}").body == b"1"


def test_a_reader_that_stands_still_holds_no_other_request(apps: Server) -> None:
    key = uuid.uuid4().hex
    with socket.create_connection(("127.0.0.1", apps.port), PATIENCE) as peer:
        peer.sendall(f"GET /checked/endless?key={key} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        assert peer.recv(1000).startswith(b"HTTP/1.1 200 OK\r\n")
        # Nobody reads the endless response now; its thread waits without the interpreter.
        for _ in range(20):
            assert apps.fetch("/checked/hello").body == b"hello"
    assert apps.fetch(f"/checked/closed?key={key}").body == b"1"


def test_two_requests_run_at_the_same_time(apps: Server) -> None:
    first, second = apps.connect(), apps.connect()
    first.request("GET", "/checked/meet")
    second.request("GET", "/checked/meet")
    assert [connection.getresponse().read() for connection in (first, second)] == [b"met", b"met"]
    first.close()
    second.close()
