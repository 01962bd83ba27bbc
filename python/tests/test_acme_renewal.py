"""Certificates by ACME are renewed when the authority says so, under load, and never more often than they may be."""

from __future__ import annotations

from pathlib import Path

import pytest
from authority import Pebble, needs_pebble
from certificates import authority, connected, handshakes
from conftest import Serve
from crews import Start, crew, until
from ordering import APP, NAME, accepted, ca, current, forget_window, leaf, options, served, set_back

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


def test_renewal_under_load_costs_no_handshake(serve: Serve, crew: Start, ca: Pebble, tmp_path: Path) -> None:
    old = first(serve, ca, tmp_path)
    key = current(tmp_path).read_text().partition("PRIVATE KEY")[2]
    ca.set_window(leaf(tmp_path), 0, 1)
    with ca.gate("newOrder") as gate:
        server = crew(*options(ca, tmp_path), source=APP)
        ca.leads_to(server)
        client = ca.client()
        with connected(server.ports[1], client, NAME) as kept, handshakes(server.ports[1], client, NAME) as seen:
            assert gate.reached.wait(30), server.said
            assert set(seen) == {old}
            gate.opened.set()
            until("all see the new one", lambda: len(seen) > 32 and len(set(seen[-32:])) == 1 and seen[-1] != old)
            kept.sendall(b"GET / HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n\r\n")
            assert kept.recv(15) == b"HTTP/1.1 200 OK"
    assert set(seen) == {old, seen[-1]}, "not one has failed"
    renewal = [order for order in ca.orders if order.status == 201][1]
    assert renewal.replaces and accepted(ca) == 2
    assert current(tmp_path).read_text().partition("PRIVATE KEY")[2] != key, "with a key of its own"


def test_a_window_in_the_past_is_that_of_one_certificate(serve: Serve, ca: Pebble, tmp_path: Path) -> None:
    old = first(serve, ca, tmp_path)
    ca.set_window(leaf(tmp_path), -7200, -3600)
    server = serve(*options(ca, tmp_path), source=APP)
    ca.leads_to(server)
    count = asked(ca)
    new = served(server.ports[1], ca.client(), but=old)
    until("the window of the new one is asked for", lambda: asked(ca) >= count + 2)
    assert server.stop() == 0, server.said
    # Its own window in the past, too: not twice within an hour.
    ca.set_window(leaf(tmp_path), -7200, -3600)
    set_back(tmp_path, hours=0.9)
    forget_window(tmp_path)
    count = asked(ca)
    server = serve(*options(ca, tmp_path), source=APP)
    ca.leads_to(server)
    until("it is asked for", lambda: asked(ca) > count)
    assert served(server.ports[1], ca.client()) == new
    assert server.stop() == 0, server.said
    assert accepted(ca) == 2, ca.orders


def test_what_is_replaced_already_is_ordered_without_that(serve: Serve, ca: Pebble, tmp_path: Path) -> None:
    old = first(serve, ca, tmp_path)
    ca.set_window(leaf(tmp_path), -7200, -3600)
    ca.fail("newOrder", 409, "alreadyReplaced", "certificate already has a replacement order")
    server = serve(*options(ca, tmp_path), source=APP)
    ca.leads_to(server)
    served(server.ports[1], ca.client(), but=old)
    orders = [order for order in ca.orders if order.status in (201, 409)]
    assert [(order.status, bool(order.replaces)) for order in orders] == [(201, False), (409, True), (201, False)]


@pytest.mark.parametrize("status", [0, 503, 404])
def test_a_window_that_is_not_said_changes_nothing(status: int, serve: Serve, ca: Pebble, tmp_path: Path) -> None:
    old = first(serve, ca, tmp_path)
    ca.fail("renewalInfo", status, "serverInternal", "later", times=None, Retry_After="21600")
    count = asked(ca)
    server = serve(*options(ca, tmp_path), source=APP)
    until("it has asked", lambda: asked(ca) > count)
    assert served(server.ports[1], ca.client()) == old
    assert server.stop() == 0, server.said
    assert accepted(ca) == 1


@pytest.mark.parametrize("kind", ["rateLimited", "unauthorized", "userActionRequired", "serverInternal"])
def test_the_old_one_serves_while_a_renewal_fails(kind: str, serve: Serve, ca: Pebble, tmp_path: Path) -> None:
    old = first(serve, ca, tmp_path)
    ca.set_window(leaf(tmp_path), -7200, -3600)
    status, fields = (429, {"Retry_After": "7200"}) if kind == "rateLimited" else (403 if kind != "serverInternal" else 500, {})
    ca.fail("newOrder", status, kind, "the words of the authority", times=None, **fields)
    server = serve(*options(ca, tmp_path), source=APP)
    said = server.wait_for(r"warn acme: shop\.example: .*the words of the authority.*")[0]
    assert "the old certificate serves on" in said and "the next attempt is in " in said, said
    assert kind != "rateLimited" or int(said.partition("attempt is in ")[2].split()[0]) >= 120, said
    assert served(server.ports[1], ca.client()) == old
    assert server.stop() == 0, server.said
    # What an authority refuses because of the old certificate is asked for again without it, once.
    tries = [bool(order.replaces) for order in ca.orders if order.status == status]
    assert tries == ([True, False] if status == 403 else [True]), ca.orders
