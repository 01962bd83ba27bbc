"""Sessions are resumed by whoever has the secret: workers, a new program, servers with the same key file. With the rights of another user, too."""

from __future__ import annotations

import os
import re
import signal
import socket
import ssl
from pathlib import Path

import pytest
from certificates import Answer, Authority, authority, fetch, needs_openssl
from conftest import MAITRED, PATIENCE, Serve
from crews import PROGRAM, Start, crew, until
from test_rights import Contain, contain, folder, network_of, root_only

__all__ = ["authority", "contain", "crew", "folder"]

pytestmark = needs_openssl

VERSIONS = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}

PLAIN = """
def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"served"]
"""


def client(authority: Authority, version: str) -> ssl.SSLContext:
    context = authority.client()
    context.minimum_version = context.maximum_version = VERSIONS[version]
    return context


def process(answer: Answer) -> int:
    return int(answer.reply.body.split()[1])


@pytest.mark.parametrize("version", VERSIONS)
def test_workers_resume_each_other_s_sessions(version: str, crew: Start, authority: Authority) -> None:
    server = crew(*authority.issue("localhost").options)
    context = client(authority, version)
    first = fetch(server.port, context)
    assert not first.resumed
    seen: list[tuple[int, bool]] = []

    def by_both() -> bool:
        again = fetch(server.port, context, session=first.session)
        seen.append((process(again), again.resumed))
        return len({pid for pid, _ in seen}) == 2

    until("both have been reached", by_both)
    assert all(resumed for _, resumed in seen)


def test_a_new_program_resumes_sessions(crew: Start, tmp_path: Path, authority: Authority) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    server = crew(*authority.issue("localhost").options, program="program.py")
    context = client(authority, "1.3")
    first = fetch(server.port, context)
    before = server.workers()
    start = server.tell(signal.SIGUSR2)
    server.wait_for(r"process \d+ is ready and serves", start)
    until("the workers of before are gone", lambda: not before & server.processes())
    again = fetch(server.port, context, session=first.session)
    assert again.resumed and process(again) not in before


@pytest.mark.parametrize("version", VERSIONS)
def test_servers_with_one_key_file_resume_each_other_s_sessions(version: str, serve: Serve, tmp_path: Path, authority: Authority) -> None:
    keys = [tmp_path / "one.key", tmp_path / "other.key"]
    for key in keys:
        key.write_bytes(os.urandom(48))
    pair = authority.issue("localhost")

    def start(*arguments: str) -> int:
        return serve(*pair.options, *arguments, source=PLAIN).port

    ports = [start("--tls-ticket-key", str(key)) for key in (keys[0], keys[0], keys[1])]
    own, off = start(), start("--no-tls-tickets")
    context = client(authority, version)
    first = fetch(ports[0], context)
    resumed = [fetch(port, context, session=first.session).resumed for port in [*ports, own, off]]
    assert resumed == [True, True, False, False, False]
    without = fetch(off, context)
    assert not fetch(off, context, session=without.session).resumed


def test_sessions_are_resumed_after_a_renewal(serve: Serve, authority: Authority, tmp_path: Path) -> None:
    pair = authority.issue("localhost")
    server = serve(*pair.options, "--tls-watch", "0.05", source=PLAIN)
    context = client(authority, "1.3")
    first = fetch(server.port, context)
    pair.replace(authority.issue("localhost"))
    server.wait_for("info TLS: the certificate .* is used now")
    assert fetch(server.port, context, session=first.session).resumed


@root_only
@pytest.mark.parametrize("workers", [1, 2])
def test_a_key_that_root_alone_can_read_is_read_before(workers: int, contain: Contain, folder: Path, authority: Authority) -> None:
    pair = authority.issue("localhost")
    for file, name in [(pair.certificate, "own.pem"), (pair.key, "own.key")]:
        (folder / name).write_bytes(file.read_bytes())
        (folder / name).chmod(0o600)
    options = ("--tls-cert", "own.pem", "--tls-key", "own.key", "--workers", str(workers), "--tls-watch", "0")
    server = contain(PLAIN, *options)
    server.wait_for(r"warn user nobody \(\d+\) cannot read own.pem and 1 more, so what has been read stays until a restart")
    if workers > 1:
        server.wait_for("info all workers are ready")

    def answered() -> bytes:
        with network_of(server.process.pid):
            peer = socket.create_connection(("127.0.0.1", server.port), PATIENCE)
        with peer, authority.client().wrap_socket(peer, server_hostname="localhost") as secured:
            secured.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            return secured.recv(15)

    assert answered() == b"HTTP/1.1 200 OK"
    refused = server.within(MAITRED, "ctl", "tls", "reload")
    assert refused.returncode == 1, refused.stdout
    assert re.search(r"TLS goes on as before: --tls-cert: user nobody \(\d+\) may not read the file own.pem; start the", refused.stderr)
    if workers > 1:
        start = len(server.said)
        server.process.send_signal(signal.SIGHUP)
        server.wait_for("error SIGHUP: TLS goes on as before, its files are not valid: ", start)
        server.wait_for("info all workers are replaced", start)
    assert answered() == b"HTTP/1.1 200 OK"
