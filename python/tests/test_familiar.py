"""Command lines of other servers, as their documentation has them, with the name of the program alone replaced.

Ports and addresses are those of a test: 127.0.0.1, and a free port.
"""

from __future__ import annotations

import http.client
import shlex
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import certificates
import pytest
from conftest import PATIENCE, Server

WSGI = """
def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"hello " + environ["wsgi.url_scheme"].encode()]
"""

ASGI = """
async def app(scope, receive, send):
    assert scope["type"] == "http"
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"hello " + scope["scheme"].encode()})

def create_app():
    return app
"""

LINES = [
    # uvicorn
    "uvicorn main:app --host 127.0.0.1 --port 0 --workers 2",
    "uvicorn --factory main:create_app --port 0 --no-access-log --timeout-keep-alive 5 --timeout-graceful-shutdown 10",
    # gunicorn
    "gunicorn -w 2 -b 127.0.0.1:0 --threads 2 app:app",
    "gunicorn --workers=1 --bind=127.0.0.1:0 --access-logfile - --log-level debug app:app",
    "gunicorn app:app -w2 -b127.0.0.1:0 --max-requests 1000 --forwarded-allow-ips 127.0.0.1 --pid the.pid",
    # granian
    "granian --interface wsgi --port 0 --blocking-threads 4 app:app",
    # hypercorn
    "hypercorn main:app --bind 127.0.0.1:0 -w 1 --keep-alive 5 --graceful-timeout 3 --access-logfile -",
]


class Familiar(Server):
    """Started by these words, and none of the tests'."""

    def command(self, arguments: list[str]) -> list[str | Path]:
        assert arguments[-2] == "--listen"
        return super().command(arguments[:-2])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "app.py").write_text(WSGI)
    (tmp_path / "main.py").write_text(ASGI)
    return tmp_path


@pytest.fixture
def started(folder: Path) -> Iterator[list[Server]]:
    servers: list[Server] = []
    yield servers
    for server in servers:
        server.kill()


@pytest.mark.parametrize("line", LINES)
def test_a_documented_command_line_serves(line: str, folder: Path, started: list[Server]) -> None:
    program, *arguments = shlex.split(line)
    server = Familiar(arguments, folder, {})
    started.append(server)
    assert server.fetch("/").body.startswith(b"hello "), program
    assert server.stop() == 0, server.said


@certificates.needs_openssl
def test_certificates_by_the_names_of_uvicorn(folder: Path, started: list[Server]) -> None:
    authority = certificates.Authority(folder)
    pair = authority.issue("localhost", "127.0.0.1")
    line = f"main:app --port 0 --ssl-keyfile {pair.key} --ssl-certfile {pair.certificate}"
    server = Familiar(shlex.split(line), folder, {})
    started.append(server)
    context = ssl.create_default_context(cafile=authority.file)
    peer = http.client.HTTPSConnection("127.0.0.1", server.port, timeout=PATIENCE, context=context)
    peer.request("GET", "/")
    assert peer.getresponse().read() == b"hello https"
    peer.close()
    assert server.stop() == 0, server.said


def test_a_socket_of_gunicorn(folder: Path, started: list[Server]) -> None:
    path = folder / "the.sock"
    # A port beside it says when it serves.
    server = Familiar(shlex.split(f"--bind unix:{path} -b 127.0.0.1:0 app:app"), folder, {})
    started.append(server)
    with socket.socket(socket.AF_UNIX) as peer:
        peer.settimeout(PATIENCE)
        peer.connect(str(path))
        peer.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        reply = http.client.HTTPResponse(peer)
        reply.begin()
        assert reply.read() == b"hello http"
    assert server.stop() == 0, server.said
