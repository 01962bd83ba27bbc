"""receive, send and the end of an exchange, over real sockets."""

from __future__ import annotations

import json
import re
import socket
from typing import Any
from urllib.parse import quote

import pytest
from conftest import PATIENCE, Reply, Server


def note(server: Server, name: str) -> Any:
    """The next thing an application noted under this name."""
    reply = server.fetch(f"/notes?of={quote(name)}")
    assert reply.status == 200, server.said
    return json.loads(reply.body)


def open_request(server: Server, target: str, head: str = "") -> socket.socket:
    peer = socket.create_connection(("127.0.0.1", server.port), PATIENCE)
    peer.sendall(f"GET {target} HTTP/1.1\r\nHost: h\r\n{head}\r\n".encode())
    return peer


def read_until(peer: socket.socket, end: bytes) -> bytes:
    received = b""
    while not received.endswith(end):
        part = peer.recv(65536)
        assert part, received
        received += part
    return received


SMALL, LARGE = b"small body", bytes(range(256)) * 4096  # The second is beyond --body-memory: 1 MiB.


@pytest.mark.parametrize(
    ("body", "messages"),
    [(None, 1), (b"", 1), (SMALL, 1), (LARGE, 4), (LARGE + b"x", 5)],
    ids=["none", "empty", "memory", "spilled", "spilled and one byte"],
)
@pytest.mark.parametrize("chunked", [False, True])
def test_every_kind_of_body_arrives(asgi: Server, body: bytes | None, messages: int, chunked: bool) -> None:
    sent = iter([body[:10], body[10:]]) if chunked and body else body
    reply = asgi.fetch("/body", "POST", sent)
    assert reply.body == (body or b"")
    assert reply.headers["x-messages"] == str(messages)


@pytest.mark.parametrize("body", [SMALL, LARGE], ids=["memory", "spilled"])
def test_a_body_can_be_sent_back_while_it_is_read(asgi: Server, body: bytes) -> None:
    assert asgi.fetch("/reads_while_it_answers", "POST", body).body == body


def test_who_reads_a_large_body_lets_others_run(asgi: Server) -> None:
    parts, others = json.loads(asgi.fetch("/reads_beside_others", "POST", LARGE).body)
    assert (parts, others) == (4, 3)


def test_receive_can_be_awaited_in_every_way(asgi: Server) -> None:
    assert asgi.fetch("/body_as_task", "POST", b"by a task").body == b"by a task"
    assert asgi.fetch("/gives_up_receiving").body == b"given up"


def test_after_the_response_receive_says_disconnect(asgi: Server) -> None:
    assert asgi.fetch("/after_the_end").body == b"done"
    assert note(asgi, "after_the_end") == ["http.disconnect", "http.disconnect"]


START: dict[str, Any] = {"type": "http.response.start", "status": 200}
BODY: dict[str, Any] = {"type": "http.response.body", "body": b"x"}
PART = BODY | {"more_body": True}
TYPE, VALUE, RUNTIME = "TypeError", "ValueError", "RuntimeError"


@pytest.mark.parametrize(
    ("messages", "kind", "text"),
    [
        ([1], TYPE, "send() takes a dict with a 'type', not int"),
        ([{}], VALUE, "the message has no 'type'; it is http.response.start or http.response.body"),
        ([{"type": 1}], TYPE, "the type of a message must be a str, not int"),
        ([{"type": "websocket.accept"}], RUNTIME, 'a message of type "websocket.accept" cannot be sent'),
        ([{"type": "http.response.early_hint"}], VALUE, "http.response.early_hint has no 'links'"),
        ([{"type": "http.response.early_hint", "links": b"</a>"}], TYPE, "must be an iterable of bytes, not bytes of length 4"),
        ([{"type": "http.response.early_hint", "links": ["</a>"]}], TYPE, "a link must be bytes, not str"),
        ([{"type": "http.response.early_hint", "links": [b"a\nb"]}], VALUE, "has a CR, LF, NUL or another control character"),
        ([START, PART, {"type": "http.response.early_hint", "links": []}], RUNTIME, "early_hint was sent after the head"),
        ([{"type": "http.response.påth"}], RUNTIME, "cannot be sent for an HTTP request"),
        ([BODY], RUNTIME, "http.response.body was sent before http.response.start"),
        ([START, START], RUNTIME, "http.response.start was sent a second time"),
        ([START, PART, START], RUNTIME, "http.response.start was sent a second time"),
        ([{"type": "http.response.start"}], VALUE, "http.response.start has no 'status'"),
        ([START | {"status": "200"}], TYPE, "the status must be an int such as 200, not str"),
        ([START | {"status": 20}], VALUE, "the status must be from 200 to 999, not 20"),
        ([START | {"status": 2**70}], VALUE, "the status must be from 200 to 999, not an int beyond 64 bits"),
        ([START | {"status": 101}], VALUE, "101 is an interim status"),
        ([START | {"headers": 1}], TYPE, "the headers must be an iterable of pairs of bytes, not int"),
        ([START | {"headers": [1]}], TYPE, "a header must be a pair (name, value) of bytes, not int"),
        ([START | {"headers": [(b"a",)]}], TYPE, "a header must be a pair (name, value) of bytes, not tuple of length 1"),
        ([START | {"headers": [b"a: b"]}], TYPE, "a header must be a pair (name, value) of bytes, not bytes of length 4"),
        ([START | {"headers": [(b"a", b"b", b"c")]}], TYPE, "a header must be a pair"),
        ([START | {"headers": [("a", b"b")]}], TYPE, "a header's name must be bytes, not str; encode it"),
        ([START | {"headers": [(b"a", "b")]}], TYPE, "a header's value must be bytes, not str"),
        ([START | {"headers": [(b"a b", b"c")]}], VALUE, 'invalid header name "a b"'),
        ([START | {"headers": [(b"a", b"b\r\nc: d")]}], VALUE, "has a CR, LF, NUL or another control character in it"),
        ([START | {"headers": [(b"content-length", b"x")]}], VALUE, 'invalid Content-Length "x"'),
        ([START, {"type": "http.response.body", "body": "text"}], TYPE, "the body must be bytes, not str; encode it"),
        ([START, {"type": "http.response.body", "body": None}], TYPE, "the body must be bytes, not NoneType"),
        ([START | {"headers": [(b"content-length", b"1")]}, BODY | {"body": b"xx"}], RUNTIME, "longer than the 1 bytes"),
        ([START | {"headers": [(b"content-length", b"1")]}, PART, PART], RUNTIME, "longer than the 1 bytes"),
    ],
)
def test_wrong_messages_are_named(asgi: Server, messages: list[Any], kind: str, text: str) -> None:
    reply = asgi.raw(f"GET /misuses?messages={quote(repr(messages))} HTTP/1.0\r\n\r\n".encode())
    begun = messages[:2] in ([START, BODY], [START, PART])
    assert reply.startswith(b"HTTP/1.1 200 ") if begun else reply.startswith(b"HTTP/1.1 ")
    raised, said = note(asgi, "misuses")
    assert (raised, text in said) == (kind, True), said


def test_headers_and_bodies_of_all_kinds(asgi: Server) -> None:
    reply = asgi.fetch("/kinds_of_bodies")
    assert (reply.status, reply.body) == (201, b"array view slice bytes")
    assert [reply.headers[f"x-{kind}"] for kind in ("list", "generator", "iterator")] == ["1", "2", "3"]


def test_head_has_the_length_and_no_body(asgi: Server) -> None:
    connection = asgi.connect()
    for _ in range(2):
        connection.request("HEAD", "/large?size=70000")
        reply = Reply(connection.getresponse())
        assert (reply.status, reply.headers["content-length"], reply.body) == (200, "70000", b"")
    connection.close()


def test_one_connection_serves_many_requests_and_pipelined_ones_in_order(asgi: Server) -> None:
    request = "POST /body HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\n{}"
    with socket.create_connection(("127.0.0.1", asgi.port), PATIENCE) as peer:
        peer.sendall("".join(map(request.format, range(10))).encode())
        received = b""
        while received.count(b"HTTP/1.1 200") < 10 or not received.endswith(b"9"):
            received += peer.recv(65536)
    assert re.findall(rb"\r\n\r\n(\d)", received) == [str(number).encode() for number in range(10)]


@pytest.mark.parametrize(("length", "framing"), [("", b"transfer-encoding: chunked"), ("11", b"content-length: 11")])
def test_parts_are_sent_at_once(asgi: Server, length: str, framing: bytes) -> None:
    first, second = ("1st1", "2nd2") if length else ("one", "two")
    received = b""
    with open_request(asgi, f"/parts?events={first},{second}&length={length}") as peer:
        for event in (first, second):
            received += read_until(peer, event.encode() + (b"" if length else b"\r\n"))
            asgi.fetch(f"/sets?event={event}")
        received += read_until(peer, b"end" if length else b"0\r\n\r\n")
    assert framing in received.lower()


def test_an_empty_part_sends_the_head(asgi: Server) -> None:
    with open_request(asgi, "/head_first") as peer:
        assert read_until(peer, b"\r\n\r\n").startswith(b"HTTP/1.1 200")
        asgi.fetch("/sets?event=head_first")
        assert b"body" in read_until(peer, b"0\r\n\r\n")


@pytest.mark.parametrize("size", [0, 1, 2047, 2048, 5_000_000])
def test_bodies_of_all_sizes(asgi: Server, size: int) -> None:
    assert asgi.fetch(f"/large?size={size}").body == b"x" * size


def test_a_slow_reader_stops_the_application_and_is_told_when_it_leaves(asgi: Server) -> None:
    with open_request(asgi, "/endless?name=one") as peer:
        peer.recv(1)
        counts: list[int] = []
        while len(counts) < 20 or len(set(counts[-20:])) > 1:
            counts.append(note(asgi, "one sent"))
        assert counts[-1] < 20_000_000, "what is not read is not made"
    assert note(asgi, "one") == ["ClientDisconnected", True, "the client closed the connection"]
    assert note(asgi, "one finally") is True
    assert "ClientDisconnected" not in asgi.said, "nobody's fault"


def test_who_sends_many_parts_lets_others_run(asgi: Server) -> None:
    assert asgi.fetch("/sends_beside_others").body == b"." * 1000 + b"others"


def test_a_peer_that_leaves_a_large_head_is_told_to_who_waits(asgi: Server) -> None:
    with open_request(asgi, "/large_head"):
        assert note(asgi, "large head") == "sent"
    assert note(asgi, "large head") == "http.disconnect"


def test_a_peer_that_leaves_is_told_to_all_who_wait(asgi: Server) -> None:
    with open_request(asgi, "/waits_for_disconnect"):
        assert note(asgi, "waits") == "waiting"
    assert note(asgi, "disconnected") == ["http.disconnect"] * 3


@pytest.mark.parametrize("when", ["waiting", "streaming"])
def test_an_application_that_ends_because_its_peer_has_left_is_no_error(asgi: Server, when: str) -> None:
    start = len(asgi.said)
    with open_request(asgi, f"/ends_at_disconnect?when={when}") as peer:
        if when == "streaming":
            read_until(peer, b"part\r\n")
        assert note(asgi, "ends") == "waiting"
    assert note(asgi, "ends") == "ended"
    assert asgi.fetch("/returns?when=at+once").status == 500
    asgi.wait_for("GET /returns: the application returned without a response", start)
    assert "/ends_at_disconnect" not in "".join(re.findall(".* error .*\n", asgi.said[start:]))


@pytest.mark.parametrize(
    ("when", "status", "said"),
    [
        ("at once", 500, "ValueError: at once"),
        ("later", 500, "ValueError: later"),
        ("start", 500, "ValueError: start"),
        ("after", 200, "ValueError: after"),
        ("exit", 500, "SystemExit: 3"),
        ("cancelled", 500, ""),
    ],
)
def test_an_exception_is_a_500_and_its_traceback_in_the_log(asgi: Server, when: str, status: int, said: str) -> None:
    start = len(asgi.said)
    assert asgi.fetch(f"/fails?when={quote(when)}").status == status
    if said:
        asgi.wait_for(re.escape(said), start)
        assert 'asgi_apps.py", line ' in asgi.said[start:]


def test_an_exception_while_streaming_cuts_the_response(asgi: Server) -> None:
    with open_request(asgi, "/fails?when=streaming") as peer:
        received = b""
        while part := peer.recv(65536):
            received += part
    assert b"part" in received and not received.endswith(b"0\r\n\r\n")
    asgi.wait_for("the response was cut: the application raised ValueError: streaming")


@pytest.mark.parametrize(
    ("when", "said"),
    [
        ("at once", "the application returned without a response"),
        ("start", "the application returned before the end of its response"),
        ("streaming", "the application returned before the end of its response"),
    ],
)
def test_a_return_without_a_response_is_an_error(asgi: Server, when: str, said: str) -> None:
    start = len(asgi.said)
    reply = asgi.raw(f"GET /returns?when={quote(when)} HTTP/1.0\r\n\r\n".encode())
    assert (b" 500 " in reply.split(b"\r\n")[0]) == (when != "streaming")
    asgi.wait_for(rf"GET /returns: {said}", start)


def test_work_goes_on_after_the_response(asgi: Server) -> None:
    assert asgi.fetch("/background").body == b"answered"
    asgi.fetch("/sets?event=background")
    assert note(asgi, "background") == "went on"


def test_many_slow_readers_hold_little(asgi: Server) -> None:
    """Each of them can have what its socket takes and the engine's share, not all that is sent."""
    before = asgi.memory()
    peers = [open_request(asgi, f"/endless?name=slow{number}") for number in range(200)]
    try:
        for number in range(200):
            note(asgi, f"slow{number} sent")
        for peer in peers:
            peer.recv(1)
        assert asgi.fetch("/large?size=1").body == b"x"
        assert asgi.memory() - before < 200 * 1024 * 1024
    finally:
        for peer in peers:
            peer.close()
    for number in range(200):
        assert note(asgi, f"slow{number}")[0] == "ClientDisconnected"
