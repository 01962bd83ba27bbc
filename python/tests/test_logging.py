"""Logs by way of Python's ``logging``: which records come, that nothing waits for a handler, and the end."""

from __future__ import annotations

import re
import signal
import subprocess
from pathlib import Path

import by_h2
import pytest
from conftest import MAITRED, PATIENCE, Serve, environment_for
from crews import until

APP = """
import logging, logging.config, os, sys, threading, time

logging.config.dictConfig({
    "version": 1,
    "formatters": {"own": {"format": "%(name)s|%(levelname)s|%(message)s"}},
    "handlers": {"file": {"class": "logging.FileHandler", "filename": "py.log", "formatter": "own"}},
    "root": {"level": "DEBUG", "handlers": ["file"]},
})

class Starts(logging.Handler):
    "Says on standard output where the server is."
    def emit(self, record):
        if record.levelno == logging.INFO and record.getMessage().startswith("http"):
            print(record.getMessage(), flush=True)

logging.getLogger("maitred.error").addHandler(Starts())

class Back(logging.Handler):
    "Writes what it gets to the stream of a request."
    stream = None

    def emit(self, record):
        if self.stream is not None:
            self.stream.write("back: " + record.getMessage() + "\\\\n")

class Stands(logging.Handler):
    def emit(self, record):
        open("stands", "w").close()
        time.sleep(1000)

if os.environ.get("HANDLER"):
    logging.getLogger("maitred.wsgi").addHandler(globals()[os.environ["HANDLER"]]())

def app(environ, start_response):
    path = environ["PATH_INFO"]
    errors = environ["wsgi.errors"]
    Back.stream = errors
    if path == "/says":
        print("from the application", file=errors)
    if path == "/raises":
        raise ValueError("what it raised")
    if path == "/forks" and os.fork() == 0:
        while not os.path.exists("go"):
            time.sleep(0.01)
        os._exit(0)
    if path == "/pid":
        print("in", os.getpid(), file=errors)
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [str(os.getpid()).encode()]
""".replace("\\\\n", "\\n")

OPTIONS = ("--error-log", "logging", "--access-log", "logging")


def records(folder: Path, pattern: str) -> list[str]:
    """What the handler has written, when there is a match."""
    file = folder / "py.log"
    until(pattern, lambda: bool(re.search(pattern, file.read_text(), re.M)))
    return re.split(r"\n(?=maitred\.)", file.read_text().rstrip("\n"))


@pytest.mark.parametrize("options", [(), ("--workers", "2"), ("--workers", "2", "--preload")])
def test_each_log_has_a_logger_and_each_entry_its_level(serve: Serve, tmp_path: Path, options: tuple[str, ...]) -> None:
    server = serve(*OPTIONS, *options, source=APP, checked=False)
    if options:
        server.wait_for("info all workers are ready")
    server.fetch("/says")
    server.fetch("/raises")
    # Each worker has its own thread for them.
    records(tmp_path, r"^maitred\.wsgi\|.*from the application$")
    records(tmp_path, rf"^maitred\.access\|INFO\|.* /raises {by_h2.LOGGED}\" 500 ")
    logged = records(tmp_path, r"^ +ValueError: what it raised$")
    number = r"(\[\d\] )?" if options else ""
    assert any(re.fullmatch(rf"maitred\.wsgi\|ERROR\|{number}from the application", record) for record in logged), logged
    raised = next(record for record in logged if "ValueError" in record)
    assert re.match(rf"maitred\.error\|ERROR\|{number}.*\n.*Traceback .*\n +ValueError: what it raised$", raised, re.S), raised
    assert server.stop() == 0, server.said
    # What comes at the end is there at the end.
    text = (tmp_path / "py.log").read_text()
    if options:
        assert "info SIGTERM: the workers drain" in server.said
    else:
        assert "maitred.error|INFO|drained: every accepted request was answered\n" in text
        assert "info" not in server.said
    assert "ValueError" not in server.said


def test_a_handler_that_writes_to_the_same_log_does_not_go_round(serve: Serve, tmp_path: Path) -> None:
    server = serve(*OPTIONS, source=APP, checked=False, HANDLER="Back")
    server.fetch("/says")
    server.wait_for("^back: from the application\n|\nback: from the application\n")
    server.fetch("/pid")
    records(tmp_path, r"^maitred\.wsgi\|ERROR\|in \d+$")
    assert server.stop() == 0, server.said
    assert server.said.count("back: from the application") == 1
    assert "back: " not in (tmp_path / "py.log").read_text()


def test_nothing_waits_for_a_handler_that_stands(serve: Serve, tmp_path: Path) -> None:
    server = serve(*OPTIONS, source=APP, checked=False, HANDLER="Stands")
    server.fetch("/says")
    until("the handler stands", (tmp_path / "stands").exists)
    # More than the pipe holds.
    for _ in range(1000):
        assert server.fetch("/" + "x" * 1000).status == 200
    assert server.stop() == 0, server.said
    assert "logging: its handlers have not taken all lines in time" in server.said


def test_a_child_of_the_application_does_not_keep_the_end(serve: Serve, tmp_path: Path) -> None:
    server = serve(*OPTIONS, source=APP, checked=False)
    server.fetch("/forks")
    server.fetch("/says")
    server.process.send_signal(signal.SIGTERM)
    try:
        assert server.process.wait(PATIENCE) == 0
    finally:
        (tmp_path / "go").touch()
    assert "drained: every accepted request was answered" in (tmp_path / "py.log").read_text()


def test_the_logs_stay_when_files_are_opened_anew(serve: Serve, tmp_path: Path) -> None:
    server = serve(*OPTIONS, source=APP, checked=False)
    server.process.send_signal(signal.SIGUSR1)
    records(tmp_path, "log files")
    server.fetch("/says")
    records(tmp_path, r"^maitred\.wsgi\|ERROR\|from the application$")
    assert server.stop() == 0, server.said


def test_what_prevents_the_start_is_on_standard_error(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("import logging\nlogging.basicConfig(filename='py.log')\nraise ValueError('no start')\n")
    done = subprocess.run(
        [MAITRED, "app.py", *OPTIONS, "--listen", "127.0.0.1:0"],
        cwd=tmp_path,
        env=environment_for({}),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 2
    assert "ValueError: no start" in done.stderr and "maitred: app.py: importing app.py failed" in done.stderr, done.stderr
