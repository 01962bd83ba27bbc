"""``maitred.run``: the command as a function, in a program of its own."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import MAITRED, PATIENCE, Server, environment_for, needs

PROGRAM = """
import asyncio, sys, threading
import maitred

def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"hello from " + __name__.encode()]

async def late(app):
    maitred.run(app)

if __name__ == "__main__":
    {call}
    print("it has returned", flush=True)
"""


class Program(Server):
    """A file of Python that calls it, in a folder beside the current one."""

    def command(self, arguments: list[str]) -> list[str | Path]:
        return [sys.executable, "src/program.py"]


def written(folder: Path, call: str) -> Path:
    (folder / "src").mkdir(exist_ok=True)
    (folder / "src/program.py").write_text(PROGRAM.format(call=call))
    return folder


@pytest.mark.parametrize(
    ("call", "module"),
    [
        ("maitred.run(app, listen=['127.0.0.1:0'], access_log=None, factory=False)", "__main__"),
        ("maitred.run('program:app', host='127.0.0.1', port=0, threads=2)", "program"),
        # As uvicorn.run is called.
        ("maitred.run('program:app', port=0, reload=False, access_log=False, forwarded_allow_ips='127.0.0.1', log_level='debug')", "program"),
        ("maitred.run('program:app', port=0, workers=2)", "program"),
        ("maitred.run('src/program.py', port=0, interface='wsgi')", "program"),
    ],
)
def test_it_serves_until_a_signal_and_returns(tmp_path: Path, call: str, module: str) -> None:
    server = Program([], written(tmp_path, call), {})
    try:
        assert server.fetch("/").body == f"hello from {module}".encode()
        assert server.stop(signal.SIGINT) == 0, server.said
        assert server.said.endswith("it has returned\n")
    finally:
        server.kill()


def test_it_serves_a_second_time(tmp_path: Path) -> None:
    server = Program([], written(tmp_path, "maitred.run(app, port=0); print('again', flush=True); maitred.run(app, port=0)"), {})
    try:
        assert server.fetch("/").status == 200
        server.process.send_signal(signal.SIGINT)
        server.wait_for("again\n")
        server.learn(start=server.said.index("again\n"))
        assert server.fetch("/").body == b"hello from __main__"
        assert server.stop() == 0, server.said
    finally:
        server.kill()


def failed(folder: Path, call: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, written(folder, call) / "src/program.py"]
    done = subprocess.run(
        command, cwd=folder, env=environment_for({}), capture_output=True, text=True, timeout=PATIENCE
    )
    assert "it has returned" not in done.stdout
    return done


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("maitred.run(app, prot=1)", "maitred: --prot: unknown option; did you mean '--port'?"),
        ("maitred.run(app, max_threads=0)", "maitred: --max-threads: '0' is not a whole number from 1 to"),
        ("maitred.run(app, workers=2)", "maitred: workers: an application that is given as an object is in this process alone"),
        ("maitred.run('program:ap', port=0)", "maitred: program:ap: "),
        ("maitred.run('program:app', timeout=3)", "maitred: --timeout: an option of another server; write --worker-timeout"),
    ],
)
def test_a_mistake_is_told_as_by_the_command_and_ends_the_program(tmp_path: Path, call: str, said: str) -> None:
    done = failed(tmp_path, call)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert done.stderr.startswith(said), done.stderr


def test_workers_of_the_environment_cannot_have_an_object(tmp_path: Path) -> None:
    done = failed(tmp_path, "import os; os.environ['MAITRED_WORKERS'] = '2'; maitred.run(app, port=0)")
    assert done.returncode == 2
    assert "several workers cannot have it; give its name, maitred.run('module:app', workers=4)" in done.stderr


@pytest.mark.parametrize(
    ("call", "error"),
    [
        ("maitred.run(3)", "TypeError: app is a name such as 'module:app' or a callable, not int"),
        ("maitred.run(app, port={1: 2})", "TypeError: port takes text, numbers, True, False or a list of them, not dict"),
        ("maitred.run(app, MaxThreads=2)", "TypeError: 'MaxThreads' is no name of an option"),
        ("asyncio.run(late(app))", "RuntimeError: maitred.run() is called in a coroutine"),
        (
            "t = threading.Thread(target=maitred.run, args=(app,)); t.start(); t.join(); sys.exit(1)",
            "RuntimeError: maitred.run() is called on another thread",
        ),
    ],
)
def test_what_no_command_line_can_say_is_an_exception(tmp_path: Path, call: str, error: str) -> None:
    done = failed(tmp_path, call)
    assert done.returncode == 1 and error in done.stderr, done.stderr


def test_a_call_that_workers_meet_is_told(tmp_path: Path) -> None:
    folder = written(tmp_path, "pass")
    file = folder / "src/program.py"
    file.write_text(file.read_text().replace('if __name__ == "__main__":', "if True:").replace("pass", "maitred.run('program:app', port=0)"))
    done = subprocess.run(
        [sys.executable, file], cwd=folder, env=environment_for({}), capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 2, done.stderr
    assert "put the call under if __name__ == '__main__':" in done.stderr


def test_type_checkers_know_the_options(tmp_path: Path) -> None:
    needs("mypy")
    (tmp_path / "calls.py").write_text(
        "import maitred\n"
        "maitred.run('app:app', host='127.0.0.1', port=8000, workers='auto', max_threads=20, listen=[':8000'], reload=True, queue=None)\n"
        "maitred.run('app:app', wrokers=4)\n"
        "maitred.run('app:app', max_threads='many')\n"
    )
    done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "calls.py"], cwd=tmp_path, capture_output=True, text=True)
    wrong = [line for line in done.stdout.splitlines() if ": error: " in line]
    assert [line.partition(": error: ")[0] for line in wrong] == ["calls.py:3", "calls.py:4"], done.stdout + done.stderr
    assert "wrokers" in wrong[0] and "max_threads" in wrong[1]


def test_the_schema_is_json_and_has_every_key(tmp_path: Path) -> None:
    done = subprocess.run([MAITRED, "help", "schema"], cwd=tmp_path, env=environment_for({}), capture_output=True, text=True)
    keys = json.loads(done.stdout)["properties"]
    assert {"workers", "listen", "filter", "host", "pool", "tls-key-password"} <= set(keys) and "config" not in keys
