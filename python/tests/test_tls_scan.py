"""What a scanner finds: no version, cipher suite or feature that is known to be weak.  By sslscan if it is installed, and by probes of our own."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from xml.etree import ElementTree

import pytest
from certificates import RSA, Authority, authority, needs_openssl, said_to
from conftest import PATIENCE, Server

__all__ = ["authority"]

pytestmark = needs_openssl

#: All that are offered.
TLS_1_3 = {"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"}
TLS_1_2 = {f"ECDHE-{kind}-{cipher}" for kind in ("ECDSA", "RSA") for cipher in ("AES128-GCM-SHA256", "AES256-GCM-SHA384", "CHACHA20-POLY1305")}
GROUPS = {"x25519", "secp256r1 (NIST P-256)", "secp384r1 (NIST P-384)"}


@pytest.fixture(scope="module")
def scanned(authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """With both kinds of certificates: all suites can be used."""
    folder = tmp_path_factory.mktemp("scanned")
    (folder / "index.html").write_text("here")
    pairs = [authority.issue("localhost"), authority.issue("localhost", kind=RSA)]
    server = Server([str(folder), *pairs[0].options, *pairs[1].options], folder, {})
    try:
        yield server
        assert server.stop() == 0, server.said
    finally:
        server.kill()


@pytest.mark.skipif(not shutil.which("sslscan"), reason="needs sslscan")
def test_sslscan_finds_nothing(scanned: Server) -> None:
    command = ["sslscan", "--no-colour", "--xml=-", "--sni-name=localhost", f"127.0.0.1:{scanned.port}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=4 * PATIENCE)
    assert done.returncode == 0, done.stderr
    found = ElementTree.fromstring(done.stdout[done.stdout.index("<?xml") :]).find("ssltest")
    assert found is not None
    versions = {f"{each.get('type')} {each.get('version')}": each.get("enabled") == "1" for each in found.findall("protocol")}
    assert versions == {"ssl 2": False, "ssl 3": False, "tls 1.0": False, "tls 1.1": False, "tls 1.2": True, "tls 1.3": True}
    suites = {(each.get("sslversion"), each.get("cipher")) for each in found.findall("cipher")}
    assert suites == {("TLSv1.2", name) for name in TLS_1_2} | {("TLSv1.3", name) for name in TLS_1_3}
    assert {each.get("name") for each in found.findall("group")} == GROUPS
    [renegotiation] = found.findall("renegotiation")
    assert renegotiation.attrib == {"supported": "0", "secure": "0"} or renegotiation.get("secure") == "1"
    assert all(each.get("supported") == "0" for each in found.findall("compression"))
    assert found.findall("heartbleed") and all(each.get("vulnerable") == "0" for each in found.findall("heartbleed"))


def offered(server: Server, *arguments: str) -> str:
    """What openssl says of a handshake with these arguments."""
    return said_to("-connect", f"127.0.0.1:{server.port}", *arguments)


def suite(said: str) -> str | None:
    agreed = re.search(r"^New, \S+, Cipher is (\S+)$", said, re.MULTILINE)
    assert agreed, said
    return None if agreed[1] == "(NONE)" else agreed[1]


@pytest.mark.parametrize("version", ["-tls1", "-tls1_1"])
def test_old_versions_are_refused(version: str, scanned: Server) -> None:
    # Without a level of security the client offers what it otherwise does not.
    said = offered(scanned, version, "-cipher", "ALL:@SECLEVEL=0")
    assert suite(said) is None and "alert protocol version" in said, said


def test_only_suites_with_forward_secrecy_and_aead_are_agreed_on(scanned: Server) -> None:
    listed = subprocess.run(["openssl", "ciphers", "-s", "-tls1_2", "ALL:COMPLEMENTOFALL:@SECLEVEL=0"], capture_output=True, text=True, check=True)
    names = [name for name in listed.stdout.strip().split(":") if name not in TLS_1_3]
    assert TLS_1_2 < set(names)
    weak = ":".join(name for name in names if name not in TLS_1_2)
    assert suite(offered(scanned, "-tls1_2", "-cipher", f"{weak}:@SECLEVEL=0")) is None
    for name in sorted(TLS_1_2):
        assert suite(offered(scanned, "-tls1_2", "-cipher", name)) == name
    for name in sorted(TLS_1_3):
        assert suite(offered(scanned, "-tls1_3", "-ciphersuites", name)) == name


def test_a_client_that_offers_compression_gets_none(scanned: Server) -> None:
    # By hand (RFC 5246 §7.4.1.2): openssl of today cannot offer DEFLATE.
    extensions = bytes.fromhex("000a00040002001d" "000b00020100" "000d000400020403" "ff01000100")
    body = b"\x03\x03" + bytes(32) + b"\0" + b"\0\x02\xc0\x2b" + b"\x02\x01\x00" + len(extensions).to_bytes(2, "big") + extensions
    hello = b"\x01" + len(body).to_bytes(3, "big") + body
    with socket.create_connection(("127.0.0.1", scanned.port), PATIENCE) as peer:
        peer.sendall(b"\x16\x03\x01" + len(hello).to_bytes(2, "big") + hello)
        answer = peer.makefile("rb").read(96)
    assert answer[0] == 22 and answer[5] == 2, answer
    behind = 44 + answer[43]
    assert answer[behind : behind + 3] == b"\xc0\x2b\0", "the suite, and no compression"


def test_renegotiation_is_secure_and_refused(scanned: Server) -> None:
    assert "Secure Renegotiation IS supported" in offered(scanned, "-tls1_2")
    # R asks for a new handshake.
    command = ["openssl", "s_client", "-connect", f"127.0.0.1:{scanned.port}", "-servername", "localhost", "-tls1_2"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as client:
        said, _ = client.communicate("R\n", PATIENCE)
    assert "RENEGOTIATING" in said and re.search("no.renegotiation", said), said


def test_groups_are_the_four(scanned: Server) -> None:
    for group in ("X25519", "P-256", "P-384"):
        assert suite(offered(scanned, "-tls1_3", "-groups", group)), group
    for group in ("P-521", "X448", "ffdhe2048"):
        assert suite(offered(scanned, "-tls1_3", "-groups", group)) is None, group


def test_early_data_is_not_taken(scanned: Server) -> None:
    said = offered(scanned, "-tls1_3")
    assert "Max Early Data: 0" in said or "Max Early Data" not in said
    assert "Early data was not sent" in said
