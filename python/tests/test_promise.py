"""A request waits only when all threads are truly busy: pages that wait are all in the application at once beside pages that compute, on
whatever machine, and whatever the kernel tells."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sysconfig
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from conftest import Server

#: Pages that wait for one another once all that compute have begun; pages that compute in Python until those have met; threads for both.
WAITING, COMPUTING = 5, 3
THREADS = WAITING + COMPUTING

APP = f"""
import sys, threading, time
met = threading.Event()
barrier = threading.Barrier({WAITING}, action=met.set)
changed = threading.Condition()
count = spinning = 0

def app(environ, start_response):
    global count, spinning
    path = environ["PATH_INFO"]
    if path == "/wait":
        with changed:
            assert changed.wait_for(lambda: count == {COMPUTING}, 30)
        barrier.wait(30)
    elif path == "/compute":
        with changed:
            count += 1
            changed.notify_all()
        end = time.monotonic() + 30
        while not met.is_set():
            assert time.monotonic() < end
            sum(range(1000))
    elif path == "/spin":
        with changed:
            spinning += 1
        end = time.monotonic() + 30
        while spinning < {COMPUTING}:
            assert time.monotonic() < end
    elif path == "/lock":
        path = str(sys._is_gil_enabled())
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [path.encode()]
"""

#: What starts a server in the surroundings of a test: words before its own.
Surroundings = Sequence[str]


class Placed(Server):
    """In other surroundings than the test's."""

    before: Surroundings = ()

    def command(self, arguments: list[str]) -> list[str | Path]:
        return [*self.before, *super().command(arguments)]


Place = Callable[[Surroundings], Placed]


@pytest.fixture
def placed(tmp_path: Path) -> Iterator[Place]:
    with contextlib.ExitStack() as servers:

        def start(before: Surroundings) -> Placed:
            (tmp_path / "application.py").write_text(APP)
            kind = type("Here", (Placed,), {"before": before})
            server = kind(["application:app", "--max-threads", str(THREADS)], tmp_path, {})
            servers.callback(server.kill)
            return server

        yield start


def all_meet(server: Server) -> None:
    """Asks for all pages at once: those that wait can only be answered when all are in the application."""
    at_once(server, ["/compute"] * COMPUTING + ["/wait"] * WAITING)


def at_once(server: Server, paths: list[str]) -> None:
    found: dict[int, bytes] = {}

    def ask(index: int) -> None:
        found[index] = server.fetch(paths[index]).body

    clients = [threading.Thread(target=ask, args=(index,)) for index in range(len(paths))]
    for client in clients:
        client.start()
    for client in clients:
        client.join(60)
    assert [found.get(index) for index in range(len(paths))] == [path.encode() for path in paths], server.said


def test_pages_that_wait_are_in_the_application_at_once_beside_pages_that_compute(placed: Place) -> None:
    all_meet(placed(()))


def test_they_are_on_one_processor(placed: Place) -> None:
    all_meet(placed(("taskset", "--cpu-list", str(min(os.sched_getaffinity(0))))))


#: The command in a mount namespace of its own in which /proc is empty.
HIDDEN = 'mount -t tmpfs none /proc && exec "$@"'


def test_they_are_where_the_kernel_tells_nothing(placed: Place) -> None:
    unshare = ("unshare", "--mount", "sh", "-c", HIDDEN, "hidden")
    if subprocess.run([*unshare, "true"], capture_output=True, check=False).returncode:
        pytest.skip("needs the right to hide /proc from a process")
    all_meet(placed(unshare))


#: Microseconds of a period of the kernel's scheduler.
PERIOD = 100_000


@pytest.fixture(params=[0.5, 1.5])
def group(request: pytest.FixtureRequest) -> Iterator[Path]:
    """A control group with so much of the processors."""
    first = Path("/sys/fs/cgroup/cpu")
    unified = not first.is_dir()
    folder = (Path("/sys/fs/cgroup") if unified else first) / f"maitred-test-{os.getpid()}-{request.param}"
    try:
        folder.mkdir()
        limit = int(request.param * PERIOD)
        if unified:
            (folder / "cpu.max").write_text(f"{limit} {PERIOD}")
        else:
            (folder / "cpu.cfs_period_us").write_text(str(PERIOD))
            (folder / "cpu.cfs_quota_us").write_text(str(limit))
    except OSError as error:
        with contextlib.suppress(OSError):
            folder.rmdir()
        pytest.skip(f"needs the right to make a control group: {error}")
    yield folder
    # A process that has ended may be in it for a moment.
    with contextlib.suppress(OSError):
        folder.rmdir()


def test_they_are_with_a_share_of_the_processors(group: Path, placed: Place) -> None:
    server = placed(("sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "limited"))
    assert str(server.process.pid) in (group / "cgroup.procs").read_text().split()
    all_meet(server)
    assert server.stop() == 0, server.said


free_threaded = pytest.mark.skipif(
    not sysconfig.get_config_var("Py_GIL_DISABLED"),
    reason="needs a free-threaded CPython: `make versions` runs the tests with python3.14t if it is there",
)


@free_threaded
def test_they_are_without_the_interpreter_lock(placed: Place) -> None:
    server = placed(())
    assert server.fetch("/lock").body == b"False", "the extension module has switched the lock on"
    all_meet(server)


@free_threaded
def test_pages_that_compute_are_in_the_application_at_once_without_the_interpreter_lock(placed: Place) -> None:
    at_once(placed(()), ["/spin"] * COMPUTING)
