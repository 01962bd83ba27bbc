"""Servers that order certificates of the tests' authority, and the sight of their clients."""

from __future__ import annotations

import json
import os
import re
import ssl
import subprocess
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
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
#: For a behaviour that another case tells as well.
LONG = pytest.mark.skipif(not os.environ.get("MAITRED_LONG"), reason="with MAITRED_LONG=1")
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


def given(folder: Path, authority: Authority, days: float, name: str = NAME) -> str:
    """Puts a certificate of the tests' own authority there, which lives for 90 days and ends in so many; its serial. It is due if that is less
    than 30: Pebble does not know it."""
    end = datetime.now(timezone.utc) + timedelta(days=days)
    pair = authority.issue_between(name, *(f"{at:%Y%m%d%H%M%SZ}" for at in (end - timedelta(days=90), end)))
    file = current(folder, name)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(pair.certificate.read_text() + pair.key.read_text())
    return pair.serial


def both(ca: Pebble) -> ssl.SSLContext:
    """Trusts Pebble and the tests' own authority."""
    context = ca.client()
    context.load_verify_locations(ca.trust)
    return context


def state(folder: Path, name: str = NAME) -> Any:
    """The orderer's notes about a name; a server may write a new file at any time."""
    return json.loads(current(folder, name).with_name("state.json").read_text())


def leaf(folder: Path, name: str = NAME) -> str:
    found = re.search("-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----\n", current(folder, name).read_text(), re.DOTALL)
    assert found
    return found[0]


def hurry(server: Server) -> None:
    """The step of an operator after the cause of a fault is mended."""
    done = subprocess.run([MAITRED, "ctl", "--server", str(server.process.pid), "tls", "reload"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def accepted(ca: Pebble, name: str = NAME) -> int:
    """How many orders the authority has taken."""
    return sum(order.status == 201 and name in order.names for order in ca.orders)


def set_back(folder: Path, hours: float, name: str = NAME) -> None:
    """As if all pauses had begun so much earlier; those that never began stay. For a server that does not run."""
    file = current(folder, name).with_name("state.json")
    earlier = lambda pairs: {key: max(0, value - int(hours * 3600)) if key == "since" else value for key, value in pairs}
    file.write_text(json.dumps(json.loads(file.read_text(), object_pairs_hook=earlier)))


def forget_window(folder: Path, name: str = NAME) -> None:
    """As if the authority had never been asked for one. For a server that does not run."""
    file = current(folder, name).with_name("state.json")
    known = json.loads(file.read_text())
    known["schedule"] |= {"window": None, "ask": {}}
    file.write_text(json.dumps(known))
