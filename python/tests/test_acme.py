"""Certificates by ACME, ordered of Pebble: from an empty folder to a served certificate, without a restart."""

from __future__ import annotations

import ssl
import stat
from pathlib import Path

import pytest
from authority import Pebble, needs_pebble, pebble
from certificates import Authority, authority, fetch
from conftest import Serve
from crews import Start, crew, until
from ordering import APP, LISTEN, NAME, accepted, ca, current, options, serial, served

__all__ = ["authority", "ca", "crew"]

pytestmark = needs_pebble


@pytest.mark.parametrize("challenge", ["http", "tls-alpn"])
def test_the_start_does_not_wait_and_the_certificate_comes_without_a_restart(
    challenge: str, serve: Serve, ca: Pebble, tmp_path: Path
) -> None:
    with ca.gate("newOrder") as gate:
        server = serve(*options(ca, tmp_path), "--acme-challenge", challenge, source=APP)
        ca.leads_to(server)
        client = ca.client()
        assert gate.reached.wait(30)
        assert server.fetch("/").body == b"served"
        assert serial(server.ports[1], client) is None, "self-signed until then"
        client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
        assert fetch(server.ports[1], client, NAME).reply.body == b"served"
    client = ca.client()
    served(server.ports[1], client)
    assert fetch(server.ports[1], client, NAME).names == {NAME}
    used, other = (ca.http, ca.tls) if challenge == "http" else (ca.tls, ca.http)
    assert used.count > 0 and other.count == 0
    assert accepted(ca) == 1
    assert server.stop() == 0, server.said
    assert not [place for place in (tmp_path / "acme/challenges").rglob("*") if place.is_file()], "what was answered is gone"
    modes = {place: stat.S_IMODE(place.stat().st_mode) for place in [tmp_path / "acme", *(tmp_path / "acme").rglob("*")]}
    wrong = {str(place): oct(mode) for place, mode in modes.items() if mode != (0o700 if place.is_dir() else 0o600)}
    assert not wrong, wrong


def test_every_worker_answers_and_serves(crew: Start, ca: Pebble, tmp_path: Path) -> None:
    server = crew(*options(ca, tmp_path), source=APP)
    ca.leads_to(server)
    client = ca.client()
    served(server.ports[1], client)
    until("all of them serve it", lambda: all(serial(server.ports[1], client) for _ in range(16)))
    assert accepted(ca) == 1
    server.ends()


def test_hosts_have_certificates_of_their_own_and_a_bad_name_stops_no_other(serve: Serve, authority: Authority, tmp_path: Path) -> None:
    (tmp_path / "maitred.toml").write_text(
        'application = "app.py"\nacme = "you@shop.example"\n[host."shop.example"]\nnames = "www.shop.example"\napplication = "app.py"\n'
        '[host."blog.example"]\napplication = "app.py"\n[host."bad.example"]\napplication = "app.py"\n'
        '[host."own.example"]\nacme = "off"\napplication = "app.py"\n'
    )
    (tmp_path / "app.py").write_text(APP)
    with pebble(tmp_path / "pebble", authority, blocked=("bad.example",)) as ca:
        server = serve(*ca.options, "--acme-folder", str(tmp_path / "acme"), *LISTEN)
        ca.leads_to(server)
        client = ca.client()
        serials = {served(server.ports[1], client, name) for name in ("shop.example", "www.shop.example", "blog.example")}
        assert len(serials) > 1
        said = server.wait_for(r"error acme: bad\.example: .*")[0]
        assert "forbidden by policy" in said, said
        assert serial(server.ports[1], client, "bad.example") is None
        assert not accepted(ca, "bad.example")
        assert not any("own.example" in order.names for order in ca.orders)


def test_a_restart_orders_nothing(serve: Serve, ca: Pebble, tmp_path: Path) -> None:
    server = serve(*options(ca, tmp_path), source=APP)
    ca.leads_to(server)
    client = ca.client()
    first = served(server.ports[1], client)
    assert server.stop() == 0, server.said
    content = current(tmp_path).read_bytes()
    ca.is_down = True
    server = serve(*options(ca, tmp_path), source=APP)
    assert serial(server.ports[1], client) == first, "from the first handshake on"
    assert server.stop() == 0, server.said
    assert current(tmp_path).read_bytes() == content and accepted(ca) == 1
