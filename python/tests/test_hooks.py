"""Server hooks: who calls which function of the operator's module when, in one process and with workers; what goes wrong in them."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from pathlib import Path

import pytest
from conftest import MAITRED, PATIENCE, Serve, Server, environment_for

APP = """
import os
print(f"imported by {os.getpid()}", flush=True)
def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [f"{os.getpid()} {os.environ.get('PREPARED')}".encode()]
"""

#: They say what they are told and where they run. What an application reads by one write is one line.
HOOKS = """
import os, sys, threading

def _say(*words):
    os.write(1, (" ".join(["hook", *map(str, words)]) + "\\n").encode())

def before_start():
    os.environ["PREPARED"] = "yes"
    with open(f"/proc/self/task/{threading.get_native_id()}/comm") as file:
        thread = file.read().strip()
    _say("before_start", thread, os.getpid(), "app" in sys.modules, os.environ.get("FROM_FILE"))

def worker_ready(worker, pid):
    _say("ready", worker, pid, "app" in sys.modules)

def worker_exit(worker, pid, code):
    _say("exit", worker, pid, code)
"""

TWO = ("--workers", "2")


def hooks(server: Server) -> list[list[str]]:
    """What the hooks have said, in order."""
    return [line.split()[1:] for line in server.said.splitlines() if line.startswith("hook ")]


def refused(folder: Path, source: str, *arguments: str, name: str = "hooks.py", app: str = APP) -> str:
    """What a server says that ends at its start with exit code 2."""
    (folder / "hooks.py").write_text(source)
    (folder / "app.py").write_text(app)
    command = [MAITRED, "app.py", "--listen", "127.0.0.1:0", "--hooks", name, *arguments]
    ended = subprocess.run(
        command, cwd=folder, env=environment_for({}), capture_output=True, text=True, timeout=PATIENCE
    )
    assert ended.returncode == 2, ended.stderr
    return ended.stdout + ended.stderr


def test_in_one_process_they_are_around_its_serving(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "hooks.py").write_text(HOOKS)
    (tmp_path / "app.env").write_text("FROM_FILE=7\n")
    server = serve("--hooks", "hooks.py", "--env-file", "app.env", source=APP)
    pid = str(server.process.pid)
    assert server.fetch("/").body.decode() == f"{pid} yes"
    server.wait_for("hook ready")
    assert server.stop() == 0
    before, ready, ended = hooks(server)
    assert before == ["before_start", "maitred-hooks", pid, "False", "7"], "before the application is imported"
    assert ready == ["ready", "1", pid, "True"]
    assert ended == ["exit", "1", pid, "0"]
    order = [server.said.index(text) for text in ("hook before_start", "imported by", "hook ready", "hook exit")]
    assert order == sorted(order)


def test_with_workers_the_supervisor_calls_them_and_has_no_application(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "hooks.py").write_text(HOOKS)
    # A module this time, so that it would be found as `app` in sys.modules.
    server = serve(*TWO, "--hooks", "hooks", source=APP)
    server.wait_for("all workers are ready")
    server.wait_for("(?s)hook ready.*hook ready")
    supervisor = str(server.process.pid)
    assert server.fetch("/").body.decode().split()[1] == "yes", "workers have what before_start has set"
    assert server.stop() == 0
    before, *others = hooks(server)
    assert before == ["before_start", "maitred-hooks", supervisor, "False", "None"]
    assert server.said.index("hook before_start") < server.said.index("imported by")
    ready = sorted(call[1:3] for call in others if call[0] == "ready")
    ended = sorted(call[1:] for call in others if call[0] == "exit")
    assert [worker for worker, _ in ready] == ["1", "2"]
    assert all(call[3] == "False" for call in others if call[0] == "ready"), "the supervisor imports no application"
    assert ended == [[*worker, "0"] for worker in ready]
    assert sorted(re.findall(r"imported by (\d+)", server.said)) == sorted(pid for _, pid in ready)


def test_what_hooks_see_of_an_env_file_binds_no_later_worker(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "hooks.py").write_text(HOOKS)
    (tmp_path / "app.env").write_text("FROM_FILE=7\n")
    source = APP.replace("'PREPARED'", "'FROM_FILE'")
    server = serve(*TWO, "--hooks", "hooks.py", "--env-file", "app.env", source=source)
    server.wait_for("all workers are ready")
    assert server.fetch("/").body.split()[1] == b"7"
    (tmp_path / "app.env").write_text("FROM_FILE=8\n")
    server.process.send_signal(signal.SIGHUP)
    server.wait_for("(?s)(hook exit.*){2}")
    assert server.fetch("/").body.split()[1] == b"8"
    assert hooks(server)[0][4] == "7"


def test_the_end_of_a_killed_worker_and_its_successor_are_told(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "hooks.py").write_text(HOOKS)
    server = serve(*TWO, "--hooks", "hooks.py", source=APP)
    server.wait_for("(?s)hook ready.*hook ready")
    _, worker, pid, _ = hooks(server)[1]
    position = len(server.said)
    os.kill(int(pid), signal.SIGKILL)
    server.wait_for(rf"hook exit {worker} {pid} -9\n", position)
    successor = server.wait_for(rf"hook ready {worker} (\d+)", position)[1]
    assert successor != pid
    assert server.stop() == 0
    assert f"hook exit {worker} {successor} 0\n" in server.said, "what comes at the end is waited for"


def test_a_worker_that_never_was_ready_ends_too(tmp_path: Path) -> None:
    said = refused(tmp_path, HOOKS, *TWO, app="raise SystemExit(7)\n")
    assert "hook ready" not in said
    # The other one may have been ended, or have come as far.
    assert "2" in re.findall(r"hook exit [12] \d+ (-?\d+)", said), said


def test_a_new_program_is_not_a_start(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "hooks.py").write_text(HOOKS)
    server = serve(*TWO, "--hooks", "hooks.py", source=APP)
    server.wait_for("all workers are ready")
    server.process.send_signal(signal.SIGUSR2)
    new = int(server.wait_for(r"a new program starts as process (\d+)")[1])
    try:
        server.process.wait(PATIENCE)
        server.wait_for("(?s)(hook ready.*){4}")
        calls = [call[0] for call in hooks(server)]
        assert calls.count("before_start") == 1, "what the new one's workers use has not been prepared under the old ones"
    finally:
        os.kill(new, signal.SIGTERM)
    server.wait_for("(?s)(hook exit.*){4}")


@pytest.mark.parametrize("arguments", [(), TWO])
def test_an_exception_before_the_start_ends_it(arguments: tuple[str, ...], tmp_path: Path) -> None:
    said = refused(tmp_path, "def before_start():\n    raise ValueError('no folder')\n", *arguments)
    assert "imported by" not in said
    assert 'hooks.py", line 2, in before_start' in said
    last = said.splitlines()[-1]
    assert last == (
        "maitred: hooks.py: before_start: it raised ValueError: no folder; see the traceback above"
    ), said


@pytest.mark.parametrize("arguments", [(), TWO])
def test_other_exceptions_are_told_and_end_nothing(arguments: tuple[str, ...], serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "hooks.py").write_text(
        "def worker_ready(worker, pid):\n    raise RuntimeError(f'not {worker}')\n"
        "def worker_exit(worker, pid, code):\n    raise SystemExit(9)\n"
    )
    server = serve(*arguments, "--hooks", "hooks.py", source=APP)
    server.wait_for(r"error.* worker_ready in hooks.py raised an exception\n(?s:.*)RuntimeError: not [12]")
    if arguments:
        server.wait_for("all workers are ready")
    assert server.fetch("/").status == 200
    assert server.stop() == 0
    server.wait_for(r"worker_exit in hooks.py raised an exception\n(?s:.*)SystemExit: 9")


def test_a_hook_that_hangs_delays_no_supervision(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "hooks.py").write_text(
        HOOKS + "\ndef worker_exit(worker, pid, code):\n    _say('hangs', pid)\n    threading.Event().wait()\n"
    )
    server = serve(*TWO, "--hooks", "hooks.py", source=APP)
    server.wait_for("(?s)hook ready.*hook ready")
    for _ in range(2):
        pid = int(server.fetch("/").body.split()[0])
        position = len(server.said)
        os.kill(pid, signal.SIGKILL)
        server.wait_for(r"worker \d is ready", position)
        assert server.fetch("/").status == 200
    assert server.stop() == 0
    assert server.said.count("hook hangs") == 1, "one after the other"
    assert "hooks.py: hooks have not ended within 2 s: they are cut off" in server.said


def test_a_hook_that_hangs_at_the_end_of_the_only_process_is_cut_off(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "hooks.py").write_text("import threading\ndef worker_exit(*_):\n    threading.Event().wait()\n")
    server = serve("--hooks", "hooks.py", source=APP)
    assert server.stop() == 0
    assert "hooks.py: hooks have not ended within 2 s: they are cut off" in server.said


def test_a_start_that_hangs_can_be_interrupted(tmp_path: Path) -> None:
    (tmp_path / "hooks.py").write_text(
        "import os, threading\ndef before_start():\n    os.write(1, b'hangs\\n')\n    threading.Event().wait()\n"
    )
    (tmp_path / "app.py").write_text(APP)
    command = [MAITRED, "app.py", "--listen", "127.0.0.1:0", "--hooks", "hooks.py"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, cwd=tmp_path, env=environment_for({}), text=True, **pipes) as process:
        try:
            assert process.stdout is not None and process.stdout.readline() == "hangs\n"
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=PATIENCE)
        finally:
            process.kill()
    assert process.returncode == 2
    assert said == "maitred: hooks.py: before_start: interrupted; it must run to its end\n"


def test_what_another_server_uses_is_not_prepared_anew(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "hooks.py").write_text(HOOKS)
    server = serve("--hooks", "hooks.py", source=APP)
    for workers in ("1", "2"):
        command = [MAITRED, "app.py", "--listen", f"127.0.0.1:{server.port}", "--hooks", "hooks.py", "--workers", workers]
        second = subprocess.run(
            command, cwd=tmp_path, env=environment_for({}), capture_output=True, text=True, timeout=PATIENCE
        )
        assert second.returncode == 2 and "is in use by" in second.stderr
        assert "before_start" not in second.stdout


@pytest.mark.parametrize(
    ("source", "line"),
    [
        (
            "def worker_exited(worker, pid, code): pass\n",
            "hooks.py has worker_exited, which is no hook: it would never be called; did you mean worker_exit?",
        ),
        (
            "def before_start(): pass\ndef on_worker_ready(worker, pid): pass\n",
            "hooks.py has on_worker_ready, which is no hook: it would never be called; did you mean worker_ready?",
        ),
        ("def clean(): pass\n", "hooks.py has neither before_start, worker_ready nor worker_exit; define one"),
        (
            "def worker_exit(pid): pass\n",
            "worker_exit in hooks.py cannot be called as worker_exit(worker, pid, code); give it these parameters",
        ),
        ("async def before_start(): pass\n", "before_start in hooks.py is a coroutine function; a hook is a plain"),
        ("before_start = 7\n", "before_start in hooks.py is not callable, it is int; define before_start()"),
        ("import nothing_of_this_name\n", "importing hooks.py failed: ModuleNotFoundError: No module named"),
    ],
)
def test_a_module_that_cannot_be_meant_is_refused(source: str, line: str, tmp_path: Path) -> None:
    said = refused(tmp_path, source)
    assert said.splitlines()[-1].startswith(f"maitred: --hooks: {line}"), said


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("hook.py", "there is no file hook.py; did you mean hooks.py?"),
        ("hook", "did you mean hooks?"),
        ("hooks:before_start", "'hooks:before_start' is no module; write module or path/to/file.py"),
    ],
)
def test_a_module_that_is_not_there_is_named(name: str, line: str, tmp_path: Path) -> None:
    assert line in refused(tmp_path, HOOKS, name=name).splitlines()[-1]


def test_helpers_and_imported_functions_are_no_misspelled_hooks(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "others.py").write_text("def worker_exited(): pass\n")
    (tmp_path / "hooks.py").write_text(
        "from others import worker_exited\nimport others\ndef _worker_exited(): pass\ndef clean(): pass\n" + HOOKS
    )
    server = serve("--hooks", "hooks.py", source=APP)
    server.wait_for("hook ready")
