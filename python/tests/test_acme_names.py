"""Names by DNS-01 and names on demand; and challenges are answered whatever else is configured."""

from __future__ import annotations

import ssl
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from authority import Pebble, needs_pebble
from certificates import Authority, authority
from conftest import Serve
from crews import until
from ordering import APP, LISTEN, accepted, ca, options, serial, served

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


def test_challenges_come_before_redirects_passwords_proxies_and_client_certificates(
    serve: Serve, ca: Pebble, authority: Authority, tmp_path: Path
) -> None:
    (tmp_path / "users").write_text("user:{PLAIN}secret\\n")
    listen = ("--listen", "http://127.0.0.1:0,redirect=https", *LISTEN[2:])
    plain = options(ca, tmp_path, "a.example")[: -len(LISTEN)]
    (tmp_path / "maitred.toml").write_text(
        f'tls-client-auth = "required"\ntls-client-ca = "{authority.file}"\n[[filter]]\npath = "/*"\naccess = "deny all"\n'
    )
    for challenge in ("http", "tls-alpn"):
        server = serve(*plain, "--acme-challenge", challenge, *listen, source=APP)
        ca.leads_to(server)
        until("it is ordered", lambda: accepted(ca, "a.example") > 0)
        server.wait_for("a.example")
        until("it is there", lambda: (tmp_path / "acme/certificates/a.example/current.pem").exists())
        assert server.stop() == 0, server.said
        for file in (tmp_path / "acme/certificates/a.example").iterdir():
            file.unlink()
