"""The command: start, errors of the user's making, signals and the end."""

from __future__ import annotations

import http.client
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import MAITRED, PATIENCE, Serve, environment_for, open_files
from test_slow_readers import until

HELLO = """
def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"hello"]
"""

# Says "inside" and stays there until somebody opens the FIFO for writing.
WAITING = """
import os, sys
os.mkfifo("leave")

def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    print("inside", file=sys.stderr, flush=True)
    open("leave").close()
    return [b"left"]
"""


def run(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [MAITRED, *arguments],
        cwd=folder,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )


@pytest.mark.parametrize("target", ["app", "app:app", "app.py", "./app.py:app", "{folder}/app.py"])
def test_every_way_to_name_the_application(serve: Serve, tmp_path: Path, target: str) -> None:
    (tmp_path / "app.py").write_text(HELLO)
    server = serve(target.format(folder=tmp_path))
    assert server.fetch("/").body == b"hello"
    assert server.stop() == 0, server.said


def test_python_dash_m_and_version(tmp_path: Path) -> None:
    expected = f"(Python {sys.version_info.major}.{sys.version_info.minor}.{sys.version_info.micro})"
    module = [sys.executable, "-m", "maitred", "--version"]
    for command in ([MAITRED, "--version"], module):
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE)
        assert done.returncode == 0, done.stderr
        assert re.fullmatch(r"maitred \d+\.\d+\.\d+ .*\n", done.stdout)
        assert expected in done.stdout


def test_a_validated_application_is_served_as_wsgi(serve: Serve) -> None:
    source = HELLO + "from wsgiref.validate import validator\napp = validator(app)\n"
    assert serve(source=source).fetch("/").body == b"hello"


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["ap"], ["no module named 'ap'", "did you mean app?"]),
        (["ap.py"], ["there is no file ap.py"]),
        (["app:aap"], ["app has no attribute 'aap'", "did you mean app:app?"]),
        (["app:number"], ["app:number is not callable, it is int"]),
        (["app", "--interface", "asgi"], ["app:app cannot be called with (scope, receive, send)"]),
        (["app", "--loop", "uvlop"], ["'uvlop' is neither auto, asyncio, uvloop nor", "did you mean 'uvloop'?"]),
        (["app:asynchronous", "--loop", "nowhere:new"], ["the loop nowhere:new cannot be found"]),
        (["app:asynchronous", "--loop", "app:HELLO"], ["the loop app:HELLO cannot be found"]),
        (["app", "--min-thread", "1"], ["--min-threads"]),
        (["app", "--pool", "a,max-thread=2"], ["unknown key 'max-thread'", "did you mean 'max-threads'?"]),
    ],
)
def test_errors_are_one_line_with_the_remedy(tmp_path: Path, arguments: list[str], parts: list[str]) -> None:
    (tmp_path / "app.py").write_text(HELLO + "number = 7\nasync def asynchronous(scope, receive, send): pass\n")
    done = run(tmp_path, *arguments, "--listen", "127.0.0.1:0")
    assert (done.returncode, done.stdout) == (2, "")
    # A slow machine is told after a second that the import goes on.
    lines = [line for line in done.stderr.splitlines() if not line.startswith("importing app")]
    assert len(lines) == 1, done.stderr
    for part in parts:
        assert part in done.stderr


def test_a_bad_key_of_a_pool_names_file_line_and_the_nearest(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(HELLO)
    (tmp_path / "maitred.toml").write_text('[pool.reports]\nmatch = "/report/*"\nmax_threads = 2\n')
    done = run(tmp_path, "app", "--listen", "127.0.0.1:0")
    assert (done.returncode, done.stdout) == (2, "")
    where = "maitred.toml:3: unknown key 'max_threads' in [pool.reports]"
    assert done.stderr == f"maitred: {where}; did you mean 'max-threads'?\n"


@pytest.mark.parametrize("interface", ["auto", "asgi"])
def test_an_asgi_application_is_refused_pools(tmp_path: Path, interface: str) -> None:
    (tmp_path / "app.py").write_text("async def app(scope, receive, send): pass\n")
    done = run(tmp_path, "app", "--interface", interface, "--pool", "a,path=/a", "--listen", "127.0.0.1:0")
    assert done.returncode == 2
    line = done.stderr.splitlines()[-1]
    assert line.startswith("maitred: --pool a: ")
    assert "an ASGI application runs on one event loop; leave the pools out" in line


def test_an_exception_during_the_import_is_shown_before_the_line(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("def setup():\n    raise ValueError('no configuration')\nsetup()\n")
    done = run(tmp_path, "app", "--listen", "127.0.0.1:0")
    assert done.returncode == 2
    *traceback, line = done.stderr.splitlines()
    assert traceback[0].endswith("app raised an exception")
    assert traceback[1] == "  Traceback (most recent call last):"
    assert any("in setup" in part for part in traceback)
    assert "importing app failed: ValueError: no configuration" in line


def test_a_port_in_use_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(HELLO)
    with socket.create_server(("127.0.0.1", 0)) as holder:
        address = f"127.0.0.1:{holder.getsockname()[1]}"
        done = run(tmp_path, "app", "--listen", address)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1, done.stderr
    assert address in done.stderr


def test_a_handler_that_wants_to_exit_changes_nothing_for_an_accepted_request(
    serve: Serve, tmp_path: Path
) -> None:
    source = WAITING + "import signal\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(7))\n"
    server = serve(source=source)
    accepted = server.connect()
    accepted.request("GET", "/")
    server.wait_for("inside")
    start = len(server.said)
    server.process.send_signal(signal.SIGTERM)
    server.wait_for("(?i)drain", start)
    (tmp_path / "leave").write_text("")
    assert accepted.getresponse().read() == b"left"
    assert server.process.wait(PATIENCE) == 0, server.said
    accepted.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_drains_and_ends_with_0(serve: Serve, tmp_path: Path, number: signal.Signals) -> None:
    server = serve(source=WAITING)
    accepted = server.connect()
    accepted.request("GET", "/enter")
    server.wait_for("inside")
    start = len(server.said)
    server.process.send_signal(number)
    server.wait_for("(?i)drain", start)
    assert server.process.poll() is None, "it waits for the request"
    (tmp_path / "leave").write_text("")
    # The accepted request is answered although the signal came before.
    response = accepted.getresponse()
    assert (response.status, response.read()) == (200, b"left")
    assert server.process.wait(PATIENCE) == 0, server.said
    accepted.close()


def test_a_second_signal_ends_at_once_with_a_thread_in_the_application(serve: Serve) -> None:
    server = serve(source=WAITING)
    accepted = server.connect()
    accepted.request("GET", "/enter")
    server.wait_for("inside")
    start = len(server.said)
    server.process.send_signal(signal.SIGTERM)
    server.wait_for("(?i)drain", start)
    assert server.stop() == 128 + signal.SIGTERM
    assert "ended with threads still in the application" in server.said
    accepted.close()


def test_what_the_application_installed_for_a_signal_is_called_too(serve: Serve) -> None:
    source = HELLO + (
        # print() must not be called again by a signal while it writes.
        "import os, signal\n"
        "def cleanup(number, frame): os.write(1, b'cleanup %d\\n' % number)\n"
        "signal.signal(signal.SIGTERM, cleanup)\n"
        "signal.signal(signal.SIGUSR1, lambda number, frame: os.write(1, b'user signal\\n'))\n"
    )
    server = serve(source=source)
    server.process.send_signal(signal.SIGUSR1)
    server.wait_for("user signal")
    assert server.fetch("/").body == b"hello"
    assert server.stop() == 0, server.said
    assert f"cleanup {signal.SIGTERM.value}" in server.said, server.said


@pytest.mark.parametrize("name, said", [("SIGUSR1", "the log files are opened anew"), ("SIGUSR2", "nothing happens")])
def test_a_signal_that_comes_during_the_import_waits_until_the_server_serves(serve: Serve, name: str, said: str) -> None:
    server = serve(source=f"import os, signal\nos.kill(os.getpid(), signal.{name})\n" + HELLO)
    server.wait_for(f"{name}: {said}")
    assert server.fetch("/").body == b"hello"
    assert server.stop() == 0, server.said


@pytest.mark.parametrize("closed", [(0, 1, 2), (2,), (0,), (0, 1)])
def test_what_is_printed_reaches_no_file_of_the_server_without_standard_streams(tmp_path: Path, closed: tuple[int, ...]) -> None:
    (tmp_path / "app.py").write_text("print('printed', flush=True)\n" + HELLO)
    arguments = ["app.py", "--listen", "127.0.0.1:0", "--pid-file", "pid"]
    redirections = [f"{number}>&-" for number in closed]
    command = f"exec {MAITRED} {' '.join(arguments)} {' '.join(redirections)}"
    # What is open stays so: nobody reads it.
    server = subprocess.Popen(["sh", "-c", command], cwd=tmp_path, env=environment_for({}), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until("it serves", lambda: server.poll() is not None or (tmp_path / "pid").exists() and (tmp_path / "pid").read_text() != "")
        assert server.poll() is None
        links = open_files(server.pid)
        assert {links[number] for number in closed} == {"/dev/null"}
    finally:
        server.terminate()
    assert server.wait(PATIENCE) == 0


def test_the_end_of_the_process_is_python_s_own(serve: Serve) -> None:
    source = HELLO + "import atexit\natexit.register(print, 'at exit', flush=True)\n"
    server = serve(source=source)
    assert server.fetch("/").body == b"hello"
    assert server.stop() == 0
    assert "at exit" in server.said


def test_more_threads_are_made_up_to_the_limit(serve: Serve) -> None:
    source = """
import threading
everybody = threading.Barrier(6)

def app(environ, start_response):
    everybody.wait(30)
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [threading.current_thread().name.encode()]
"""
    server = serve("--min-threads", "1", "--max-threads", "6", source=source)
    connections = [server.connect() for _ in range(6)]
    for connection in connections:
        connection.request("GET", "/")
    names = {connection.getresponse().read() for connection in connections}
    assert len(names) == 6
    for connection in connections:
        connection.close()
    assert server.stop() == 0, server.said


def test_a_thread_keeps_its_thread_local_values(serve: Serve) -> None:
    source = """
import threading
local = threading.local()

def app(environ, start_response):
    local.count = getattr(local, "count", 0) + 1
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [str(local.count).encode()]
"""
    server = serve("--max-threads", "1", source=source)
    assert [server.fetch("/").body for _ in range(3)] == [b"1", b"2", b"3"]


def test_nobody_reads_the_log_and_service_goes_on(tmp_path: Path) -> None:
    # More than a pipe holds (64 KiB): whoever waits for the reader waits for ever.
    source = HELLO + """
def noisy(environ, start_response):
    environ["wsgi.errors"].writelines(["x" * 99 + "\\n"] * 5000)
    return app(environ, start_response)
"""
    (tmp_path / "app.py").write_text(source)
    with subprocess.Popen(
        [MAITRED, "app:noisy", "--max-threads", "1", "--listen", "127.0.0.1:0"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
    ) as process:
        try:
            assert process.stderr is not None
            found = None
            while found is None:
                found = re.search(rb"127\.0\.0\.1:([1-9]\d*)", process.stderr.readline())
            for _ in range(3):
                connection = http.client.HTTPConnection("127.0.0.1", int(found[1]), timeout=PATIENCE)
                connection.request("GET", "/")
                assert connection.getresponse().read() == b"hello"
                connection.close()
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE) == 0
        finally:
            process.kill()


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("filter", ["[[filter]]", "  basic-auth\n", "  set-response\n"]),
        ("host", ['[host."NAME"]', "  names\n", "  tls-cert\n"]),
        ("pools", ["[pool.NAME]", "  match\n", "  max-threads\n"]),
    ],
)
def test_help_has_the_tables_of_the_file(name: str, keys: list[str]) -> None:
    done = subprocess.run([MAITRED, "help", name], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0 and all(key in done.stdout for key in keys), done.stdout + done.stderr


def test_help_suggests_a_table(tmp_path: Path) -> None:
    done = subprocess.run([MAITRED, "help", "filtr"], capture_output=True, text=True, timeout=PATIENCE)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "maitred: help: there is no option, command or table 'filtr'; did you mean 'maitred help filter'?\n"
