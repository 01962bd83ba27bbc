"""TLS by its options: certificates for development and others, by name; http that leads to https; what is wrong is told."""

from __future__ import annotations

import hashlib
import json
import re
import ssl
import stat
import subprocess
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from certificates import RSA, Authority, authority, fetch, needs_openssl
from conftest import MAITRED, PATIENCE, Serve, environment_for

__all__ = ["authority"]

pytestmark = needs_openssl

APP = """
def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [f"{environ['wsgi.url_scheme']} {environ['SERVER_PORT']}".encode()]
"""


def check(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """``maitred check``, which reads the files."""
    return subprocess.run(
        [MAITRED, "check", *arguments], cwd=folder, env=environment_for({}), capture_output=True, text=True
    )


def test_a_certificate_for_development_is_made_once_and_kept(serve: Serve, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    file = cache / "maitred/development.pem"
    first = serve("--tls", source=APP, XDG_CACHE_HOME=str(cache))
    first.wait_for(rf"https://127\.0\.0\.1:{first.port}  HTTP/1.1, HTTP/2\n")
    shown = first.wait_for(r"a certificate for development, (\S+): .*SHA-256 ([0-9a-f]{64})")
    assert shown[1] == str(file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    der = ssl.PEM_cert_to_DER_cert(file.read_text().partition("-----BEGIN PRIVATE KEY")[0])
    assert hashlib.sha256(der).hexdigest() == shown[2]
    context = ssl.create_default_context(cafile=str(file))
    for name in ("localhost", "127.0.0.1"):
        answer = fetch(first.port, context, name)
        assert answer.reply.body.decode() == f"https {first.port}"
        assert answer.version == "TLSv1.3"
    content = file.read_bytes()
    second = serve("--tls", source=APP, XDG_CACHE_HOME=str(cache))
    assert file.read_bytes() == content
    assert fetch(second.port, context).reply.status == 200
    file.chmod(0o644)
    serve("--tls", source=APP, XDG_CACHE_HOME=str(cache)).wait_for("a certificate for development")
    assert file.read_bytes() != content, "others may have had it"


def test_each_name_has_its_certificate(serve: Serve, tmp_path: Path, authority: Authority) -> None:
    first, blog = authority.issue("localhost", "www.localhost"), authority.issue("blog.example")
    wildcard, shop = authority.issue("*.shop.example"), authority.issue("other.example")
    (tmp_path / "maitred.toml").write_text(
        f"""
application = "app.py"
tls-cert = ["{first.certificate}", "{blog.certificate}"]
tls-key = ["{first.key}", "{blog.key}"]

[host."shop.example"]
names = "*.shop.example"
application = "app.py"
tls-cert = ["{wildcard.certificate}", "{shop.certificate}"]
tls-key = ["{wildcard.key}", "{shop.key}"]
"""
    )
    (tmp_path / "app.py").write_text(APP)
    server = serve()
    context = authority.client()
    context.check_hostname = False
    for name, pair in [
        ("localhost", first),
        ("www.localhost", first),
        ("blog.example", blog),
        ("a.shop.example", wildcard),
        ("shop.example", wildcard),
        ("nobody.example", first),
    ]:
        answer = fetch(server.port, context, name)
        assert (answer.serial, answer.reply.status) == (pair.serial, 200), name


def test_a_name_that_nobody_has_can_be_refused(serve: Serve, authority: Authority) -> None:
    server = serve(*authority.issue("localhost").options, "--tls-unknown-name", "refuse", source=APP)
    assert fetch(server.port, authority.client()).reply.status == 200
    with pytest.raises(ssl.SSLError, match="(?i)unrecognized"):
        fetch(server.port, authority.client(), "nobody.example")


def test_a_file_may_have_both_and_a_client_sees_the_kind_that_it_knows(serve: Serve, tmp_path: Path, authority: Authority) -> None:
    pairs = [authority.issue("localhost"), authority.issue("localhost", kind=RSA)]
    files = [tmp_path / "ec.pem", tmp_path / "rsa.pem"]
    for file, pair in zip(files, pairs):
        file.write_bytes(pair.key.read_bytes() + pair.certificate.read_bytes())
    server = serve("--tls-cert", str(files[0]), "--tls-cert", str(files[1]), source=APP)
    assert fetch(server.port, authority.client()).serial == pairs[0].serial
    old = authority.client()
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    old.set_ciphers("ECDHE-RSA-AES128-GCM-SHA256")
    answer = fetch(server.port, old)
    assert (answer.serial, answer.version) == (pairs[1].serial, "TLSv1.2")


def test_the_earliest_version_can_be_set(serve: Serve, authority: Authority) -> None:
    server = serve(*authority.issue("localhost").options, "--tls-min-version", "1.3", source=APP)
    old = authority.client()
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises(ssl.SSLError, match="(?i)protocol.version"):
        fetch(server.port, old)
    assert fetch(server.port, authority.client()).version == "TLSv1.3"


def test_clients_need_a_certificate_where_it_is_required(serve: Serve, authority: Authority) -> None:
    options = [*authority.issue("localhost").options, "--tls-client-ca", str(authority.file)]
    server = serve(*options, "--tls-client-auth", "required", source=APP)
    with pytest.raises((ssl.SSLError, ConnectionError)):
        fetch(server.port, authority.client())
    known, pair = authority.client(), authority.issue("somebody.example")
    known.load_cert_chain(pair.certificate, pair.key)
    assert fetch(server.port, known).reply.status == 200


def test_handshakes_of_one_client_can_be_limited(serve: Serve, authority: Authority) -> None:
    server = serve(*authority.issue("localhost").options, "--tls-handshake-rate", "0.001", source=APP)
    for _ in range(8):
        assert fetch(server.port, authority.client()).reply.status == 200
    with pytest.raises((ssl.SSLError, ConnectionError)):
        fetch(server.port, authority.client())
    server.wait_for(r"warn 127\.0\.0\.1: .*\(--tls-handshake-rate\)")


def test_http_leads_to_https(serve: Serve, authority: Authority) -> None:
    listen = ("--listen", "https://127.0.0.1:0", "--listen", "http://127.0.0.1:0,redirect=https:8443")
    server = serve(*authority.issue("localhost").options, *listen, "--listen", "127.0.0.1:0,redirect=https", source=APP)
    server.wait_for(rf"http://127\.0\.0\.1:{server.ports[1]}  308 to https, port 8443\n")
    for port, location in [(server.ports[1], "https://shop.example:8443/a/b?c=d"), (server.ports[2], "https://shop.example/a/b?c=d")]:
        server.port = port
        reply = server.fetch("/a/b?c=d", Host=f"shop.example:{port}")
        assert (reply.status, reply.headers["Location"]) == (308, location)
    assert fetch(server.ports[0], authority.client()).reply.status == 200


def test_browsers_are_told_by_https_alone(serve: Serve, tmp_path: Path, authority: Authority) -> None:
    pair = authority.issue("localhost", "shop.example", "old.example")
    (tmp_path / "maitred.toml").write_text(
        f"""
application = "app.py"
listen = ["https://127.0.0.1:0", "http://127.0.0.1:0"]
tls-cert = "{pair.certificate}"
tls-key = "{pair.key}"
hsts = "300"

[host."shop.example"]
application = "app.py"
hsts = "31536000,include-subdomains"

[host."old.example"]
application = "app.py"
hsts = "off"
"""
    )
    (tmp_path / "app.py").write_text(APP)
    server = serve("--listen", "https://127.0.0.1:0", "--listen", "http://127.0.0.1:0")
    for name, field in [("localhost", "max-age=300"), ("shop.example", "max-age=31536000; includeSubDomains"), ("old.example", None)]:
        assert fetch(server.ports[0], authority.client(), name).reply.headers["Strict-Transport-Security"] == field, name
        server.port = server.ports[1]
        assert server.fetch("/", Host=name).headers["Strict-Transport-Security"] is None


SLOW = """
import time

def app(environ, start_response):
    if environ["PATH_INFO"] == "/slow":
        time.sleep(1)
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b""]
"""


@pytest.mark.parametrize("protocol", ["--http1.1", "--http2"])
def test_answers_of_the_engine_tell_browsers_as_well(serve: Serve, authority: Authority, protocol: str) -> None:
    pair = authority.issue("localhost")
    options = ["--listen", "https://127.0.0.1:0", "--hsts", "300", "--request-timeout", "0.1", "--max-body", "10"]
    server = serve(*options, "--static", "/files=.", "--client-rate", "0.001", "--client-burst", "6", *pair.options, source=SLOW)

    def told(path: str, *more: str) -> tuple[str, str]:
        command = ["curl", "--silent", "--insecure", "--include", protocol, *more, f"https://localhost:{server.port}{path}"]
        lines = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE).stdout.splitlines()
        fields = [line.partition(":")[2].strip() for line in lines if line.lower().startswith("strict-transport-security:")]
        return lines[0].split()[1], ", ".join(fields)

    assert told("/slow") == ("504", "max-age=300")
    assert told("/files/none") == ("404", "max-age=300")
    if protocol == "--http1.1":
        # With HTTP/2 curl may see the reset of its stream before the answer.
        assert told("/", "--data", "x" * 100, "--header", "Expect:") == ("413", "max-age=300")
        assert told("/", "--header", f"X: {'x' * 100_000}") == ("431", "max-age=300")
    # The limit on a client is met before any filter.
    answers = {told("/") for _ in range(8)}
    assert answers == {("200", "max-age=300"), ("429", "max-age=300")}


def test_what_is_wrong_with_a_file_is_told_with_the_option_and_a_remedy(tmp_path: Path, authority: Authority) -> None:
    pair, other = authority.issue("localhost"), authority.issue("localhost")
    locked, nothing = tmp_path / "locked.key", tmp_path / "nothing.pem"
    subprocess.run(["openssl", "ec", "-in", pair.key, "-out", locked, "-aes256", "-passout", "pass:x"], check=True, capture_output=True)
    nothing.write_text("nothing")
    certificate, key = str(pair.certificate), str(pair.key)
    cases: list[tuple[list[str], str, str]] = [
        (["--tls-cert", str(tmp_path / "none.pem")], "--tls-cert", "there is no file"),
        (["--tls-cert", certificate], "--tls-cert", "has no private key in it, and there is none for it; name the file of its key with tls-key"),
        (["--tls-cert", certificate, "--tls-key", str(other.key)], "--tls-key", "the key does not belong to the certificate; use the key"),
        (["--tls-cert", key, "--tls-key", certificate], "--tls-cert", "have the files of certificate and key been exchanged?"),
        (["--tls-cert", certificate, "--tls-key", str(locked)], "--tls-key", "the key is encrypted"),
        (["--tls-cert", str(nothing), "--tls-key", key], "--tls-cert", "nothing.pem"),
        (["--tls-cert", certificate, "--tls-key", key, "--tls-ocsp", str(nothing)], "--tls-ocsp", "nothing.pem, for"),
        (
            ["--tls-cert", certificate, "--tls-key", key, "--tls-client-auth", "required", "--tls-client-ca", str(nothing)],
            "--tls-client-ca",
            "nothing.pem",
        ),
        (["--tls-cert", certificate, "--tls-key", key, "--tls-ticket-key", str(nothing)], "--tls-ticket-key", "nothing.pem"),
        (["--listen", "https://127.0.0.1:0"], "--listen", "needs a certificate, and there is none; give one with --tls-cert"),
    ]
    for arguments, key_word, part in cases:
        done = check(tmp_path, *arguments)
        assert done.returncode == 2, done.stdout
        lines = done.stderr.splitlines()
        assert len(lines) == 1 and lines[0].startswith(f"maitred: {key_word}: ") and part in lines[0], done.stderr


@pytest.mark.parametrize("how", [["-v2", "aes-256-cbc"], ["-v2", "aes-128-cbc", "-v2prf", "hmacWithSHA1"], ["-v2", "des3"], ["-scrypt"]])
def test_an_encrypted_key_is_opened_by_a_password_of_a_file_or_a_variable(
    serve: Serve, tmp_path: Path, authority: Authority, how: list[str]
) -> None:
    pair = authority.issue("localhost")
    locked, passwords, wrong = tmp_path / "locked.key", tmp_path / "passwords", tmp_path / "wrong"
    making = ["openssl", "pkcs8", "-topk8", "-in", pair.key, "-out", locked, "-passout", "pass:sesame ", *how]
    subprocess.run(making, check=True, capture_output=True)
    passwords.write_bytes(b"another\r\n\nsesame \n")
    wrong.write_text("another\nsesame\n")
    options = ["--tls-cert", str(pair.certificate), "--tls-key", str(locked)]
    # With a worker the files are handed on.
    server = serve(*options, "--tls-key-password", str(passwords), "--workers", "2", source=APP)
    assert fetch(server.port, authority.client()).reply.status == 200
    assert "sesame" not in server.said
    server = serve(*options, "--tls-key-password", "env:SECRET", source=APP, SECRET="sesame ")
    assert fetch(server.port, authority.client()).reply.status == 200
    for arguments, place, part in [
        ([], "--tls-key", "the key is encrypted, and there is no password for it; name a file"),
        (["--tls-key-password", str(wrong)], "--tls-key-password", f"{locked}: the key is encrypted, and no password of tls-key-password opens it; try"),
        (["--tls-key-password", "env:NOTHING"], "--tls-key-password", "the variable NOTHING is not set, or empty; set it"),
        (["--tls-key-password", str(tmp_path / "none")], "--tls-key-password", "there is no file"),
    ]:
        done = check(tmp_path, *options, *arguments)
        assert done.returncode == 2, done.stdout
        assert done.stderr.startswith(f"maitred: {place}: ") and part in done.stderr, done.stderr
    passwords.write_text("\n")
    done = check(tmp_path, *options, "--tls-key-password", str(passwords))
    assert "there is no password in the file" in done.stderr


def test_check_and_ctl_show_certificates(serve: Serve, tmp_path: Path, authority: Authority) -> None:
    pair = authority.issue("localhost", "shop.example", days=60)
    done = check(tmp_path, *pair.options)
    assert done.returncode == 0, done.stderr
    line = next(line for line in done.stdout.splitlines() if line.startswith("# TLS: "))
    assert f"{pair.certificate}: localhost, shop.example; ECDSA P-256, issued by CN=Authority of tests; until " in line
    # The last of them has begun, unless all of this is within a second.
    days = re.search(r" (59|60) days left$", line)
    assert days, line
    server = serve(*pair.options, "--metrics-path", "/metrics", source=APP)
    asked = [MAITRED, "ctl", "--json", "--server", str(server.process.pid), "tls"]
    shown = json.loads(subprocess.run(asked, capture_output=True, text=True, check=True).stdout)
    [certificate] = shown["certificates"]
    assert 'handshakes{version="1.3",kind="full"}' not in shown
    assert (certificate["file"], certificate["names"]) == (str(pair.certificate), "localhost, shop.example")
    assert certificate["serial"].upper().lstrip("0") == pair.serial.lstrip("0")
    assert certificate["days_left"] in (59, 60)
    metrics = fetch(server.port, authority.client(), path="/metrics").reply.body.decode()
    shown = json.loads(subprocess.run(asked, capture_output=True, text=True, check=True).stdout)
    assert shown['handshakes{version="1.3",kind="full"}'] == 1
    end = next(line for line in metrics.splitlines() if line.startswith("maitred_tls_certificate_not_after_seconds{"))
    name, _, value = end.partition(" ")
    assert name == 'maitred_tls_certificate_not_after_seconds{certificate="1",name="localhost"}'
    with_ssl = fetch(server.port, authority.client())
    assert with_ssl.names == {"localhost", "shop.example"} and int(value) > 0


def test_a_certificate_that_ends_soon_is_told_at_the_start(serve: Serve, authority: Authority) -> None:
    # Of a life of 90 days; a short one is told in its last quarter.
    end = datetime.now(timezone.utc) + timedelta(days=10)
    pair = authority.issue_between("localhost", *(f"{at:%Y%m%d%H%M%SZ}" for at in (end - timedelta(days=90), end)))
    server = serve(*pair.options, source=APP)
    server.wait_for(r"warn \S+\.pem \(localhost\): the certificate expires in \d+ days, \d{4}-\S+Z; renew it")
    server = serve(*authority.issue("localhost", days=60).options, source=APP)
    assert server.stop() == 0
    assert "expires" not in server.said


def test_without_a_certificate_all_is_as_before(serve: Serve) -> None:
    server = serve(source=APP)
    assert server.fetch("/").body.decode() == f"http {server.port}"
    asked = subprocess.run([MAITRED, "ctl", "--server", str(server.process.pid), "tls"], capture_output=True, text=True)
    assert (asked.returncode, "no listener speaks TLS" in asked.stderr) == (1, True)
