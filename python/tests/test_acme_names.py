"""Addresses, wildcards and names on demand; accounts that are bound to others, and chains."""

from __future__ import annotations

import ssl
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from authority import EAB, Pebble, needs_pebble, pebble
from certificates import Authority, authority, connected
from conftest import Serve
from crews import until
from ordering import APP, ca, options, serial, served

__all__ = ["authority", "ca"]

pytestmark = needs_pebble

#: Called with the arguments or the variables that the reference names.
HOOK = """
import json, sys, urllib.request
what, name, value = sys.argv[1:4]
command, told = ("set-txt", {"host": name + ".", "value": value}) if what == "add" else ("clear-txt", {"host": name + "."})
urllib.request.urlopen("http://127.0.0.1:%d/" + command, json.dumps(told).encode())
open(sys.argv[0] + ".log", "a").write(f"{what} {name}\\n")
"""


def test_an_address_has_a_short_lived_certificate(serve: Serve, ca: Pebble, tmp_path: Path) -> None:
    server = serve(*options(ca, tmp_path, "127.0.0.1"), source=APP)
    ca.leads_to(server)
    client = ca.client()
    served(server.ports[1], client, "127.0.0.1")
    with connected(server.ports[1], client, "127.0.0.1") as peer:
        shown = peer.getpeercert() or {}
    lifetime = ssl.cert_time_to_seconds(str(shown["notAfter"])) - ssl.cert_time_to_seconds(str(shown["notBefore"]))
    assert lifetime < 7 * 86400, shown
    assert [order.profile for order in ca.orders if order.status == 201] == ["shortlived"]


def test_an_account_is_bound_to_another_one(serve: Serve, authority: Authority, tmp_path: Path) -> None:
    with pebble(tmp_path / "pebble", authority, eab=True) as ca:
        first = serve(*options(ca, tmp_path / "first"), source=APP)
        first.wait_for(r"error acme: shop\.example: .*acme-eab.*")
        first.kill()
        (tmp_path / "eab").write_text(":".join(EAB))
        server = serve(*options(ca, tmp_path), "--acme-eab", str(tmp_path / "eab"), source=APP)
        ca.leads_to(server)
        served(server.ports[1], ca.client())
        assert EAB[1] not in server.said


def test_the_preferred_chain_is_taken(serve: Serve, authority: Authority, tmp_path: Path) -> None:
    with pebble(tmp_path / "pebble", authority, alternate_roots=2, chain_length=2) as ca:
        (tmp_path / "root.pem").write_text(ca.root(2))
        name = ca.root_name(2)
        server = serve(*options(ca, tmp_path), "--acme-chain", name, source=APP)
        ca.leads_to(server)
        served(server.ports[1], ca.client(2))
        assert serial(server.ports[1], ca.client(0)) is None


def test_a_hook_answers_for_a_wildcard(serve: Serve, ca: Pebble, tmp_path: Path) -> None:
    (tmp_path / "hook.py").write_text(HOOK % ca.names)
    hook = f"{sys.executable} {tmp_path / 'hook.py'}"
    server = serve(*options(ca, tmp_path, "*.shop.example"), "--acme-challenge", "dns", "--acme-hook", hook, source=APP)
    served(server.ports[1], ca.client(), "any.shop.example")
    assert ca.http.count == ca.tls.count == 0
    log = tmp_path / "hook.py.log"
    until("the record is gone", lambda: log.read_text() == "add _acme-challenge.shop.example\nremove _acme-challenge.shop.example\n")


def test_a_hook_that_fails_is_named_with_its_words(serve: Serve, ca: Pebble, tmp_path: Path) -> None:
    (tmp_path / "hook.py").write_text("import sys; sys.exit('no key of the provider')")
    hook = f"{sys.executable} {tmp_path / 'hook.py'}"
    server = serve(*options(ca, tmp_path), "--acme-challenge", "dns", "--acme-hook", hook, source=APP)
    said = server.wait_for(r"error acme: shop\.example: .*")[0]
    assert "acme-hook" in said and "no key of the provider" in server.said, said


class Knows(BaseHTTPRequestHandler):
    """The application that is asked, and knows one name."""

    asked: list[str]

    def do_GET(self) -> None:
        self.asked.append(self.path)
        self.send_response(200 if self.path == "/ask?domain=good.shop.example" else 404)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *arguments: object) -> None:
        """No lines between those of the tests."""


def test_names_on_demand_are_those_that_the_application_knows(serve: Serve, ca: Pebble, tmp_path: Path) -> None:
    asked: list[str] = []
    with ThreadingHTTPServer(("127.0.0.1", 0), type("Asked", (Knows,), {"asked": asked})) as application:
        threading.Thread(target=application.serve_forever, daemon=True).start()
        demand = ("--acme-on-demand", "*.shop.example", "--acme-ask", f"http://127.0.0.1:{application.server_port}/ask")
        server = serve(*options(ca, tmp_path), *demand, source=APP)
        ca.leads_to(server)
        client = ca.client()
        for name in ("shop.example", "good.shop.example"):
            served(server.ports[1], client, name)
        for name in ("bad.shop.example", "elsewhere.example", "a.b.shop.example"):
            assert serial_or_refusal(server.ports[1], client, name) is None
        until("the application is asked", lambda: "/ask?domain=bad.shop.example" in asked)
        for _ in range(5):
            assert serial_or_refusal(server.ports[1], client, "bad.shop.example") is None
        assert server.stop() == 0, server.said
        application.shutdown()
    assert sorted(asked) == ["/ask?domain=bad.shop.example", "/ask?domain=good.shop.example"], "a no is kept"
    assert {name for order in ca.orders for name in order.names} == {"shop.example", "good.shop.example"}


def serial_or_refusal(port: int, client: ssl.SSLContext, name: str) -> str | None:
    try:
        return serial(port, client, name)
    except ssl.SSLError:
        return None
