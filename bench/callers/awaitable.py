"""Libraries whose calls are awaited: for each name a function that makes the call of one URL, which so many tasks make at once.

Every pool has room for all callers. An answer is its status and the length of its body, which is read whole.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import ready

Answer = tuple[int, int]
Call = Callable[[], Awaitable[Answer]]


async def of_maitred(url: str, callers: int, size: int) -> Call:
    from maitred import http

    client = http.AsyncClient()

    async def call() -> Answer:
        response = await client.get(url)
        return response.status, len(response.content)

    return call


async def of_pyreqwest(url: str, callers: int, size: int) -> Call:
    from pyreqwest.client import ClientBuilder

    client = ClientBuilder().build()

    async def call() -> Answer:
        response = await client.get(url).build().send()
        return response.status, len(await response.bytes())

    return call


async def of_aiohttp(url: str, callers: int, size: int) -> Call:
    import aiohttp

    session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=callers))

    async def call() -> Answer:
        async with session.get(url) as response:
            return response.status, len(await response.read())

    return call


async def of_niquests(url: str, callers: int, size: int) -> Call:
    import niquests

    session = niquests.AsyncSession(pool_maxsize=callers)

    async def call() -> Answer:
        response = await session.get(url)
        return response.status_code or 0, len(response.content or b"")

    return call


async def of_httpx(url: str, callers: int, size: int) -> Call:
    import httpx

    return _of_httpx(url, httpx.AsyncClient(limits=httpx.Limits(max_connections=callers, max_keepalive_connections=callers)))


async def of_httpx2(url: str, callers: int, size: int) -> Call:
    import httpx2

    return _of_httpx(url, httpx2.AsyncClient(limits=httpx2.Limits(max_connections=callers, max_keepalive_connections=callers)))


async def httpx_of_maitred(url: str, callers: int, size: int) -> Call:
    import httpx
    import maitred.http.httpx

    return _of_httpx(url, httpx.AsyncClient(transport=maitred.http.httpx.AsyncTransport()))


async def httpx2_of_maitred(url: str, callers: int, size: int) -> Call:
    import httpx2
    import maitred.http.httpx2

    return _of_httpx(url, httpx2.AsyncClient(transport=maitred.http.httpx2.AsyncTransport()))


async def httpx_ready(url: str, callers: int, size: int) -> Call:
    import httpx

    return _of_httpx(url, httpx.AsyncClient(transport=ready.async_transport(httpx, size)))


async def httpx2_ready(url: str, callers: int, size: int) -> Call:
    import httpx2

    return _of_httpx(url, httpx2.AsyncClient(transport=ready.async_transport(httpx2, size)))


def _of_httpx(url: str, client: Any) -> Call:
    async def call() -> Answer:
        response = await client.get(url)
        return response.status_code, len(response.content)

    return call


CALLS: dict[str, Callable[[str, int, int], Awaitable[Call]]] = {
    "maitred.http": of_maitred, "pyreqwest": of_pyreqwest, "aiohttp": of_aiohttp, "niquests": of_niquests, "httpx": of_httpx,
    "httpx2": of_httpx2, "httpx over maitred": httpx_of_maitred, "httpx2 over maitred": httpx2_of_maitred,
    "httpx, floor": httpx_ready, "httpx2, floor": httpx2_ready,
}
