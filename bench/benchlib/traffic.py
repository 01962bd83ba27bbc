"""What the Python benches send: requests as bytes, bare or as a browser would send them, and what must come back."""

from __future__ import annotations

import contextlib
import dataclasses
import http.client
import random
import selectors
import socket
import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .load import WrongAnswer

#: How many different requests a varied workload has: more than one connection's worth, few enough for the load's cache.
VARIANTS = 64

_LANGUAGES = ("de-CH,de;q=0.9,en;q=0.8", "en-GB,en;q=0.9", "fr-FR,fr;q=0.8,en;q=0.5")


@dataclass(frozen=True)
class Request:
    """A request as it goes over the wire, and the body of its answer (`None`: what the first server says)."""

    wire: bytes
    answer: bytes | None = None
    #: Not among the measured latencies.
    background: bool = False


def bare(path: str, answer: bytes | None = None, body: bytes = b"", media: str = "application/octet-stream") -> Request:
    """GET, or POST with a body; no field that HTTP does not ask for."""
    return Request(_wire(path, [], body, media), answer)


def browser(number: int, path: str, answer: bytes | None = None, body: bytes = b"") -> Request:
    """The same with the twelve fields of a browser on a site it knows (a POST has two more, for its body)."""
    fields = [
        "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
        "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
        f"Accept-Language: {_LANGUAGES[number % len(_LANGUAGES)]}",
        "Accept-Encoding: gzip, deflate, br, zstd",
        "Connection: keep-alive",
        f"Referer: http://localhost/shop/items/{number:05d}",
        f"Cookie: session={number * 2654435761 % 2**64:016x}; theme=dark; consent=none",
        "Upgrade-Insecure-Requests: 1",
        "Sec-Fetch-Dest: document",
        "Sec-Fetch-Mode: navigate",
        "Sec-Fetch-Site: same-origin",
    ]
    return Request(_wire(path, fields, body), answer)


def varied(answer: bytes | None = None, body: bytes = b"", prefix: str = "/shop/items/") -> list[Request]:
    """Browser's requests for different paths."""
    return [browser(number, f"{prefix}{number:05d}?ref=list&page={number % 9}", answer, body)
            for number in range(VARIANTS)]


def mixed(fast: Request, slow: Request, count: int = 1000, share: float = 0.1) -> list[Request]:
    """A share of slow requests, in the background, among fast ones: in an order that is the same in every run."""
    return blend([(dataclasses.replace(slow, background=True), share), (fast, 1 - share)], count)


def blend(parts: Sequence[tuple[Request, float]], count: int = 1000) -> list[Request]:
    """Shares of several requests, in an order that is the same in every run."""
    requests = [request for request, share in parts for _ in range(round(count * share))]
    random.Random(1).shuffle(requests)
    return requests


def _wire(path: str, fields: Sequence[str], body: bytes, media: str = "application/octet-stream") -> bytes:
    lines = [f"{'POST' if body else 'GET'} {path} HTTP/1.1", "Host: localhost", *fields]
    if body:
        lines += [f"Content-Type: {media}", f"Content-Length: {len(body)}"]
    return "\r\n".join([*lines, "", ""]).encode() + body


def settle(name: str, port: int, requests: Sequence[Request]) -> list[Request]:
    """Send every one over a connection and compare the answers; what `answer` left open is settled by them."""
    settled: dict[Request, Request] = {}
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        for request in dict.fromkeys(requests):
            settled[request] = _settle(name, connection, request)
    return [settled[request] for request in requests]


def burst(name: str, port: int, request: Request, count: int) -> list[float]:
    """Send the request over so many new connections at once, and wait for all answers; gives how long each took, in
    seconds."""
    with contextlib.ExitStack() as stack:
        connections = [stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=10))
                       for _ in range(count)]
        selector = stack.enter_context(selectors.DefaultSelector())
        start = time.monotonic()
        for connection in connections:
            connection.sendall(request.wire)
            selector.register(connection, selectors.EVENT_READ)
        times: list[float] = []
        # In the order in which they come, so that nobody waits for the clock behind a slower one.
        while len(times) < count:
            ready = selector.select(timeout=10)
            if not ready:
                raise WrongAnswer(f"{name}: {count - len(times)} of a burst of {count} got no answer for 10 s")
            for key, _ in ready:
                selector.unregister(key.fileobj)
                assert isinstance(key.fileobj, socket.socket)
                _answer(name, key.fileobj, request)
                times.append(time.monotonic() - start)
    return times


def _settle(name: str, connection: socket.socket, request: Request) -> Request:
    connection.sendall(request.wire)
    return dataclasses.replace(request, answer=_answer(name, connection, request))


def _answer(name: str, connection: socket.socket, request: Request) -> bytes:
    line = request.wire.partition(b"\r\n")[0].decode()
    try:
        answer = http.client.HTTPResponse(connection, method=line.split()[0])
        answer.begin()
        body = answer.read()
    except (OSError, http.client.HTTPException) as error:
        raise WrongAnswer(f"{name} did not answer {line}: {error!r}") from error
    if answer.status != 200 or (request.answer is not None and body != request.answer):
        raise WrongAnswer(f"{name} answered {line} with {answer.status} and {len(body)} other bytes")
    return body


def write(path: Path, requests: Sequence[Request]) -> Path:
    """Write settled requests for `bench/openloop` (its `requests.rs` says how)."""
    records = []
    for request in requests:
        assert request.answer is not None, "not settled"
        records.append(struct.pack("<III", len(request.wire), len(request.answer), request.background) + request.wire)
    path.write_bytes(b"".join(records))
    return path
