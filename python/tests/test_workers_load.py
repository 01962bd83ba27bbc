"""Deploys, kills and other numbers of workers under load: what gets lost. In short, and with MAITRED_LONG=1 for a minute."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import PATIENCE
from crews import Crew, Start, crew, until
from traffic import APP, Traffic, begun, traffic

__all__ = ["crew"]

#: Seconds of load, between SIGHUPs, between kills.
TIMES = [
    pytest.param(6, 2, 1.5, id="short"),
    pytest.param(60, 5, 7, id="long", marks=pytest.mark.skipif("MAITRED_LONG" not in os.environ, reason="MAITRED_LONG is not set")),
]

Happening = tuple[float, Callable[[], object]]


def play(seen: Traffic, seconds: float, happenings: list[Happening]) -> None:
    """Lets things happen at their times, in seconds from now on."""
    began = time.monotonic()
    for at, happen in sorted(happenings, key=lambda happening: happening[0]):
        # The schedule of a load; `done` is not set meanwhile.
        seen.done.wait(max(0.0, began + at - time.monotonic()))
        happen()
    seen.done.wait(max(0.0, began + seconds - time.monotonic()))


def each(seconds: float, period: float, happen: Callable[[], object]) -> list[Happening]:
    return [(count * period, happen) for count in range(1, int((seconds - 0.5) / period) + 1)]


def deploys(server: Crew, seconds: float, period: float) -> list[Happening]:
    """New workers now and then, and a new program twice."""

    def renew() -> None:
        server.tell(signal.SIGHUP)

    def upgrade() -> None:
        start = server.tell(signal.SIGUSR2)
        server.wait_for(r"info process \d+ is ready and serves: this one drains and ends", start)

    # Not in the middle of a replacement by design: in a minute it is both, by chance.
    return each(seconds, period, renew) + [(seconds * 0.3, upgrade), (seconds * 0.65, upgrade)]


@pytest.mark.parametrize("seconds, period, kills", TIMES)
def test_deploys_lose_nothing(crew: Start, seconds: float, period: float, kills: float) -> None:
    server = crew(source=APP)
    with traffic(server.port) as seen:
        play(seen, seconds, deploys(server, seconds, period))
    print(f"{seen.answered} answered, {seen.asked_again} of them asked again on a new connection, {len(seen.failed)} failed")
    assert not seen.failed, seen.failed
    assert server.said.count("info SIGHUP: the configuration has been read again") == len(each(seconds, period, int))
    assert server.said.count("is ready and serves: this one drains and ends") == 2
    assert " error " not in server.said and " warn " not in server.said, server.said
    server.ends()


@pytest.mark.parametrize("seconds, period, kills", TIMES)
def test_kills_lose_what_the_killed_had_begun(crew: Start, tmp_path: Path, seconds: float, period: float, kills: float) -> None:
    server = crew(source=APP)
    killed: set[int] = set()
    chance = random.Random(1)

    def kill() -> None:
        pid = chance.choice(sorted(server.workers()))
        os.kill(pid, signal.SIGKILL)
        killed.add(pid)

    with traffic(server.port) as seen:
        play(seen, seconds, deploys(server, seconds, period) + each(seconds, kills, kill))
    assert killed
    # What the killed worker had read and not finished. A request that was asked again has been begun twice.
    notes = begun(tmp_path)
    explained = {name for name in seen.failed if killed & set(notes.get(name, []))}
    unread = {name: how for name, how in seen.failed.items() if name not in explained}
    print(
        f"{len(killed)} killed; {seen.answered} answered, {seen.asked_again} of them asked again on a new connection, "
        f"{len(seen.failed)} failed, {len(unread)} of these not begun"
    )
    assert not unread, unread
    assert len(seen.failed) <= 8 * len(killed), "a client has one request at a time"
    until("two serve again", lambda: len(server.workers()) == 2)
    server.ends()


@pytest.mark.parametrize("seconds, period, kills", TIMES)
def test_other_numbers_of_workers_lose_nothing(crew: Start, seconds: float, period: float, kills: float) -> None:
    server = crew(source=APP)

    def become(count: int) -> Callable[[], object]:
        def change() -> None:
            number = signal.SIGTTIN if count > server.ask("status")["workers_wanted"] else signal.SIGTTOU
            while (wanted := server.ask("status")["workers_wanted"]) != count:
                server.tell(number)
                until("it is noted", lambda: server.ask("status")["workers_wanted"] != wanted)
            until(f"{count} are there", lambda: len(server.workers()) == count)

        return change

    with traffic(server.port) as seen:
        counts = [4, 1] * round(seconds / 10) or [4, 1]
        play(seen, seconds, [(at * seconds / len(counts), become(count)) for at, count in enumerate(counts)])
    print(f"{seen.answered} answered, {seen.asked_again} of them asked again on a new connection, {len(seen.failed)} failed")
    assert not seen.failed, seen.failed
    assert " error " not in server.said and " warn " not in server.said, server.said
    server.ends()
