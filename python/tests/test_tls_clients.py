"""Certificates of clients, by the options of the command: valid, expired, revoked, absent, of another authority; new lists."""

from __future__ import annotations

import shutil
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
from certificates import Authority, Pair, authority, fetch, needs_openssl
from conftest import Serve, Server
from crews import Start, crew, until

__all__ = ["authority", "crew"]

pytestmark = needs_openssl

VERSIONS = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}

APP = """
def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"served"]
"""

#: Which client, and what the server's log says of it; nothing where it is let in.
REQUIRED = {
    "valid": "",
    "expired": "the client certificate, or one of its chain, has expired",
    "revoked": "the client certificate, or one of its chain, has been revoked",
    "absent": "the client has no certificate, and one is required",
    "strange": "no trusted authority has issued the client certificate",
    "forged": "a signature in the chain of the client certificate, or the one of the handshake, is wrong",
    "self-signed": "client certificate",
}


@pytest.fixture(scope="module")
def staff(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Signs those of clients, and no server's."""
    return Authority(tmp_path_factory.mktemp("staff"), "Staff")


@pytest.fixture(scope="module")
def people(staff: Authority, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Pair | None]:
    other = Authority(tmp_path_factory.mktemp("strangers"), "Strangers")
    forger = Authority(tmp_path_factory.mktemp("forger"), "Staff")
    return {
        "valid": staff.issue("valid.example"),
        "expired": staff.issue("expired.example", days=-1),
        "revoked": staff.issue("revoked.example"),
        "absent": None,
        "strange": other.issue("strange.example"),
        "forged": forger.issue("forged.example"),
        "self-signed": Pair(other.file, other.folder / "ca.key"),
    }


def client(authority: Authority, version: str, pair: Pair | None) -> ssl.SSLContext:
    context = authority.client()
    context.minimum_version = context.maximum_version = VERSIONS[version]
    if pair:
        context.load_cert_chain(pair.certificate, pair.key)
    return context


@pytest.fixture(params=["required", "optional"])
def guarded(
    request: pytest.FixtureRequest, serve: Serve, authority: Authority, staff: Authority, people: dict[str, Pair | None]
) -> Iterator[tuple[Server, str]]:
    revoked = people["revoked"]
    assert revoked
    options = ("--tls-client-ca", str(staff.file), "--tls-client-crl", str(staff.revoked(revoked)))
    pair = authority.issue("localhost")
    yield serve(*pair.options, "--tls-client-auth", request.param, *options, source=APP), request.param


@pytest.mark.parametrize("version", VERSIONS)
def test_only_those_are_let_in_whom_the_authority_knows(
    version: str, guarded: tuple[Server, str], authority: Authority, people: dict[str, Pair | None]
) -> None:
    server, policy = guarded
    for name, why in REQUIRED.items():
        start = len(server.said)
        context = client(authority, version, people[name])
        if not why or (name == "absent" and policy == "optional"):
            assert fetch(server.port, context).reply.body == b"served", name
            continue
        # In TLS 1.3 the client learns it when it reads for the first time.
        with pytest.raises((ssl.SSLError, ConnectionError)):
            fetch(server.port, context)
        server.wait_for(rf"info 127\.0\.0\.1: TLS handshake: .*{why}.*; closed", start)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_new_list_of_revoked_certificates_ends_their_sessions(
    version: str, serve: Serve, tmp_path: Path, authority: Authority, staff: Authority
) -> None:
    leaving, staying = staff.issue("leaving.example"), staff.issue("staying.example")
    listed = tmp_path / "revoked.crl"
    shutil.copy(staff.revoked(), listed)
    trust = ("--tls-client-auth", "required", "--tls-client-ca", str(staff.file), "--tls-client-crl", str(listed))
    server = serve(*authority.issue("localhost").options, *trust, "--tls-watch", "0.05", source=APP)
    contexts = [client(authority, version, pair) for pair in (leaving, staying)]
    sessions = [fetch(server.port, context).session for context in contexts]
    for context, session in zip(contexts, sessions):
        assert fetch(server.port, context, session=session).resumed
    shutil.copy(staff.revoked(leaving), tmp_path / "new.crl")
    start = len(server.said)
    (tmp_path / "new.crl").rename(listed)
    server.wait_for("info TLS: the files have been loaded", start)
    with pytest.raises((ssl.SSLError, ConnectionError)):
        fetch(server.port, contexts[0], session=sessions[0])
    again = fetch(server.port, contexts[1], session=sessions[1])
    assert again.reply.status == 200 and not again.resumed
    assert fetch(server.port, contexts[1], session=again.session).resumed


def test_workers_drop_the_sessions_of_a_revoked_certificate(crew: Start, tmp_path: Path, authority: Authority, staff: Authority) -> None:
    leaving = staff.issue("leaving.example")
    listed = tmp_path / "revoked.crl"
    shutil.copy(staff.revoked(), listed)
    trust = ("--tls-client-auth", "required", "--tls-client-ca", str(staff.file), "--tls-client-crl", str(listed))
    server = crew(*authority.issue("localhost").options, *trust, "--tls-watch", "0")
    context = client(authority, "1.3", leaving)
    first = fetch(server.port, context)
    assert fetch(server.port, context, session=first.session).resumed
    shutil.copy(staff.revoked(leaving), listed)
    assert server.change("tls/reload")["changed"]
    refused = 0

    def asked() -> bool:
        nonlocal refused
        with pytest.raises((ssl.SSLError, ConnectionError)):
            fetch(server.port, context, session=first.session)
        refused += 1
        return refused == 16

    until("both have been asked", asked)


def test_an_expired_list_lets_nobody_in_and_is_told(serve: Serve, authority: Authority, staff: Authority) -> None:
    old = staff.revoked(until="20260102000000Z")
    trust = ("--tls-client-auth", "required", "--tls-client-ca", str(staff.file), "--tls-client-crl", str(old))
    server = serve(*authority.issue("localhost").options, *trust, source=APP)
    with pytest.raises((ssl.SSLError, ConnectionError)):
        fetch(server.port, client(authority, "1.3", staff.issue("valid.example")))
    server.wait_for("info 127.0.0.1: TLS handshake: the list of revoked certificates .* is out of date")
