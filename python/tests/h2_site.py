"""A page with 200 assets, half of them files and half of an application, which uploads 40 MB: for whatever loads it by HTTP/2.

Opened by a browser the page does all of it by itself, and tells the server what it has seen."""

from __future__ import annotations

import hashlib
import json
import re
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from certificates import Authority
from conftest import Server

ASSETS, LARGE = 200, 40_000_000
#: As the page makes it.
DIGEST = hashlib.sha256(bytes(range(250)) * (LARGE // 250)).hexdigest()

APP = """
import hashlib, json

ASSETS, LARGE = 200, 40_000_000
SCRIPTS = "".join(f'<script src="/app/{n}.js"></script>' for n in range(ASSETS // 2))
IMAGES = "".join(f'<img src="/static/{n}.svg" alt="">' for n in range(ASSETS // 2))
PAGE = f\"\"\"<!doctype html><title>page</title><link rel="icon" href="data:,"><body>
<script>var ran = 0</script>{SCRIPTS}{IMAGES}
<script>
addEventListener("load", async () => {{
  const report = {{ran}};
  try {{
    report.shown = [...document.images].filter(each => each.complete && each.naturalWidth == 8).length;
    const turn = Uint8Array.from({{length: 250}}, (_, at) => at), body = new Uint8Array({LARGE});
    for (let at = 0; at < body.length; at += 250) body.set(turn, at);
    report.digest = await (await fetch("/digest", {{method: "POST", body: new Blob([body])}})).text();
    const loaded = [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")];
    report.protocols = [...new Set(loaded.map(each => each.nextHopProtocol))];
  }} catch (error) {{
    report.failed = String(error);
  }}
  document.title = "done";
  await fetch("/report", {{method: "POST", body: JSON.stringify(report)}});
}});
</script>\"\"\".encode()

async def app(scope, receive, send):
    if scope["type"] != "http":
        return
    digest, whole, more = hashlib.sha256(), b"", True
    while more:
        message = await receive()
        digest.update(message.get("body", b""))
        whole += message.get("body", b"") if scope["path"] == "/report" else b""
        more = message.get("more_body", False)
    kind, body = b"text/html", PAGE
    if scope["path"].startswith("/app/"):
        kind, body = b"text/javascript", b"ran += 1;"
    elif scope["path"] == "/digest":
        kind, body = b"text/plain", digest.hexdigest().encode()
    elif scope["path"] == "/report":
        print("report", whole.decode(), flush=True)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", kind), (b"content-length", b"%d" % len(body))]})
    await send({"type": "http.response.body", "body": body})
"""

SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="8" height="8"><rect width="8" height="8" fill="#{:06x}"/></svg>'


@dataclass(frozen=True)
class Site:
    server: Server
    authority: Authority
    certificate: Path
    folder: Path

    @property
    def address(self) -> str:
        return f"https://localhost:{self.server.port}"

    @property
    def clear(self) -> str:
        return f"http://localhost:{self.server.ports[1]}"

    def context(self) -> ssl.SSLContext:
        return self.authority.client()

    def upload(self) -> Path:
        """A file as the page makes it."""
        file = self.folder / "upload"
        if not file.exists():
            file.write_bytes(bytes(range(250)) * (LARGE // 250))
        return file

    def report(self, start: int) -> Any:
        """What a page has told since."""
        return json.loads(self.server.wait_for(r"report (\{.*\})\n", start)[1])


def build(folder: Path) -> None:
    files = folder / "static"
    files.mkdir()
    for number in range(ASSETS // 2):
        (files / f"{number}.svg").write_text(SVG.format(number * 1000))
    (folder / "app.py").write_text(APP)


def is_whole(report: Any) -> bool:
    assert report == {"ran": ASSETS // 2, "shown": ASSETS // 2, "digest": DIGEST, "protocols": ["h2"]}, report
    return True


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, authority: Authority) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("site")
    build(folder)
    pair = authority.issue("localhost", "127.0.0.1")
    listen = ["--listen", "https://127.0.0.1:0", "--listen", "http://127.0.0.1:0"]
    logs = ["--access-log", "access.log", "--access-log-format", "$request_method $request_uri $server_protocol $status"]
    arguments = ["app.py", "--static", f"/static={folder / 'static'}", "--max-body", "128m", *listen, *pair.options, *logs]
    server = Server(arguments, folder, {})
    try:
        yield Site(server, authority, pair.certificate, folder)
        assert server.stop() == 0, server.said
        # That the loop stood still is told, too, where browsers have the processors.
        errors = [line for line in server.said.splitlines() if re.search(r"Z error |panicked", line) and "standing still" not in line]
        assert not errors, server.said
    finally:
        server.kill()
