"""The folder of accounts and certificates: broken, full, read-only, shared. A server serves the certificate that it has in memory."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from authority import Pebble, needs_pebble
from certificates import Authority, authority
from conftest import MAITRED, PATIENCE, Serve
from crews import Start, crew, until
from ordering import APP, LONG, accepted, both, ca, current, given, hurry, options, serial, served, set_back, state

__all__ = ["authority", "ca", "crew"]

pytestmark = needs_pebble

BREAKS = {
    "cut": lambda file: file.write_bytes(file.read_bytes()[:300]),
    "empty": lambda file: file.write_text(""),
    "of another name": lambda file: shutil.copy(file.parent.parent / "other.example/current.pem", file),
    "gone": lambda file: file.unlink(),
}


@pytest.mark.parametrize("how", ["cut", *(pytest.param(how, marks=LONG) for how in BREAKS if how != "cut")])
def test_a_broken_certificate_replaces_none_that_serves(
    how: str, serve: Serve, ca: Pebble, authority: Authority, tmp_path: Path
) -> None:
    given(tmp_path, authority, 60, "other.example")
    old = given(tmp_path, authority, 60)
    client = both(ca)
    server = serve(*options(ca, tmp_path), source=APP)
    until("it knows the certificate", lambda: current(tmp_path).with_name("state.json").exists())
    BREAKS[how](current(tmp_path))
    server.process.send_signal(signal.SIGHUP)
    server.wait_for("SIGHUP: the configuration has been read again")
    assert serial(server.ports[1], client) == old
    assert server.stop() == 0, server.said
    # A start has no other one, and orders.
    server = serve(*options(ca, tmp_path), source=APP)
    ca.leads_to(server)
    server.wait_for(r"error acme: shop\.example: \S+/shop.example/current.pem (is not used|cannot be read): .*; servers keep .* another one is ordered")
    served(server.ports[1], ca.client())


def test_a_broken_account_is_made_anew(serve: Serve, ca: Pebble, tmp_path: Path) -> None:
    server = serve(*options(ca, tmp_path), source=APP)
    ca.leads_to(server)
    served(server.ports[1], ca.client())
    assert server.stop() == 0, server.said
    next((tmp_path / "acme/accounts").iterdir()).write_text("{")
    current(tmp_path).unlink()
    set_back(tmp_path, hours=1)
    server = serve(*options(ca, tmp_path), source=APP)
    ca.leads_to(server)
    server.wait_for("warn acme: the account at https://localhost:.* cannot be read, and a new one takes its place")
    served(server.ports[1], ca.client())


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system that has no room for a certificate, or a skip."""
    place = tmp_path / "small"
    place.mkdir()
    mounting = ["mount", "-t", "tmpfs", "-o", "size=16k,mode=700", "none", str(place)]
    if os.geteuid() != 0 or subprocess.run(mounting, capture_output=True).returncode != 0:
        pytest.skip("needs the right to mount")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def test_a_full_folder(serve: Serve, ca: Pebble, small: Path) -> None:
    filler = small / "filler"
    with filler.open("wb", buffering=0) as out, contextlib.suppress(OSError):
        while True:
            out.write(b"x" * 4096)
    server = serve(*options(ca, small), source=APP)
    ca.leads_to(server)
    said = server.wait_for(r"error acme: .*No space left.*")[0]
    assert str(small) in said, said
    assert server.fetch("/").body == b"served"
    assert accepted(ca) <= 1
    filler.unlink()
    hurry(server)
    served(server.ports[1], ca.client())


def test_a_folder_that_cannot_be_made_is_an_error_at_the_start(ca: Pebble, tmp_path: Path) -> None:
    (tmp_path / "acme").write_text("a file")
    (tmp_path / "app.py").write_text(APP)
    command = [MAITRED, "app.py", *options(ca, tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE)
    said = rf"--acme-folder: user (\S+ \()?{os.geteuid()}\)? cannot use the folder {re.escape(str(tmp_path / 'acme'))}"
    assert done.returncode == 2 and re.search(said, done.stderr), done.stderr


def test_of_two_servers_on_a_folder_one_orders(serve: Serve, ca: Pebble, tmp_path: Path) -> None:
    with ca.gate("newOrder") as gate:
        first = serve(*options(ca, tmp_path), source=APP)
        second = serve(*options(ca, tmp_path), source=APP)
        # The challenge reaches the one that may not have ordered.
        ca.leads_to(second)
        assert gate.reached.wait(PATIENCE)
    client = ca.client()
    assert served(first.ports[1], client) == served(second.ports[1], client)
    assert accepted(ca) == 1
    until("the first one knows the window, and is idle", lambda: state(tmp_path)["schedule"]["window"] is not None)
    file = current(tmp_path).with_name("state.json")
    file.unlink()
    assert first.stop() == 0, first.said
    until("the second one has asked for the window", lambda: file.exists() and state(tmp_path)["schedule"]["window"] is not None)
    assert accepted(ca) == 1


@LONG
def test_a_new_supervisor_takes_over(crew: Start, ca: Pebble, tmp_path: Path) -> None:
    server = crew(*options(ca, tmp_path), source=APP)
    ca.leads_to(server)
    client = ca.client()
    first = served(server.ports[1], client)
    old = server.leader
    server.tell(signal.SIGUSR2)
    until("another one leads", lambda: server.leader != old)
    assert served(server.ports[1], client) == first
    assert accepted(ca) == 1
    server.ends()
