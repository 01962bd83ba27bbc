"""Workers that are forked from a process that has imported the application: what they share, what they do not, and what is refused."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import time
from pathlib import Path

import pytest
from conftest import MAITRED, PATIENCE, Serve, Server, environment_for, open_files

APP = """
import gc, os
print(f"imported by {os.getpid()}", flush=True)
def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [f"{os.getpid()} {os.getppid()} {gc.isenabled()} {os.getcwd()}".encode()]
"""

PRELOAD = ("--workers", "2", "--preload")


def template(server: Server, start: int = 0) -> int:
    return int(server.wait_for(r"workers are forked from process (\d+)", start)[1])


def workers(server: Server) -> list[int]:
    """The processes that serve."""
    server.wait_for("all workers are ready")
    children = Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children").read_text().split()
    return [int(child) for child in children if int(child) != template(server)]


def imports(server: Server) -> list[int]:
    return [int(pid) for pid in re.findall(r"imported by (\d+)", server.said)]


def sockets(pid: int) -> set[str]:
    return {link for link in open_files(pid).values() if link.startswith("socket:")}


def ended(pid: int) -> bool:
    """Whether the process ends; it is gone, or its end is waited for."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], PATIENCE)[0])
    finally:
        os.close(descriptor)


def refused(folder: Path, source: str, *arguments: str, code: int = 2) -> str:
    """What a server says that ends at its start with this exit code."""
    (folder / "app.py").write_text(source)
    command = [MAITRED, "app.py", "--listen", "127.0.0.1:0", *PRELOAD, *arguments]
    ended = subprocess.run(
        command, cwd=folder, env=environment_for({}), capture_output=True, text=True, timeout=PATIENCE
    )
    assert ended.returncode == code, ended.stdout + ended.stderr
    return ended.stdout + ended.stderr


def test_the_application_is_imported_once(serve: Serve) -> None:
    server = serve(*PRELOAD, source=APP)
    first = workers(server)
    assert len(first) == 2 and template(server) not in first
    assert imports(server) == [template(server)]
    pid, parent, collects, _ = server.fetch("/").body.decode().split()
    assert int(pid) in first and int(parent) == server.process.pid and collects == "True"
    position = len(server.said)
    os.kill(first[0], signal.SIGKILL)
    server.wait_for(r"worker \d was killed by SIGKILL", position)
    server.wait_for(r"worker \d is ready", position)
    assert imports(server) == [template(server)], "nor by the successor"
    forks = Path(f"/proc/{template(server)}/task/{template(server)}/children").read_text()
    assert forks == "", "workers are the supervisor's, and nobody else is left"
    assert server.stop() == 0
    assert all(map(ended, (*first, template(server))))


def test_workers_share_no_socket_but_the_listener(serve: Serve) -> None:
    server = serve(*PRELOAD, source=APP)
    one, other = workers(server)
    assert len(sockets(one) & sockets(other)) == 1
    assert not sockets(template(server)) & sockets(one), "which the template does not have"


def test_sighup_imports_anew(serve: Serve) -> None:
    server = serve(*PRELOAD, source=APP)
    before, old = workers(server), template(server)
    position = len(server.said)
    server.process.send_signal(signal.SIGHUP)
    new = template(server, position)
    server.wait_for(r"(?s)(worker \d is ready.*){2}", position)
    assert imports(server) == [old, new]
    assert ended(old)
    assert server.fetch("/").status == 200
    assert server.stop() == 0
    assert all(map(ended, (*before, old, new)))


def test_a_new_application_that_cannot_be_imported_changes_nothing(serve: Serve, tmp_path: Path) -> None:
    server = serve(*PRELOAD, source=APP)
    before = sorted(workers(server))
    (tmp_path / "app.py").write_text("import nothing_of_this_name\n")
    server.process.send_signal(signal.SIGHUP)
    server.wait_for("the successor of worker 1 could not start: app.py: importing app.py failed: ModuleNotFoundError")
    assert int(server.fetch("/").body.split()[0]) in before
    assert server.stop() == 0


def test_workers_outlive_the_template_and_the_next_one_has_a_new_one(serve: Serve) -> None:
    server = serve(*PRELOAD, source=APP)
    first, old = workers(server), template(server)
    position = len(server.said)
    os.kill(old, signal.SIGKILL)
    server.wait_for("the process that preloads was killed by signal 9; the next worker has a new one", position)
    assert int(server.fetch("/").body.split()[0]) in first
    os.kill(first[0], signal.SIGKILL)
    assert template(server, position) != old
    server.wait_for(r"worker \d is ready", position)
    assert server.stop() == 0


def test_hooks_are_told_of_forked_workers(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "hooks.py").write_text(
        "import os\ndef worker_exit(*told):\n    os.write(1, f'hook {told}\\n'.encode())\n"
    )
    server = serve(*PRELOAD, "--hooks", "hooks.py", source=APP)
    pid = workers(server)[0]
    os.kill(pid, signal.SIGKILL)
    server.wait_for(rf"hook \([12], {pid}, -9\)")


def test_orphans_of_the_application_are_taken_in_and_forgotten(serve: Serve) -> None:
    source = APP + """
import subprocess
_app = app
def app(environ, start_response):
    if environ["PATH_INFO"] == "/orphan":
        start_response("200 OK", [("Content-Type", "text/plain")])
        # The shell ends, and what it has started becomes a child of the supervisor.
        return [subprocess.run("sleep 0.1 >&- 2>&- & echo $!", shell=True, capture_output=True).stdout]
    return _app(environ, start_response)
"""
    server = serve(*PRELOAD, source=source)
    workers(server)
    pid = int(server.fetch("/orphan").body)
    assert ended(pid)
    deadline = time.monotonic() + PATIENCE
    while Path(f"/proc/{pid}").exists():
        assert time.monotonic() < deadline, "nobody has waited for it"
        time.sleep(0.05)


def test_a_supervisor_that_is_killed_leaves_nobody(serve: Serve) -> None:
    server = serve(*PRELOAD, source=APP)
    own = [os.pidfd_open(pid) for pid in (*workers(server), template(server))]
    server.process.kill()
    for descriptor in own:
        assert select.select([descriptor], [], [], PATIENCE)[0], "it has ended"
        os.close(descriptor)


@pytest.mark.parametrize(
    ("source", "names"),
    [
        (
            "threading.Thread(target=threading.Event().wait, name='reporter', daemon=True).start()",
            "reporter",
        ),
        (
            "import _thread\nlock = _thread.allocate_lock()\nlock.acquire()\n_thread.start_new_thread(lock.acquire, ())",
            r"\S+ \(not of threading\)",
        ),
    ],
)
def test_an_application_that_starts_threads_is_refused(source: str, names: str, tmp_path: Path) -> None:
    said = refused(tmp_path, f"import threading\n{source}\n{APP}")
    assert re.search(
        "the application has started threads while it was imported, and a fork would not have them: "
        f"{names}; start them with the first request or in the lifespan, or leave preload out",
        said,
    ), said


def test_a_connection_that_is_opened_by_the_import_is_a_warning(serve: Serve) -> None:
    server = serve(*PRELOAD, source="import socket\nopened = socket.socketpair()\n" + APP)
    workers(server)
    warning = "maitred: warning: the application has opened 2 sockets while it was imported, and all workers share what"
    assert server.said.count(warning) == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_stop_while_the_application_is_imported_ends_at_once(number: signal.Signals, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(
        "import os, threading\nos.write(1, f'{os.getpid()}\\n'.encode())\nthreading.Event().wait()\n"
    )
    command = [MAITRED, "app.py", "--listen", "127.0.0.1:0", *PRELOAD]
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment_for({}), text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        try:
            assert process.stdout is not None
            descriptor = os.pidfd_open(int(process.stdout.readline()))
            process.send_signal(number)
            process.communicate(timeout=PATIENCE)
        finally:
            process.kill()
    assert process.returncode == (0 if number == signal.SIGTERM else -signal.SIGKILL)
    assert select.select([descriptor], [], [], PATIENCE)[0], "the template has ended"
    os.close(descriptor)


def test_an_application_that_cannot_be_imported_ends_the_start(tmp_path: Path) -> None:
    said = refused(tmp_path, "def f():\n    raise ValueError('no')\nf()\n")
    assert 'app.py", line 2, in f' in said
    assert "app.py: importing app.py failed: ValueError: no; see the traceback above" in said


def test_an_import_that_hangs_is_ended(tmp_path: Path) -> None:
    source = "import os, threading\nprint('imports', os.getpid(), flush=True)\nthreading.Event().wait()\n"
    said = refused(tmp_path, source, "--start-timeout", "3", code=1)
    assert "was not ready within 3 s (start-timeout) and was killed" in said
    pids = [int(pid) for pid in re.findall(r"imports (\d+)", said)]
    assert pids and all(map(ended, pids))


def test_the_lifespan_is_of_each_worker(serve_asgi: Serve) -> None:
    source = """
import os
print(f"imported by {os.getpid()}", flush=True)
async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        while True:
            kind = (await receive())["type"]
            os.write(1, f"{kind} {os.getpid()}\\n".encode())
            await send({"type": kind + ".complete"})
            if kind == "lifespan.shutdown":
                return
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": str(os.getpid()).encode()})
"""
    server = serve_asgi(*PRELOAD, source=source)
    own = sorted(workers(server))
    assert imports(server) == [template(server)]
    assert int(server.fetch("/").body) in own
    assert server.stop() == 0
    for kind in ("startup", "shutdown"):
        assert sorted(map(int, re.findall(rf"lifespan.{kind} (\d+)", server.said))) == own


def test_what_is_registered_for_the_end_is_run_by_workers_only(serve: Serve) -> None:
    source = APP + "import atexit\natexit.register(lambda: os.write(1, f'ends {os.getpid()}\\n'.encode()))\n"
    server = serve(*PRELOAD, source=source)
    own = sorted(workers(server))
    assert server.stop() == 0
    assert sorted(map(int, re.findall(r"ends (\d+)", server.said))) == own


def test_several_applications_and_their_folder(serve_asgi: Serve, tmp_path: Path) -> None:
    (tmp_path / "site" / "deep").mkdir(parents=True)
    (tmp_path / "site" / "main.py").write_text("import os\nos.chdir('deep')\n" + APP)
    (tmp_path / "site" / "more.py").write_text(
        "async def app(scope, receive, send):\n"
        "    if scope['type'] == 'lifespan': raise RuntimeError\n"
        "    await send({'type': 'http.response.start', 'status': 200, 'headers': []})\n"
        "    await send({'type': 'http.response.body', 'body': b'more'})\n"
    )
    server = serve_asgi("--chdir", "site", "main:app", "--mount", "/more=more:app", *PRELOAD)
    workers(server)
    assert server.fetch("/more").body == b"more"
    assert server.fetch("/").body.decode().split()[3] == str(tmp_path / "site" / "deep")
    assert server.stop() == 0
