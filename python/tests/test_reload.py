"""SIGHUP: the configuration is read again while the server serves."""

from __future__ import annotations

import signal
import threading
from pathlib import Path

from conftest import PATIENCE, Serve, Server

APP = """
import threading

def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [threading.current_thread().name.encode()]
"""

TOGETHER = """
import threading
everybody = threading.Barrier(4)

def app(environ, start_response):
    everybody.wait(30)
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"together"]
"""

FILE = """
metrics-path = "/metrics"
max-threads = 8

[pool.reports]
max-threads = 2
match = "/report/*"
"""


def change(server: Server, folder: Path, file: str, *said: str) -> None:
    """Has the server read the file, and waits until it has said all of this."""
    (folder / "maitred.toml").write_text(file)
    start = len(server.said)
    server.process.send_signal(signal.SIGHUP)
    for line in said:
        server.wait_for(line, start)


def figure(server: Server, name: str, pool: str) -> int:
    metrics = server.fetch("/metrics").body.decode()
    start = f'maitred_pool_{name}{{pool="{pool}"}} '
    return next(int(line.removeprefix(start)) for line in metrics.splitlines() if line.startswith(start))


def test_limits_and_rules_are_changed(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "maitred.toml").write_text(FILE)
    server = serve(source=APP)
    assert (figure(server, "threads_max", "default"), figure(server, "threads_max", "reports")) == (8, 2)
    assert server.fetch("/report/1").body.startswith(b"maitred-reports-")
    file = FILE.replace("= 8", "= 5").replace("= 2", "= 4\nmin-threads = 3").replace("/report/", "/export/")
    change(
        server,
        tmp_path,
        file,
        "info SIGHUP: the configuration has been read again",
        "info pool default: max-threads 8 -> 5",
        "info pool reports: min-threads 0 -> 3",
        "info pool reports: max-threads 2 -> 4",
        r'info pool reports: match \["/report/\*"\] -> \["/export/\*"\]',
    )
    assert (figure(server, "threads_max", "default"), figure(server, "threads_max", "reports")) == (5, 4)
    assert figure(server, "threads", "reports") == 3
    assert not server.fetch("/report/1").body.startswith(b"maitred-reports-")
    assert server.fetch("/export/1").body.startswith(b"maitred-reports-")
    change(server, tmp_path, file.replace("= 5", "= five"), r"error SIGHUP: .*: maitred\.toml:3: ")
    change(server, tmp_path, file.replace("= 5", "= 6\nkeep-alive = 9"), "restart applies it: keep-alive")
    assert figure(server, "threads_max", "default") == 6
    assert server.stop() == 0, server.said


def test_more_threads_run_requests_that_already_wait(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "maitred.toml").write_text("max-threads = 2\n")
    server = serve(source=TOGETHER)
    peers = [server.connect() for _ in range(4)]
    for peer in peers:
        peer.request("GET", "/")
    change(server, tmp_path, "max-threads = 4\n", "max-threads 2 -> 4")
    for peer in peers:
        assert peer.getresponse().read() == b"together"
        peer.close()


def test_an_application_with_one_thread_is_given_no_second_one(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "maitred.toml").write_text("max-threads = 1\n")
    server = serve(source="def app(environ, start_response):\n"
                   "    start_response('200 OK', [('Content-Type', 'text/plain')])\n"
                   "    return [str(environ['wsgi.multithread']).encode()]\n")
    change(server, tmp_path, "max-threads = 4\n", "only a restart applies it: max-threads")
    assert server.fetch("/").body == b"False"


def test_a_handler_of_the_application_is_called_too(serve: Serve, tmp_path: Path) -> None:
    source = APP + (
        "import signal\n"
        "signal.signal(signal.SIGHUP, lambda number, frame: print('hung up', number, flush=True))\n"
    )
    server = serve(source=source)
    change(server, tmp_path, "queue = 5\n", "pool default: queue 1000 -> 5", "hung up 1")
    assert server.fetch("/").status == 200
    assert server.stop() == 0, server.said


def test_an_asgi_application_keeps_its_loop(serve_asgi: Serve, tmp_path: Path) -> None:
    source = """
async def app(scope, receive, send):
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"hello"})
"""
    server = serve_asgi(source=source)
    change(server, tmp_path, "max-threads = 5\nmin-threads = 3\nrequest-timeout = 20\n", "request-timeout 0 -> 20")
    assert server.fetch("/").body == b"hello"
    change(server, tmp_path, FILE, r"error SIGHUP: .*an ASGI application runs on one event loop")
    assert server.fetch("/").body == b"hello"
    assert server.stop() == 0, server.said


def test_requests_are_answered_while_limits_change(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "maitred.toml").write_text(FILE)
    server = serve(source=APP)
    done = threading.Event()
    answered: list[int] = []

    def ask(path: str) -> None:
        peer = server.connect()
        count = 0
        while not done.is_set():
            peer.request("GET", path)
            response = peer.getresponse()
            if (response.status, response.read()[:8]) != (200, b"maitred-"):
                return
            count += 1
        peer.close()
        answered.append(count)

    clients = [threading.Thread(target=ask, args=(path,)) for path in ["/", "/report/1"] * 3]
    for client in clients:
        client.start()
    try:
        for turn in range(10):
            before, after = ([8, 2], [2, 1])[:: 1 if turn % 2 == 0 else -1]
            change(
                server,
                tmp_path,
                FILE.replace("= 2", f"= {after[1]}").replace("= 8", f"= {after[0]}"),
                f"pool default: max-threads {before[0]} -> {after[0]}",
                f"pool reports: max-threads {before[1]} -> {after[1]}",
            )
    finally:
        done.set()
        for client in clients:
            client.join(PATIENCE)
    assert len(answered) == len(clients) and min(answered) > 0, (answered, server.said)
    assert server.stop() == 0, server.said
