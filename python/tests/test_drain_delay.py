"""Between SIGTERM and the drain: load balancers hear that the server will end, and everybody else is served as before."""

from __future__ import annotations

import signal

import pytest
from conftest import Serve, Server

APP = """
def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"served"]
"""

LONG = ("--drain-delay", "60", "--health-path", "/healthz")


def health(server: Server) -> tuple[int, bytes, str | None]:
    reply = server.fetch("/healthz")
    return reply.status, reply.body, reply.headers["Connection"]


@pytest.fixture
def server(serve: Serve) -> Server:
    return serve(*LONG, source=APP)


def test_the_health_path_says_so_and_all_else_goes_on(server: Server) -> None:
    assert health(server) == (200, b"ok\n", None)
    kept = server.connect()
    kept.request("GET", "/")
    assert kept.getresponse().read() == b"served"

    server.process.send_signal(signal.SIGTERM)
    server.wait_for(r"SIGTERM: not ready any more, draining in 60 s \(drain-delay\); another signal drains at once")
    assert health(server) == (503, b"stopping\n", "close")
    for _ in range(2):
        # On the connection of before, and on a new one.
        kept.request("GET", "/")
        response = kept.getresponse()
        assert response.read() == b"served" and response.headers["Connection"] is None
        reply = server.fetch("/")
        assert reply.status == 200 and reply.headers["Connection"] is None

    assert server.stop() == 0, "the second signal begins the drain"
    assert "SIGTERM: the delay ends\n" in server.said
    assert "SIGTERM: draining, at most 30 s" in server.said and "drained: every accepted request" in server.said


def test_what_is_asked_in_the_delay_is_done(server: Server) -> None:
    server.process.send_signal(signal.SIGTERM)
    server.wait_for("not ready any more")
    server.process.send_signal(signal.SIGHUP)
    server.wait_for("SIGHUP: the configuration has been read again")
    server.process.send_signal(signal.SIGUSR1)
    server.wait_for("SIGUSR1: the log files are opened anew")
    assert server.stop(signal.SIGINT) == 0
    assert "SIGINT: the delay ends\n" in server.said


def test_it_ends_by_itself(serve: Serve) -> None:
    server = serve("--drain-delay", "0.05", "--health-path", "/healthz", source=APP)
    assert server.stop() == 0
    assert "the delay ends" not in server.said
    assert server.said.index("not ready any more") < server.said.index("SIGTERM: draining")


def test_who_is_at_the_keyboard_does_not_wait(server: Server) -> None:
    assert server.stop(signal.SIGINT) == 0
    assert "not ready any more" not in server.said and "SIGINT: draining" in server.said


def test_a_third_signal_ends_at_once(serve: Serve) -> None:
    waits = "import threading\n" + APP.replace("    start_response", "    threading.Event().wait(60)\n    start_response", 1)
    server = serve(*LONG, source=waits)
    connection = server.connect()
    connection.request("GET", "/")
    for line in ("not ready any more", "SIGTERM: draining"):
        server.process.send_signal(signal.SIGTERM)
        server.wait_for(line)
    assert server.stop() == 143


def test_without_it_the_drain_begins_at_once(serve: Serve) -> None:
    server = serve("--health-path", "/healthz", source=APP)
    assert server.stop() == 0
    assert "not ready any more" not in server.said
