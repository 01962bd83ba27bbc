"""What applications, logs, rules and the control are told of the TLS session by which a request has come."""

from __future__ import annotations

import http.client
import json
import re
import socket
import ssl
import subprocess
from pathlib import Path
from typing import Any

import pytest
from certificates import Answer, Authority, Pair, authority, connected, fetch, needs_openssl, openssl
from conftest import MAITRED, PATIENCE, Reply, Serve

__all__ = ["authority"]

pytestmark = needs_openssl

WSGI = """
import json

def app(environ, start_response):
    seen = {key: environ[key] for key in environ if key.startswith("SSL_") or key in ("HTTPS", "wsgi.url_scheme", "HTTP_SSL_CLIENT_VERIFY", "HTTP_HTTPS")}
    start_response("200 OK", [("Content-Type", "application/json")])
    return [json.dumps(seen).encode()]
"""

ASGI = """
import json

async def app(scope, receive, send):
    if scope["type"] != "http":
        return
    told = json.dumps({"scheme": scope["scheme"], "tls": scope["extensions"].get("tls")}).encode()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": told})
"""

POOL = """
import threading

def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [threading.current_thread().name.encode()]
"""


class Clients:
    """An authority for clients, with subjects and names of its own."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.folder, self.file = folder, folder / "ca.pem"
        making: list[str | Path] = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30"]
        openssl(*making, "-subj", "/CN=Authority of clients", "-keyout", folder / "ca.key", "-out", self.file)

    def issue(self, subject: str, *names: str) -> Pair:
        stem = self.folder / re.sub(r"\W", "_", subject)
        pair, request = Pair(stem.with_suffix(".pem"), stem.with_suffix(".key")), stem.with_suffix(".csr")
        extensions = stem.with_suffix(".ext")
        making: list[str | Path] = ["req", "-new", "-utf8", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", subject]
        openssl(*making, "-keyout", pair.key, "-out", request)
        extensions.write_text("extendedKeyUsage=clientAuth\n" + (f"subjectAltName={','.join(names)}\n" if names else ""))
        signing: list[str | Path] = ["x509", "-req", "-in", request, "-CA", self.file, "-CAkey", self.folder / "ca.key", "-set_serial", "0xABC1"]
        openssl(*signing, "-days", "30", "-extfile", extensions, "-out", pair.certificate)
        return pair

    @property
    def options(self) -> list[str]:
        return ["--tls-client-auth", "optional", "--tls-client-ca", str(self.file)]


@pytest.fixture
def clients(tmp_path: Path) -> Clients:
    return Clients(tmp_path / "clients")


def context_of(authority: Authority, own: Pair | None = None, version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3) -> ssl.SSLContext:
    context = authority.client()
    context.minimum_version = context.maximum_version = version
    if own:
        context.load_cert_chain(own.certificate, own.key)
    return context


def told(answer: Answer) -> dict[str, str]:
    assert answer.reply.status == 200
    return dict(json.loads(answer.reply.body))


def ask(peer: socket.socket, request: bytes) -> Reply:
    peer.sendall(request)
    response = http.client.HTTPResponse(peer)
    response.begin()
    return Reply(response)


def pem_of(pair: Pair) -> str:
    return pair.certificate.read_text()


def test_the_environ_has_the_names_of_mod_ssl(serve: Serve, authority: Authority, clients: Clients) -> None:
    server = serve(*authority.issue("localhost").options, *clients.options, source=WSGI)
    context = context_of(authority)
    with connected(server.port, context) as peer:
        cipher = peer.cipher()
    assert cipher
    plain = fetch(server.port, context)
    expected = {
        "HTTPS": "on",
        "SSL_CIPHER": cipher[0],
        "SSL_CLIENT_VERIFY": "NONE",
        "SSL_PROTOCOL": "TLSv1.3",
        "SSL_SESSION_RESUMED": "Initial",
        "SSL_TLS_SNI": "localhost",
        "wsgi.url_scheme": "https",
    }
    assert told(plain) == expected
    assert told(fetch(server.port, context, session=plain.session)) == expected | {"SSL_SESSION_RESUMED": "Resumed"}


def test_the_environ_says_who_the_client_is(serve: Serve, authority: Authority, clients: Clients) -> None:
    server = serve(*authority.issue("localhost").options, *clients.options, source=WSGI)
    own = clients.issue("/O=Shop, Ltd/CN=till zoë")
    context = context_of(authority, own, ssl.TLSVersion.TLSv1_2)
    first = fetch(server.port, context)
    seen = told(first)
    assert seen["SSL_CLIENT_S_DN"].encode("latin-1").decode() == "CN=till zoë,O=Shop\\, Ltd"
    assert (seen["SSL_CLIENT_VERIFY"], seen["SSL_CLIENT_I_DN"], seen["SSL_CLIENT_M_SERIAL"]) == ("SUCCESS", "CN=Authority of clients", "ABC1")
    decoded = ssl._ssl._test_decode_cert(str(own.certificate))  # type: ignore[attr-defined]
    assert seen["SSL_CLIENT_V_END"] == decoded["notAfter"]
    assert seen["SSL_CLIENT_CERT"] == pem_of(own)
    assert seen["SSL_PROTOCOL"] == "TLSv1.2"
    again = told(fetch(server.port, context, session=first.session))
    assert again == seen | {"SSL_SESSION_RESUMED": "Resumed"}, "a resumed session knows its client"


def test_fields_of_a_request_are_no_session(serve: Serve, authority: Authority, clients: Clients) -> None:
    claims = b"SSL_CLIENT_VERIFY: SUCCESS\r\nSSL-CLIENT-VERIFY: SUCCESS\r\nHTTPS: on\r\nSSL-Client-S-DN: CN=till\r\n"
    request = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + claims + b"\r\n"

    clear = serve(source=WSGI)
    with socket.create_connection(("127.0.0.1", clear.port), PATIENCE) as peer:
        seen = json.loads(ask(peer, request).body)
    assert seen == {"wsgi.url_scheme": "http", "HTTP_SSL_CLIENT_VERIFY": "SUCCESS", "HTTP_HTTPS": "on"}
    server = serve(*authority.issue("localhost").options, *clients.options, source=WSGI)
    with connected(server.port, context_of(authority)) as secured:
        seen = json.loads(ask(secured, request).body)
    assert seen["SSL_CLIENT_VERIFY"] == "NONE" and "SSL_CLIENT_S_DN" not in seen


def test_asgi_has_the_tls_extension(serve_asgi: Serve, authority: Authority, clients: Clients) -> None:
    pair = authority.issue("localhost")
    server = serve_asgi(*pair.options, *clients.options, source=ASGI)
    own = clients.issue("/O=Shop/CN=till 3")
    for given, version, number in [(None, ssl.TLSVersion.TLSv1_3, 0x0304), (own, ssl.TLSVersion.TLSv1_2, 0x0303)]:
        context = context_of(authority, given, version)
        answer = fetch(server.port, context)
        seen = json.loads(answer.reply.body)
        suite = seen["tls"].pop("cipher_suite")
        assert seen == {
            "scheme": "https",
            "tls": {
                "server_cert": pem_of(pair),
                "client_cert_chain": [pem_of(own)] if given else [],
                "client_cert_name": "CN=till 3,O=Shop" if given else None,
                "client_cert_error": None,
                "tls_version": number,
            },
        }
        assert (0x1301 <= suite <= 0x1303) == (version == ssl.TLSVersion.TLSv1_3), hex(suite)


def test_asgi_without_tls_has_no_extension(serve_asgi: Serve) -> None:
    server = serve_asgi("--trusted-proxies", "127.0.0.1", source=ASGI)
    assert json.loads(server.fetch("/").body) == {"scheme": "http", "tls": None}
    by_proxy = server.fetch("/", X_Forwarded_Proto="https")
    assert json.loads(by_proxy.body) == {"scheme": "https", "tls": None}, "a proxy says https, and no more is known"


FORMAT = '{"uri":"$request_uri","protocol":"$tls_protocol","cipher":"$tls_cipher","group":"$tls_group","resumed":"$tls_resumed","sni":"$tls_sni","client":"$tls_client","handshake":$tls_handshake,"accept":$accept}'


def test_lines_of_the_access_log_tell_the_session(serve: Serve, authority: Authority, clients: Clients, tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    options = ("--access-log", str(log), "--access-log-format", FORMAT, "--server-timing")
    server = serve(*authority.issue("localhost").options, *clients.options, *options, source=WSGI)
    context = context_of(authority, clients.issue("/O=Shop/CN=till 3"))
    accept = {}
    with connected(server.port, context) as peer:
        for path, end in [("/first", "keep-alive"), ("/second", "close")]:
            reply = ask(peer, f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: {end}\r\n\r\n".encode())
            found = re.search(r"accept;dur=([\d.]+)", reply.headers["Server-Timing"])
            accept[path] = float(found[1]) / 1000 if found else 0.0
        session = peer.session
    fetch(server.port, context, path="/third", session=session)
    with connected(server.port, context) as peer:
        assert ask(peer, b"GET\r\n\r\n").status == 400
    server.stop()
    lines = {line["uri"]: line for line in map(json.loads, log.read_text().splitlines())}
    for path, resumed in [("/first", "no"), ("/second", "no"), ("/third", "yes")]:
        line = lines[path]
        assert (line["protocol"], line["sni"], line["client"], line["resumed"]) == ("TLSv1.3", "localhost", "CN=till 3,O=Shop", resumed)
        assert line["cipher"].startswith("TLS_") and line["group"]
    assert lines["/first"]["handshake"] > 0 and lines["/third"]["handshake"] > 0
    assert lines["/second"]["handshake"] == 0
    assert lines["-"]["client"] == "CN=till 3,O=Shop", "also where a head cannot be read"
    assert lines["/first"]["accept"] >= lines["/first"]["handshake"], "it is a part of that span"
    assert all(accept[path] == pytest.approx(lines[path]["accept"], abs=2e-6) for path in accept)


def test_filters_and_rules_know_the_client(serve: Serve, authority: Authority, clients: Clients, tmp_path: Path) -> None:
    config = tmp_path / "maitred.toml"
    config.write_text("""
[pool.tills]
max-threads = 1
match = [{ client-certificate = "*.tills.shop.example" }]

[[filter]]
path = "/orders/*"
access = "deny all"

[[filter]]
path = "/orders/*"
client-certificate = "*.tills.shop.example"
access = "allow all"

[[filter]]
client-certificate = "*"
set-response = "X-Known: yes"
""")
    server = serve(*authority.issue("localhost").options, *clients.options, "--config", str(config), source=POOL)
    till = clients.issue("/CN=till 3", "DNS:3.TILLS.shop.example")
    office = clients.issue("/CN=office", "email:office@shop.example")
    seen = {}
    for name, own in [("till", till), ("office", office), ("nobody", None)]:
        orders, other = (fetch(server.port, context_of(authority, own), path=path).reply for path in ["/orders/7", "/"])
        seen[name] = (orders.status, "tills" in other.body.decode(), other.headers.get("X-Known"))
    assert seen == {"till": (200, True, "yes"), "office": (403, False, "yes"), "nobody": (403, False, None)}


def test_a_rule_that_nobody_can_meet_is_refused(tmp_path: Path) -> None:
    config = tmp_path / "maitred.toml"
    config.write_text('[[filter]]\nclient-certificate = ""\naccess = "deny all"\n')
    checked = subprocess.run([MAITRED, "check", "--config", str(config)], capture_output=True, text=True)
    assert checked.returncode != 0
    assert "client-certificate" in checked.stderr and "the name of the client is empty; write a name such as" in checked.stderr


def test_the_control_shows_sessions(serve: Serve, authority: Authority, clients: Clients, tmp_path: Path) -> None:
    config = tmp_path / "maitred.toml"
    config.write_text('[pool.tills]\nmatch = [{ client-certificate = "CN=till *" }]\n[[filter]]\nclient-certificate = "office"\nredirect = "/office"\n')
    options = ["--listen", "127.0.0.1:0", "--control", "ctl.sock", "--config", str(config)]
    server = serve(*authority.issue("localhost").options, *clients.options, *options, source=POOL)

    def ctl(*arguments: str) -> dict[str, Any]:
        command: list[str | Path] = [MAITRED, "ctl", "--socket", "ctl.sock", "--json", *arguments]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE)
        assert done.returncode == 0, done.stderr
        return dict(json.loads(done.stdout))

    with connected(server.port, context_of(authority, clients.issue("/O=Shop/CN=till 3"))) as peer:
        assert ask(peer, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").status == 200
        cipher = peer.cipher()
        assert cipher
        shown = ctl("connections")
        session = {"protocol": "TLSv1.3", "cipher": cipher[0], "resumed": False, "sni": "localhost", "connections": 1}
        assert (shown["by_tls"], shown["tls_sessions"]) == (1, [session])
    assert [listener["tls"] for listener in ctl("status")["listeners"]] == [True]
    assert ctl("tls")['handshakes{version="1.3",kind="full"}'] == 1
    (rule,) = ctl("map")["rules"]
    assert rule["client_certificate"] == "CN=till *"
    till = ctl("explain", "GET", "/", "--certificate", "CN=till 3")
    assert (till["pool"], till["rule"]["client_certificate"]) == ("tills", "CN=till *")
    office = ctl("explain", "GET", "/", "--certificate", "office")
    assert (office["leads_to"], office["filters"][0]["client_certificate"]) == ("filter", "office")
    assert ctl("explain", "GET", "/")["pool"] == "default"


def test_https_at_a_proxy_is_https(serve: Serve) -> None:
    server = serve("--trusted-proxies", "127.0.0.1", source=WSGI)
    by_proxy = json.loads(server.fetch("/", X_Forwarded_Proto="https").body)
    assert by_proxy == {"wsgi.url_scheme": "https", "HTTPS": "on"}, "of the session with the proxy nothing is known"
    assert json.loads(server.fetch("/", X_Forwarded_Proto="http").body) == {"wsgi.url_scheme": "http"}
