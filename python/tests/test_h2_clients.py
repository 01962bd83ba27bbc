"""Clients of HTTP/2 that people use: curl, nghttp, h2load and httpx, in clear text by prior knowledge and by TLS."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
from pathlib import Path

import httpx
import pytest
from certificates import authority, connected, needs_openssl
from conftest import PATIENCE
from crews import until
from h2_site import ASSETS, DIGEST, LARGE, Site, site

__all__ = ["authority", "site"]

pytestmark = needs_openssl

needs_curl = pytest.mark.skipif(not shutil.which("curl"), reason="needs curl")
needs_nghttp = pytest.mark.skipif(not shutil.which("nghttp"), reason="needs nghttp (Debian package nghttp2-client)")
WAYS = ["clear", "tls"]


def told(*command: str | Path) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=2 * PATIENCE)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


def curl(site: Site, way: str, *arguments: str | Path) -> str:
    how = ["--http2-prior-knowledge"] if way == "clear" else ["--http2", "--cacert", str(site.authority.file)]
    return told("curl", "-sS", "--noproxy", "*", *how, *arguments)


def address(site: Site, way: str) -> str:
    return site.clear if way == "clear" else site.address


@needs_curl
def test_curl_loads_a_page_and_its_assets_over_one_connection(site: Site) -> None:
    assert curl(site, "clear", f"{site.clear}/", "-o", "/dev/null", "-w", "%{http_version} %{http_code}") == "2 200"
    # By TLS alone: by prior knowledge Debian's curl breaks a connection where it uses that again, with nginx, too.
    urls = [f"{site.address}/app/[0-{ASSETS // 2 - 1}].js", f"{site.address}/static/[0-{ASSETS // 2 - 1}].svg"]
    outputs = [word for url in urls for word in (url, "-o", "/dev/null")]
    shown = ["-w", "%{http_version} %{http_code} %{num_connects}\n"]
    said = curl(site, "tls", "--parallel", "--parallel-max", "100", *outputs, *shown).splitlines()
    assert len(said) == ASSETS and {line[:5] for line in said} == {"2 200"}
    assert sum(int(line.split()[2]) for line in said) == 1


@needs_curl
@pytest.mark.parametrize("way", WAYS)
def test_curl_uploads_40_mb(way: str, site: Site) -> None:
    said = curl(site, way, "--data-binary", f"@{site.upload()}", f"{address(site, way)}/digest", "-w", " %{http_version} %{http_code}")
    assert said == f"{DIGEST} 2 200"
    said = curl(site, way, "-X", "POST", "-T", site.upload(), f"{address(site, way)}/digest", "-H", "Content-Length:", "-w", " %{http_version}")
    assert said == f"{DIGEST} 2", "without a length, too"


@needs_curl
@pytest.mark.parametrize("way", WAYS)
def test_curl_sees_that_an_upload_is_too_large(way: str, site: Site, tmp_path: Path) -> None:
    (tmp_path / "large").touch()
    os.truncate(tmp_path / "large", 129 << 20)
    seen = 0
    for _ in range(20):
        try:
            said = curl(site, way, "-T", tmp_path / "large", f"{address(site, way)}/digest", "-w", " %{http_code}")
        except AssertionError as failed:
            # This curl does not tell a response that it reads together with the reset behind it, if it has used up its window by then.
            assert "curl: (92)" in str(failed)
            continue
        assert said.startswith("413 Content Too Large") and said.endswith(" 413")
        seen += 1
        if seen == 3:
            break
    assert seen == 3


@needs_curl
@pytest.mark.parametrize("way", WAYS)
def test_curl_knows_the_rest(way: str, site: Site) -> None:
    url = f"{address(site, way)}/static/1.svg"
    head = curl(site, way, "-I", url)
    assert head.startswith("HTTP/2 200") and "content-length:" in head
    tag = re.search(r"etag: (.*)\n", head)
    assert tag and curl(site, way, "-o", "/dev/null", "-H", f"If-None-Match: {tag[1]}", url, "-w", "%{http_code}") == "304"
    assert curl(site, way, "-r", "1-3", url, "-w", "|%{http_code}") == "svg|206"
    assert curl(site, way, "-o", "/dev/null", "-H", "Expect: 100-continue", "-d", "x", f"{address(site, way)}/digest", "-w", "%{http_code}") == "200"


@needs_curl
def test_curl_may_have_http_1_on_both(site: Site) -> None:
    for way in WAYS:
        trusted = ["--cacert", str(site.authority.file)]
        assert told("curl", "-sS", "--noproxy", "*", "--http1.1", *trusted, f"{address(site, way)}/app/1.js", "-w", " %{http_version}") == "ran += 1; 1.1"
    # Asked to upgrade, the server goes on by HTTP/1.1.
    assert told("curl", "-sS", "--noproxy", "*", "--http2", f"{site.clear}/app/1.js", "-w", " %{http_version}") == "ran += 1; 1.1"


@pytest.mark.parametrize("offered,agreed", [(["h2", "http/1.1"], "h2"), (["http/1.1", "h2"], "h2"), (["http/1.1"], "http/1.1"), ([], None)])
def test_the_protocol_is_agreed_on_in_the_handshake(offered: list[str], agreed: str | None, site: Site) -> None:
    context = site.context()
    if offered:
        context.set_alpn_protocols(offered)
    with connected(site.server.ports[0], context) as peer:
        assert peer.selected_alpn_protocol() == agreed


@needs_nghttp
@pytest.mark.parametrize("way", WAYS)
def test_nghttp_loads_a_page_with_its_assets(way: str, site: Site) -> None:
    said = told("nghttp", "--no-verify-peer", "--get-assets", "--null-out", "--stat", f"{address(site, way)}/")
    codes = re.findall(r"^ *\d+ .* (\d{3}) +\S+ (/\S*)$", said, re.MULTILINE)
    assert len(codes) == ASSETS + 1 and {code for code, _ in codes} == {"200"}, said[-2000:]


@needs_nghttp
@pytest.mark.parametrize("way", WAYS)
def test_nghttp_uploads_40_mb(way: str, site: Site) -> None:
    assert told("nghttp", "--no-verify-peer", "--data", site.upload(), f"{address(site, way)}/digest").strip() == DIGEST


@pytest.mark.skipif(not shutil.which("h2load"), reason="needs h2load (Debian package nghttp2-client)")
@pytest.mark.parametrize("path", ["/app/1.js", "/static/1.svg"])
@pytest.mark.parametrize("way", WAYS)
def test_h2load_gets_all_its_answers(way: str, path: str, site: Site) -> None:
    said = told("h2load", "-n", "5000", "-c", "10", "-m", "32", f"{address(site, way)}{path}")
    assert "5000 succeeded, 0 failed, 0 errored, 0 timeout" in said and "5000 2xx" in said, said


@pytest.mark.parametrize("way", WAYS)
def test_httpx_has_requests_side_by_side(way: str, site: Site) -> None:
    async def all_of_them() -> list[httpx.Response]:
        own = {"verify": site.context(), "http1": way == "tls"}
        async with httpx.AsyncClient(base_url=address(site, way), http2=True, trust_env=False, timeout=PATIENCE, **own) as client:
            paths = [f"/app/{number}.js" for number in range(ASSETS // 2)] + [f"/static/{number}.svg" for number in range(ASSETS // 2)]
            # One first, so that the others find its connection.
            return [await client.get("/"), *await asyncio.gather(*(client.get(path) for path in paths))]

    answers = asyncio.run(all_of_them())
    assert len(answers) == ASSETS + 1
    assert {(each.status_code, each.http_version) for each in answers} == {(200, "HTTP/2")}


def test_httpx_uploads(site: Site) -> None:
    with httpx.Client(base_url=site.address, http2=True, verify=site.context(), trust_env=False, timeout=PATIENCE) as client:
        answer = client.post("/digest", content=site.upload().read_bytes()[: LARGE // 10])
        assert answer.status_code == 200 and answer.http_version == "HTTP/2"


def test_the_log_says_by_which_protocol(site: Site) -> None:
    with httpx.Client(base_url=site.address, http2=True, verify=site.context(), trust_env=False, timeout=PATIENCE) as client:
        client.get("/app/1.js?logged")
    log = site.folder / "access.log"
    until("it is logged", lambda: "GET /app/1.js?logged HTTP/2.0 200" in log.read_text())
