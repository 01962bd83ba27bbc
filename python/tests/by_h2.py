"""The suite by HTTP/2: with MAITRED_TEST_H2=1 the tests' connections to their servers speak HTTP/2, by prior knowledge.

``socket.create_connection`` knows the ports of these servers, and translates (translator.py), so that the tests go on as they are. Those
that cannot are in scripts/not-by-h2, with their reasons.
"""

from __future__ import annotations

import http.client
import os
import socket
from collections.abc import Iterable
from pathlib import Path
from typing import Any

WANTED = os.environ.get("MAITRED_TEST_H2") == "1"
#: What applications are told, and what logs say.
VERSION = "2" if WANTED else "1.1"
PROTOCOL = "HTTP/2" if WANTED else "HTTP/1.1"
LOGGED = "HTTP/2.0" if WANTED else "HTTP/1.1"

MARK = "not by HTTP/2: "
LIST = Path(__file__).resolve().parents[2] / "scripts/not-by-h2"

#: Where servers of this process listen.
_ports: set[int] = set()
_connect = socket.create_connection


def exempt() -> dict[str, list[str]]:
    """By reason, the files or tests for which it holds."""
    reasons: dict[str, list[str]] = {}
    reason = ""
    for line in LIST.read_text().splitlines():
        if line.startswith("    "):
            reasons[reason].append(line.strip())
        elif line.endswith(":"):
            reason = line.removesuffix(":")
            reasons[reason] = []
    return reasons


def learn(ports: Iterable[int], all_ports: Iterable[int]) -> None:
    """A server of ours listens there now: at these in clear text, and with HTTP/2."""
    _ports.difference_update(all_ports)
    _ports.update(ports)


def wrapped(peer: socket.socket, port: int) -> socket.socket:
    """A connection that is open, translated if a server of ours has that port."""
    if port not in _ports:
        return peer
    import translator

    return translator.through(peer)


def refused(peer: socket.socket) -> tuple[int, bytes]:
    """Status and body of an answer to a request that is not complete. The connection ends behind it; over HTTP/2 only the stream does."""
    response = http.client.HTTPResponse(peer)
    response.begin()
    body = response.read()
    assert WANTED or peer.recv(1) == b""
    return response.status, body


def _create_connection(address: tuple[str, int], *arguments: Any, **named: Any) -> socket.socket:
    peer = _connect(address, *arguments, **named)
    return wrapped(peer, address[1]) if address[0] in ("127.0.0.1", "localhost") else peer


def configure(starts_others: bool) -> None:
    """For the whole process, which may start others that run the tests."""
    if WANTED:
        socket.create_connection = _create_connection  # type: ignore[assignment]
        if not starts_others:
            # Of the tests, and not of the programs that they start.
            del os.environ["MAITRED_TEST_H2"]
