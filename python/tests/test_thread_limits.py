"""Threads that the system refuses: the start fails with a line, or what waits is served when threads can be made again.

The limit is that of processes and threads of a user (RLIMIT_NPROC, setrlimit(2)), which does not hold for root. So each server here has
the real user of nobody else, and the effective one of root, for its files.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
from conftest import MAITRED, PATIENCE, Reply, Server, environment_for
from crews import until

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give each server a user of its own")

MANY = 10_000

#: A process takes its limit from a pipe: nobody else may change it in every container.
WSGI = """
import os, resource, threading

def obey():
    name = f"limit-{os.getpid()}"
    os.mkfifo(name)
    while True:
        with open(name) as orders:
            resource.setrlimit(resource.RLIMIT_NPROC, (int(orders.read()), 10_000))

threading.Thread(target=obey, daemon=True).start()

def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [threading.current_thread().name.encode()]
"""

ASGI = """
async def app(scope, receive, send):
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"loop"})
"""

KINDS = {"wsgi": ["wsgi.py"], "asgi": ["asgi.py", "--mount", "/threads=wsgi.py"]}

#: No two servers have the same.
_users = (100_000 + os.getpid() * 100 + number for number in itertools.count())


def limited(limit: int) -> list[str]:
    """What a command begins with so that its user may have so many processes and threads."""
    rights = ["setpriv", "--ruid", str(next(_users)), "--bounding-set=-sys_admin,-sys_resource"]
    # The variable would make root the real user, too.
    return [*rights, "prlimit", f"--nproc={limit}:{MANY}", "env", "-u", "MAITRED_USER"]


class Limited(Server):
    """A server whose processes the test can refuse further threads."""

    def __init__(self, kind: str, folder: Path, workers: int, *arguments: str) -> None:
        self.folder = folder
        self.path = "/threads/" if kind == "asgi" else "/"
        super().__init__([*KINDS[kind], "--workers", str(workers), *arguments], folder, {})
        self.serving = [self.process.pid]
        if workers > 1:
            self.wait_for("info all workers are ready")
            children = Path(f"/proc/{self.process.pid}/task").glob("*/children")
            self.serving = [int(pid) for file in children for pid in file.read_text().split()]
        assert len(self.serving) == workers

    def command(self, arguments: list[str]) -> list[str | Path]:
        return [*limited(MANY), MAITRED, *arguments]

    def allow(self, threads: int) -> None:
        """Those that a process has it keeps."""
        for pid in self.serving:
            until("the pipe is there", (self.folder / f"limit-{pid}").is_fifo)
            (self.folder / f"limit-{pid}").write_text(str(threads))
            limits = Path(f"/proc/{pid}/limits")
            until("the limit holds", lambda: f"Max processes             {threads} " in limits.read_text())

    def count(self, text: str) -> int:
        return self.said.count(text)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Limited]]:
    (tmp_path / "wsgi.py").write_text(WSGI)
    (tmp_path / "asgi.py").write_text(ASGI)
    servers: list[Limited] = []

    def start(kind: str, workers: int, *arguments: str) -> Limited:
        servers.append(Limited(kind, tmp_path, workers, *arguments))
        return servers[-1]

    yield start
    for server in servers:
        server.kill()


#: One thread, which ends after each request: its successor is asked for while it is there.
ONE = ("--max-threads", "1", "--thread-requests", "1", "--health-path", "/health")


def ends_or_serves(kind: str, workers: int, limit: int, folder: Path) -> tuple[int | None, str]:
    """The exit code of a server that does not start, and what it says."""
    command = [*limited(limit), MAITRED, *KINDS[kind], "--workers", str(workers), "--listen", "127.0.0.1:0"]
    process = subprocess.Popen(
        command, cwd=folder, env=environment_for({}), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert process.stdout is not None
    said, serves = "", False
    patience = threading.Timer(PATIENCE, process.kill)
    patience.start()
    for line in process.stdout:
        said += line
        if "127.0.0.1:" in line:
            serves = True
            process.terminate()
    code = process.wait()
    patience.cancel()
    return None if serves else code, said


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_a_start_without_threads_fails_and_says_so(tmp_path: Path, kind: str, workers: int) -> None:
    (tmp_path / "wsgi.py").write_text(WSGI.replace("threading.Thread(", "# "))
    (tmp_path / "asgi.py").write_text(ASGI)
    refused = []
    # Each limit is another place at which it fails. Of two workers each has one more with every second.
    for limit in itertools.count(1, workers):
        code, said = ends_or_serves(kind, workers, limit, tmp_path)
        if code is None:
            break
        assert code in (1, 2), (limit, code, said)
        last = said.splitlines()[-1]
        assert any(word in last for word in ("thread", "worker", "what limits this process")), (limit, said)
        assert said.count("\n") <= 3 + 4 * workers, (limit, said)
        refused.append(said)
    # Where two workers begin at once, chance decides which thread of which is the first that cannot be made.
    assert any("no thread can be made: " in said for said in refused), refused
    if workers == 1:
        assert any("cannot start: no thread can be made: " in said for said in refused), refused
        # The pool's first thread begins beside the last ones of the engine: chance decides which of them cannot be made. On a busy
        # machine the first limit that is enough may be one too high, too.
        pool = f"no thread can be made: pool {'threads' if kind == 'asgi' else 'default'}: "
        last_limits = range(max(1, limit - 2), limit + 1)
        said_again = (ends_or_serves(kind, 1, most, tmp_path)[1] for most in itertools.cycle(last_limits))
        until("the pool is named", lambda: any(pool in said for said in refused) or pool in next(said_again))


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_requests_wait_for_a_thread_that_cannot_be_made_yet(start: Callable[..., Limited], kind: str, workers: int) -> None:
    server = start(kind, workers, *ONE, "--queue", "1", "--overflow", "refuse")
    server.allow(1)
    answers: list[Future[Reply]] = []
    with ThreadPoolExecutor(100) as clients:

        def is_refused() -> bool:
            """By each worker: its thread has answered one request, others wait."""
            answers.append(clients.submit(server.fetch, server.path))
            ended = [answer.result().status for answer in answers if answer.done()]
            return server.count("cannot make an application thread: ") == workers and ended.count(503) > 0

        until("a request is refused", is_refused)
        assert server.fetch("/health").status == 200
        if kind == "asgi":
            assert server.fetch("/").body == b"loop"
        assert any(not answer.done() for answer in answers), "requests wait"
        server.allow(MANY)
        statuses = [answer.result(PATIENCE).status for answer in answers]
    assert set(statuses) == {200, 503} and statuses.count(200) > workers, statuses
    for _ in range(3 * workers):
        assert server.fetch(server.path).status == 200
    until("the end is said", lambda: server.count("application threads can be made again") == workers)
    assert server.count("cannot make an application thread: ") == workers, "once"
    assert server.count("is started again") == 0, "no worker has ended"
    assert server.stop() == 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_request_that_waits_for_a_thread_has_its_timeout(start: Callable[..., Limited], kind: str) -> None:
    server = start(kind, 1, *ONE, "--request-timeout", "0.2")
    server.allow(1)
    assert server.fetch(server.path).status == 200
    server.wait_for("cannot make an application thread: ")
    assert server.fetch(server.path).status == 504
    server.allow(MANY)
    server.wait_for("application threads can be made again")
    assert server.fetch(server.path).status == 200
    assert server.stop() == 0
