"""Certificates for tests, made by openssl, and clients that look at them."""

from __future__ import annotations

import contextlib
import http.client
import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from conftest import PATIENCE, Reply

needs_openssl = pytest.mark.skipif(not shutil.which("openssl"), reason="needs openssl")

EC = ("ec", "-pkeyopt", "ec_paramgen_curve:P-256")
RSA = ("rsa:2048",)


def openssl(*arguments: str | Path) -> None:
    done = subprocess.run(["openssl", *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@dataclass(frozen=True)
class Pair:
    """The files of a certificate and its key."""

    certificate: Path
    key: Path

    @property
    def options(self) -> list[str]:
        return ["--tls-cert", str(self.certificate), "--tls-key", str(self.key)]

    @property
    def serial(self) -> str:
        """As ssl shows that of a peer."""
        shown = subprocess.run(
            ["openssl", "x509", "-in", self.certificate, "-noout", "-serial"], capture_output=True, text=True, check=True
        )
        return shown.stdout.strip().removeprefix("serial=")

    def replace(self, other: Pair) -> None:
        """As a renewal does it: each file at once, one after the other."""
        for own, new in [(self.key, other.key), (self.certificate, other.certificate)]:
            copy = own.with_suffix(".new")
            shutil.copy(new, copy)
            copy.rename(own)


class Authority:
    """Signs certificates, and is trusted by the clients of these tests."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file, self._key = folder / "ca.pem", folder / "ca.key"
        self._count = 0
        making: list[str | Path] = ["req", "-x509", "-newkey", *EC, "-nodes", "-days", "30", "-subj", "/CN=Authority of tests"]
        openssl(*making, "-keyout", self._key, "-out", self.file)

    def issue(self, *names: str, days: int = 60, kind: tuple[str, ...] = EC) -> Pair:
        """A certificate for these names and addresses."""
        self._count += 1
        stem = self.folder / f"{self._count}"
        pair, request, extensions = Pair(stem.with_suffix(".pem"), stem.with_suffix(".key")), stem.with_suffix(".csr"), stem.with_suffix(".ext")
        openssl("req", "-new", "-newkey", *kind, "-nodes", "-subj", f"/CN={names[0]}", "-keyout", pair.key, "-out", request)
        entries = (f"{'IP' if name[0].isdigit() else 'DNS'}:{name}" for name in names)
        extensions.write_text(f"subjectAltName={','.join(entries)}\nextendedKeyUsage=serverAuth,clientAuth\n")
        signing: list[str | Path] = ["x509", "-req", "-in", request, "-CA", self.file, "-CAkey", self._key, "-CAcreateserial"]
        openssl(*signing, "-days", str(days), "-extfile", extensions, "-out", pair.certificate)
        return pair

    def client(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=self.file)


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@dataclass(frozen=True)
class Answer:
    """What a client has seen."""

    reply: Reply
    #: Of the server's certificate.
    serial: str
    names: set[str]
    version: str
    resumed: bool
    session: ssl.SSLSession | None


@contextlib.contextmanager
def connected(
    port: int, context: ssl.SSLContext, name: str = "localhost", session: ssl.SSLSession | None = None
) -> Iterator[ssl.SSLSocket]:
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as peer:
        with context.wrap_socket(peer, server_hostname=name, session=session) as secured:
            yield secured


def fetch(
    port: int, context: ssl.SSLContext, name: str = "localhost", path: str = "/", session: ssl.SSLSession | None = None
) -> Answer:
    """One request by https on a connection of its own."""
    with connected(port, context, name, session) as peer:
        peer.sendall(f"GET {path} HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n".encode())
        response = http.client.HTTPResponse(peer)
        response.begin()
        reply = Reply(response)
        shown = peer.getpeercert() or {}
        names = {str(entry[1]) for entry in shown.get("subjectAltName", ())}
        version = peer.version() or ""
        return Answer(reply, str(shown.get("serialNumber", "")), names, version, bool(peer.session_reused), peer.session)
