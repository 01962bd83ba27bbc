"""Conformance: h2spec in its strict form, all 146 cases, in clear text and by TLS.  `make setup` builds it where Go is (scripts/h2spec)."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest
from certificates import Authority, authority, needs_openssl
from conftest import Serve

__all__ = ["authority"]

CASES = 146
LIMIT = 170

TOOLS = Path(__file__).resolve().parents[2] / ".build/tools/bin"
H2SPEC = os.environ.get("H2SPEC") or shutil.which("h2spec", path=f"{TOOLS}:{os.environ.get('PATH', '')}")

pytestmark = pytest.mark.skipif(not H2SPEC, reason="needs h2spec (scripts/h2spec .build/tools, with Go; H2SPEC names another place)")

APPS = {
    "wsgi": """
def app(environ, start_response):
    environ["wsgi.input"].read()
    body = b"served, and longer than any window of a test"
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
    return [body]
""",
    "asgi": """
async def app(scope, receive, send):
    if scope["type"] != "http":
        return
    while (await receive()).get("more_body"):
        pass
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]})
    await send({"type": "http.response.body", "body": b"served, and longer than any window of a test"})
""",
}


#: To what does not begin as HTTP/2 a server that has HTTP/1.1 as well answers so; h2spec wants the end of the connection, or a GOAWAY.
ANSWERED = "http2/3.5: Sends invalid connection preface"


def conforms(report: Path, *arguments: str | int, but: tuple[str, ...] = ()) -> None:
    """Every case has passed ``but`` these; else which have not, and what came instead."""
    assert H2SPEC
    command = [H2SPEC, "--strict", "--timeout", "5", "--junit-report", str(report), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
    # What came from the server stands in it as it came.
    text = re.sub(r"[^\t\n -~]|&#x?[0-9a-fA-F]+;", "?", report.read_text(errors="replace"))
    cases = ElementTree.fromstring(text).findall(".//testcase")
    wrong = [case for case in cases if any(case.find(kind) is not None for kind in ("failure", "error", "skipped"))]
    names = [f"{case.get('package')}: {case.get('classname')}" for case in wrong]
    told = "\n".join(f"{name}: {''.join(case.itertext()).strip()}" for name, case in zip(names, wrong))
    assert sorted(names) == sorted(but), f"{len(wrong)} of {len(cases)}:\n{told}"
    assert len(cases) == CASES and (done.returncode == 0) == (not but), done.stdout[-2000:]


@pytest.mark.parametrize("interface", APPS)
def test_in_clear_text(interface: str, serve: Serve, tmp_path: Path) -> None:
    server = serve("--http2", "only", source=APPS[interface], checked=False)
    conforms(tmp_path / "report.xml", "-p", server.port)
    assert server.stop() == 0, server.said


@needs_openssl
@pytest.mark.parametrize("interface", APPS)
def test_by_tls(interface: str, serve: Serve, tmp_path: Path, authority: Authority) -> None:
    pair = authority.issue("localhost", "127.0.0.1")
    server = serve(*pair.options, source=APPS[interface], checked=False)
    conforms(tmp_path / "report.xml", "-p", server.port, "-h", "127.0.0.1", "-t", "-k")
    assert server.stop() == 0, server.said


def test_of_files_beside_http_1(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "files/index.html").write_text("a file, and longer than any window of a test" * 10)
    server = serve(str(tmp_path / "files"))
    conforms(tmp_path / "report.xml", "-p", server.port, but=(ANSWERED,))
    assert server.stop() == 0, server.said
