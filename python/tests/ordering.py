"""Servers that order certificates of the tests' authority, and what clients see of them."""

from __future__ import annotations

import json
import re
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from authority import Pebble, pebble
from certificates import Authority, connected
from conftest import MAITRED, Server
from crews import until

NAME = "shop.example"
APP = """
def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"served"]
"""
LISTEN = ("--listen", "http://127.0.0.1:0", "--listen", "https://127.0.0.1:0")


@pytest.fixture
def ca(tmp_path: Path, authority: Authority) -> Iterator[Pebble]:
    with pebble(tmp_path / "pebble", authority) as running:
        yield running


def options(ca: Pebble, folder: Path, *names: str) -> list[str]:
    """The state is in ``folder/acme``."""
    hosts = [word for name in names or (NAME,) for word in ("--acme-host", name)]
    return ["--acme", "you@shop.example", *hosts, *ca.options, "--acme-folder", str(folder / "acme"), *LISTEN]


def serial(port: int, context: ssl.SSLContext, name: str = NAME) -> str | None:
    """Of the certificate that is served, if the client trusts it."""
    try:
        with connected(port, context, name) as peer:
            return str((peer.getpeercert() or {})["serialNumber"])
    except ssl.SSLCertVerificationError:
        return None


def served(port: int, context: ssl.SSLContext, name: str = NAME, but: str | None = None) -> str:
    """Waits for a certificate that the client trusts, and is another one than ``but``; its serial."""
    seen: list[str | None] = [None]

    def is_served() -> bool:
        seen.append(serial(port, context, name))
        return seen[-1] not in (None, but)

    until(f"{name} has a certificate", is_served)
    return str(seen[-1])


def current(folder: Path, name: str = NAME) -> Path:
    return folder / "acme/certificates" / name / "current.pem"


def leaf(folder: Path, name: str = NAME) -> str:
    found = re.search("-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----\n", current(folder, name).read_text(), re.DOTALL)
    assert found
    return found[0]


def state(folder: Path, name: str = NAME) -> dict[str, Any]:
    found = json.loads((current(folder, name).with_name("state.json")).read_text())
    assert isinstance(found, dict)
    return found


def hurry(server: Server) -> None:
    """What a person does who has mended the cause of a fault."""
    done = subprocess.run([MAITRED, "ctl", "--server", str(server.process.pid), "tls", "reload"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def accepted(ca: Pebble, name: str = NAME) -> int:
    """How many orders the authority has taken."""
    return sum(order.status == 201 and name in order.names for order in ca.orders)


def set_back(folder: Path, hours: float, name: str = NAME) -> None:
    """As if all that its pauses are counted from had been so much earlier. For a server that does not run."""
    file = current(folder, name).with_name("state.json")
    earlier = lambda pairs: {key: value - int(hours * 3600) if key == "since" else value for key, value in pairs}
    file.write_text(json.dumps(json.loads(file.read_text(), object_pairs_hook=earlier)))


def forget_window(folder: Path, name: str = NAME) -> None:
    """As if the authority had never been asked for one. For a server that does not run."""
    file = current(folder, name).with_name("state.json")
    known = json.loads(file.read_text())
    known["schedule"] |= {"window": None, "ask": {}}
    file.write_text(json.dumps(known))
