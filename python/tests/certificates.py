"""Certificates for tests, made by openssl, and clients that look at them."""

from __future__ import annotations

import contextlib
import http.client
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from conftest import PATIENCE, Reply
from crews import until

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

    def __init__(self, folder: Path, name: str = "Authority of tests") -> None:
        self.folder = folder
        self.file, self._key = folder / "ca.pem", folder / "ca.key"
        self._count = 0
        making: list[str | Path] = ["req", "-x509", "-newkey", *EC, "-nodes", "-days", "30", "-subj", f"/CN={name}"]
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

    def issue_expired(self, name: str) -> Pair:
        """A certificate that was good until last year."""
        return self.issue_between(name, "20240101000000Z", "20250101000000Z")

    def issue_between(self, name: str, start: str, end: str) -> Pair:
        """A certificate with these dates, as openssl has them."""
        self._count += 1
        stem = self.folder / f"{self._count}"
        pair, request, settings, base = Pair(stem.with_suffix(".pem"), stem.with_suffix(".key")), stem.with_suffix(".csr"), stem.with_suffix(".cnf"), stem.with_suffix(".index")
        base.write_text("")
        settings.write_text(f"[ca]\ndefault_ca = own\n[own]\ndatabase = {base}\nnew_certs_dir = {self.folder}\nrand_serial = yes\n"
                            "default_md = sha256\npolicy = any\ncopy_extensions = copy\nx509_extensions = more\n[any]\ncommonName = supplied\n"
                            "[more]\nauthorityKeyIdentifier = keyid\n")
        making: list[str | Path] = ["req", "-new", "-newkey", *EC, "-nodes", "-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}"]
        openssl(*making, "-keyout", pair.key, "-out", request)
        signing: list[str | Path] = ["ca", "-batch", "-notext", "-config", settings, "-cert", self.file, "-keyfile", self._key]
        openssl(*signing, "-startdate", start, "-enddate", end, "-in", request, "-out", pair.certificate)
        return pair

    def client(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=self.file)

    def revoked(self, *pairs: Pair, until: str = "20491231235959Z") -> Path:
        """A list of these, in a file of its own; until when it is current."""
        self._count += 1
        stem = self.folder / f"{self._count}"
        base, listed, settings = stem.with_suffix(".index"), stem.with_suffix(".crl"), stem.with_suffix(".cnf")
        base.write_text("".join(self._entry(pair, is_revoked=True) for pair in pairs))
        number = stem.with_suffix(".number")
        number.write_text("01\n")
        settings.write_text(f"[ca]\ndefault_ca = own\n[own]\ndatabase = {base}\ncrlnumber = {number}\ndefault_md = sha256\n")
        making: list[str | Path] = ["ca", "-config", settings, "-gencrl", "-cert", self.file, "-keyfile", self._key]
        openssl(*making, "-crl_lastupdate", "20260101000000Z", "-crl_nextupdate", until, "-out", listed)
        return listed

    def ocsp(self, pair: Pair, is_revoked: bool = False) -> Path:
        """What the authority says about this one today, in a file of its own."""
        base, asked, said = (pair.certificate.with_suffix(end) for end in (".index", ".request", ".ocsp"))
        base.write_text(self._entry(pair, is_revoked))
        openssl("ocsp", "-issuer", self.file, "-cert", pair.certificate, "-no_nonce", "-reqout", asked)
        signing: list[str | Path] = ["ocsp", "-index", base, "-CA", self.file, "-rsigner", self.file, "-rkey", self._key]
        openssl(*signing, "-reqin", asked, "-ndays", "2", "-respout", said)
        return said

    @staticmethod
    def _entry(pair: Pair, is_revoked: bool) -> str:
        """A line of the file in which openssl keeps what an authority has issued."""
        state, since = ("R", "260101000000Z") if is_revoked else ("V", "")
        return f"{state}\t491231235959Z\t{since}\t{pair.serial}\tunknown\t/CN=any\n"


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
def handshakes(port: int, context: ssl.SSLContext, name: str = "localhost") -> Iterator[list[str]]:
    """Two clients that connect and ask without end meanwhile; the serials they have seen, or what went wrong, in order for each of them."""
    done = threading.Event()
    seen: list[str] = []

    def ask() -> None:
        while not done.is_set():
            try:
                seen.append(fetch(port, context, name).serial)
            except (OSError, AssertionError, http.client.HTTPException) as error:
                seen.append(repr(error))

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        until("some are answered", lambda: len(seen) > 5)
        yield seen
    finally:
        done.set()
        for thread in threads:
            thread.join()


@contextlib.contextmanager
def connected(
    port: int, context: ssl.SSLContext, name: str | None = "localhost", session: ssl.SSLSession | None = None
) -> Iterator[ssl.SSLSocket]:
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as peer:
        with context.wrap_socket(peer, server_hostname=name, session=session) as secured:
            yield secured


def said_to(*arguments: str | Path) -> str:
    """What ``openssl s_client`` says with these arguments, with the errors of its handshake; it leaves when that is done."""
    command = ["openssl", "s_client", "-servername", "localhost", *arguments]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE)
    return done.stdout + done.stderr


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
