"""Deploys, kills and other numbers of workers under load: what gets lost. In short, and with MAITRED_LONG=1 for a minute."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import by_h2
import pytest
from crews import APP as ENDING
from crews import EVENTS, Crew, Start, crew, until
from traffic import APP, Traffic, begun, connections, traffic

__all__ = ["crew"]

long = pytest.mark.skipif("MAITRED_LONG" not in os.environ, reason="MAITRED_LONG is not set")

#: Seconds of load, between SIGHUPs, between kills; how connections are taken.
TIMES = [
    pytest.param(6, 2, 1.5, "shared", id="short"),
    pytest.param(60, 5, 7, "shared", id="long", marks=long),
    pytest.param(60, 5, 7, "reuseport", id="long-reuseport", marks=long),
]
#: The same for other numbers of workers, with which sockets come and go.
NUMBERS = [*TIMES, pytest.param(6, 2, 1.5, "reuseport", id="short-reuseport")]

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


@pytest.mark.parametrize("seconds, period, kills, accept", TIMES)
def test_deploys_lose_nothing(crew: Start, seconds: float, period: float, kills: float, accept: str) -> None:
    server = crew("--accept", accept, source=APP)
    with traffic(server.port) as seen:
        play(seen, seconds, deploys(server, seconds, period))
    print(f"{seen.answered} answered, {seen.asked_again} of them asked again on a new connection, {len(seen.failed)} failed")
    assert not seen.failed, seen.failed
    assert server.said.count("info SIGHUP: the configuration has been read again") == len(each(seconds, period, int))
    assert server.said.count("is ready and serves: this one drains and ends") == 2
    assert " error " not in server.said and " warn " not in server.said, server.said
    server.ends()


@pytest.mark.parametrize("seconds, period, kills, accept", TIMES)
def test_kills_lose_what_the_killed_had_begun(
    crew: Start, tmp_path: Path, seconds: float, period: float, kills: float, accept: str
) -> None:
    server = crew("--accept", accept, source=APP)
    killed: set[int] = set()
    #: Clients' ports of the connections that were a killed worker's.
    held: set[int] = set()
    chance = random.Random(1)

    def kill() -> None:
        pid = chance.choice(sorted(server.workers()))
        try:
            # Stopped first, so that nothing changes while its connections are counted.
            os.kill(pid, signal.SIGSTOP)
            until("the worker stands still", lambda: Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "TZ")
            held.update(connections(pid, server.port))
            os.kill(pid, signal.SIGKILL)
            killed.add(pid)
        except (FileNotFoundError, ProcessLookupError):
            kill()  # It had drained, and has ended by itself.

    with traffic(server.port) as seen:
        play(seen, seconds, deploys(server, seconds, period) + each(seconds, kills, kill))
    assert killed
    # What the killed worker had read and not finished. A request that was asked again has been begun twice.
    notes = begun(tmp_path)
    of_others = {name: how for name, how in seen.failed.items() if name in notes and not killed & set(notes[name])}
    of_others |= {name: how for name, how in seen.failed.items() if seen.ports[name] not in held}
    not_begun = {name: how for name, how in seen.failed.items() if name not in notes}
    # The kernel ends a connection by a reset where something has not been read, or comes later (RFC 1122 §4.2.2.13).
    unread = {name: how for name, how in not_begun.items() if "ConnectionResetError" in how}
    print(
        f"{len(killed)} killed; {seen.answered} answered, {seen.asked_again} of them asked again on a new connection, "
        f"{len(seen.failed)} failed, {len(not_begun)} of these not begun, {len(unread)} not read"
    )
    assert not of_others, of_others
    # A connection is the worker's from accept(2) on, which may be before its request comes. By HTTP/2 it is used before: the preface and
    # the settings go ahead of the request, the kernel resets for an acknowledgement that has not been read, too, and a client may ask
    # again (RFC 9113 §3.4, §6.5.3, §8.7). So there it counts alone that the connection was the killed worker's.
    assert by_h2.WANTED or len(unread) <= len(killed), unread
    assert len(seen.failed) <= 8 * len(killed), "a client has one request at a time"
    until("two serve again", lambda: len(server.workers()) == 2)
    server.ends()


@pytest.mark.parametrize("seconds, period, kills, accept", NUMBERS)
def test_other_numbers_of_workers_lose_nothing(crew: Start, seconds: float, period: float, kills: float, accept: str) -> None:
    server = crew("--accept", accept, source=APP)

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


@long
def test_a_stop_with_open_streams_takes_their_time_and_a_second(crew: Start) -> None:
    server = crew("--events-timeout", "2", "--drain-timeout", "300", source=EVENTS)
    server.open_streams()
    began = time.monotonic()
    server.ends()
    took = time.monotonic() - began
    print(f"the stop took {took:.2f} s")
    assert took <= 2 + 1


@long
def test_a_worker_that_ends_ten_times_serves_again_after_its_wait_and_two_seconds(crew: Start) -> None:
    """The same one each time."""
    server = crew(source=ENDING)
    other = min(server.serving(2))
    late: list[float] = []
    for turn in range(10):
        (pid,) = server.workers() - {other}
        start = len(server.said)
        server.end_worker("exits", pid)
        line = server.wait_for(r"(\S+Z) error worker (\d) ended with exit code 7; it is started again (at once|in ([\d.]+) s)", start)
        assert server.answer()[1] == other
        ready = server.wait_for(rf"(\S+Z) info worker {line[2]} is ready", line.end())
        ended, serves = (datetime.fromisoformat(found[1].replace("Z", "+00:00")) for found in (line, ready))
        wait = float(line[4] or 0)
        assert wait >= (0 if turn == 0 else min(0.1 * 2 ** (turn - 1), 10) * 0.75 - 0.05), "no restart at full speed"
        late.append((serves - ended).total_seconds() - wait)
    print(f"seconds beyond the wait: {', '.join(f'{seconds:.2f}' for seconds in late)}")
    assert max(late) <= 2
    server.ends()


@long
def test_a_worker_that_is_frozen_is_replaced_and_killed(crew: Start) -> None:
    server = crew("--worker-timeout", "1", "--drain-timeout", "0.1")
    frozen, other = server.serving(2)
    os.kill(frozen, signal.SIGSTOP)
    server.wait_for(r"info worker \d has said nothing for 7 s \(worker-timeout\): it is replaced")
    until("it is killed", lambda: frozen not in server.workers())
    assert other in server.serving(2)
    server.ends()
