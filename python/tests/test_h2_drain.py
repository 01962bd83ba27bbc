"""A server that stops says so to HTTP/2 peers, answers what it has begun, and loses nothing that a peer could not ask again (RFC 9113 §6.8)."""

from __future__ import annotations

import signal
from pathlib import Path

import frames
from conftest import PATIENCE, Serve
from frames import Code, Connection, Kind

APP = """
import os, time

def app(environ, start_response):
    if environ["PATH_INFO"] == "/stay":
        print("stays", flush=True)
        while not os.path.exists("go"):
            time.sleep(0.01)
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"answered"]
"""


def test_what_has_begun_is_answered_and_then_the_connection_ends(serve: Serve, tmp_path: Path) -> None:
    server = serve("--drain-delay", "0", source=APP)
    with Connection.to(server.port) as busy, Connection.to(server.port) as idle:
        idle.fetch()
        staying = busy.ask("/stay")
        server.wait_for("stays")
        server.process.send_signal(signal.SIGTERM)
        busy.until(lambda each: each.kind == Kind.GOAWAY)
        assert busy.goaways[0][1] == Code.NO_ERROR and busy.goaways[0][0] >= staying
        assert idle.ended() == Code.NO_ERROR
        # What was under way when the peer learnt it.
        going = busy.ask("/")
        (tmp_path / "go").touch()
        assert busy.answer(staying).body == b"answered"
        busy.ended()
        answer = busy.answers[going]
        last = busy.goaways[-1][0]
        assert answer.is_complete if going <= last else not answer.heads, "answered, or it may be asked again"
        assert [each for each, _ in busy.goaways] == sorted((each for each, _ in busy.goaways), reverse=True), "numbers only fall"
        assert all(code == Code.NO_ERROR for _, code in busy.goaways)
    assert server.process.wait(PATIENCE) == 0, server.said


def test_an_upload_that_has_begun_is_taken_to_its_end(serve: Serve) -> None:
    server = serve(source=APP)
    with Connection.to(server.port) as peer:
        stream = peer.ask("/", "POST", end=False)
        peer.upload(stream, b"x" * 10_000, end=False)
        peer.ping()
        server.process.send_signal(signal.SIGTERM)
        peer.until(lambda each: each.kind == Kind.GOAWAY)
        peer.upload(stream, b"x" * 300_000)
        assert peer.answer(stream).body == b"answered"
        assert peer.ended() == Code.NO_ERROR
    assert server.process.wait(PATIENCE) == 0, server.said


def test_an_idle_connection_is_told_before_it_is_closed(serve: Serve) -> None:
    """--keep-alive."""
    server = serve("--keep-alive", "0.2", source=APP)
    with Connection.to(server.port) as peer:
        peer.fetch()
        assert peer.ended() == Code.NO_ERROR
        assert peer.goaways[-1][0] >= 1


def test_a_peer_that_leaves_gets_what_it_has_asked_for(serve: Serve, tmp_path: Path) -> None:
    server = serve(source=APP)
    with Connection.to(server.port) as peer:
        staying = peer.ask("/stay")
        server.wait_for("stays")
        peer.send(frames.goaway())
        (tmp_path / "go").touch()
        assert peer.answer(staying).body == b"answered"
        assert peer.ended() in (None, Code.NO_ERROR)


CLOSES = """
import os, time

def app(environ, start_response):
    if environ["PATH_INFO"] == "/stay":
        print("stays", flush=True)
        while not os.path.exists("go"):
            time.sleep(0.01)
    closes = [("Connection", "close")] if environ["PATH_INFO"] == "/closes" else []
    start_response("200 OK", [("Content-Type", "text/plain"), *closes])
    return [b"answered"]
"""


def test_a_response_that_closes_its_connection_ends_it_behind_what_has_begun(serve: Serve, tmp_path: Path) -> None:
    """``Connection: close`` of an application, as with HTTP/1."""
    server = serve(source=CLOSES, checked=False)  # The validator knows that the field is not the application's.
    with Connection.to(server.port) as peer:
        staying = peer.ask("/stay")
        server.wait_for("stays")
        answer = peer.fetch("/closes")
        assert answer.body == b"answered" and "connection" not in answer.fields
        assert [code for _, code in peer.goaways] == [Code.NO_ERROR]
        (tmp_path / "go").touch()
        assert peer.answer(staying).body == b"answered"
        assert peer.ended() == Code.NO_ERROR
    assert server.stop() == 0, server.said
