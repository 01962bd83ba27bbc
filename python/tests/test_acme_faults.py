"""Faults of an order: the server serves, its log says the remedy, and the order goes on behind it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from authority import Pebble, needs_pebble
from certificates import authority
from conftest import Serve
from crews import Start, crew, until
from ordering import APP, LONG, accepted, ca, hurry, options, serial, served, set_back

__all__ = ["authority", "ca", "crew"]

pytestmark = needs_pebble


class Elsewhere(BaseHTTPRequestHandler):
    """Another server, which knows no challenge."""

    def do_GET(self) -> None:
        self.send_error(404)

    def log_message(self, format: str, *arguments: object) -> None:
        """No lines between those of the tests."""


@contextmanager
def elsewhere(port: int) -> Iterator[str]:
    """An address, other than the server's, at which another one answers challenges."""
    with ThreadingHTTPServer(("127.0.0.2", port), Elsewhere) as other:
        threading.Thread(target=other.serve_forever, daemon=True).start()
        yield "127.0.0.2"
        other.shutdown()


def test_a_name_that_leads_elsewhere(serve: Serve, ca: Pebble, tmp_path: Path) -> None:
    with elsewhere(ca.http.port) as address:
        ca.tell_names("add-a", host="shop.example.", addresses=[address])
        server = serve(*options(ca, tmp_path), "--acme-challenge", "http", source=APP)
        ca.leads_to(server)
        said = server.wait_for(r"error acme: shop\.example: .*")[0]
        assert "404" in said and "port 80" in said, said
    assert serial(server.ports[1], ca.client()) is None
    assert server.fetch("/").body == b"served"
    ca.tell_names("clear-a", host="shop.example.")
    hurry(server)
    served(server.ports[1], ca.client())


@pytest.mark.parametrize("how", ["refuses", pytest.param("fails", marks=LONG), pytest.param("is strange", marks=LONG)])
def test_a_directory_that_is_not_there_and_comes_back(how: str, serve: Serve, ca: Pebble, tmp_path: Path) -> None:
    if how == "refuses":
        ca.is_down = True
    else:
        ca.fail("directory", 503 if how == "fails" else 200, "serverInternal", "under repair", times=None)
    server = serve(*options(ca, tmp_path), source=APP)
    ca.leads_to(server)
    said = server.wait_for(r"error acme: shop\.example: .*")[0]
    assert "/dir" in said or "directory" in said, said
    assert server.fetch("/").body == b"served"
    ca.is_down, ca.faults = False, []
    hurry(server)
    served(server.ports[1], ca.client())
    assert accepted(ca) == 1


def test_a_directory_of_another_authority_is_not_talked_to(serve: Serve, ca: Pebble, tmp_path: Path) -> None:
    # Without an authority of one's own the name is to be public.
    arguments = options(ca, tmp_path, "shop.maitred.dev")
    at = arguments.index("--acme-ca")
    server = serve(*arguments[:at], *arguments[at + 2 :], source=APP)
    said = server.wait_for(r"error acme: shop\.maitred\.dev: .*")[0]
    assert "acme-ca" in said, said
    assert not ca.requests


@pytest.mark.parametrize(
    "resource", ["chalZ", *(pytest.param(each, marks=LONG) for each in ("directory", "newNonce", "newAccount", "newOrder", "finalize-order", "certZ"))]
)
def test_the_end_waits_for_no_answer(resource: str, serve: Serve, ca: Pebble, tmp_path: Path) -> None:
    with ca.gate(resource) as gate:
        server = serve(*options(ca, tmp_path), source=APP)
        ca.leads_to(server)
        assert gate.reached.wait(30), server.said
        assert server.stop() == 0, server.said
    # The next one goes on from there. An order counts as failed from its start, so it waits.
    set_back(tmp_path, hours=1)
    server = serve(*options(ca, tmp_path), source=APP)
    ca.leads_to(server)
    served(server.ports[1], ca.client())


def test_a_reload_while_a_certificate_is_ordered(crew: Start, ca: Pebble, tmp_path: Path) -> None:
    with ca.gate("newOrder") as gate:
        server = crew(*options(ca, tmp_path), source=APP)
        ca.leads_to(server)
        assert gate.reached.wait(30), server.said
        before = server.workers()
        server.tell(signal.SIGHUP)
        until("all are others", lambda: len(server.workers()) == 2 and not server.workers() & before)
    client = ca.client()
    served(server.ports[1], client)
    until("all of them serve it", lambda: all(serial(server.ports[1], client) for _ in range(16)))
    assert accepted(ca) <= 2
    server.ends()
