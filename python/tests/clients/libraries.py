"""Libraries that look at exceptions and responses of the frameworks: they retry, and mock, as over the framework's own transport.

`scripts/client-suites` runs this file, in the environment that has the libraries.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from typing import Any

import httpx
import httpx2
import maitred.http.httpx
import maitred.http.httpx2
import maitred.http.requests
import openai
import pytest
import requests
import stripe
import tenacity
from answering import answering, ok

CHAT = b'{"id": "1", "object": "model", "created": 1, "owned_by": "me"}'
CHARGE = b'{"id": "cus_1", "object": "customer"}'
JSON = b"Content-Type: application/json"


def reset(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    sleep = asyncio.sleep
    monkeypatch.setattr("asyncio.sleep", lambda seconds, *rest: sleep(0))
    monkeypatch.setattr("anyio.sleep", lambda seconds: sleep(0))


def openai_client(url: str, **named: Any) -> openai.OpenAI:
    client = httpx2.Client(transport=maitred.http.httpx2.Transport())
    return openai.OpenAI(base_url=f"{url}/v1", api_key="none", http_client=client, **named)


def test_openai_tries_again_behind_resets_timeouts_and_500() -> None:
    with answering(reset, ok(b"{}", JSON, status=b"500 No"), lambda each: server.wait(each), ok(CHAT, JSON)) as server:
        assert openai_client(server.url, max_retries=3, timeout=0.3).models.retrieve("m").owned_by == "me"
        assert len(server.requests) == 4


def test_openai_names_its_own_failure() -> None:
    with answering(reset) as server, pytest.raises(openai.APIConnectionError):
        openai_client(server.url, max_retries=1).models.retrieve("m")
    with answering(lambda each: server.wait(each)) as server, pytest.raises(openai.APITimeoutError):
        openai_client(server.url, max_retries=1, timeout=0.05).models.retrieve("m")


def test_openai_awaits() -> None:
    async def go(url: str) -> str:
        client = httpx2.AsyncClient(transport=maitred.http.httpx2.AsyncTransport())
        async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none", http_client=client, max_retries=2) as each:
            return (await each.models.retrieve("m")).owned_by

    with answering(reset, ok(b"{}", JSON, status=b"429 Slowly"), ok(CHAT, JSON)) as server:
        assert asyncio.run(go(server.url)) == "me"


def test_openai_streams_events() -> None:
    event = b'data: {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [{"index": 0, "delta": {"content": "hi"}}]}\n\n'
    with answering(ok(event * 3 + b"data: [DONE]\n\n", b"Content-Type: text/event-stream")) as server:
        stream = openai_client(server.url).chat.completions.create(model="m", messages=[], stream=True)
        assert [part.choices[0].delta.content for part in stream] == ["hi"] * 3


def stripe_client(url: str, retries: int) -> stripe.StripeClient:
    session = requests.Session()
    maitred.http.requests.mount(session)
    return stripe.StripeClient("sk_test_1", http_client=stripe.RequestsClient(session=session, timeout=0.3), max_network_retries=retries,
                               base_addresses={"api": url})


def test_stripe_tries_again_with_the_same_key() -> None:
    with answering(reset, lambda each: server.wait(each), ok(b"{}", JSON, status=b"503 Busy"), ok(CHARGE, JSON)) as server:
        assert stripe_client(server.url, 3).v1.customers.create({"name": "n"}).id == "cus_1"
        keys = {line for request in server.requests for line in request.lower().split(b"\r\n") if line.startswith(b"idempotency-key")}
        assert (len(server.requests), len(keys)) == (4, 1)


def test_stripe_gives_up() -> None:
    with answering(reset) as server:
        with pytest.raises(stripe.APIConnectionError):
            stripe_client(server.url, 1).v1.customers.create({"name": "n"})
        assert len(server.requests) == 2


@pytest.mark.parametrize(("framework", "transports"), [(httpx, maitred.http.httpx), (httpx2, maitred.http.httpx2)], ids=["httpx", "httpx2"])
def test_tenacity_tries_what_its_types_say(framework: Any, transports: Any) -> None:
    kinds = tenacity.retry_if_exception_type((framework.ReadError, framework.RemoteProtocolError))
    with answering(reset, lambda each: None, ok(), lambda each: server.wait(each)) as server:
        with framework.Client(transport=transports.Transport(), timeout=0.3) as client:
            retrying = tenacity.Retrying(retry=kinds, stop=tenacity.stop_after_attempt(5), reraise=True)
            assert retrying(client.post, server.url).text == "ok"
            with pytest.raises(framework.ReadTimeout):
                retrying(client.post, server.url)
            assert len(server.requests) == 4
