"""Addresses, wildcards and names on demand; accounts that are bound to others, and chains."""

from __future__ import annotations

import contextlib
import signal
import ssl
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from authority import EAB, Pebble, needs_pebble, pebble
from certificates import Authority, authority, connected
from conftest import Serve
from crews import until
from ordering import APP, LONG, both, ca, given, options, serial, served, set_back, state

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


@LONG
def test_an_account_is_bound_to_another_one_whose_key_a_reload_reads_again(serve: Serve, authority: Authority, tmp_path: Path) -> None:
    with pebble(tmp_path / "pebble", authority, eab=True) as ca:
        first = serve(*options(ca, tmp_path / "first"), source=APP)
        first.wait_for(r"error acme: shop\.example: .*acme-eab.*")
        first.kill()
        (tmp_path / "eab").write_text(f"{EAB[0]}:{EAB[1][::-1]}")
        server = serve(*options(ca, tmp_path), "--acme-eab", str(tmp_path / "eab"), source=APP)
        ca.leads_to(server)
        server.wait_for(r"error acme: shop\.example: .*")
        (tmp_path / "eab").write_text(":".join(EAB))
        server.process.send_signal(signal.SIGHUP)
        served(server.ports[1], ca.client())
        assert EAB[1] not in server.said and EAB[1][::-1] not in server.said


def test_the_preferred_chain_is_taken(serve: Serve, authority: Authority, tmp_path: Path) -> None:
    with pebble(tmp_path / "pebble", authority, alternate_roots=2, chain_length=2) as ca:
        (tmp_path / "root.pem").write_text(ca.root(2))
        name = ca.root_name(2)
        server = serve(*options(ca, tmp_path), "--acme-chain", name, source=APP)
        ca.leads_to(server)
        served(server.ports[1], ca.client(2))
        assert serial(server.ports[1], ca.client(0)) is None


@LONG
def test_a_hook_answers_for_a_wildcard(serve: Serve, ca: Pebble, tmp_path: Path) -> None:
    (tmp_path / "hook.py").write_text(HOOK % ca.names)
    hook = f"{sys.executable} {tmp_path / 'hook.py'}"
    server = serve(*options(ca, tmp_path, "*.shop.example"), "--acme-challenge", "dns", "--acme-hook", hook, source=APP)
    served(server.ports[1], ca.client(), "any.shop.example")
    assert ca.http.count == ca.tls.count == 0
    log = tmp_path / "hook.py.log"
    until("the record is gone", lambda: log.read_text() == "add _acme-challenge.shop.example\nremove _acme-challenge.shop.example\n")


#: Stays until it is killed, or behind its record.
STAYS = """
import signal, sys
with open(sys.argv[0] + ".log", "a") as log:
    log.write(f"{sys.argv[1]} {sys.argv[2]}\\n")
if sys.argv[1] == "add":
    signal.pause()
"""


def test_the_end_waits_for_no_hook_and_its_record_is_removed(serve: Serve, ca: Pebble, tmp_path: Path) -> None:
    hook, log = tmp_path / "hook.py", tmp_path / "hook.py.log"
    hook.write_text(STAYS)
    arguments = (*options(ca, tmp_path), "--acme-challenge", "dns", "--acme-hook", f"{sys.executable} {hook}")
    server = serve(*arguments, source=APP)
    until("the hook runs", lambda: log.exists() and log.read_text().startswith("add "))
    assert server.stop() == 0, server.said
    assert state(tmp_path)["fault"] is None, "an end is no fault of the hook"
    hook.write_text(HOOK % ca.names)
    set_back(tmp_path, hours=1)
    server = serve(*arguments, source=APP)
    served(server.ports[1], ca.client())
    assert log.read_text().split("\n")[:2] == ["add _acme-challenge.shop.example", "remove _acme-challenge.shop.example"]


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


@contextlib.contextmanager
def knowing() -> Iterator[tuple[str, list[str]]]:
    """The address of an application that is asked, and the paths of the questions."""
    asked: list[str] = []
    with ThreadingHTTPServer(("127.0.0.1", 0), type("Asked", (Knows,), {"asked": asked})) as application:
        threading.Thread(target=application.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{application.server_port}/ask", asked
        application.shutdown()


@LONG
def test_names_on_demand_are_those_that_the_application_knows(serve: Serve, ca: Pebble, tmp_path: Path) -> None:
    with knowing() as (ask, asked):
        demand = ("--acme-on-demand", "*.shop.example", "--acme-ask", ask)
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
    assert sorted(asked) == ["/ask?domain=bad.shop.example", "/ask?domain=good.shop.example"], "a no is kept"
    assert {name for order in ca.orders for name in order.names} == {"shop.example", "good.shop.example"}


def test_a_name_that_is_refused_at_its_renewal_is_served_on(serve: Serve, ca: Pebble, authority: Authority, tmp_path: Path) -> None:
    old = given(tmp_path, authority, 9, "bad.shop.example")
    with knowing() as (ask, asked):
        server = serve(*options(ca, tmp_path), "--acme-on-demand", "*.shop.example", "--acme-ask", ask, source=APP)
        ca.leads_to(server)
        said = server.wait_for(r"warn acme: bad\.shop\.example: .*")[0]
        assert "acme-ask" in said, said
        assert asked == ["/ask?domain=bad.shop.example"]
        served(server.ports[1], ca.client())
        assert serial(server.ports[1], both(ca), "bad.shop.example") == old
        assert server.stop() == 0, server.said
    assert not any("bad.shop.example" in order.names for order in ca.orders)


def serial_or_refusal(port: int, client: ssl.SSLContext, name: str) -> str | None:
    try:
        return serial(port, client, name)
    except ssl.SSLError:
        return None
