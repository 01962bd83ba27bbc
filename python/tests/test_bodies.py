"""Request bodies in the spool, and a full disk. What wsgi.input answers: test_input.py; what an upload costs: test_protection.py."""

from __future__ import annotations

import hashlib
import resource
import socket
from pathlib import Path

from conftest import PATIENCE, Serve, Server
from test_slow_readers import until

MIB = 1024 * 1024
HASH = """
import hashlib

def app(environ, start_response):
    digest = hashlib.sha256()
    while part := environ["wsgi.input"].read(65536):
        digest.update(part)
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [digest.hexdigest().encode()]
"""


def test_without_room_an_upload_is_refused_and_others_are_served(serve: Serve, tmp_path: Path) -> None:
    server = serve(source=HASH, MAITRED_SPOOL=str(tmp_path), MAITRED_BODY_BUDGET="0")
    # A file that may not grow is refused as one on a full disk is. The log is a pipe.
    resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (MIB, MIB))
    with socket.create_connection(("127.0.0.1", server.port), PATIENCE) as peer:
        peer.sendall(b"POST /large HTTP/1.1\r\nHost: t\r\nContent-Length: 3000000\r\n\r\n")
        peer.sendall(b"x" * 3_000_000)
        answer = b""
        while part := peer.recv(65536):
            answer += part
    assert answer.startswith(b"HTTP/1.1 507 Insufficient Storage\r\n"), answer
    server.wait_for(r"error.* POST /large: the request body cannot be kept in the spool folder \(--spool\)")
    body = b"y" * 900_000
    assert server.fetch("/", "POST", body).body.decode() == hashlib.sha256(body).hexdigest()


def test_a_spool_folder_in_memory_is_warned_of(serve: Serve) -> None:
    server = serve("--spool", "/dev/shm", source=HASH)
    server.wait_for(r"warn.* the spool folder /dev/shm is in memory")
    body = b"y" * 900_000
    assert server.fetch("/", "POST", body).body.decode() == hashlib.sha256(body).hexdigest()


def test_nothing_is_left_in_the_spool_folder(serve: Serve, tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    spool.mkdir()
    server = serve("--spool", str(spool), source=HASH)
    body = b"y" * 900_000
    assert server.fetch("/", "POST", body).body.decode() == hashlib.sha256(body).hexdigest()
    assert list(spool.iterdir()) == []
    server.kill()
    assert list(spool.iterdir()) == []


def page_faults(server: Server) -> int:
    return int(Path(f"/proc/{server.process.pid}/stat").read_text().rpartition(")")[2].split()[7])


def test_the_memory_of_a_long_body_is_used_for_the_next_one_and_given_back_when_there_is_none(serve: Serve) -> None:
    server = serve("--max-threads", "1", source=HASH)
    body = b"y" * (10 * MIB)
    digest = hashlib.sha256(body).hexdigest()
    assert server.fetch("/", "POST", b"y" * MIB).status == 200
    before, faults = server.memory(), []
    for _ in range(5):
        faults.append(-page_faults(server))
        assert server.fetch("/", "POST", body).body.decode() == digest
        faults[-1] += page_faults(server)
    # A page has 4 KiB. After a pause the memory is new.
    assert min(faults) < len(body) / 4096 / 2, faults
    until("the memory is given back", lambda: server.memory() < before + 4 * MIB)
