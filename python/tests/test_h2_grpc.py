"""gRPC: grpcio's own client calls an ASGI application, whose answers end with trailers; by TLS, and in clear text by prior knowledge."""

from __future__ import annotations

import queue
import socket
from collections.abc import Iterator

import pytest
from certificates import Authority, authority, needs_openssl
from conftest import PATIENCE, Server
from crews import until

grpc = pytest.importorskip("grpc")

__all__ = ["authority"]

pytestmark = needs_openssl

#: A message has five bytes before it: not compressed, and its length.
APP = """
import asyncio

def framed(message):
    return b"\\0" + len(message).to_bytes(4, "big") + message

async def messages(receive):
    \"\"\"As they come: the body of a stream does not end before its answer begins.\"\"\"
    held, more = b"", True
    while True:
        while len(held) >= 5 and len(held) >= 5 + (length := int.from_bytes(held[1:5], "big")):
            yield held[5 : 5 + length]
            held = held[5 + length :]
        if not more:
            return
        event = await receive()
        if event["type"] != "http.request":
            return
        held, more = held + event["body"], event["more_body"]

ENDS = []

async def app(scope, receive, send):
    if scope["type"] != "http":
        return
    if scope["path"] == "/upload":
        # By HTTP/1, beside the calls.
        while (await receive())["type"] != "http.disconnect":
            pass
        return
    if scope["path"] == "/ends":
        await send({"type": "http.response.start", "status": 200})
        return await send({"type": "http.response.body", "body": " ".join(ENDS).encode()})
    assert scope["http_version"] == "2" and "http.response.trailers" in scope["extensions"]
    fields = dict(scope["headers"])
    assert fields[b"te"] == b"trailers" and fields[b"content-type"] == b"application/grpc", fields
    status, count, name = b"0", 0, scope["path"].rpartition("/")[2]
    if name == "Refuse":
        # What gRPC calls Trailers-Only: the head ends the stream.
        refused = [(b"content-type", b"application/grpc"), (b"grpc-status", b"7"), (b"grpc-message", b"never")]
        await send({"type": "http.response.start", "status": 200, "headers": refused})
        return await send({"type": "http.response.body", "body": b""})
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/grpc")], "trailers": True})
    if name == "Hang":
        async for message in messages(receive):
            await send({"type": "http.response.body", "body": framed(message), "more_body": True})
        while (await receive())["type"] != "http.disconnect":
            pass
        return ENDS.append(fields.get(b"grpc-timeout", b"cancelled").decode().strip("0123456789"))
    if name == "Tell":
        for number in range(50):
            await send({"type": "http.response.body", "body": framed(b"%d" % number), "more_body": True})
    async for message in messages(receive):
        count += 1
        if name == "Fail":
            status = b"9"
        elif name != "Count":
            await send({"type": "http.response.body", "body": framed(message.upper()), "more_body": True})
    if name == "Count":
        await send({"type": "http.response.body", "body": framed(b"%d" % count), "more_body": True})
    await send({"type": "http.response.body", "body": b""})
    trailers = [(b"grpc-status", status), (b"grpc-message", b"not%20now" if status != b"0" else b""), (b"x-count", b"%d" % count)]
    await send({"type": "http.response.trailers", "headers": trailers})
"""


@pytest.fixture(scope="module", params=["", ",read-ahead=off", ",read-ahead=on"])
def server(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest, authority: Authority) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("grpc")
    (folder / "app.py").write_text(APP)
    certificate = authority.issue("localhost")
    tls = ("--listen", f"https://127.0.0.1:0{request.param}", "--tls-cert", str(certificate.certificate), "--tls-key", str(certificate.key))
    running = Server(["app.py", "--listen", f"http://127.0.0.1:0{request.param}", *tls, "--body-timeout", "1"], folder, {})
    yield running
    running.kill()


@pytest.fixture(params=["clear", "tls"])
def channel(server: Server, request: pytest.FixtureRequest, authority: Authority) -> Iterator[object]:
    options = [("grpc.enable_http_proxy", 0), ("grpc.ssl_target_name_override", "localhost")]
    if request.param == "clear":
        opened = grpc.insecure_channel(f"127.0.0.1:{server.ports[0]}", options=options[:1])
    else:
        trusted = grpc.ssl_channel_credentials(authority.file.read_bytes())
        opened = grpc.secure_channel(f"127.0.0.1:{server.ports[1]}", trusted, options=options)
    with opened:
        yield opened


#: Those with which an application runs before its request has ended.
early = pytest.mark.parametrize("server", ["", ",read-ahead=off"], indirect=True)


def ends(server: Server) -> list[str]:
    return server.fetch("/ends").body.decode().split()


def test_a_unary_call_has_an_answer_and_trailers(channel: object) -> None:
    call = channel.unary_unary("/tests.Echo/Shout")  # type: ignore[attr-defined]
    answer, made = call.with_call(b"hello", timeout=PATIENCE, metadata=[("x-own", "value")])
    assert answer == b"HELLO"
    assert made.code() == grpc.StatusCode.OK
    assert ("x-count", "1") in [tuple(each) for each in made.trailing_metadata()]
    large = b"x" * 1_000_000
    assert call(large, timeout=PATIENCE) == large.upper()


def test_many_calls_share_a_connection(channel: object) -> None:
    call = channel.unary_unary("/tests.Echo/Shout")  # type: ignore[attr-defined]
    futures = [call.future(b"number %d" % number, timeout=PATIENCE) for number in range(300)]
    assert [each.result() for each in futures] == [b"NUMBER %d" % number for number in range(300)]


def test_a_call_that_fails_says_why(channel: object) -> None:
    with pytest.raises(grpc.RpcError) as failed:
        channel.unary_unary("/tests.Echo/Fail")(b"hello", timeout=PATIENCE)  # type: ignore[attr-defined]
    assert failed.value.code() == grpc.StatusCode.FAILED_PRECONDITION and failed.value.details() == "not now"


def test_a_stream_of_requests_has_one_answer(channel: object) -> None:
    call = channel.stream_unary("/tests.Echo/Count")  # type: ignore[attr-defined]
    assert call((b"one" for _ in range(50)), timeout=PATIENCE) == b"50"


def test_one_request_has_a_stream_of_answers(channel: object) -> None:
    call = channel.unary_stream("/tests.Echo/Tell")  # type: ignore[attr-defined]
    assert list(call(b"all", timeout=PATIENCE)) == [b"%d" % number for number in range(50)] + [b"ALL"]


def test_an_answer_may_be_trailers_only(channel: object) -> None:
    with pytest.raises(grpc.RpcError) as refused:
        channel.unary_unary("/tests.Echo/Refuse")(b"hello", timeout=PATIENCE)  # type: ignore[attr-defined]
    assert refused.value.code() == grpc.StatusCode.PERMISSION_DENIED and refused.value.details() == "never"


@early
def test_both_sides_stream_at_once(channel: object) -> None:
    """Each message is answered before the next one is sent."""
    asked: queue.Queue[bytes | None] = queue.Queue()
    answers = channel.stream_stream("/tests.Echo/Shout")(iter(asked.get, None), timeout=PATIENCE)  # type: ignore[attr-defined]
    for number in range(20):
        asked.put(b"number %d" % number)
        assert next(answers) == b"NUMBER %d" % number
    asked.put(None)
    assert list(answers) == [] and answers.code() == grpc.StatusCode.OK


@early
def test_a_stream_whose_answer_is_open_may_be_silent(server: Server, channel: object) -> None:
    asked: queue.Queue[bytes | None] = queue.Queue()
    answers = channel.stream_stream("/tests.Echo/Shout")(iter(asked.get, None), timeout=PATIENCE)  # type: ignore[attr-defined]
    asked.put(b"before")
    assert next(answers) == b"BEFORE"
    # Of which nothing is answered, and which ends by the timeout that the stream would have had before.
    with socket.create_connection(("127.0.0.1", server.ports[0]), PATIENCE) as late:
        late.sendall(b"POST /upload HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n")
        assert late.recv(100).startswith(b"HTTP/1.1 408")
    asked.put(b"after")
    assert next(answers) == b"AFTER"
    asked.put(None)
    assert list(answers) == [] and answers.code() == grpc.StatusCode.OK


@early
def test_a_deadline_ends_the_call_on_both_sides(server: Server, channel: object) -> None:
    before = len(ends(server))
    answers = channel.unary_stream("/tests.Echo/Hang")(b"one", timeout=1)  # type: ignore[attr-defined]
    assert next(answers) == b"one"
    with pytest.raises(grpc.RpcError) as failed:
        next(answers)
    assert failed.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED
    until("the application is told", lambda: ends(server)[before:] not in ([], ["cancelled"]))


@early
def test_a_call_that_is_cancelled_ends_on_both_sides(server: Server, channel: object) -> None:
    before = len(ends(server))
    answers = channel.unary_stream("/tests.Echo/Hang")(b"one")  # type: ignore[attr-defined]
    assert next(answers) == b"one"
    answers.cancel()
    until("the application is told", lambda: ends(server)[before:] == ["cancelled"])
