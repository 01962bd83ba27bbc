"""Browsers load a page with 200 assets by HTTP/2 and upload 40 MB: Chromium, and Firefox, which trust the authority of the tests and no other."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from certificates import authority, needs_openssl
from h2_site import Site, is_whole, site
from test_browser import CHROMIUM_FLAGS
from test_tls_browser import spki

__all__ = ["authority", "site"]

sync_api = pytest.importorskip("playwright.sync_api")

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium")
FIREFOX = os.environ.get("FIREFOX") or shutil.which("firefox-esr") or shutil.which("firefox")

#: Nothing here may reach beyond this machine.
PREFERENCES = {
    "app.update.enabled": False,
    "browser.aboutwelcome.enabled": False,
    "browser.region.network.url": "",
    "browser.safebrowsing.downloads.remote.enabled": False,
    "browser.safebrowsing.malware.enabled": False,
    "browser.safebrowsing.phishing.enabled": False,
    "browser.shell.checkDefaultBrowser": False,
    "browser.startup.homepage_override.mstone": "ignore",
    "datareporting.healthreport.uploadEnabled": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "extensions.getAddons.cache.enabled": False,
    "extensions.update.enabled": False,
    "media.gmp-manager.url": "",
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "network.proxy.type": 0,
    "services.settings.server": "data:,#remote-settings-dummy/v1",
    "toolkit.telemetry.enabled": False,
    "toolkit.telemetry.server": "",
}

pytestmark = needs_openssl


@pytest.mark.skipif(not CHROMIUM, reason="needs Chromium (Debian package chromium; CHROMIUM names another place)")
def test_chromium(site: Site) -> None:
    start = len(site.server.said)
    with sync_api.sync_playwright() as playwright:
        trusted = f"--ignore-certificate-errors-spki-list={spki(site.certificate)}"
        browser = playwright.chromium.launch(executable_path=CHROMIUM, headless=True, args=[*CHROMIUM_FLAGS, trusted])
        try:
            page = browser.new_context().new_page()
            page.goto(f"{site.address}/")
            assert is_whole(site.report(start))
        finally:
            browser.close()


@pytest.mark.skipif(not FIREFOX, reason="needs Firefox (Debian package firefox-esr; FIREFOX names another place)")
@pytest.mark.skipif(not shutil.which("certutil"), reason="needs certutil (Debian package libnss3-tools)")
def test_firefox(site: Site, tmp_path: Path) -> None:
    profile = tmp_path / "profile"
    profile.mkdir()
    for arguments in (["-N", "--empty-password"], ["-A", "-n", "tests", "-t", "C,,", "-i", str(site.authority.file)]):
        subprocess.run(["certutil", *arguments, "-d", f"sql:{profile}"], check=True, capture_output=True)
    lines = (f"user_pref({json.dumps(name)}, {json.dumps(value)});" for name, value in PREFERENCES.items())
    (profile / "user.js").write_text("\n".join(lines))
    start = len(site.server.said)
    assert FIREFOX
    command = [FIREFOX, "--headless", "--no-remote", "--profile", str(profile), f"{site.address}/"]
    environment = os.environ | {"HOME": str(tmp_path), "MOZ_CRASHREPORTER_DISABLE": "1"}
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True) as browser:
        try:
            assert is_whole(site.report(start))
        finally:
            browser.terminate()
            try:
                browser.wait(10)
            except subprocess.TimeoutExpired:
                browser.kill()
