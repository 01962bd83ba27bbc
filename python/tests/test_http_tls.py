"""Calls by TLS to servers of OpenSSL, another implementation than the engine's."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from certificates import Authority, Pair, authority, needs_openssl, openssl
from maitred._engine import HttpFailure, HttpOrigin, HttpPool

__all__ = ["authority"]

pytestmark = needs_openssl

#: For a slot, connecting, TLS, the first byte, progress, all.
LIMITS = (20.0, 20.0, 20.0, 20.0, 20.0, 20.0)

Start = Callable[..., "Server"]


class Server:
    """`openssl s_server`, which answers what is typed into it, or by itself with ``-www``."""

    def __init__(self, pair: Pair, *options: str) -> None:
        line: list[str | Path] = ["openssl", "s_server", "-accept", "127.0.0.1:0", "-cert", pair.certificate, "-key", pair.key, *options]
        self.process = subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.port = int(self.until("ACCEPT").rpartition(":")[2])

    def until(self, start: str) -> str:
        """Reads what it prints, up to the line that begins so."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if (text := line.decode(errors="replace").strip()).startswith(start):
                return text
        raise AssertionError(f"no line begins with {start!r}")

    def type(self, text: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(text.encode())
        self.process.stdin.flush()


@pytest.fixture
def start(authority: Authority) -> Iterator[Start]:
    """Starts servers with a certificate of the authority, which end with the test."""
    servers: list[Server] = []

    def begin(*options: str) -> Server:
        servers.append(Server(authority.issue("server.example", "127.0.0.1"), *options))
        return servers[-1]

    yield begin
    for server in servers:
        server.process.kill()
        server.process.communicate()


def status(origin: HttpOrigin, pool: HttpPool | None = None) -> int:
    response = (pool or HttpPool()).send(origin, "GET", b"/", [(b"Host", b"server.example")], None, LIMITS)
    response.read()
    return response.status


def failure(origin: HttpOrigin) -> str:
    with pytest.raises(HttpFailure) as raised:
        status(origin)
    assert raised.value.kind == "tls", raised.value
    return str(raised.value)


@pytest.mark.parametrize("version", ["-tls1_2", "-tls1_3"])
def test_a_server_is_trusted_by_its_authority_alone(start: Start, authority: Authority, version: str) -> None:
    server = start("-www", version)
    pem = authority.file.read_text()
    for authorities in (str(authority.file), pem):
        assert status(HttpOrigin("https", "127.0.0.1", server.port, authorities=authorities)) == 200
    assert status(HttpOrigin("https", "127.0.0.1", server.port, verify=False)) == 200
    named = HttpOrigin("https", "127.0.0.1", server.port, authorities=pem, server_name="server.example")
    assert status(named) == 200
    assert "no trusted authority has issued" in failure(HttpOrigin("https", "127.0.0.1", server.port))
    other = HttpOrigin("https", "127.0.0.1", server.port, authorities=pem, server_name="other.example")
    assert "not for other.example but for server.example, 127.0.0.1" in failure(other)


def test_old_versions_are_named(start: Start, authority: Authority) -> None:
    server = start("-www", "-tls1_1", "-cipher", "DEFAULT@SECLEVEL=0")
    assert "TLS 1.2 or newer" in failure(HttpOrigin("https", "127.0.0.1", server.port, authorities=str(authority.file)))


@pytest.mark.parametrize("version", ["-tls1_2", "-tls1_3"])
def test_the_certificate_of_the_client_has_an_encrypted_key(start: Start, authority: Authority, version: str, tmp_path: Path) -> None:
    own, key = authority.issue("client.example"), tmp_path / "encrypted.key"
    openssl("pkcs8", "-topk8", "-v2", "aes-256-cbc", "-in", own.key, "-out", key, "-passout", "pass:secret")
    server = start("-www", version, "-Verify", "1", "-CAfile", str(authority.file), "-verify_return_error")

    def origin(*certificate: str | None) -> HttpOrigin:
        given = None if not certificate else (str(own.certificate), str(key), certificate[0])
        return HttpOrigin("https", "127.0.0.1", server.port, authorities=str(authority.file), certificate=given)

    assert status(origin("secret")) == 200
    assert "the password does not open it" in failure(origin("wrong"))
    assert "there is no password for it" in failure(origin(None))
    assert "the server asks for a certificate of the client, and none is given" in failure(origin())


def test_a_renegotiation_is_refused_and_the_next_call_is_right(start: Start, authority: Authority) -> None:
    server, pool = start("-tls1_2"), HttpPool()
    origin = HttpOrigin("https", "127.0.0.1", server.port, authorities=str(authority.file))

    def body() -> Iterator[bytes]:
        """The server asks for a renegotiation in the middle of the request."""
        yield b"first\n"
        server.until("first")
        server.type("r\n")
        yield b"last\n"

    with pytest.raises(HttpFailure) as raised:
        pool.send(origin, "POST", b"/", [(b"Host", b"server.example")], body(), LIMITS)
    assert "handshake_failure" in str(raised.value), raised.value
    assert pool.used == 0
    assert status(HttpOrigin("https", "127.0.0.1", start("-www").port, authorities=str(authority.file)), pool) == 200
