"""Several workers: they start, end by themselves, and end together."""

from __future__ import annotations

import http.client
import os
import re
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path

import pytest
import secured
from conftest import MAITRED, PATIENCE, environment_for
from crews import APP, EVENTS, Start, crew, until

__all__ = ["crew"]

#: Each request computes for two milliseconds.
BUSY = """
import time

def app(environ, start_response):
    end = time.thread_time() + 0.002
    while time.thread_time() < end:
        pass
    start_response("200 OK", [("Content-Length", "0")])
    return []
"""

#: Until both workers have asked for that, and their supervisor has answered a question asked behind it.
WAITS = """
import pathlib, time
pathlib.Path(f"here-{os.getpid()}").touch()
while len(list(pathlib.Path().glob("here-*"))) < 2:
    time.sleep(0.01)
import http.client, socket
door = http.client.HTTPConnection("localhost")
door.sock = socket.socket(socket.AF_UNIX)
door.sock.connect("ctl.sock")
door.request("GET", "/status")
door.getresponse().read()
"""

SITES = """
[pool.slow]
max-threads = 2
match = "/slow/*"

[host."one.example"]
mount = ["/a=one.py", "/b=two.py"]

[host."two.example"]
application = "two.py"
"""

SITE = """
import os, threading

def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [f"NAME {os.getpid()} {environ['SCRIPT_NAME']} {threading.current_thread().name}".encode()]
"""

LIFESPAN = """
import os

async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        while True:
            kind = (await receive())["type"].removeprefix("lifespan.")
            print(kind, "in", os.getpid(), flush=True)
            await send({"type": f"lifespan.{kind}.complete"})
            if kind == "shutdown":
                return
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": f"asgi {os.getpid()}".encode()})
"""


def test_both_serve_and_the_supervisor_loads_no_application(crew: Start) -> None:
    server = crew()
    assert server.serving(2) == server.workers()
    imported = {int(pid) for pid in re.findall(r"imports in (\d+)", server.said)}
    assert imported == server.workers() and server.process.pid not in imported
    lines = [line for line in server.said.splitlines() if not line.startswith("imports")]
    assert re.fullmatch(r"maitred \S+ serving WSGI app.py:app on 1 to 10 threads in 2 workers", lines[0]), server.said
    assert re.fullmatch(rf"{secured.SCHEME}://127.0.0.1:\d+  HTTP/1.1, HTTP/2", lines[1])
    assert sorted(line.partition("info ")[2] for line in lines[2:]) == [
        "all workers are ready", "worker 1 is ready", "worker 2 is ready",
    ]  # fmt: skip
    server.ends()
    assert server.said.count("drained: every accepted request was answered") == 2


def test_a_killed_worker_is_started_again_and_the_other_one_serves_meanwhile(crew: Start, tmp_path: Path) -> None:
    server = crew()
    killed, other = sorted(server.serving(2))
    (tmp_path / "hold").touch()
    start = len(server.said)
    os.kill(killed, signal.SIGKILL)
    line = server.wait_for(r"error worker \d was killed by SIGKILL .*; it is started again at once", start)[0]
    assert "want of memory" in line, "the cause that nobody would think of"
    server.wait_for(r"imports in", start)
    assert server.serving(1) == {other}
    (tmp_path / "hold").unlink()
    server.wait_for("info worker . is ready", start)
    assert killed not in server.serving(2) >= {other}
    server.ends()


def started(pid: int) -> int:
    """When a process was started, in ticks since the machine was (proc_pid_stat(5)). Numbers of processes begin anew now and then."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])


def test_a_worker_that_ends_ten_times_is_started_ten_times_and_waits_longer_each_time(crew: Start) -> None:
    server = crew()
    waits: dict[str, list[float]] = {}
    for _ in range(10):
        pid = min(server.workers(), key=started)  # The one that has been there longer: they take turns.
        start = len(server.said)
        server.end_worker("exits", pid)
        found = server.wait_for(r"error worker (\d) ended with exit code 7; it is started again (at once|in ([\d.]+) s)", start)
        assert server.answer()[1] != pid
        waits.setdefault(found[1], []).append(float(found[3] or 0))
        server.wait_for(f"info worker {found[1]} is ready", found.end())
    assert len(server.serving(2)) == 2
    assert sum(map(len, waits.values())) == 10 == server.said.count("ended with exit code 7")
    for row in waits.values():
        limits = [0, *(0.1 * 2**count for count in range(len(row) - 1))]
        # Up to a quarter is taken away, and one digit is shown.
        assert all(limit * 0.75 - 0.05 <= wait <= limit + 0.05 for wait, limit in zip(row, limits)), waits
    server.ends()


def test_a_worker_that_crashes_is_named_with_its_signal(crew: Start) -> None:
    server = crew()
    server.end_worker("crashes", min(server.serving(2)))
    server.wait_for("error worker . was killed by SIGSEGV; it is started again at once")
    assert len(server.serving(2)) == 2


def failing(folder: Path, *arguments: str) -> tuple[int, str]:
    """Code and output of a server with two workers that ends by itself, with all it has started."""
    command = [MAITRED, "--workers", "2", *arguments]
    done = subprocess.run(
        command, cwd=folder, env=environment_for({}), text=True, timeout=PATIENCE,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,  # The pipe ends with the last process.
    )  # fmt: skip
    return done.returncode, done.stdout


@pytest.mark.parametrize(
    "source, cause",
    [
        ("import no_such_module", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("def app(", "SyntaxError"),
        ("import os; os._exit(9)", "worker . ended with exit code 9 before it was ready"),
    ],
)
def test_an_application_that_cannot_be_imported_ends_the_start(tmp_path: Path, source: str, cause: str) -> None:
    (tmp_path / "app.py").write_text(source)
    code, said = failing(tmp_path, "app.py", "--listen", "127.0.0.1:0")
    assert code == (9 if "_exit" in source else 2), said
    lines = [line for line in said.splitlines() if "no worker could start, so the server ends" in line]
    assert len(lines) == 1 and re.search(cause, lines[0]), said
    assert "is started again" not in said


def test_a_port_in_use_is_told_before_anything_is_started(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(APP)
    with socket.create_server(("127.0.0.1", 0)) as holder:
        address = "127.0.0.1:%d" % holder.getsockname()[1]
        code, said = failing(tmp_path, "app.py", "--listen", address)
    assert code == 2 and said.count("\n") == 1
    assert f"{address} is in use by process {os.getpid()} (" in said


def test_there_are_as_many_as_signals_say(crew: Start) -> None:
    server = crew()
    for number in (signal.SIGTTIN, signal.SIGTTIN):
        start = server.tell(number)
        server.wait_for(r"info SIGTTIN: workers \d -> \d", start)
    assert len(server.serving(4)) == 4
    assert len(server.ask("status")["workers"]) == 4
    for left in (3, 2, 1, 1):
        start = server.tell(signal.SIGTTOU)
        server.wait_for(r"info SIGTTOU: workers \d -> %d" % left, start)
    until("one is left", lambda: len(server.workers()) == 1)
    assert server.serving(1) == server.workers()
    assert " error " not in server.said and " warn " not in server.said
    server.ends()


def test_workers_end_when_their_supervisor_is_killed(crew: Start, tmp_path: Path) -> None:
    server = crew()
    peers = server.stay(2)
    server.process.kill()
    server.wait_for(r"error \[\d\] the supervisor is gone: this worker ends")
    (tmp_path / "go").touch()
    assert all(peer.getresponse().read().startswith(b"first") for peer in peers), "what runs is answered"
    until("no process is left", lambda: not server.processes())


def test_workers_that_load_end_when_their_supervisor_is_killed(crew: Start, tmp_path: Path) -> None:
    server = crew()
    (tmp_path / "hold").touch()
    start = server.tell(signal.SIGTTIN)
    server.wait_for("imports in", start)
    server.process.kill()
    until("no process is left", lambda: not server.processes())


def test_ctrl_c_ends_all_of_them_once(crew: Start) -> None:
    server = crew()
    server.serving(2)
    os.killpg(server.process.pid, signal.SIGINT)  # As a terminal does.
    assert server.process.wait(PATIENCE) == 0, server.said
    until("no process is left", lambda: not server.processes())
    server.read_all()
    assert re.findall(r"info (\[\d\] )?SIGINT: ", server.said) == [""], "it is not sent to the workers"
    assert "ending at once" not in server.said and "Traceback" not in server.said


@pytest.mark.parametrize(
    "name, said",
    [
        ("SIGUSR1", "the log files are opened anew"),
        ("SIGHUP", "the configuration has been read again"),
        ("SIGUSR2", "nothing happens, this is a worker"),
    ],
)
def test_signals_that_a_worker_gets_while_it_imports_wait_until_it_serves(crew: Start, name: str, said: str) -> None:
    """As when somebody tells all processes of a service."""
    server = crew(source=f"import os, signal\nos.kill(os.getpid(), signal.{name})\n{APP}")
    server.wait_for(rf"(?s)(?:\[[12]\] {name}: {said}.*){{2}}")
    assert server.serving(2) and " error " not in server.said
    server.ends()


def test_signals_that_come_while_the_first_workers_import_are_the_supervisor_s(crew: Start) -> None:
    signals = "import os, signal\nos.kill(os.getppid(), signal.SIGUSR1)\n" + WAITS
    server = crew(source=signals + APP)
    server.wait_for(r"(?s)(?:\[[12]\] SIGUSR1: the log files are opened anew.*){2}")
    assert server.serving(2) and " error " not in server.said
    server.ends()


def test_what_waits_to_be_accepted_when_the_end_comes_is_served(crew: Start, tmp_path: Path) -> None:
    """The only threads are in the application, so that connections wait in the kernel; a few are taken without a thread now and then."""
    server = crew("--max-threads", "1")
    peers = server.stay(2)
    for _ in range(50):
        peers.append(server.connect())
        peers[-1].request("GET", "/")
    start = server.tell(signal.SIGTERM)
    server.wait_for(r"(?s)(?:info \[\d\] SIGTERM: draining.*){2}", start)
    (tmp_path / "go").touch()
    assert [peer.getresponse().status for peer in peers] == [200] * len(peers)
    assert server.process.wait(PATIENCE) == 0, server.said


def test_connections_that_come_to_busy_workers_are_served_with_those_that_are_there(crew: Start) -> None:
    """Nobody is ever free: each client asks again as soon as it has its answer."""
    server = crew(source=BUSY)
    answers = [0] * 64

    def ask(number: int) -> None:
        peer = server.connect()
        while not all(answers):
            peer.request("GET", "/")
            assert peer.getresponse().read() == b""
            answers[number] += 1
        peer.close()

    clients = [threading.Thread(target=ask, args=(number,), daemon=True) for number in range(len(answers))]
    for client in clients:
        client.start()
    for client in clients:
        client.join(PATIENCE)
    print(sorted(answers))
    assert all(answers)
    assert max(answers) <= 45, "so many answers of another one before the first of the last connection"


def test_a_second_signal_ends_at_once(crew: Start) -> None:
    server = crew("--drain-timeout", "300")
    peers = server.stay(2)
    start = server.tell(signal.SIGTERM)
    server.wait_for("info SIGTERM: the workers drain, at most 300 s for running requests", start)
    # Each worker has its own, so the second is not the first one.
    server.wait_for(r"(?s)(?:draining, at most 300 s.*){2}", start)
    server.tell(signal.SIGTERM)
    assert server.process.wait(PATIENCE) == 128 + signal.SIGTERM, server.said
    server.wait_for("info SIGTERM: ending at once")
    assert not server.processes()
    for peer in peers:
        with pytest.raises((http.client.HTTPException, ConnectionError)):
            peer.getresponse()


def test_a_worker_is_replaced_after_its_requests_by_one_that_is_ready(crew: Start, tmp_path: Path) -> None:
    server = crew("--worker-requests", "40")
    before = server.serving(2)
    (tmp_path / "hold").touch()
    start = len(server.said)

    def is_worn() -> bool:
        server.answer()
        return server.said.count("requests (worker-requests): it is replaced", start) >= 2

    until("both have had enough", is_worn)
    counts = [int(count) for count in re.findall(r"has had (\d+) requests \(worker-requests\)", server.said)]
    assert min(counts) > 36
    server.wait_for("imports in", start)
    assert server.serving(2) == before, "their successors are not ready"
    (tmp_path / "hold").unlink()
    until("both are replaced", lambda: len(server.workers()) == 2 and not server.workers() & before)
    assert server.serving(2).isdisjoint(before)
    assert " error " not in server.said and " warn " not in server.said
    server.ends()


def test_a_worker_with_too_much_memory_is_replaced(crew: Start) -> None:
    server = crew("--worker-memory", "100m")
    heavy, other = sorted(server.serving(2))
    until("it has grown", lambda: server.answer(f"/grows/{heavy}")[1] == heavy)
    server.wait_for(r"info worker . has \d+ MiB of memory of its own \(worker-memory\): it is replaced")
    until("it has ended", lambda: heavy not in server.workers())
    assert other in server.serving(2)
    assert server.said.count("(worker-memory)") == 1
    server.ends()


#: Its event loop stands still in "/stays" until there is a file ``go``.
LOOP = """
import os, time

async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        raise RuntimeError("no lifespan")
    if scope["path"] == "/stays":
        print("stays in", os.getpid(), flush=True)
        while not os.path.exists("go"):
            time.sleep(0.01)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": f"first {os.getpid()}".encode()})
"""


@pytest.mark.parametrize("source", [APP, LOOP], ids=["threads", "event loop"])
def test_workers_that_end_no_request_are_replaced(crew: Start, tmp_path: Path, source: str) -> None:
    server = crew("--max-threads", "1", "--worker-timeout", "1", source=source)
    before = server.workers()
    peers = server.stay(2)
    # More wait in each than one lucky end would help.
    for _ in range(8):
        peers.append(server.connect())
        peers[-1].request("GET", "/")
    for number in (1, 2):
        server.wait_for(rf"info worker {number} has ended no request for \d+ s while some wait \(worker-timeout\): it is replaced")
        # Until then it may take one more connection.
        server.wait_for(rf"info \[{number}\] SIGTERM: draining")
    assert not server.serving(2) & before
    (tmp_path / "go").touch()
    until("the old ones have answered and ended", lambda: not server.workers() & before)
    assert [peer.getresponse().status for peer in peers] == [200] * len(peers)


def test_clients_wait_for_a_worker_and_are_told_when_it_takes_long(crew: Start, tmp_path: Path) -> None:
    server = crew("--unavailable-after", "0.2", "--health-path", "/health")
    pids = server.serving(2)
    (tmp_path / "hold").touch()
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    server.wait_for("error no worker is ready: clients get 503 with Retry-After until one is")
    for path in ("/", "/health"):
        reply = server.fetch(path)
        assert (reply.status, reply.headers["Retry-After"], reply.headers["Connection"]) == (503, "2", "close")
    start = len(server.said)
    (tmp_path / "hold").unlink()
    server.wait_for("info worker . is ready", start)
    assert len(server.serving(2)) == 2
    assert server.fetch("/health").status == 200
    server.ends()


def test_clients_that_come_while_no_worker_serves_are_served_by_the_next_one(crew: Start, tmp_path: Path) -> None:
    server = crew("--unavailable-after", "300")
    pids = server.serving(2)
    (tmp_path / "hold").touch()
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    until("both have ended", lambda: not server.workers() & pids)
    peers = [server.connect() for _ in range(20)]
    for peer in peers:
        peer.request("GET", "/")
    (tmp_path / "hold").unlink()
    assert [peer.getresponse().status for peer in peers] == [200] * 20
    # Else the stop might be told of one first, which would be a worker that was killed while it ended.
    until("the supervisor knows of both", lambda: len(re.findall(r"worker \d was killed by SIGKILL", server.said)) == 2)
    server.ends()


def test_a_stop_does_not_wait_for_streams_of_events(crew: Start) -> None:
    server = crew("--events-timeout", "0.5", "--drain-timeout", "300", source=EVENTS)
    streams = server.open_streams()
    began = time.monotonic()
    server.ends()
    assert time.monotonic() - began < PATIENCE
    for stream in streams:
        with pytest.raises(http.client.IncompleteRead):
            stream.read()


def test_each_worker_has_a_lifespan(crew: Start) -> None:
    server = crew(source=LIFESPAN)
    pids = server.serving(2, release="asgi")
    server.ends()
    for kind in ("startup", "shutdown"):
        assert {int(pid) for pid in re.findall(rf"{kind} in (\d+)", server.said)} == pids, server.said


def test_pools_hosts_and_mounts_are_those_of_one_process(crew: Start, tmp_path: Path) -> None:
    (tmp_path / "maitred.toml").write_text(SITES)
    for name in ("one", "two"):
        (tmp_path / f"{name}.py").write_text(SITE.replace("NAME {", name + " {"))
    server = crew()
    asked = [("one.example", "/a/", "one", "/a", ""), ("one.example", "/b/", "two", "/b", ""),
             ("two.example", "/slow/x", "two", "", "-slow")]  # fmt: skip
    for host, path, name, script, pool in asked:
        seen: set[str] = set()

        def by_both() -> bool:
            application, pid, *rest = server.fetch(path, Host=host).body.decode().split(" ")
            assert (application, rest[0]) == (name, script) and rest[1].startswith(f"maitred{pool}-"), (application, rest)
            seen.add(pid)
            return len(seen) == 2

        until("both answer", by_both)
    assert server.fetch("/", Host="three.example").status == 421
    assert "one.example/a  WSGI one.py:app" in server.said
    server.ends()


def test_requests_that_come_during_a_stop_are_answered_or_refused_whole(crew: Start) -> None:
    server = crew()
    answers: list[int | str] = []

    def ask() -> None:
        while not answers or answers[-1] == 200:
            try:
                answers.append(server.fetch("/").status)
            except ConnectionRefusedError:
                answers.append("refused")
            except (http.client.HTTPException, OSError) as error:
                answers.append(repr(error))

    client = threading.Thread(target=ask)
    client.start()
    until("some are answered", lambda: len(answers) > 20)
    server.ends()
    client.join(PATIENCE)
    assert answers[-1] == "refused", answers[-1]
