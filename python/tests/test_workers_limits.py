"""Limits of a client hold over all workers, also while they are replaced and when one is killed."""

from __future__ import annotations

import http.client
import os
import signal

from crews import Crew, Start, crew, until

__all__ = ["crew"]

APP = """
import os

def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [f"first {os.getpid()}".encode()]
"""


class Held:
    """A connection that has been answered and stays open."""

    def __init__(self, server: Crew) -> None:
        self.connection = server.connect()
        self.connection.request("GET", "/")
        response = self.connection.getresponse()
        self.status, text = response.status, response.read()
        self.pid = int(text.split()[1])


def let_in(server: Crew, tries: int) -> list[Held]:
    """Of so many new connections those that are not closed at once."""
    held = []
    for _ in range(tries):
        try:
            held.append(Held(server))
        except (http.client.HTTPException, OSError):
            pass
    return held


def test_a_client_has_so_many_connections_in_all_workers_and_those_of_a_killed_one_are_given_back(crew: Start) -> None:
    server = crew("--client-connections", "5", source=APP)
    held = let_in(server, 20)
    assert len(held) == 5
    held.pop().connection.close()

    def one_more() -> bool:
        held.extend(let_in(server, 1))
        return len(held) == 5

    until("a closed one makes room", one_more)
    assert let_in(server, 20) == []
    # Each of them in turn, so that one with connections is among them.
    for pid in server.workers():
        kept = [one for one in held if one.pid != pid]
        start = len(server.said)
        os.kill(pid, signal.SIGKILL)
        server.wait_for("info worker . is ready", start)
        more = let_in(server, 20)
        held = kept + more
        assert len(held) == 5, (len(kept), len(more))
    server.ends()


def test_requests_of_a_client_are_counted_together_also_after_a_reload_and_an_upgrade(crew: Start) -> None:
    server = crew("--client-rate", "0.001", "--client-burst", "10", source=APP)

    def statuses(count: int) -> list[int]:
        return [server.fetch("/").status for _ in range(count)]

    assert sorted(statuses(30)) == [200] * 10 + [429] * 20
    start = server.tell(signal.SIGHUP)
    server.wait_for("(?s)worker . is ready.*worker . is ready", start)
    assert set(statuses(10)) == {429}
    start = server.tell(signal.SIGUSR2)
    server.wait_for(r"process \d+ is ready and serves", start)
    until("the new program serves alone", lambda: all(status == 429 for status in statuses(3)), 5)
    assert set(statuses(20)) == {429}
    server.ends()
