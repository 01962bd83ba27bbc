"""A client that is made, and has called, before workers are forked: each worker has connections of its own."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from conftest import PATIENCE, Serve
from test_preload import PRELOAD, sockets, template, workers
from upstreams import Upstream, upstream

APP = """
import os, threading
from maitred._engine import HttpOrigin, HttpPool

POOL = HttpPool(idle=60)
ORIGIN = HttpOrigin("http", "127.0.0.1", int(os.environ["SERVICE"]))

def ask(target):
    return POOL.send(ORIGIN, "GET", target, [(b"Host", b"localhost")], None, (30,) * 6)

assert ask(b"/hello").read() == b"hello"
# A call is under way while workers are forked.
under_way = ask(b"/bytes/1000000")

def app(environ, start_response):
    body = ask(environ["PATH_INFO"].encode()).read()
    start_response("200 OK", [("Content-Type", "text/plain"), ("Worker", str(os.getpid()))])
    return [body]
"""


@pytest.fixture
def service() -> Iterator[Upstream]:
    with upstream() as running:
        yield running


def test_workers_have_connections_of_their_own(serve: Serve, service: Upstream) -> None:
    server = serve(*PRELOAD, source=APP, SERVICE=str(service.port))
    pids = workers(server)
    kept = sockets(template(server))

    def ask(number: int) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
        connection.request("GET", f"/bytes/{number}")
        response = connection.getresponse()
        found = int(response.headers["Worker"]), response.read()
        connection.close()
        return found

    answered: set[int] = set()
    with ThreadPoolExecutor(8) as clients:
        while answered != set(pids):
            for number, (worker, body) in zip(range(100, 140), clients.map(ask, range(100, 140))):
                # An answer that belongs to another call has another length.
                assert len(body) == number
                answered.add(worker)
    # No worker keeps a connection of the process that has made the client.
    for pid in pids:
        assert not service_connections(pid, service.port) & kept
    assert len(service_connections(template(server), service.port)) == 1


def service_connections(pid: int, port: int) -> set[str]:
    """The sockets of a process that are connected to this port."""
    with open(f"/proc/{pid}/net/tcp") as table:
        rows = [line.split() for line in table.readlines()[1:]]
    inodes = {f"socket:[{row[9]}]" for row in rows if row[2].endswith(f":{port:04X}") and row[3] == "01"}
    return sockets(pid) & inodes
