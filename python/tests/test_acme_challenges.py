"""Challenges of a certificate authority are answered whatever else is configured: redirects to https, passwords, a mount for all paths,
certificates of clients, several hosts, rates, workers. The test itself puts the challenges into the folder, as an order does."""

from __future__ import annotations

import fcntl
import hashlib
import json
import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from certificates import Authority, authority, needs_openssl
from conftest import MAITRED, PATIENCE, Serve, Server, environment_for

__all__ = ["authority"]

pytestmark = [needs_openssl, pytest.mark.skipif(not shutil.which("curl"), reason="needs curl")]

APP = """
def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [f"the application at {environ['PATH_INFO']}".encode()]
"""
SHOP, STAFF = "shop.example", "staff.example"
TOKEN = "LoqXcYV8q5ONbJQxbmR7SCTNo3tiAXDfowyjxAjEuX0"
PATH = f"/.well-known/acme-challenge/{TOKEN}"
ANSWER = f"{TOKEN}.9jg46WB3rR_AHD-EBXdN7cBkH1WOu0tA3M9fm21mqTI"


@dataclass
class Site:
    """A server whose third port speaks clear text, the second one redirects, and the first one speaks TLS."""

    server: Server
    folder: Path

    @property
    def ports(self) -> tuple[int, int, int]:
        tls, redirecting, clear = self.server.ports
        return tls, redirecting, clear

    def publish(self) -> None:
        put(self.folder / "challenges/http" / TOKEN, ANSWER)


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture(params=["1", "2"], ids=["alone", "two-workers"])
def site(request: pytest.FixtureRequest, serve: Serve, tmp_path: Path, authority: Authority) -> Iterator[Site]:
    (tmp_path / "app.py").write_text(APP)
    (tmp_path / "wall").mkdir()
    subprocess.run([MAITRED, "passwd", "users.txt", "ann"], cwd=tmp_path, input="secret\n", text=True, check=True, capture_output=True)
    folder = tmp_path / "acme"
    folder.mkdir(0o700)
    lines = [
        'acme = "on"',
        f"acme-folder = {json.dumps(str(folder))}",
        'acme-directory = "https://127.0.0.1:9/directory"',
        f'acme-ca = "{authority.file}"',
        'tls-client-auth = "required"',
        f'tls-client-ca = "{authority.file}"',
        "client-rate = 1",
        "client-burst = 1",
        f'[host."{SHOP}"]',
        'names = ["192.0.2.7"]',
        'application = "app.py"',
        'mount = "/.well-known=app.py"',
        f'[host."{STAFF}"]',
        'static = "/.well-known=wall"',
        "[[filter]]",
        'basic-auth = "users.txt"',
        'set-response = ["X-Filtered: yes"]',
    ]
    (tmp_path / "maitred.toml").write_text("\n".join(lines))
    with (folder / "lock").open("w") as lock:
        # Another process orders: no order takes the challenges of this test away.
        fcntl.flock(lock, fcntl.LOCK_EX)
        listen = ["https://127.0.0.1:0", "http://127.0.0.1:0,redirect=https", "http://127.0.0.1:0"]
        arguments = [argument for address in listen for argument in ("--listen", address)]
        yield Site(serve(*arguments, "--workers", str(request.param), "--control", "ctl.sock"), folder)


def curl(port: int, path: str, *arguments: str, host: str = SHOP) -> tuple[str, str, str]:
    """Status, text and fields of an answer."""
    command = ["curl", "-sS", "-k", "--noproxy", "*", "-D", "-", "-w", "\n%{http_code}", "-H", f"Host: {host}", *arguments, f"http://127.0.0.1:{port}{path}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    head, _, rest = done.stdout.replace("\r", "").partition("\n\n")
    text, _, status = rest.rpartition("\n")
    return status, text, head.lower()


def test_a_request_for_a_challenge_is_answered_before_anything_else(site: Site) -> None:
    _, redirecting, clear = site.ports
    assert curl(redirecting, PATH)[0] == "308", "before the challenge is open"
    assert curl(clear, PATH)[0] in {"401", "429"}
    site.publish()
    # Many of them: the rate of a client is 1.
    for port in (redirecting, clear):
        for protocol in ("--http1.1", "--http2-prior-knowledge"):
            for host in (SHOP, STAFF, "unknown.example", "192.0.2.7"):
                status, text, head = curl(port, PATH, protocol, host=host)
                assert (status, text) == ("200", ANSWER), (port, protocol, host)
                assert "x-filtered" not in head and "www-authenticate" not in head
                assert "cache-control: no-store" in head
        status, text, head = curl(port, PATH, "--head")
        assert (status, text.strip()) == ("200", "") and f"content-length: {len(ANSWER)}" in head
    assert curl(redirecting, f"{PATH}?a=b")[1] == ANSWER
    for path in (f"{PATH}x", f"{PATH}/", f"{PATH}.", "/.well-known/acme-challenge/", f"/x{PATH}"):
        status, _, head = curl(redirecting, path)
        assert status == "308" or (status == "429" and "retry-after" in head), path
    (site.folder / "challenges/http" / TOKEN).unlink()
    assert curl(redirecting, PATH)[0] != "200", "the challenge is over"


def test_an_unknown_token_is_the_application_s(serve: Serve, tmp_path: Path) -> None:
    folder = tmp_path / "acme"
    folder.mkdir(0o700)
    (tmp_path / "outside").write_text("secret")
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        options = ["--acme", "on", "--acme-host", SHOP, "--acme-folder", str(folder), "--acme-directory", "https://127.0.0.1:9/directory"]
        server = serve(*options, "--listen", "http://127.0.0.1:0", source=APP)
        put(folder / "challenges/http" / TOKEN, ANSWER)
        assert server.fetch(PATH).body.decode() == ANSWER
        for path in ("/.well-known/acme-challenge/other", f"{PATH}/x", "/.well-known/acme-challenge/..%2f..%2f..%2foutside", "/"):
            assert server.fetch(path).body.startswith(b"the application at /"), path
        assert server.fetch(PATH, "POST", b"x").body.startswith(b"the application at /")


def challenged(port: int, name: str | None, protocols: list[str]) -> tuple[bytes, str | None, bytes]:
    """The certificate, the agreed protocol, and what comes behind the handshake of an authority."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(protocols)
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as peer, context.wrap_socket(peer, server_hostname=name) as secured:
        der, agreed = secured.getpeercert(binary_form=True), secured.selected_alpn_protocol()
        assert der is not None
        received = b""
        try:
            secured.sendall(f"GET {PATH} HTTP/1.1\r\nHost: {name}\r\n\r\n".encode())
            while part := secured.recv(65536):
                received += part
        except (ssl.SSLError, ConnectionError):
            pass
        return der, agreed, received


def test_a_handshake_for_a_challenge_gets_its_certificate_and_nothing_else(site: Site) -> None:
    tls = site.ports[0]
    reverse = "7.2.0.192.in-addr.arpa"
    for name in (SHOP, reverse):
        with pytest.raises(ssl.SSLError, match="(?i)unrecognized.name"):
            challenged(tls, name, ["acme-tls/1"])
    put(site.folder / "challenges/tls-alpn" / SHOP, ANSWER)
    put(site.folder / "challenges/tls-alpn/192.0.2.7", f"{ANSWER}7")
    for name, answer, subject in ((SHOP, ANSWER, SHOP.encode()), (reverse, f"{ANSWER}7", bytes([0x87, 4, 192, 0, 2, 7]))):
        der, agreed, received = challenged(tls, name, ["acme-tls/1"])
        assert (agreed, received) == ("acme-tls/1", b""), "no certificate of a client is asked for, and nothing is served"
        # id-pe-acmeIdentifier, critical, and the digest of the answer.
        proof = bytes.fromhex("06082b0601050507011f0101ff0422") + b"\x04\x20" + hashlib.sha256(answer.encode()).digest()
        assert proof in der and subject in der
    site.server.wait_for(f"the challenge for {SHOP} is answered")
    # Other clients meet the server as ever: without a certificate of theirs there is no answer.
    der, agreed, received = challenged(tls, SHOP, ["acme-tls/1", "http/1.1"])
    assert agreed == "http/1.1" and proof not in der and not received.startswith(b"HTTP/1.1 200")


def test_a_name_without_a_certificate_has_a_self_signed_one_and_it_is_not_kept(site: Site) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    for name in (SHOP, STAFF):
        with socket.create_connection(("127.0.0.1", site.ports[0]), PATIENCE) as peer:
            with pytest.raises(ssl.SSLError, match="(?i)handshake.failure|certificate.required|alert"):
                context.wrap_socket(peer, server_hostname=name)
    rows = {row["names"]: row for row in ctl(site, "tls")["certificates"]}
    assert set(rows) == {SHOP, STAFF, "192.0.2.7"}
    for row in rows.values():
        assert row["order"] == "none" and "self-signed" in row["file"]
    assert not list(site.folder.rglob("current.pem"))


def ctl(site: Site, name: str) -> dict[str, Any]:
    command = [str(MAITRED), "ctl", "--socket", str(site.folder.parent / "ctl.sock"), "--json", name]
    answer: dict[str, Any] = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return answer


def test_an_order_that_fails_is_seen_in_all_processes(site: Site) -> None:
    fault = "no answer on port 80 of shop.example; open it in the firewall"
    # The orderer is another process, which writes this.
    put(site.folder / f"certificates/{SHOP}/state.json", json.dumps({"fault": {"at": 1_790_000_000, "text": fault}, "next": 1_790_000_600}))
    rows = [row for row in ctl(site, "tls")["certificates"] if row["names"] == SHOP]
    for row in rows:
        assert (row["order"], row["order_fault"]) == ("failing", fault)
        assert (row["order_failed"], row["order_next"]) == ("2026-09-21T14:13:20Z", "2026-09-21T14:23:20Z")
    found = ctl(site, "finding")
    assert found["cause"] == "certificate"
    assert found["sentence"] == (
        f"There is no valid certificate of an authority for {SHOP}, so that browsers warn of it, and the last order of a new one has failed: {fault}."
    )
    assert "maitred check --acme" in found["next"]


def checked(folder: Path, *arguments: str) -> tuple[int, list[str], str]:
    """Code, lines about ACME, and errors of ``maitred check``."""
    command = [str(MAITRED), "check", *arguments]
    done = subprocess.run(command, cwd=folder, env=environment_for({}), capture_output=True, text=True, timeout=PATIENCE)
    return done.returncode, [line for line in done.stdout.splitlines() if line.startswith("# acme: ")], done.stderr


def test_check_looks_at_what_an_order_would_meet(tmp_path: Path, authority: Authority) -> None:
    (tmp_path / "app.py").write_text(APP)
    code, _, errors = checked(tmp_path, "app.py", "--acme")
    assert code == 2 and "there is no name to order a certificate for; name the site, --host" in errors
    folder = tmp_path / "acme"
    folder.mkdir(0o700)
    lines = [
        'application = "app.py"',
        'acme = "on"',
        f"acme-folder = {json.dumps(str(folder))}",
        'acme-directory = "https://127.0.0.1:9/directory"',
        f'acme-ca = "{authority.file}"',
        'acme-host = ["127.0.0.1", "no-such-name.invalid"]',
    ]
    (tmp_path / "maitred.toml").write_text("\n".join(lines))
    code, told, errors = checked(tmp_path)
    assert (code, told) == (0, []), "without --acme nothing is asked"
    code, told, errors = checked(tmp_path, "--acme")
    assert code == 1, (told, errors)
    assert told[0].startswith("# acme: fault: the directory https://127.0.0.1:9/directory cannot be used: ")
    assert told[1:3] == [f"# acme: the folder {folder} can be used", "# acme: there is no account at the directory yet: the first order makes it"]
    # The server on port 80 of this machine, if there is one, does not have the token.
    assert told[3].removeprefix("# acme: ").removeprefix("fault: ").startswith("127.0.0.1: port 80 of 127.0.0.1 (this machine): ")
    assert told[4].startswith("# acme: fault: no-such-name.invalid: no address is found: ") and "make an entry of the DNS" in told[4]
    assert not list((folder / "challenges/http").iterdir()), "the token is taken away"
    code, others, _ = checked(tmp_path, "--acme", "you@example.org", "--acme-host", "127.0.0.1")
    assert code == 1 and any("port 80 of 127.0.0.1" in line for line in others)
