"""gRPC: grpcio's own client calls an ASGI application, whose answers end with trailers; in clear text, by prior knowledge."""

from __future__ import annotations

import queue
from collections.abc import Iterator

import pytest
from conftest import PATIENCE, Serve, Server

grpc = pytest.importorskip("grpc")

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

async def app(scope, receive, send):
    if scope["type"] != "http":
        return
    assert scope["http_version"] == "2" and "http.response.trailers" in scope["extensions"]
    fields = dict(scope["headers"])
    assert fields[b"te"] == b"trailers" and fields[b"content-type"] == b"application/grpc", fields
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/grpc")], "trailers": True})
    status, count, name = b"0", 0, scope["path"].rpartition("/")[2]
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


@pytest.fixture(params=["read-ahead=off", "read-ahead=on"])
def server(serve_asgi: Serve, request: pytest.FixtureRequest) -> Server:
    return serve_asgi("--listen", f"127.0.0.1:0,{request.param}", source=APP)


@pytest.fixture
def channel(server: Server) -> Iterator[object]:
    with grpc.insecure_channel(f"127.0.0.1:{server.port}", options=[("grpc.enable_http_proxy", 0)]) as opened:
        yield opened


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


@pytest.mark.parametrize("server", ["read-ahead=off"], indirect=True)
def test_both_sides_stream_at_once(channel: object) -> None:
    """Each message is answered before the next one is sent."""
    asked: queue.Queue[bytes | None] = queue.Queue()
    answers = channel.stream_stream("/tests.Echo/Shout")(iter(asked.get, None), timeout=PATIENCE)  # type: ignore[attr-defined]
    for number in range(20):
        asked.put(b"number %d" % number)
        assert next(answers) == b"NUMBER %d" % number
    asked.put(None)
    assert list(answers) == [] and answers.code() == grpc.StatusCode.OK
