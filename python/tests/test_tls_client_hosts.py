"""Hosts that ask their clients for certificates by rules of their own, by both protocols and both versions of TLS."""

from __future__ import annotations

import http.client
import json
import re
import shutil
import signal
import ssl
import subprocess
from pathlib import Path
from typing import Any

import pytest
from certificates import Authority, Pair, authority, connected, fetch, needs_openssl
from conftest import MAITRED, PATIENCE, Reply, Serve, Server

__all__ = ["authority"]

pytestmark = [needs_openssl, pytest.mark.skipif(not shutil.which("curl"), reason="needs curl")]

APP = """
def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [f"{environ['HTTP_HOST'].split(':')[0]} {environ.get('SSL_CLIENT_S_DN', '-')}".encode()]
"""
STAFF, TILLS, OPEN, DEFAULT = "staff.example", "till.tills.example", "open.example", "localhost"


@pytest.fixture(scope="module")
def staff(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("staff"), "Staff")


@pytest.fixture(scope="module")
def ada(staff: Authority) -> Pair:
    return staff.issue("ada.example")


@pytest.fixture
def server(serve: Serve, tmp_path: Path, authority: Authority, staff: Authority) -> Server:
    (tmp_path / "tills").mkdir()
    tills = Authority(tmp_path / "tills", "Tills")
    pair = authority.issue("localhost", STAFF, "*.tills.example", OPEN)
    lines = [
        'application = "app.py"',
        f"tls-cert = {json.dumps(str(pair.certificate))}",
        f"tls-key = {json.dumps(str(pair.key))}",
        f'tls-client-ca = "{staff.file}"',
        "tls-watch = 0",
        f'[host."{STAFF}"]',
        'application = "app.py"',
        'tls-client-auth = "required"',
        '[host."*.tills.example"]',
        'application = "app.py"',
        'tls-client-auth = "optional"',
        f'tls-client-ca = "{tills.file}"',
        f'[host."{OPEN}"]',
        'application = "app.py"',
    ]
    (tmp_path / "maitred.toml").write_text("\n".join(lines))
    (tmp_path / "app.py").write_text(APP)
    return serve()


def curl(server: Server, authority: Authority, protocol: str, name: str, host: str, pair: Pair | None) -> tuple[str, str]:
    """Status and text of a request for one host on a connection for another one; status 000 where there is no connection."""
    own = ["--cert", str(pair.certificate), "--key", str(pair.key)] if pair else []
    command = ["curl", "-sS", "--noproxy", "*", "--cacert", str(authority.file), *own, protocol, "--resolve", f"{name}:{server.port}:127.0.0.1"]
    command += ["-H", f"Host: {host}", "-w", "\n%{http_code}", f"https://{name}:{server.port}/"]
    said = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE).stdout
    text, _, status = said.rpartition("\n")
    return status, text


@pytest.mark.parametrize("protocol", ["--http1.1", "--http2"])
def test_a_connection_serves_the_hosts_with_its_rules_alone(protocol: str, server: Server, authority: Authority, ada: Pair) -> None:
    for name, host, pair, status in [
        (DEFAULT, DEFAULT, None, "200"),
        (DEFAULT, OPEN, None, "200"),
        (OPEN, DEFAULT, ada, "200"),
        (STAFF, STAFF, ada, "200"),
        (STAFF, STAFF, None, "000"),
        (TILLS, TILLS, None, "200"),
        # An authority of another host.
        (TILLS, TILLS, ada, "000"),
        (DEFAULT, STAFF, None, "421"),
        (OPEN, STAFF, ada, "421"),
        (TILLS, STAFF, None, "421"),
        (DEFAULT, "x.y.tills.example", None, "421"),
        (STAFF, OPEN, ada, "421"),
        (STAFF, f"{STAFF}.:{server.port}", ada, "200"),
        (DEFAULT, f"{STAFF.upper()}.:443", ada, "421"),
    ]:
        found, text = curl(server, authority, protocol, name, host, pair)
        assert found == status, (name, host, bool(pair), text)
        if status == "421":
            assert "other rules for certificates of clients" in text


def test_an_absolute_target_and_its_absence_are_looked_at(server: Server, authority: Authority) -> None:
    for target, host, status in [
        (f"https://{STAFF}/", "localhost", 421),
        ("/", STAFF, 421),
        ("https://localhost/", STAFF, 200),
    ]:
        with connected(server.port, authority.client(), "localhost") as peer:
            peer.sendall(f"GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
            response = http.client.HTTPResponse(peer)
            response.begin()
            assert Reply(response).status == status, (target, host)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_ticket_of_one_host_opens_no_other_one(version: ssl.TLSVersion, server: Server, authority: Authority, ada: Pair) -> None:
    context = authority.client()
    context.minimum_version = context.maximum_version = version
    open_session = fetch(server.port, context, OPEN).session
    assert fetch(server.port, context, OPEN, session=open_session).resumed
    with pytest.raises((ssl.SSLError, ConnectionError)):
        fetch(server.port, context, STAFF, session=open_session)
    context.load_cert_chain(ada.certificate, ada.key)
    staff_session = fetch(server.port, context, STAFF).session
    again = fetch(server.port, context, STAFF, session=staff_session)
    assert again.resumed and again.reply.body == b"staff.example CN=ada.example"
    assert not fetch(server.port, context, OPEN, session=staff_session).resumed


def test_rules_that_change_while_it_runs_end_sessions_of_that_host(
    serve: Serve, tmp_path: Path, authority: Authority, staff: Authority, ada: Pair
) -> None:
    pair = authority.issue("localhost", STAFF)
    listed = tmp_path / "revoked.crl"
    shutil.copy(staff.revoked(), listed)

    def configure(*more: str) -> None:
        lines = ['application = "app.py"', f"tls-cert = {json.dumps(str(pair.certificate))}", f"tls-key = {json.dumps(str(pair.key))}"]
        lines += ["tls-watch = 0", f'[host."{STAFF}"]', 'application = "app.py"', *more]
        (tmp_path / "maitred.toml").write_text("\n".join(lines))

    (tmp_path / "app.py").write_text(APP)
    configure()
    server = serve()
    context = authority.client()
    assert fetch(server.port, context, STAFF).reply.status == 200
    configure('tls-client-auth = "required"', f'tls-client-ca = "{staff.file}"', f'tls-client-crl = "{listed}"')
    start = len(server.said)
    server.process.send_signal(signal.SIGHUP)
    server.wait_for("info TLS: ", start)
    with pytest.raises((ssl.SSLError, ConnectionError)):
        fetch(server.port, context, STAFF)
    assert fetch(server.port, context).reply.status == 200
    context.load_cert_chain(ada.certificate, ada.key)
    session = fetch(server.port, context, STAFF).session
    assert fetch(server.port, context, STAFF, session=session).resumed
    shutil.copy(staff.revoked(ada), listed)
    start = len(server.said)
    server.process.send_signal(signal.SIGHUP)
    server.wait_for("info SIGHUP.*TLS: the files have been loaded|TLS: the files have been loaded", start)
    with pytest.raises((ssl.SSLError, ConnectionError)):
        fetch(server.port, context, STAFF, session=session)


def test_what_cannot_be_is_told(tmp_path: Path, authority: Authority, staff: Authority) -> None:
    pair = authority.issue("localhost")
    (tmp_path / "app.py").write_text(APP)
    for table, error in [
        (f'[host."a.example"]\ntls-client-ca = "{staff.file}"', r"host\.a\.example\.tls-client-ca: clients are not asked for certificates"),
        ('[host."a.example"]\ntls-client-auth = "required"', "nobody is known who signs certificates of clients"),
        (f'[host."192.0.2.7"]\ntls-client-auth = "required"\ntls-client-ca = "{staff.file}"', "they ask for an address, and name no server"),
        (f'[host."a.example"]\ntls-client-auth = "required"\ntls-client-ca = "{pair.key}"', "there is no section CERTIFICATE"),
    ]:
        text = f'application = "app.py"\ntls-cert = "{pair.certificate}"\ntls-key = "{pair.key}"\n{table}\napplication = "app.py"\n'
        (tmp_path / "maitred.toml").write_text(text)
        done = subprocess.run([MAITRED, "check"], cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE)
        assert done.returncode == 2 and re.search(error, done.stderr), (table, done.stderr)


def test_ctl_says_what_clients_of_each_host_are_asked_for(server: Server) -> None:
    def asked(*words: str) -> dict[str, Any]:
        command = [MAITRED, "ctl", "--json", "--server", str(server.process.pid), *words]
        return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)

    rules = asked("tls")["clients"]
    assert [(one["hosts"], one["certificate"], one["authorities"]) for one in rules] == [
        (f"the default host, {OPEN}", "none", None),
        (STAFF, "required", "CN=Staff"),
        ("*.tills.example", "optional", "CN=Tills"),
    ]

    own = "only connections that were made for {} may ask for it"
    for url, options, certificate, leads_to, why in [
        (f"https://{OPEN}/", (), "none", "application", own.format(f"the default host, {OPEN}")),
        (f"https://{STAFF}/", (), "required", "nothing", "clients without a certificate get no connection"),
        (f"https://{STAFF}/", ("--certificate", "ada.example"), "required", "application", own.format(STAFF)),
        (f"https://{TILLS}/", (), "optional", "application", own.format("*.tills.example")),
        (f"https://{OPEN}/", ("--certificate", "ada.example"), "none", "application", "nobody sees the one that is given"),
        (f"http://{STAFF}/", (), None, "application", ""),
    ]:
        answer = asked("explain", "GET", url, *options)
        assert (answer.get("client_certificate"), answer["leads_to"]) == (certificate, leads_to), answer
        assert any(why in line for line in answer["why"]), answer
