"""Signals that a supervisor answers, where they reach a process that is none, or one that is ending."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import PATIENCE, Server
from crews import Start as StartCrew
from crews import crew

__all__ = ["crew"]

APP = """
def app(environ, start_response):
    start_response("200 OK", [])
    return [b"hello"]
"""

OWN = """
import signal
signal.signal(signal.SIGUSR2, lambda *_: print("its own", flush=True))
"""

OF_A_SUPERVISOR = (signal.SIGUSR2, signal.SIGTTIN, signal.SIGTTOU)


class Alone(Server):
    """Without a terminal, as a service has it: there two of the signals are the terminal's own. On one processor."""

    def command(self, arguments: list[str]) -> list[str | Path]:
        processor = min(os.sched_getaffinity(0))
        return ["setsid", "taskset", "--cpu-list", str(processor), *super().command(arguments)]


Start = Callable[..., Alone]


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Start]:
    servers = []

    def start(*arguments: str, source: str = APP) -> Alone:
        (tmp_path / "app.py").write_text(source)
        servers.append(Alone(["app.py", *arguments], tmp_path, {}))
        return servers[-1]

    yield start
    for server in servers:
        server.kill()


@pytest.mark.parametrize("number", OF_A_SUPERVISOR)
def test_one_process_goes_on_and_says_what_is_missing(alone: Start, number: signal.Signals) -> None:
    server = alone("--workers", "auto")
    server.wait_for("info workers = auto: one processor, so this is one process without a supervisor")
    server.process.send_signal(number)
    server.wait_for(f"warn {number.name}: nothing happens, this one process has no supervisor; start it with --workers 2 or more")
    assert server.fetch("/").body == b"hello"
    assert server.stop() == 0


def test_what_the_application_handles_is_its_own(alone: Start) -> None:
    server = alone(source=OWN + APP)
    server.process.send_signal(signal.SIGUSR2)
    server.wait_for("its own")
    assert server.fetch("/").body == b"hello"
    assert server.stop() == 0 and " warn " not in server.said


@pytest.mark.parametrize("number", OF_A_SUPERVISOR)
def test_a_worker_names_its_supervisor(crew: StartCrew, number: signal.Signals) -> None:
    server = crew()
    before = server.serving(2)
    os.kill(min(before), number)
    server.wait_for(
        rf"warn \[\d\] {number.name}: nothing happens, this is a worker; send it to its supervisor, process {server.leader}\n"
    )
    assert server.serving(2) == before
    server.ends()


def test_no_new_program_is_started_by_one_that_ends(crew: StartCrew) -> None:
    server = crew("--drain-delay", "60")
    start = server.tell(signal.SIGTERM)
    server.wait_for("not ready any more", start)
    start = server.tell(signal.SIGUSR2)
    server.wait_for("warn SIGUSR2: no new program is started, this one is ending", start)
    os.kill(server.leader, signal.SIGTERM)
    assert server.process.wait(PATIENCE) == 0
    assert "a new program starts" not in server.said
