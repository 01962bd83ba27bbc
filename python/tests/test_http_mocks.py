"""respx and pytest-httpx mock the transports of httpx: a client with maitred's gets their responses, and real ones behind them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from answering import answering, ok
from conftest import needs

needs("respx")
needs("pytest_httpx")

import httpx
import maitred.http.httpx
import respx

Get = Callable[[str], httpx.Response]


def get_blocking(url: str) -> httpx.Response:
    with httpx.Client(transport=maitred.http.httpx.Transport()) as client:
        return client.get(url)


def get_awaitable(url: str) -> httpx.Response:
    async def go() -> httpx.Response:
        async with httpx.AsyncClient(transport=maitred.http.httpx.AsyncTransport()) as client:
            return await client.get(url)

    return asyncio.run(go())


@pytest.fixture(params=[get_blocking, get_awaitable], ids=["blocking", "awaitable"])
def get(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.mark.parametrize("using", ["httpcore", "httpx"])
def test_respx(get: Get, using: str) -> None:
    with answering(ok(b"real")) as server:
        with respx.mock(using=using) as router:
            route = router.get("http://api.example/a").respond(201, text="mocked")
            router.get("http://api.example/late").mock(side_effect=httpx.ReadTimeout)
            router.route(host="127.0.0.1").pass_through()
            response = get("http://api.example/a")
            assert (response.status_code, response.text, route.call_count) == (201, "mocked", 1)
            with pytest.raises(httpx.ReadTimeout):
                get("http://api.example/late")
            assert get(server.url).text == "real"
        with pytest.raises(httpx.ConnectError):
            get("http://api.invalid/a")


def test_pytest_httpx(get: Get, httpx_mock: Any) -> None:
    httpx_mock.add_response(url="http://api.example/a", status_code=201, text="mocked")
    httpx_mock.add_exception(httpx.ReadTimeout("late"))
    response = get("http://api.example/a")
    assert (response.status_code, response.text) == (201, "mocked")
    with pytest.raises(httpx.ReadTimeout):
        get("http://api.example/b")
    assert [request.url.path for request in httpx_mock.get_requests()] == ["/a", "/b"]


@pytest.mark.httpx_mock(should_mock=lambda request: request.url.host != "127.0.0.1")
def test_pytest_httpx_lets_other_requests_through(get: Get, httpx_mock: Any) -> None:
    with answering(ok(b"real")) as server:
        assert get(server.url).text == "real"


def test_nothing_is_mocked_without_a_mock(get: Get, monkeypatch: pytest.MonkeyPatch) -> None:
    """respx is imported here: that alone does not bring the framework's own transport in."""
    monkeypatch.setattr(httpx.HTTPTransport, "__init__", None)
    monkeypatch.setattr(httpx.AsyncHTTPTransport, "__init__", None)
    with answering(ok(b"real")) as server:
        assert get(server.url).text == "real"
