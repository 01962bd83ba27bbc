"""Requests that stay in the application: one entry in the error log, with the stack of their thread."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import pytest
from conftest import Serve, Server
from test_slow_readers import until

# Waits until somebody opens the FIFO for writing; the interpreter is free meanwhile.
WAITING = """
import os, sys
os.mkfifo("door")

def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    if environ["PATH_INFO"] != "/at-once":
        stand_at_the_door()
    return [b"through"]

def stand_at_the_door():
    open("door").close()
"""

# Reads from the FIFO by a C call that keeps the interpreter: PyDLL, unlike CDLL, does not release it.
KEEPING = """
import ctypes, os, signal, threading
os.mkfifo("door")
door = os.open("door", os.O_RDWR)
library = ctypes.PyDLL(None)
both = threading.Barrier(2)
signal.signal(signal.SIGRTMAX, lambda number, frame: print("own handler", flush=True))

def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    if environ["PATH_INFO"] == "/both":
        both.wait(30)
    count = keep() if environ["PATH_INFO"] == "/keeps" else 0
    return [f"{count} by {threading.current_thread().name}".encode()]

def keep():
    return library.read(door, ctypes.create_string_buffer(1), 1)
"""

ENTRY = r"GET {path}: has been in the application for (\d+\.\d) s, on thread (\S+) \(tid (\d+)\)"
ENTRIES = re.compile(r"\d{4}-.* error GET .*has been in the application")


def thread_names(server: Server) -> set[str]:
    tasks = Path(f"/proc/{server.process.pid}/task")
    return {(task / "comm").read_text().strip() for task in tasks.iterdir()}


def test_a_stuck_request_is_told_once_with_the_stack_of_its_thread(serve: Serve, tmp_path: Path) -> None:
    # The whole stack is looked at: without the validator's frames.
    server = serve("--stuck-after", "0.2", source=WAITING, checked=False)
    accepted = server.connect()
    accepted.request("GET", "/stands?secret=1")
    entry = server.wait_for(ENTRY.format(path="/stands") + "\n")
    server.wait_for(r"(?m)^      open\(\"door\"\)\.close\(\)$", entry.start())
    assert float(entry[1]) >= 0.2
    assert (Path("/proc") / str(server.process.pid) / "task" / entry[3]).exists()
    block = server.said[entry.start() :].splitlines()[1:]
    assert block[0] == "  Stack (most recent call last):"
    assert re.fullmatch(r'    File ".*app\.py", line \d+, in app', block[1]), "the threading module is left out"
    assert re.fullmatch(r'    File ".*app\.py", line \d+, in stand_at_the_door', block[3])
    # The threshold passes again for a second request, and the first one is not told again.
    second = server.connect()
    second.request("GET", "/" + "x" * 300)
    server.wait_for(ENTRY.format(path=r"/x{100,155}\.\.\."))
    assert len(ENTRIES.findall(server.said)) == 2, server.said
    assert "secret" not in server.said
    # Each reader of the FIFO has opened it: one writer lets all of them go.
    (tmp_path / "door").write_text("")
    for connection in (accepted, second):
        assert connection.getresponse().read() == b"through"
        connection.close()
    assert server.stop() == 0, server.said


def test_the_stack_is_there_while_a_c_call_keeps_the_interpreter(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "a.txt").write_text("text")
    options = ["--stuck-after", "0.2", "--static", "/files=files", "--min-threads", "2"]
    server = serve(*options, source=KEEPING, checked=False)  # As above.
    server.process.send_signal(signal.SIGRTMAX)
    server.wait_for("own handler")  # What the application has taken stays its own.
    keeps, waits = server.connect(), server.connect()
    # Both threads are there: while the interpreter is kept, none can be made.
    for connection in (keeps, waits):
        connection.request("GET", "/both")
    assert len({connection.getresponse().read() for connection in (keeps, waits)}) == 2
    keeps.request("GET", "/keeps")
    entry = server.wait_for(ENTRY.format(path="/keeps") + ", which keeps the interpreter\n")
    line = KEEPING.splitlines().index("    return library.read(door, ctypes.create_string_buffer(1), 1)") + 1
    server.wait_for(rf'(?m)^    File ".*app\.py", line {line}, in keep$', entry.start())
    block = server.said[entry.start() :].splitlines()[1:]
    assert block[0] == "  Stack (most recent call last):"
    assert re.fullmatch(r'    File ".*app\.py", line \d+, in app', block[1])
    assert re.fullmatch(r'    File ".*app\.py", line \d+, in keep', block[2])
    waits.request("GET", "/waits")
    server.wait_for(ENTRY.format(path="/waits") + ", which waits for the interpreter\n  No stack: ")
    assert server.fetch("/files/a.txt").body == b"text", "files need no interpreter"
    assert len(ENTRIES.findall(server.said)) == 2, server.said
    # The call was not disturbed: it reads its byte and nothing less.
    (tmp_path / "door").write_text("x")
    assert keeps.getresponse().read().decode() == f"1 by {entry[2]}"
    assert waits.getresponse().read().startswith(b"0 by ")
    for connection in (keeps, waits):
        connection.close()
    server.process.send_signal(signal.SIGRTMAX)
    server.wait_for("own handler", entry.end())
    assert server.stop() == 0, server.said


def test_all_that_are_stuck_at_once_are_told(serve: Serve, tmp_path: Path) -> None:
    server = serve("--stuck-after", "0.2", "--max-threads", "3", source=WAITING)
    connections = {path: server.connect() for path in ("/a", "/b", "/c")}
    for path, connection in connections.items():
        connection.request("GET", path)
    entries = [server.wait_for(ENTRY.format(path=path)) for path in connections]
    assert len({entry[2] for entry in entries}) == 3, "three threads"
    assert len({entry[3] for entry in entries}) == 3
    (tmp_path / "door").write_text("")
    for connection in connections.values():
        assert connection.getresponse().read() == b"through"
        connection.close()
    assert server.stop() == 0, server.said


@pytest.mark.parametrize("seconds", ["0", "10"])
def test_zero_switches_it_off(serve: Serve, seconds: str) -> None:
    server = serve("--stuck-after", seconds, source=WAITING)
    assert server.fetch("/at-once").body == b"through"
    if seconds != "0":
        # A thread has its name a moment after it has begun.
        until("the watch is there", lambda: "maitred-stuck" in thread_names(server))
    else:
        assert "maitred-stuck" not in thread_names(server)
    caught = re.search(r"(?m)^SigCgt:\t(\w+)$", Path(f"/proc/{server.process.pid}/status").read_text())
    assert caught
    taken = int(caught[1], 16) & 1 << (signal.SIGRTMAX - 1)
    assert bool(taken) == (seconds != "0"), "the highest real-time signal"
    assert server.stop() == 0, server.said


def test_the_process_ends_with_a_stuck_thread(serve: Serve) -> None:
    # The whole stack is looked at: without the validator's frames.
    server = serve("--stuck-after", "0.2", source=WAITING, checked=False)
    accepted = server.connect()
    accepted.request("GET", "/stands")
    server.wait_for(ENTRY.format(path="/stands"))
    start = len(server.said)
    server.process.send_signal(signal.SIGTERM)
    server.wait_for("draining", start)
    assert server.stop() == 128 + signal.SIGTERM
    accepted.close()
