"""The end of the process after SIGTERM where Python would wait for the application: threads, children, functions of atexit."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest
from conftest import PATIENCE, Serve

APP = """
def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"answered"]
"""

#: What holds Python's end, and what is said of it.
HOLDS = {
    "a thread of an executor": (
        """
import concurrent.futures, threading
def job():
    threading.Event().wait()
concurrent.futures.ThreadPoolExecutor(thread_name_prefix="mails").submit(job)
""",
        r"it waits for the threads mails_0 in \w+ \(.*threading.py:\d+\)",
    ),
    "a thread": (
        """
import threading
stop = threading.Event()
threading.Thread(target=stop.wait, name="keeps").start()
""",
        r"it waits for the threads keeps in \w+ \(.*threading.py:\d+\)",
    ),
    "a child": (
        """
import multiprocessing, os, time
def job():
    # The test reads until all have closed it.
    os.closerange(0, 1024)
    time.sleep(1000)
child = multiprocessing.get_context("fork").Process(target=job)
child.start()
print("child", child.pid, "end", flush=True)
""",
        r"it may wait for process (\d+) \(\w+\)",
    ),
    "a function of atexit": (
        """
import atexit, threading
@atexit.register
def clean():
    while True:
        pass
""",
        r"its main thread is in clean \(.*app.py:\d+\)",
    ),
}


@pytest.mark.parametrize("hold", HOLDS)
def test_the_end_does_not_wait_for_ever(hold: str, serve: Serve) -> None:
    source, said = HOLDS[hold]
    server = serve("--drain-timeout", "0.1", source=source + APP)
    try:
        assert server.fetch("/").body == b"answered"
        assert server.stop() == 1, server.said
        assert "drained: every accepted request was answered" in server.said
        assert re.search("maitred: the process does not end by itself: .*" + said, server.said), server.said
    finally:
        if child := re.search(r"child (\d+) end", server.said):
            os.kill(int(child[1]), signal.SIGKILL)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_ends_it_at_once(number: signal.Signals, serve: Serve) -> None:
    source, _ = HOLDS["a thread"]
    server = serve("--drain-timeout", "1000", source=source + APP)
    server.process.send_signal(number)
    server.wait_for("drained: every accepted request was answered")
    # It may come before the signals are given back, or meanwhile: then it ends a second later.
    assert server.stop(number) in (-number, 128 + number, 1), server.said


def test_what_ends_in_the_time_of_the_drain_is_waited_for(serve: Serve, tmp_path: Path) -> None:
    source = """
import threading, time
def job():
    while not (HERE / "go").exists():
        time.sleep(0.01)
    print("done", flush=True)
threading.Thread(target=job).start()
"""
    here = f"import pathlib\nHERE = pathlib.Path({str(tmp_path)!r})\n"
    server = serve("--drain-timeout", "1000", source=here + source + APP)
    server.process.terminate()
    server.wait_for("drained: every accepted request was answered")
    (tmp_path / "go").touch()
    assert server.process.wait(PATIENCE) == 0
    server.read_all()
    assert "done\n" in server.said and "does not end by itself" not in server.said
