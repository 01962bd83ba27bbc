"""Libraries whose calls block: for each name a function that makes so many callers of one URL.

A client that several threads may use is one for all callers; else each caller has its own. Every pool has room for all callers. An
answer is its status and the length of its body, which is read whole.
"""

from __future__ import annotations

import io
import subprocess
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import ready

Answer = tuple[int, int]
Call = Callable[[], Answer]


def of_maitred(url: str, callers: int, size: int) -> list[Call]:
    from maitred import http

    client = http.Client()

    def call() -> Answer:
        response = client.get(url)
        return response.status, len(response.content)

    return [call] * callers


def of_pycurl(url: str, callers: int, size: int) -> list[Call]:
    import pycurl

    def one() -> Call:
        handle = pycurl.Curl()

        def call() -> Answer:
            body = io.BytesIO()
            handle.setopt(pycurl.URL, url)
            handle.setopt(pycurl.WRITEDATA, body)
            handle.perform()
            return handle.getinfo(pycurl.RESPONSE_CODE), len(body.getvalue())

        return call

    return [one() for _ in range(callers)]


def of_pyreqwest(url: str, callers: int, size: int) -> list[Call]:
    from pyreqwest.client import SyncClientBuilder

    client = SyncClientBuilder().build()

    def call() -> Answer:
        response = client.get(url).build().send()
        return response.status, len(response.bytes())

    return [call] * callers


def of_http_client(url: str, callers: int, size: int) -> list[Call]:
    import http.client

    parts = urlsplit(url)

    def one() -> Call:
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port)

        def call() -> Answer:
            connection.request("GET", parts.path)
            response = connection.getresponse()
            return response.status, len(response.read())

        return call

    return [one() for _ in range(callers)]


def of_urllib3(url: str, callers: int, size: int) -> list[Call]:
    import urllib3

    pool = urllib3.PoolManager(maxsize=callers)

    def call() -> Answer:
        response = pool.request("GET", url)
        return response.status, len(response.data)

    return [call] * callers


def of_requests(url: str, callers: int, size: int) -> list[Call]:
    import requests.adapters

    return _of_requests(url, callers, requests.adapters.HTTPAdapter(pool_maxsize=callers))


def requests_of_maitred(url: str, callers: int, size: int) -> list[Call]:
    import maitred.http.requests

    return _of_requests(url, callers, maitred.http.requests.Adapter())


def requests_ready(url: str, callers: int, size: int) -> list[Call]:
    return _of_requests(url, callers, ready.adapter(size))


def _of_requests(url: str, callers: int, adapter: Any) -> list[Call]:
    import requests

    session = requests.Session()
    session.mount("http://", adapter)

    def call() -> Answer:
        response = session.get(url)
        return response.status_code, len(response.content)

    return [call] * callers


def of_niquests(url: str, callers: int, size: int) -> list[Call]:
    import niquests

    session = niquests.Session(pool_maxsize=callers)

    def call() -> Answer:
        response = session.get(url)
        return response.status_code or 0, len(response.content or b"")

    return [call] * callers


def of_httpx(url: str, callers: int, size: int) -> list[Call]:
    import httpx

    return _of_httpx(url, callers, httpx.Client(limits=httpx.Limits(max_connections=callers, max_keepalive_connections=callers)))


def of_httpx2(url: str, callers: int, size: int) -> list[Call]:
    import httpx2

    return _of_httpx(url, callers, httpx2.Client(limits=httpx2.Limits(max_connections=callers, max_keepalive_connections=callers)))


def httpx_of_maitred(url: str, callers: int, size: int) -> list[Call]:
    import httpx
    import maitred.http.httpx

    return _of_httpx(url, callers, httpx.Client(transport=maitred.http.httpx.Transport()))


def httpx2_of_maitred(url: str, callers: int, size: int) -> list[Call]:
    import httpx2
    import maitred.http.httpx2

    return _of_httpx(url, callers, httpx2.Client(transport=maitred.http.httpx2.Transport()))


def httpx_ready(url: str, callers: int, size: int) -> list[Call]:
    import httpx

    return _of_httpx(url, callers, httpx.Client(transport=ready.transport(httpx, size)))


def httpx2_ready(url: str, callers: int, size: int) -> list[Call]:
    import httpx2

    return _of_httpx(url, callers, httpx2.Client(transport=ready.transport(httpx2, size)))


def _of_httpx(url: str, callers: int, client: Any) -> list[Call]:
    def call() -> Answer:
        response = client.get(url)
        return response.status_code, len(response.content)

    return [call] * callers


def of_curl(url: str, callers: int, size: int) -> list[Call]:
    """A process for each call."""
    command = ["curl", "--silent", "--show-error", "--fail", url]

    def call() -> Answer:
        return 200, len(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)

    return [call] * callers


CALLS: dict[str, Callable[[str, int, int], list[Call]]] = {
    "maitred.http": of_maitred, "pycurl": of_pycurl, "pyreqwest": of_pyreqwest, "http.client": of_http_client, "urllib3": of_urllib3,
    "requests": of_requests, "niquests": of_niquests, "httpx": of_httpx, "httpx2": of_httpx2, "curl, a process for each call": of_curl,
    "httpx over maitred": httpx_of_maitred, "httpx2 over maitred": httpx2_of_maitred, "requests over maitred": requests_of_maitred,
    "httpx, floor": httpx_ready, "httpx2, floor": httpx2_ready, "requests, floor": requests_ready,
}
