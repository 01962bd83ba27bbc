"""A server in operation: other people's clients, many connections, signals under load, exhausted resources.

Figures (milliseconds, seconds of CPU) are printed, ``pytest -s`` shows them; what is asserted about time is far above them.
"""

from __future__ import annotations

import http.client
import os
import re
import resource
import select
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import secured
from conftest import PATIENCE, Serve, Server
from operation_clients import (
    Crowd,
    allow_descriptors,
    announced_port,
    connect,
    launched,
    processor_seconds,
    read_response,
    request,
    run_client,
)

LONG = "MAITRED_LONG" in os.environ
long = pytest.mark.skipif(not LONG, reason="MAITRED_LONG is not set")
DEMO = Path(__file__).resolve().parents[2] / "examples" / "demo"
KIB = bytes(range(256)) * 4

APP = """
import os, time

def app(environ, start_response):
    path = environ["PATH_INFO"]
    start_response("200 OK", [("Content-Type", "text/plain")])
    if path == "/stream":
        return (b"%d" % number * 1000 for number in range(5))
    if path == "/big":
        return [b"x" * 50_000_000]
    if path == "/sleep":
        print("asleep", file=environ["wsgi.errors"], flush=True)
        time.sleep(3)
    return [b"hello"]
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    folder.mkdir()
    (folder / "kib").write_bytes(KIB)
    (folder / "large").write_bytes(KIB * 1024)
    return folder


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("demo")
    arguments = [str(DEMO / "app.py"), "--static", f"/static={DEMO / 'static'}"]
    server = Server(arguments, folder, {"DEMO_DATABASE": str(folder / "guests.sqlite3")})
    try:
        yield server
        assert server.stop() == 0, server.said
    finally:
        server.kill()


# Clients of others.


@pytest.mark.parametrize("path", ["/", "/static/demo.css"])
class TestCurl:
    def test_two_urls_share_a_connection(self, demo: Server, path: str) -> None:
        url = f"{secured.SCHEME}://127.0.0.1:{demo.port}{path}"
        done = run_client("curl", "-sS", "-o", "/dev/null", "-o", "/dev/null", "-w", "%{http_code} %{num_connects}\n", url, url)
        assert (done.returncode, done.stdout, done.stderr) == (0, "200 1\n200 0\n", "")

    def test_http_1_0_ends_the_connection(self, demo: Server, path: str) -> None:
        done = run_client("curl", "-sSi", "--http1.0", f"{secured.SCHEME}://127.0.0.1:{demo.port}{path}")
        assert done.returncode == 0, done.stderr
        assert re.match(r"HTTP/1\.1 200 OK\r?\n", done.stdout)
        assert re.search(r"(?i)^connection: close\r?$", done.stdout, re.MULTILINE)
        assert done.stdout.endswith(demo.fetch(path).body.decode())

    def test_head_says_what_get_would_send(self, demo: Server, path: str) -> None:
        done = run_client("curl", "-sSI", f"{secured.SCHEME}://127.0.0.1:{demo.port}{path}")
        assert done.returncode == 0, done.stderr
        assert f"content-length: {len(demo.fetch(path).body)}\n" in done.stdout.replace("\r", "").lower()


def test_curl_range(demo: Server) -> None:
    done = run_client("curl", "-sS", "-r", "3-12", "-w", "|%{http_code}", f"{secured.SCHEME}://127.0.0.1:{demo.port}/static/demo.css")
    assert (done.returncode, done.stdout) == (0, (DEMO / "static/demo.css").read_text()[3:13] + "|206")


def test_curl_upload_waits_for_100_continue(demo: Server, tmp_path: Path) -> None:
    (tmp_path / "upload").write_bytes(KIB * 2048)
    fields = ["-H", "Expect: 100-continue", "--expect100-timeout", str(PATIENCE)]
    url = f"{secured.SCHEME}://127.0.0.1:{demo.port}/upload"
    done = run_client("curl", "-sSv", *fields, "--data-binary", f"@{tmp_path / 'upload'}", url)
    assert done.returncode == 0, done.stderr
    assert "2,097,152 bytes" in done.stdout
    # By TLS curl takes HTTP/2, which has no reasons.
    assert re.findall(r"^< HTTP/\S+ (\d+)", done.stderr, re.MULTILINE) == ["100", "200"]


@pytest.mark.parametrize("path", ["/", "/static/demo.css"])
def test_h2load_over_http_1(demo: Server, path: str) -> None:
    for pipelined in ("1", "8"):
        url = f"{secured.SCHEME}://127.0.0.1:{demo.port}{path}"
        done = run_client("h2load", "--h1", "-n", "2000", "-c", "20", "-m", pipelined, url)
        assert done.returncode == 0, done.stderr
        assert "2000 succeeded, 0 failed, 0 errored, 0 timeout" in done.stdout
        assert "status codes: 2000 2xx" in done.stdout


PIPELINED = """
init = function(args)
  local requests = {}
  for i = 1, 16 do requests[i] = wrk.format("GET", %r) end
  batch = table.concat(requests)
end
request = function() return batch end
"""


@pytest.mark.parametrize("path", ["/", "/static/demo.css"])
@pytest.mark.parametrize("pipelined", [False, True], ids=["plain", "pipelined"])
def test_wrk(demo: Server, tmp_path: Path, path: str, pipelined: bool) -> None:
    (tmp_path / "pipelined.lua").write_text(PIPELINED % path)
    script = ["-s", tmp_path / "pipelined.lua"] if pipelined else []
    check_wrk(run_client("wrk", "-t1", "-c32", "-d1s", *script, f"{secured.SCHEME}://127.0.0.1:{demo.port}{path}"))


def check_wrk(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, done.stderr
    rate = re.search(r"Requests/sec: +([0-9.]+)", done.stdout)
    assert rate and float(rate[1]) > 0, done.stdout
    assert "Socket errors" not in done.stdout and "Non-2xx" not in done.stdout, done.stdout
    print(f"\nwrk: {rate[1]} requests/s")


def test_http_client_loads_the_demo_over_one_connection(demo: Server) -> None:
    connection = demo.connect()
    connection.connect()
    first = connection.sock
    paths = ["/", "/guestbook", "/static/demo.js", "/static/cloche.svg", "/nothing", "/download"]
    for path in paths:
        connection.request("GET", path)
        response = connection.getresponse()
        body = response.read()
        assert response.status == (404 if path == "/nothing" else 200)
        assert len(body) == int(response.headers.get("Content-Length", len(body)))
        assert connection.sock is first, f"closed after {path}"
    connection.close()


# Many connections.


def test_ten_thousand_idle_connections(serve: Serve, root: Path) -> None:
    allow_descriptors(10_500)
    server = serve(str(root))
    ask = request("/kib")
    with ExitStack() as idle:
        peers = [idle.enter_context(connect(server.port)) for _ in range(10_000)]
        for peer in peers:
            peer.sendall(ask)
        for peer in peers:
            assert read_response(peer).endswith(KIB)
        started = time.perf_counter()
        assert server.fetch("/kib").body == KIB
        print(f"\na request beside 10,000 idle connections: {milliseconds(started):.1f} ms")
        for peer in peers[::100]:
            peer.sendall(ask)
            assert read_response(peer).endswith(KIB)
    assert server.stop() == 0, server.said


@pytest.mark.parametrize("path", ["/static/kib", "/hello"])
def test_four_thousand_active_connections(serve: Serve, root: Path, path: str) -> None:
    allow_descriptors(4_500)
    server = serve("--static", f"/static={root}", source=APP)
    crowd = Crowd(server.port, [request(path)])
    started = time.perf_counter()
    crowd.run(4_096, rounds=2)
    print(f"\n{crowd.answers} answers on 4,096 connections in {milliseconds(started):.0f} ms")
    assert crowd.faults == []
    assert crowd.statuses == {b"200": 2 * 4_096}
    if LONG:
        check_wrk(run_client("wrk", "-t1", "-c4096", "-d2s", "--timeout", "20s", f"{secured.SCHEME}://127.0.0.1:{server.port}{path}"))


# Signals.


#: Connections, and what is asked for. By TLS the client, one thread of Python, opens 64 answers of a MiB in more than the 300 ms that a
#: server which ends waits for the next request behind an answer that has left.
EVERY = ["/static/kib", "/hello", "/stream", "/static/large"]
CROWDS = [(64, EVERY[:3]), (8, EVERY)] if secured.WANTED else [(64, EVERY)]


@pytest.mark.parametrize("turn", range(5))
@pytest.mark.parametrize(("connections", "paths"), CROWDS)
def test_sigterm_under_load_cuts_no_request(serve: Serve, root: Path, connections: int, paths: list[str], turn: int) -> None:
    server = serve("--static", f"/static={root}", source=APP)

    def signal_amid(answers: int) -> None:
        if answers == 1_000 + 137 * turn:
            server.process.send_signal(signal.SIGTERM)

    crowd = Crowd(server.port, [request(path) for path in paths], signal_amid)
    crowd.run(connections)
    assert crowd.faults == []
    assert crowd.statuses == {b"200": crowd.answers}
    assert crowd.answers > 1_000
    assert server.process.wait(PATIENCE) == 0, server.said


def test_a_second_signal_ends_at_once(serve: Serve) -> None:
    server = serve(source=APP)
    with connect(server.port) as peer:
        peer.sendall(request("/sleep"))
        server.wait_for("asleep")
        server.process.send_signal(signal.SIGTERM)
        server.wait_for("draining")
        started = time.perf_counter()
        assert server.stop() == 128 + signal.SIGTERM
        print(f"\nended {milliseconds(started):.0f} ms after the second signal")
        assert milliseconds(started) < 2_000


# Resources that are exhausted.


@pytest.mark.parametrize("cached", [True, False], ids=["cached", "opened"])
def test_without_descriptors_the_others_wait_and_nothing_spins(serve: Serve, root: Path, cached: bool) -> None:
    """200 connections at a limit of 100; connections must not take the descriptors that files are opened with."""
    # A file of a moment ago may change again within the clock's resolution: it is not cached, the demo's are.
    folder, name = (DEMO / "static", "demo.css") if cached else (root, "kib")
    body = (folder / name).read_bytes()
    server = serve(str(folder))
    assert server.fetch(f"/{name}").body == body
    resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (100, 100))
    ask = request(f"/{name}")
    with ExitStack() as stack:
        peers = [stack.enter_context(connect(server.port)) for _ in range(200)]
        for peer in peers:
            peer.sendall(ask)
        server.wait_for("cannot accept")
        for peer in peers[:50]:
            check_served(peer, body)
            # Who is idle is closed after a second, to make room: these are not.
            peer.sendall(ask[:-2])
        used, before = processor_seconds(server.process.pid), len(server.said)
        # Not to wait for anything: the interval the CPU is measured in.
        time.sleep(1)
        used = processor_seconds(server.process.pid) - used
        print(f"\nCPU in 1 s of exhaustion: {1000 * used:.0f} ms")
        assert used < 0.1
        assert server.said.count("cannot accept", before) <= 2, server.said
        for peer in peers[:50]:
            peer.sendall(ask[-2:])
            check_served(peer, body)
            peer.close()
        # As many as have left are taken, and so on until all were served.
        for peer in peers[50:]:
            check_served(peer, body)
            peer.close()
    assert server.fetch(f"/{name}").body == body
    assert server.stop() == 0, server.said


def check_served(peer: socket.socket, body: bytes) -> None:
    answer = read_response(peer)
    assert answer.endswith(body), answer[:80]


def fetch_many(port: int, count: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    for _ in range(count):
        connection.request("GET", "/kib")
        assert connection.getresponse().read() == KIB
    connection.close()


def test_standard_output_is_a_closed_pipe(root: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with launched(str(root), "--access-log", "-", folder=root, stdout=writer, stderr=subprocess.PIPE) as process:
        os.close(writer)
        assert process.stderr
        fetch_many(announced_port(process.stderr), 1_000)
        process.terminate()
        assert process.wait(PATIENCE) == 0


def test_standard_output_and_error_are_a_pipe_that_nobody_reads(root: Path) -> None:
    reader, writer = os.pipe()
    with launched(str(root), "--access-log", "-", folder=root, stdout=writer, stderr=writer) as process:
        os.close(writer)
        with open(reader, "rb", buffering=0) as unread:
            port = announced_port(unread)
            # A line has 60 bytes at least: four times what a pipe holds (64 KiB).
            fetch_many(port, 4_000)
            # The error log has lines to write too.
            for _ in range(100):
                with connect(port) as peer:
                    peer.sendall(b"no request\r\n\r\n")
                    assert read_response(peer).startswith(b"HTTP/1.1 400 ")
            started = time.perf_counter()
            process.terminate()
            assert process.wait(PATIENCE) == 0
            print(f"\nended {milliseconds(started):.0f} ms after SIGTERM")


# Application threads that are all taken.


def test_every_application_thread_asleep(serve: Serve, root: Path) -> None:
    server = serve("--static", f"/static={root}", "--max-threads", "3", "--head-timeout", "0.2", source=APP)
    with ExitStack() as stack:
        sleepers = [stack.enter_context(connect(server.port)) for _ in range(5)]
        for peer in sleepers:
            peer.sendall(request("/sleep"))
        server.wait_for(r"(?s)(asleep.*){3}")
        for name in ("static file", "static file again", "400", "static file of 1 MiB"):
            took = timed(server, name)
            print(f"\n{name}: {took:.1f} ms")
            assert took < 1_000
        with connect(server.port) as peer:
            peer.sendall(b"GET / HTTP/1.1\r\n")
            started = time.perf_counter()
            assert read_response(peer).startswith(b"HTTP/1.1 408 ")
            took = milliseconds(started) - 200
            print(f"\n408: {took:.1f} ms after the head timeout")
            assert took < 1_000
        assert server.said.count("asleep") == 3, "the threads are not all asleep any more"
        # The two that found no thread are run afterwards.
        for peer in sleepers:
            assert read_response(peer).startswith(b"HTTP/1.1 200 ")
    assert server.stop() == 0, server.said


def timed(server: Server, name: str) -> float:
    """The milliseconds one answer took."""
    started = time.perf_counter()
    if name == "400":
        assert server.raw(b"GET / HTTP/1.1\r\nHost : x\r\n\r\n").startswith(b"HTTP/1.1 400 ")
    elif name.endswith("MiB"):
        assert server.fetch("/static/large").body == KIB * 1024
    else:
        assert server.fetch("/static/kib").body == KIB
    return milliseconds(started)


def test_slow_readers_hold_no_thread(serve: Serve) -> None:
    server = serve("--max-threads", "2", source=APP)
    with ExitStack() as stack:
        for _ in range(4):
            peer = stack.enter_context(connect(server.port, receive_buffer=4096))
            peer.sendall(request("/big"))
            # The answer has begun; nothing more of it is read.
            assert peer.recv(16, socket.MSG_WAITALL).startswith(b"HTTP/1.1 200")
        started = time.perf_counter()
        assert server.fetch("/hello").body == b"hello"
        print(f"\nbeside four slow readers: {milliseconds(started):.1f} ms")
        assert milliseconds(started) < 1_000


def test_a_peer_that_has_ended_its_side_gets_every_answer(serve: Serve, root: Path) -> None:
    """As `printf … | nc -N` sends: pipelined requests, then the end; the answers are read later."""
    body = KIB * 7
    (root / "file").write_bytes(body)
    server = serve(str(root))
    answered = {}
    # The socket buffers hold some MB: for some of these counts the last answers do not fit into what is left of them.
    for count in range(1_500_000 // len(body), 4_000_000 // len(body), 11):
        with connect(server.port, receive_buffer=4096) as peer:
            peer.sendall(request("/file") * count)
            peer.shutdown(socket.SHUT_WR)
            # The server gets to the end of the requests before anything is read.
            assert server.fetch("/kib").status == 200
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2**20)
            received = b"".join(iter(lambda: peer.recv(2**18), b""))
            answered[count] = received.count(b"HTTP/1.1 200 OK\r\n") - (not received.endswith(body))
    assert {asked: answers for asked, answers in answered.items() if answers != asked} == {}


def test_bytes_from_a_peer_that_takes_nothing_do_not_put_off_the_send_timeout(serve: Serve) -> None:
    server = serve("--body-timeout", "0.5", source=APP)
    with connect(server.port, receive_buffer=4096) as peer:
        peer.sendall(request("/big"))
        assert peer.recv(16, socket.MSG_WAITALL).startswith(b"HTTP/1.1 200")
        closed = select.poll()
        closed.register(peer, 0)
        until = time.monotonic() + 5
        while not closed.poll(100):
            assert time.monotonic() < until, "still open, ten times the timeout after the last byte was taken"
            peer.send(b"x")


def test_what_is_refused_is_refused_before_its_body_is_asked_for(demo: Server) -> None:
    ask = request("/static/demo.css", "Content-Length: 10", "Expect: 100-continue", method="POST")
    with connect(demo.port) as peer:
        peer.sendall(ask)
        assert read_response(peer).startswith(b"HTTP/1.1 405 ")


# Files.


@pytest.fixture(scope="module")
def sparse(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a file of 5 GiB that takes a few blocks: its words are at the start, past 4 GiB, and at the end."""
    folder = tmp_path_factory.mktemp("sparse")
    with open(folder / "file", "wb") as file:
        for position, word in [(0, b"start"), (4 * 2**30 + 10, b"beyond"), (5 * 2**30 - 3, b"end")]:
            file.seek(position)
            file.write(word)
    yield folder
    (folder / "file").unlink()


def test_ranges_past_four_gib(serve: Serve, sparse: Path) -> None:
    server, size, place = serve(str(sparse)), 5 * 2**30, 4 * 2**30 + 10
    head = server.fetch("/file", "HEAD")
    assert (head.status, head.headers["Content-Length"]) == (200, str(size))
    single = server.fetch("/file", Range=f"bytes={place - 1}-{place + 6}")
    assert (single.status, single.body) == (206, b"\0beyond\0")
    assert single.headers["Content-Range"] == f"bytes {place - 1}-{place + 6}/{size}"
    suffix = server.fetch("/file", Range="bytes=-4")
    assert (suffix.status, suffix.body) == (206, b"\0end")
    assert suffix.headers["Content-Range"] == f"bytes {size - 4}-{size - 1}/{size}"
    open_end = server.fetch("/file", Range=f"bytes={size - 3}-")
    assert (open_end.status, open_end.body) == (206, b"end")
    several = server.fetch("/file", Range=f"bytes=0-4,{place}-{place + 5},-3")
    assert several.status == 206
    for first, word in [(0, b"start"), (place, b"beyond"), (size - 3, b"end")]:
        part = f"Content-Range: bytes {first}-{first + len(word) - 1}/{size}\r\n\r\n".encode() + word + b"\r\n--"
        assert part.lower() in several.body.lower()
    beyond = server.fetch("/file", Range=f"bytes={size}-")
    assert (beyond.status, beyond.headers["Content-Range"]) == (416, f"bytes */{size}")


PART = f"Range: bytes={2**32 - 2**27}-{2**32 + 2**27 - 1}"


@pytest.mark.parametrize(("fields", "length"), [([PART], 2**28), pytest.param([], 5 * 2**30, marks=long)], ids=["part", "whole"])
def test_what_is_sent_goes_on_past_four_gib(serve: Serve, sparse: Path, fields: list[str], length: int) -> None:
    server = serve(str(sparse))
    with connect(server.port) as peer:
        peer.sendall(request("/file", "Connection: close", *fields))
        head = peer.recv(4096, socket.MSG_PEEK)
        missing = head.index(b"\r\n\r\n") + 4 + length
        assert f"\r\nContent-Length: {length}\r\n".encode() in head
        started = time.perf_counter()
        # The kernel drops what it would have copied into the buffer.
        unused = bytearray(2**26)
        while count := peer.recv_into(unused, 0, socket.MSG_TRUNC):
            missing -= count
    print(f"\n{length / 2**30} GiB in {milliseconds(started) / 1000:.1f} s")
    assert missing == 0


def test_a_file_truncated_while_it_is_sent_ends_its_connection_only(serve: Serve, root: Path) -> None:
    file = root / "shrinking"
    file.write_bytes(KIB * 20 * 1024)
    server = serve(str(root))
    with connect(server.port) as other, connect(server.port, receive_buffer=4096) as peer:
        other.sendall(request("/kib"))
        assert read_response(other).endswith(KIB)
        peer.sendall(request("/shrinking"))
        received = len(peer.recv(1024))
        os.truncate(file, 1024)
        while part := peer.recv(65536):
            received += len(part)
        assert 1024 <= received < 20 * 2**20
        other.sendall(request("/kib"))
        assert read_response(other).endswith(KIB)
    assert server.fetch("/shrinking").body == KIB
    server.wait_for("shorter")


def test_a_fifo_in_the_root_is_not_served(serve: Serve, root: Path) -> None:
    os.mkfifo(root / "fifo")
    server = serve(str(root), "--max-threads", "1")
    assert server.fetch("/fifo").status == 404
    assert server.fetch("/kib").body == KIB


def milliseconds(since: float) -> float:
    return 1000 * (time.perf_counter() - since)
