"""Nine kinds of trouble, each made on purpose: whether `maitred ctl finding` names its cause and line, also beside a program that computes."""

from __future__ import annotations

import contextlib
import http.client
import http.server
import itertools
import json
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchlib import machine, peers, python_servers, rounds, servers
from benchlib.report import Report, say

TITLE = "What the finding says of troubles that are made on purpose"
RUNS, SMOKE_RUNS = 20, 1
#: Within so long a cause is named; and how long it is looked at whether another one comes.
NAMED_S, WATCHED_S = 8.0, 1.5
UPSTREAM_S = 0.4
READERS = 12
#: Programs that use the server's core.
BURNERS = 3
APPLICATION = "troubled_wsgi:application"
SOURCE = (machine.REPOSITORY / "bench/apps/troubled_wsgi.py").read_text().splitlines()


@dataclass(frozen=True)
class Trouble:
    name: str
    path: str
    cause: str
    #: What the sentence says beside.
    says: str
    clients: int = 4
    #: Whether there is a line that stands for it.
    has_line: bool = True

    @property
    def line(self) -> int:
        return next(number for number, text in enumerate(SOURCE, 1) if text.endswith(f"# here: {self.name}"))


TROUBLES = (
    Trouble("database", "/database", "database", r"Requests wait for the database: it has \d+ % of the time of GET /database"),
    Trouble("n+1", "/orders", "database", r"GET /orders, which takes [\d.]+ m?s a request for 80 statements of [\d.]+ ms each"),
    Trouble("outgoing", "/outgoing", "upstream", "wait for a peer"),
    Trouble("lock", "/lock", "lock", "wait for a lock", 14),
    Trouble("python", "/python", "interpreter", "^The application computes all the time.*GET /python"),
    Trouble("c", "/c", "interpreter", r"^C code keeps the interpreter.*GET /c\b"),
    Trouble("slow readers", "/large", "slow-readers", r"\d+ of \d+ clients have taken nothing .* most asked for GET /large", READERS, has_line=False),
    Trouble("disk", "/disk", "disk", "wait for a disk"),
    Trouble("other program", "/half", "interpreter", "[Oo]ther programs use .*the processors that (the application|it) needs.*GET /half"),
)


@dataclass(frozen=True)
class Said:
    cause: str
    sentence: str
    seconds: float

    def is_right(self, trouble: Trouble) -> bool:
        return self.cause == trouble.cause and bool(re.search(trouble.says, self.sentence))

    def has_line(self, trouble: Trouble) -> bool:
        return not trouble.has_line or f"troubled_wsgi.py:{trouble.line} " in self.sentence


def run(options: rounds.Options, folder: Path, report: Report) -> None:
    rounds.need("taskset")
    environment = peers.environment(options)
    runs = options.rounds(RUNS, smoke=SMOKE_RUNS)
    report.text(
        f"{environment.description}. A WSGI application with default settings, on one core; clients on the other, which ask for one page again and again, beside one that asks for a hello every 20 ms. "
        f"{runs} runs of each, a fresh server for each. `maitred ctl finding` is asked until it names a cause, for {NAMED_S:g} s at most, and {WATCHED_S:g} s more: whatever else it says in that time counts as another cause. "
        "Half of the runs are beside one program that computes all the time, on whichever core it gets. A line is named where one stands for the trouble: slow readers have a route. The application is `bench/apps/troubled_wsgi.py`; the disk is that of the temporary folder, and the other program three loops on the server's core.")
    outcomes: dict[tuple[Trouble, bool], list[list[Said]]] = {}
    chosen = [each for each in TROUBLES if not options.only or each.name in options.only]
    with _upstream() as upstream:
        variables = {"TROUBLE_UPSTREAM": f"http://127.0.0.1:{upstream}/", "TROUBLE_DISK": str(folder)}
        for trouble, beside in itertools.product(chosen, (False, True)):
            outcomes[trouble, beside] = []
            for number in range(runs):
                with _burning(1) if beside else contextlib.nullcontext():
                    said = _measure(trouble, environment, variables, folder)
                outcomes[trouble, beside].append(said)
                say(f"causes: {_name(trouble, beside)}, {number + 1} of {runs}: {said[0].cause}, {said[-1].sentence}")
    _write(report, outcomes)


def _measure(trouble: Trouble, environment: peers.Environment, variables: dict[str, str], folder: Path) -> list[Said]:
    words = ["--error-log", "/dev/null"]
    contender = python_servers.ours(environment, APPLICATION, "wsgi", "server", words=words, variables=variables)
    with machine.on_core(machine.cores()[1]), servers.running(contender, folder, folder) as server, contextlib.ExitStack() as stack:
        if trouble.name == "other program":
            stack.enter_context(_burning(BURNERS, machine.pinned(machine.cores()[0])))
        stack.enter_context(_asking(server.port, "/", 1, 0.02))
        act = _reading if trouble.name == "slow readers" else _asking
        stack.enter_context(act(server.port, trouble.path, trouble.clients))
        # Readers stand when their responses do: the server is busy before.
        while act is _reading and _asked(environment, server.port, "deliveries")["total"] < trouble.clients:
            time.sleep(0.1)
        begun, said = time.monotonic(), []
        while True:
            found = _asked(environment, server.port, "finding")
            seconds = time.monotonic() - begun
            if found["cause"] != "none":
                said.append(Said(found["cause"], found["sentence"], seconds))
            if seconds > NAMED_S or said and seconds - said[0].seconds > WATCHED_S:
                return said or [Said("none", found["sentence"], seconds)]
            time.sleep(0.2)


def _name(trouble: Trouble, beside: bool) -> str:
    return f"{trouble.name}, beside a program" if beside else trouble.name


def _asked(environment: peers.Environment, port: int, query: str) -> dict[str, Any]:
    command = [str(environment.program("maitred")), "ctl", "--json", "--port", str(port), query]
    # The server listens before its control does.
    for _ in range(20):
        done = subprocess.run(command, capture_output=True, timeout=60, check=False)
        if not done.returncode:
            return json.loads(done.stdout)
        time.sleep(0.1)
    raise RuntimeError(done.stderr.decode())


@contextlib.contextmanager
def _asking(port: int, path: str, clients: int, pause: float = 0.0) -> Iterator[None]:
    ended = threading.Event()

    def ask() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        with contextlib.closing(connection), contextlib.suppress(OSError, http.client.HTTPException):
            while not ended.wait(pause):
                connection.request("GET", path)
                connection.getresponse().read()

    threads = [threading.Thread(target=ask) for _ in range(clients)]
    for each in threads:
        each.start()
    try:
        yield
    finally:
        ended.set()
        for each in threads:
            each.join()


@contextlib.contextmanager
def _reading(port: int, path: str, clients: int) -> Iterator[None]:
    """They ask, and read nothing."""
    with contextlib.ExitStack() as stack:
        for _ in range(clients):
            peer = stack.enter_context(socket.create_connection(("127.0.0.1", port), 30))
            peer.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        yield


@contextlib.contextmanager
def _burning(programs: int, prefix: Sequence[str] = ()) -> Iterator[None]:
    burners = [subprocess.Popen([*prefix, sys.executable, "-c", "while True: pass"]) for _ in range(programs)]
    try:
        yield
    finally:
        for each in burners:
            each.kill()
            each.wait()


@contextlib.contextmanager
def _upstream() -> Iterator[int]:
    """A server that takes its time."""
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            time.sleep(UPSTREAM_S)
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


def _write(report: Report, outcomes: dict[tuple[Trouble, bool], list[list[Said]]]) -> None:
    rows, gates, wrong = [], [], []
    for (trouble, beside), runs in outcomes.items():
        name = _name(trouble, beside)
        right = sum(said[-1].is_right(trouble) for said in runs)
        others = sum(any(not each.is_right(trouble) and each.cause != "none" for each in said) for said in runs)
        lines = sum(said[-1].has_line(trouble) for said in runs)
        longest = max(said[0].seconds for said in runs)
        rows.append([name, trouble.cause, f"{right} of {len(runs)}", f"{others}", f"{lines} of {len(runs)}" if trouble.has_line else "–", f"{longest:.1f}"])
        met = right == lines == len(runs) and not others
        gates.append(f"- Gate, {name}: right cause {right}, line {lines}, another cause {others} of {len(runs)} runs: **{'met' if met else 'not met'}**")
        for said in runs:
            wrong += [f"- {name}: {each.cause}: {each.sentence}" for each in said if not each.is_right(trouble) or not each.has_line(trouble)]
    report.table(["trouble", "cause", "right", "another cause", "line named", "longest until named, s"], rows)
    report.text("One sentence of each:", "", *(f"- {_name(*which)}: {runs[0][-1].sentence}" for which, runs in outcomes.items()))
    if wrong:
        report.text("What was wrong:", "", *dict.fromkeys(wrong))
    report.text("## Gates", "", *gates)
