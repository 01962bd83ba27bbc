"""Request bodies in the spool: what an upload costs, what a full disk does. What wsgi.input answers: test_input.py."""

from __future__ import annotations

import hashlib
import random
import resource
import socket
from pathlib import Path

import pytest
from conftest import PATIENCE, Serve, Server

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


def most_memory(server: Server) -> int:
    """The most memory that was resident so far, in bytes (proc_pid_status(5))."""
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


@pytest.mark.parametrize("framing", ["length", "chunked"])
def test_an_upload_of_200_mb_costs_less_than_32_mb_of_memory(serve: Serve, tmp_path: Path, framing: str) -> None:
    server = serve(source=HASH, MAITRED_SPOOL=str(tmp_path))
    part = random.Random(1).randbytes(MIB)
    assert server.fetch("/", "POST", part).body.decode() == hashlib.sha256(part).hexdigest()
    before = most_memory(server)
    headers = {"Content_Length": str(200 * MIB)} if framing == "length" else {}
    reply = server.fetch("/", "POST", (part for _ in range(200)), **headers)
    assert reply.body.decode() == hashlib.sha256(part * 200).hexdigest()
    assert most_memory(server) - before < 32 * MIB


def test_without_room_an_upload_is_refused_and_others_are_served(serve: Serve, tmp_path: Path) -> None:
    server = serve(source=HASH, MAITRED_SPOOL=str(tmp_path))
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
