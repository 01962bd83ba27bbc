"""TLS together with the other things a listener can do: PROXY headers, Unix sockets, workers that are forked, http that leads to https."""

from __future__ import annotations

import re
import shutil
import socket
import ssl
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from certificates import Authority, authority, fetch, needs_openssl, said_to
from conftest import PATIENCE, Serve

__all__ = ["authority"]

pytestmark = needs_openssl

needs_curl = pytest.mark.skipif(not shutil.which("curl"), reason="needs curl")

APP = """
import os
def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    said = [environ["wsgi.url_scheme"], environ.get("REMOTE_ADDR", ""), environ["PATH_INFO"], str(os.getpid())]
    return [" ".join(said).encode()]
"""

PROXY_V1 = b"PROXY TCP4 192.0.2.7 192.0.2.1 4711 443\r\n"
PROXY_V2 = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c" + bytes([192, 0, 2, 7, 192, 0, 2, 1]) + (4711).to_bytes(2, "big") + (443).to_bytes(2, "big")
REQUEST = b"GET /a HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


def read_all(peer: ssl.SSLSocket) -> bytes:
    said = b""
    while part := peer.recv(65536):
        said += part
    return said


@pytest.mark.parametrize("header", [PROXY_V1, PROXY_V2], ids=["v1", "v2"])
@pytest.mark.parametrize("apart", [False, True], ids=["together", "apart"])
def test_a_proxy_header_comes_before_the_handshake(header: bytes, apart: bool, serve: Serve, authority: Authority) -> None:
    listen = ("--listen", "https://127.0.0.1:0,proxy-protocol=on", "--trusted-proxies", "127.0.0.1")
    server = serve(*authority.issue("localhost").options, *listen, source=APP)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    session = authority.client().wrap_bio(incoming, outgoing, server_hostname="localhost")
    with socket.create_connection(("127.0.0.1", server.port), PATIENCE) as peer:
        if apart:
            peer.sendall(header[:9])
            peer.sendall(header[9:])
            header = b""
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

        def exchange(step: Callable[[], Any]) -> Any:
            """Until the session needs no more for this step; what is first sent follows the header in the same segment."""
            nonlocal header
            while True:
                try:
                    return step()
                except ssl.SSLWantReadError:
                    peer.sendall(header + outgoing.read())
                    header = b""
                    part = peer.recv(65536)
                    assert part, "the server has closed"
                    incoming.write(part)

        exchange(session.do_handshake)
        session.write(REQUEST)
        received = b""
        while b"\r\n0\r\n\r\n" not in received:
            received += exchange(session.read)
    assert b"\r\nhttps 192.0.2.7 /a " in received, received


def test_a_handshake_without_the_proxy_header_is_refused(serve: Serve, authority: Authority) -> None:
    server = serve(*authority.issue("localhost").options, "--listen", "https://127.0.0.1:0,proxy-protocol=on", source=APP)
    with pytest.raises((ssl.SSLError, ConnectionError)):
        fetch(server.port, authority.client())
    server.wait_for("(?i)PROXY")


def test_a_unix_socket_speaks_tls_where_it_is_told_to(serve: Serve, tmp_path: Path, authority: Authority) -> None:
    secured, plain = tmp_path / "s", tmp_path / "p"
    listen = ("--listen", f"https://unix:{secured}", "--listen", f"unix:{plain}", "--listen", "https://127.0.0.1:0")
    server = serve(*authority.issue("localhost").options, *listen, source=APP)
    assert fetch(server.ports[0], authority.client()).reply.status == 200
    with socket.socket(socket.AF_UNIX) as peer:
        peer.settimeout(PATIENCE)
        peer.connect(str(secured))
        with authority.client().wrap_socket(peer, server_hostname="localhost") as session:
            session.sendall(REQUEST)
            said = read_all(session)
    assert said.startswith(b"HTTP/1.1 200 OK\r\n") and b"\r\nhttps  /a " in said, said
    with socket.socket(socket.AF_UNIX) as peer:
        peer.settimeout(PATIENCE)
        peer.connect(str(plain))
        peer.sendall(REQUEST)
        assert peer.makefile("rb").read().startswith(b"HTTP/1.1 200 OK\r\n")


def test_workers_that_are_forked_speak_tls_and_resume_each_other_s_sessions(serve: Serve, authority: Authority) -> None:
    server = serve(*authority.issue("localhost").options, "--workers", "2", "--preload", source=APP)
    server.wait_for("all workers are ready")
    context = authority.client()
    first = fetch(server.port, context)
    seen = {first.reply.body.split()[-1]}
    for _ in range(500):
        again = fetch(server.port, context, session=first.session)
        assert again.resumed
        seen.add(again.reply.body.split()[-1])
        if len(seen) == 2:
            return
    pytest.fail("one worker has answered everything")


@needs_curl
def test_curl_follows_from_http_to_https(serve: Serve, authority: Authority) -> None:
    server = serve(*authority.issue("localhost").options, source=APP)
    secured = server.port
    other = serve(*authority.issue("localhost").options, "--listen", "https://127.0.0.1:0", "--listen", f"127.0.0.1:0,redirect=https:{secured}", source=APP)
    command = ["curl", "-sS", "-L", "--noproxy", "*", "--cacert", authority.file, "-d", "x=1", "-w", "\n%{url_effective} %{num_redirects} %{http_version}"]
    done = subprocess.run([*command, f"http://localhost:{other.ports[1]}/a/b?c=d"], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    body, _, how = done.stdout.rpartition("\n")
    assert body.startswith("https 127.0.0.1 /a/b ") and how == f"https://localhost:{secured}/a/b?c=d 1 2"


def test_an_ocsp_response_is_stapled(serve: Serve, authority: Authority) -> None:
    pair, bare = authority.issue("localhost"), authority.issue("bare.example")
    options = ("--tls-ocsp", str(authority.ocsp(pair)), "--tls-ocsp", "-")
    server = serve(*pair.options, *bare.options, *options, source=APP)
    for version in ("-tls1_2", "-tls1_3"):
        asking = ("-connect", f"127.0.0.1:{server.port}", "-CAfile", authority.file, version)
        said = said_to(*asking, "-status")
        assert "OCSP Response Status: successful" in said and re.search(r"Cert Status: good", said), said
        assert "Verify return code: 0 (ok)" in said
        assert "OCSP response: no response sent" in said_to(*asking, "-status", "-servername", "bare.example")
        assert "OCSP" not in said_to(*asking)
