"""The demo by https, with the certificate for development: a browser, curl and Python's ssl load it.

The browser takes this one certificate, by its public key, and no other."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from certificates import fetch, needs_openssl
from conftest import PATIENCE, Server
from test_browser import CHROMIUM_FLAGS, DEMO, Record

sync_api = pytest.importorskip("playwright.sync_api")

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium")


@dataclass(frozen=True)
class Site:
    server: Server
    certificate: Path

    @property
    def address(self) -> str:
        return f"https://localhost:{self.server.port}"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The demo as the README starts it, but for the port."""
    folder = tmp_path_factory.mktemp("demo")
    environment = {"DEMO_DATABASE": str(folder / "guestbook.sqlite3"), "XDG_CACHE_HOME": str(folder)}
    arguments = ["--tls", str(DEMO / "app.py"), "--mount", f"/live={DEMO / 'live.py'}", "--static", f"/static={DEMO / 'static'}"]
    server = Server(arguments, folder, environment)
    try:
        yield Site(server, folder / "maitred/development.pem")
        assert server.stop() == 0, server.said
    finally:
        server.kill()


def spki(certificate: Path) -> str:
    """The hash of its public key, as Chromium wants it."""
    key = subprocess.run(["openssl", "x509", "-in", certificate, "-noout", "-pubkey"], capture_output=True, check=True).stdout
    der = base64.b64decode("".join(line for line in key.decode().splitlines() if not line.startswith("-")))
    return base64.b64encode(hashlib.sha256(der).digest()).decode()


@needs_openssl
@pytest.mark.skipif(not CHROMIUM, reason="needs Chromium (Debian package chromium; CHROMIUM names another place)")
def test_a_browser_loads_the_demo(site: Site) -> None:
    with sync_api.sync_playwright() as playwright:
        trusted = f"--ignore-certificate-errors-spki-list={spki(site.certificate)}"
        browser = playwright.chromium.launch(executable_path=CHROMIUM, headless=True, args=[*CHROMIUM_FLAGS, trusted])
        page = browser.new_context().new_page()
        record = Record(page)
        page.goto(f"{site.address}/", wait_until="networkidle")
        assert record.complaints == [] and record.refused() == []
        assert record.paths("document") == ["/"] and record.paths("stylesheet")
        assert page.evaluate("window.isSecureContext")
        assert page.evaluate("[...document.styleSheets].every(sheet => sheet.cssRules.length > 0)")
        details = record.responses[0].security_details()
        assert details and details["protocol"] == "TLS 1.3", details
        # A form, which the browser would warn of by http.
        page.get_by_role("link", name=re.compile("guest book", re.IGNORECASE)).first.click()
        form = page.locator("form[method=post]")
        for field in form.locator("input[type=text], input:not([type]), textarea").all():
            field.fill("by https")
        with page.expect_navigation():
            form.locator("button, input[type=submit]").click()
        sync_api.expect(page.locator("body")).to_contain_text("by https")
        assert page.url.startswith(site.address)
        browser.close()


@needs_openssl
@pytest.mark.skipif(not CHROMIUM, reason="needs Chromium (Debian package chromium; CHROMIUM names another place)")
def test_a_browser_that_does_not_know_the_certificate_refuses_it(site: Site) -> None:
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, headless=True, args=CHROMIUM_FLAGS)
        page = browser.new_context().new_page()
        with pytest.raises(sync_api.Error, match="ERR_CERT_AUTHORITY_INVALID"):
            page.goto(f"{site.address}/")
        browser.close()


@pytest.mark.skipif(not shutil.which("curl"), reason="needs curl")
@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_curl_loads_the_demo(version: str, site: Site) -> None:
    command = ["curl", "-sS", "--noproxy", "*", "--cacert", site.certificate, "--tls-max", version, f"--tlsv{version}", "-w", "\n%{ssl_verify_result} %{http_code}"]
    for host in ("localhost", "127.0.0.1"):
        done = subprocess.run([*command, f"https://{host}:{site.server.port}/"], capture_output=True, text=True, timeout=PATIENCE)
        assert done.returncode == 0, done.stderr
        page, _, how = done.stdout.rpartition("\n")
        assert how == "0 200" and "</html>" in page


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_python_loads_the_demo(version: ssl.TLSVersion, site: Site) -> None:
    context = ssl.create_default_context(cafile=site.certificate)
    context.minimum_version = context.maximum_version = version
    context.set_alpn_protocols(["http/1.1"])
    for name in ("localhost", "127.0.0.1", socket.gethostname()):
        answer = fetch(site.server.port, context, name)
        assert answer.reply.status == 200 and b"</html>" in answer.reply.body
        assert answer.version == version.name.replace("_", ".")
