"""Certificates are replaced while the server serves: by SIGHUP, by ctl and because their files have changed. None that is broken replaces one."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest
from certificates import Authority, Pair, authority, connected, fetch, handshakes, needs_openssl
from conftest import MAITRED, Serve, Server
from crews import Start, crew, until

__all__ = ["authority", "crew"]

pytestmark = needs_openssl

APP = """
def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"served"]
"""


def own_pair(authority: Authority, folder: Path) -> Pair:
    """One whose files the test replaces."""
    pair = Pair(folder / "own.pem", folder / "own.key")
    pair.replace(authority.issue("localhost"))
    return pair


def ctl(server: Server, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [MAITRED, "ctl", "--server", str(server.process.pid), *arguments], capture_output=True, text=True
    )


def test_new_handshakes_see_the_new_certificate_and_connections_go_on(serve: Serve, tmp_path: Path, authority: Authority) -> None:
    pair = own_pair(authority, tmp_path)
    serials = [pair.serial]
    server = serve(*pair.options, "--tls-watch", "0.05", source=APP)
    with connected(server.port, authority.client()) as kept, handshakes(server.port, authority.client()) as seen:

        def watch() -> None:
            server.wait_for(r"info TLS: the certificate \S+own.pem \(localhost\) is used now", start)

        def reload() -> None:
            done = ctl(server, "tls", "reload")
            assert done.returncode == 0, done.stderr

        for load in (lambda: server.process.send_signal(signal.SIGHUP), reload, watch):
            start = len(server.said)
            pair.replace(authority.issue("localhost"))
            serials.append(pair.serial)
            load()
            until("the new one is seen", lambda: seen[-1] == serials[-1])
        kept.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        assert kept.recv(15) == b"HTTP/1.1 200 OK"
    assert set(seen) == set(serials)


@pytest.mark.parametrize("load", ["hangup", "ctl", "watch"])
def test_what_is_not_valid_replaces_nothing(load: str, serve: Serve, tmp_path: Path, authority: Authority) -> None:
    pair = own_pair(authority, tmp_path)
    serial, key = pair.serial, pair.key.read_bytes()
    server = serve(*pair.options, "--tls-watch", "0.05" if load == "watch" else "0", source=APP)
    other = authority.issue("localhost")
    pair.replace(Pair(other.certificate, authority.issue("localhost").key))
    why = r"--tls-key: \S+own.key, for \S+own.pem: the key does not belong to the certificate"
    if load == "hangup":
        server.process.send_signal(signal.SIGHUP)
        server.wait_for("error SIGHUP: TLS goes on as before, its files are not valid: " + why)
    elif load == "ctl":
        done = ctl(server, "tls", "reload")
        assert done.returncode == 1 and "TLS goes on as before" in done.stderr, done.stderr
    else:
        server.wait_for("error TLS: the files have changed and are not valid, the ones before are used on: " + why)
    assert fetch(server.port, authority.client()).serial == serial
    # The right key comes later.
    pair.replace(other)
    assert key != other.key.read_bytes()
    if load == "hangup":
        server.process.send_signal(signal.SIGHUP)
    elif load == "ctl":
        assert ctl(server, "tls", "reload").returncode == 0
    until("the new one is used", lambda: fetch(server.port, authority.client()).serial == other.serial)
    # A watch may have looked between the two files: each is a change, and is said once.
    assert server.said.count("not valid") in {"hangup": (1,), "ctl": (0,), "watch": (1, 2)}[load]


def test_options_about_tls_are_applied_by_sighup(serve: Serve, tmp_path: Path, authority: Authority) -> None:
    first, second = authority.issue("localhost"), authority.issue("localhost")
    file = tmp_path / "maitred.toml"

    def write(pair: Pair, more: str) -> None:
        lines = [f'tls-cert = "{pair.certificate}"', f'tls-key = "{pair.key}"', 'application = "app.py"', more]
        file.write_text("\n".join(lines))

    write(first, "")
    (tmp_path / "app.py").write_text(APP)
    server = serve()
    write(second, 'hsts = "300"\ntls-min-version = "1.3"\ntls-handshake-timeout = 3')
    server.process.send_signal(signal.SIGHUP)
    server.wait_for("warn changed, but only a restart applies it: tls-handshake-timeout\n")
    assert 'tls-min-version "1.2" -> "1.3"' in server.said
    answer = fetch(server.port, authority.client())
    assert (answer.serial, answer.reply.headers["Strict-Transport-Security"]) == (second.serial, "max-age=300")
    file.write_text('application = "app.py"')
    server.process.send_signal(signal.SIGHUP)
    server.wait_for(r"warn changed, but only a restart applies it: .*tls-cert")
    assert fetch(server.port, authority.client()).serial == second.serial


@pytest.mark.parametrize("load", ["hangup", "ctl", "watch"])
def test_all_workers_load_what_has_changed(load: str, crew: Start, tmp_path: Path, authority: Authority) -> None:
    pair = own_pair(authority, tmp_path)
    server = crew(*pair.options, "--tls-watch", "0.05" if load == "watch" else "0", source=APP)
    with handshakes(server.port, authority.client()) as seen:
        old = pair.serial
        pair.replace(authority.issue("localhost"))
        new = pair.serial
        if load == "hangup":
            server.tell(signal.SIGHUP)
        elif load == "ctl":
            assert server.change("tls/reload")["changed"]
        until("all see the new one", lambda: len(seen) > 16 and set(seen[-16:]) == {new})
        # A worker that is started later has it as well.
        killed = min(server.workers())
        os.kill(killed, signal.SIGKILL)
        until("another one is there", lambda: len(server.workers() - {killed}) == 2)
        count = len(seen)
        until("all see it still", lambda: len(seen) > count + 16 and set(seen[-16:]) == {new})
    cut = [each for each in seen if each not in (old, new)]
    # The killed one may have had connections.
    assert len(cut) <= 2, cut
    shown = server.ask("tls")["certificates"]
    assert [certificate["file"] for certificate in shown] == [str(pair.certificate)]


def test_a_worker_that_starts_has_the_last_valid_files(crew: Start, tmp_path: Path, authority: Authority) -> None:
    pair = own_pair(authority, tmp_path)
    server = crew(*pair.options, source=APP)
    serial = pair.serial
    pair.certificate.write_text("broken")
    before = server.workers()
    server.tell(signal.SIGHUP)
    server.wait_for("error SIGHUP: TLS goes on as before, its files are not valid: --tls-cert: ")
    until("all are others", lambda: len(server.workers()) == 2 and not server.workers() & before)
    assert fetch(server.port, authority.client()).serial == serial


def test_a_hundred_reloads_cost_no_handshake(crew: Start, tmp_path: Path, authority: Authority) -> None:
    pair = own_pair(authority, tmp_path)
    others = [authority.issue("localhost"), authority.issue("localhost")]
    server = crew(*pair.options, "--tls-watch", "0", source=APP)
    with handshakes(server.port, authority.client()) as seen:
        for number in range(100):
            pair.replace(others[number % 2])
            assert server.change("tls/reload")["changed"]
            count = len(seen)
            until("somebody has connected since", lambda: len(seen) > count)
        # A handshake that began before the last reload may end after it.
        until("both clients see the last one", lambda: set(seen[-2:]) == {others[1].serial})
    assert {each.serial for each in others} <= set(seen), "both have been seen"
    strange = [each for each in seen if len(each) < 8 or not each.isalnum()]
    assert not strange, strange
    counted = server.ask("tls")
    failed = {name: count for name, count in counted.items() if "failed" in name and count}
    assert not failed, failed
