"""Certificates by ACME are renewed when the authority says so, under load, and never more often than they may be."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from authority import Pebble, needs_pebble
from certificates import Authority, authority, connected, handshakes
from conftest import PATIENCE, Serve
from crews import Start, crew, until
from ordering import APP, LONG, NAME, accepted, both, ca, current, forget_window, given, leaf, options, serial, served, set_back, state

__all__ = ["authority", "ca", "crew"]

pytestmark = needs_pebble


def first(serve: Serve, ca: Pebble, folder: Path) -> str:
    """A folder with a certificate that was ordered seven hours ago; its serial."""
    server = serve(*options(ca, folder), source=APP)
    ca.leads_to(server)
    found = served(server.ports[1], ca.client())
    assert server.stop() == 0, server.said
    set_back(folder, hours=7)
    return found


def asked(ca: Pebble) -> int:
    """How often for a window."""
    return ca.requests.count("renewalInfo")


def test_renewal_under_load_costs_no_handshake(crew: Start, ca: Pebble, authority: Authority, tmp_path: Path) -> None:
    old = given(tmp_path, authority, days=9)
    key = current(tmp_path).read_text().partition("PRIVATE KEY")[2]
    client = both(ca)
    with ca.gate("newOrder") as gate:
        server = crew(*options(ca, tmp_path), source=APP)
        ca.leads_to(server)
        with connected(server.ports[1], client, NAME) as kept, handshakes(server.ports[1], client, NAME) as seen:
            assert gate.reached.wait(PATIENCE), server.said
            assert set(seen) == {old}
            gate.opened.set()
            until("all see the new one", lambda: len(seen) > 32 and len(set(seen[-32:])) == 1 and seen[-1] != old)
            kept.sendall(b"GET / HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n\r\n")
            assert kept.recv(15) == b"HTTP/1.1 200 OK"
    assert set(seen) == {old, seen[-1]}, "not one has failed"
    assert accepted(ca) == 1
    assert current(tmp_path).read_text().partition("PRIVATE KEY")[2] != key, "with a key of its own"


def test_a_window_in_the_past_is_that_of_one_certificate(serve: Serve, ca: Pebble, tmp_path: Path) -> None:
    old = first(serve, ca, tmp_path)
    ca.set_window(leaf(tmp_path), -7200, -3600)
    server = serve(*options(ca, tmp_path), source=APP)
    ca.leads_to(server)
    count = asked(ca)
    new = served(server.ports[1], ca.client(), but=old)
    assert [bool(order.replaces) for order in ca.orders if order.status == 201] == [False, True]
    until("the window of the new one is asked for", lambda: asked(ca) >= count + 2)
    assert server.stop() == 0, server.said
    # Its own window in the past, too: not twice within an hour.
    ca.set_window(leaf(tmp_path), -7200, -3600)
    set_back(tmp_path, hours=0.9)
    forget_window(tmp_path)
    server = serve(*options(ca, tmp_path), source=APP)
    ca.leads_to(server)
    until("the window is known", lambda: state(tmp_path)["schedule"]["window"] is not None)
    assert state(tmp_path)["next"] > time.time() + 60
    assert served(server.ports[1], ca.client()) == new
    assert server.stop() == 0, server.said
    assert accepted(ca) == 2, ca.orders


def test_a_certificate_that_is_replaced_already_is_ordered_without_that(serve: Serve, ca: Pebble, authority: Authority, tmp_path: Path) -> None:
    given(tmp_path, authority, days=9)
    ca.fail("newOrder", 409, "alreadyReplaced", "certificate already has a replacement order")
    server = serve(*options(ca, tmp_path), source=APP)
    ca.leads_to(server)
    served(server.ports[1], ca.client())
    orders = [(order.status, bool(order.replaces)) for order in ca.orders if order.status in (201, 409)]
    assert orders == [(409, True), (201, False)]


@pytest.mark.parametrize("status", [503, pytest.param(0, marks=LONG), pytest.param(404, marks=LONG)])
def test_a_window_that_is_not_said_changes_nothing(status: int, serve: Serve, ca: Pebble, authority: Authority, tmp_path: Path) -> None:
    old = given(tmp_path, authority, days=60)
    ca.fail("renewalInfo", status, "serverInternal", "later", times=None, Retry_After="21600")
    server = serve(*options(ca, tmp_path), source=APP)
    until("it has asked", lambda: asked(ca) > 0)
    assert serial(server.ports[1], both(ca)) == old
    assert server.stop() == 0, server.said
    assert not ca.orders


@pytest.mark.parametrize(
    ("status", "kind", "least"), [(429, "rateLimited", 120), (403, "userActionRequired", 1), (403, "unauthorized", 1), (500, "serverInternal", 1)]
)
def test_the_old_one_serves_while_a_renewal_fails(
    status: int, kind: str, least: int, serve: Serve, ca: Pebble, authority: Authority, tmp_path: Path
) -> None:
    old = given(tmp_path, authority, days=9)
    ca.fail("newOrder", status, kind, "the words of the authority", times=None, Retry_After="7200" if status == 429 else "1")
    server = serve(*options(ca, tmp_path), source=APP)
    said = server.wait_for(r"warn acme: shop\.example: .*the words of the authority.*the old certificate serves on, .* next attempt is in (\d+) min")
    assert least <= int(said[1]) <= least + 20, said[0]
    assert serial(server.ports[1], both(ca)) == old
    assert server.stop() == 0, server.said
    assert not accepted(ca)
    # An order that is refused because of the old certificate comes again without it.
    tries = [bool(order.replaces) for order in ca.orders if order.status == status]
    assert tries[-1] == (status != 403) and len(tries) <= 3, ca.orders
