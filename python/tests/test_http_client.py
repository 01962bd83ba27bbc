"""The clients of maitred.http against raw servers: each test for a thread's client and for that of an event loop."""

from __future__ import annotations

import asyncio
import gzip
import io
import json
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from answering import answering, ok
from calling import Calls, calls
from conftest import PATIENCE

import maitred.http as http
from maitred._engine import HttpFailure, HttpOrigin, HttpPool

__all__ = ["calls"]

#: Shorter than any answer that a test lets come.
AT_ONCE = 0.05


# ---- Requests ----


def test_a_response_has_status_fields_and_body(calls: Calls) -> None:
    fields = (b"X-One: 1", b"x-one: 2", b"Content-Type: text/plain; charset=iso-8859-1", b"Set-Cookie: a=1", b"Set-Cookie: b=2")
    with answering(ok(b"caf\xe9", *fields, status=b"203 So and so")) as server:
        response = calls.one("GET", f"{server.url}/path?a=b c#fragment", headers={"X-Own": "7"})
        assert (response.status, response.status_code, response.reason, response.http_version) == (203, 203, "So and so", "HTTP/1.1")
        assert response.headers["X-ONE"] == "1, 2"
        assert response.headers.get_all("set-cookie") == ["a=1", "b=2"]
        assert response.raw_headers[:2] == [(b"X-One", b"1"), (b"x-one", b"2")]
        assert (response.content, response.text) == (b"caf\xe9", "café")
        assert response.is_success and response.raise_for_status() is response
        assert response.timings["reused"] is False and response.timings["received"]
        head = server.requests[0]
        assert head.startswith(b"GET /path?a=b%%20c HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n" % server.port)
        assert b"\r\nX-Own: 7\r\n" in head and b"\r\nUser-Agent: maitred/" in head


def test_bodies_of_requests(calls: Calls, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"of a file")
    with answering(ok()) as server, open(tmp_path / "file", "rb") as file:

        def steps() -> Any:
            for options in (
                {"json": {"a": ["é", None]}},
                {"json": None},
                {"data": {"a": "b c", "d": [1, True]}},
                {"content": "tëxt"},
                {"content": bytearray(b"bytes")},
                {"content": file},
                {"content": io.BytesIO(b"in memory")},
                {"content": [b"one", b"", memoryview(b"two")]},
                {},
            ):
                response = yield ("POST", server.url, options)
                assert response.content == b"ok", response

        calls.run(steps)
        bodies = [request.partition(b"\r\n\r\n") for request in server.requests]
        assert [body for _, _, body in bodies] == [
            '{"a":["é",null]}'.encode(), b"null", b"a=b+c&d=1&d=true", "tëxt".encode(), b"bytes", b"of a file", b"in memory", b"onetwo", b""
        ]  # fmt: skip
        assert b"Content-Type: application/json" in bodies[0][0]
        assert b"Content-Type: application/x-www-form-urlencoded" in bodies[2][0]
        assert b"Content-Length: 9" in bodies[5][0] and b"Transfer-Encoding: chunked" in bodies[6][0]
        assert b"Content-Length: 0" in bodies[8][0]
        assert server.connections == 1


def test_settings_of_a_client_are_those_of_its_calls(calls: Calls) -> None:
    client = {"headers": {"Accept": "text/html", "X-A": "1"}, "params": {"key": "k"}, "auth": ("user", "pass")}
    with answering(ok()) as server:
        client["base_url"] = server.url + "/v1/"
        calls.one("get", "/users", client=client, headers={"x-a": "2"}, params={"n": None, "of": 3})
        head = server.requests[0]
        assert head.startswith(b"GET /v1/users?key=k&of=3 HTTP/1.1")
        assert b"\r\nAuthorization: Basic dXNlcjpwYXNz\r\n" in head
        assert b"\r\nAccept: text/html\r\n" in head and b"\r\nx-a: 2\r\n" in head and b"X-A" not in head


def test_a_relative_url_stays_below_the_base(calls: Calls) -> None:
    with answering(ok()) as server:
        calls.one("GET", "/go?to=http://other.example/", client={"base_url": server.url + "/v1"})
        assert server.requests[0].startswith(b"GET /v1/go?to=http://other.example/ HTTP/1.1\r\n")
        calls.one("GET", server.url + "/absolute", client={"base_url": "http://127.0.0.1:1/v1"})
        assert server.requests[1].startswith(b"GET /absolute ")
    for base in ("http://host/?a=b", "http://host/#a"):
        with pytest.raises(http.InvalidRequest, match="params="):
            calls.one("GET", "/", client={"base_url": base})


def test_what_cannot_be_sent_is_an_error(calls: Calls) -> None:
    for url in ("/relative", "ftp://host/", "http://", "http://host:port/", "http://host:0/", "http://host/\ud800"):
        with pytest.raises(http.InvalidRequest):
            calls.one("GET", url)
    with answering(ok()) as server:
        with pytest.raises(ValueError, match="line break|CR, LF"):
            calls.one("GET", server.url, headers={"X": "a\r\nB: c"})
        for options in ({"headers": {"X": "\0"}}, {"headers": {"a b": "1"}}, {"headers": {"X": "\u20ac"}}, {"params": b"\xff"}):
            with pytest.raises(http.InvalidRequest):
                calls.one("GET", server.url, **options)
        with pytest.raises(http.InvalidRequest):
            calls.one("TRACE", server.url, content=b"x")
        with pytest.raises(TypeError):
            calls.one("POST", server.url, content=b"x", json=1)
        assert server.requests == []


def test_an_exception_of_the_body_is_the_calls(calls: Calls) -> None:
    def parts(error: Exception) -> Any:
        yield b"one"
        raise error

    with answering(ok()) as server:
        for error in (KeyError("mine"), ValueError("mine")):
            with pytest.raises(type(error), match="mine") as raised:
                calls.one("POST", server.url, content=parts(error))
            assert raised.value is error
        with pytest.raises(TypeError, match="type int"):
            calls.one("POST", server.url, content=[1])


# ---- Failures ----


def test_failures_have_names(calls: Calls) -> None:
    def refused() -> int:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            return int(listener.getsockname()[1])

    with answering(b"") as short, pytest.raises(http.ProtocolError) as found:
        short.answers[0] = lambda connection: connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort")
        calls.one("GET", short.url)
    assert found.value.origin == short.url and found.value.phase == "read"
    with answering(b"SSH-2.0-x\r\n\r\n") as other, pytest.raises(http.ProtocolError):
        calls.one("GET", other.url)
    with pytest.raises(http.ConnectError) as refusal:
        calls.one("GET", f"http://127.0.0.1:{refused()}/")
    assert refusal.value.phase == "connect" and type(refusal.value) is http.ConnectError
    with answering(ok()) as own, pytest.raises(http.NotAllowed):
        calls.one("GET", own.url, client={"allow": "public"})
    with answering(ok()) as own:
        assert calls.one("GET", own.url, client={"allow": ["127.0.0.0/8"]}).status == 200
    with socket.create_server(("127.0.0.1", 0)) as plain:

        def speak() -> None:
            connection, _ = plain.accept()
            with connection:
                connection.sendall(ok(b"no TLS here"))
                connection.recv(65536)

        thread = threading.Thread(target=speak)
        thread.start()
        with pytest.raises(http.TLSError):
            calls.one("GET", f"https://127.0.0.1:{plain.getsockname()[1]}/")
        thread.join()
    with answering(ok(status=b"404 Not Found")) as missing:
        response = calls.one("GET", missing.url)
        with pytest.raises(http.StatusError, match="404 Not Found") as status:
            response.raise_for_status()
        assert status.value.response is response


def test_time_limits_have_names(calls: Calls) -> None:
    def part(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort")
        server.wait(connection)

    with answering(lambda connection: server.wait(connection)) as server:
        for timeout, expected in (
            (http.Timeout(PATIENCE, first_byte=AT_ONCE), http.ReadTimeout),
            (http.Timeout(PATIENCE, total=AT_ONCE), http.TotalTimeout),
        ):
            with pytest.raises(expected):
                calls.one("GET", server.url, timeout=timeout)
    with answering(part) as server, pytest.raises(http.ReadTimeout):
        calls.one("GET", server.url, timeout=http.Timeout(PATIENCE, progress=AT_ONCE))
    with pytest.raises(ValueError):
        http.Timeout(-1)
    with pytest.raises(ValueError):
        http.Timeout(total=float("nan"))
    assert issubclass(http.PoolTimeout, http.TimeoutException) and http.Timeout.of(3) == http.Timeout(3)


def test_connections_are_used_again_unless_they_are_stale(calls: Calls) -> None:
    def and_closes(connection: socket.socket) -> None:
        connection.sendall(ok(b"last"))

    with answering(ok(b"1"), ok(b"2"), and_closes, ok(b"4")) as server:

        def steps() -> Any:
            texts, reused = [], []
            for _ in range(4):
                response = yield ("GET", server.url, {})
                texts.append(response.text)
                reused.append(response.timings["reused"])
            return texts, reused

        texts, reused = calls.run(steps)
        assert texts == ["1", "2", "last", "4"] and reused[:3] == [False, True, True]
        assert server.connections == 2


# ---- Streams ----


def test_a_stream_decodes_no_more_than_is_asked_for() -> None:
    data = os.urandom(100_000)
    with answering(ok(gzip.compress(data), b"Content-Encoding: gzip")) as server, http.Client(trust_env=False) as client:
        with client.stream("GET", server.url) as response:
            parts = list(response.iter_bytes(1000))
            assert b"".join(parts) == data and max(map(len, parts)) <= 1000
        with client.stream("GET", server.url) as response:
            assert gzip.decompress(b"".join(response.iter_raw())) == data
        with client.stream("GET", server.url) as response:
            with pytest.raises(http.Closed):
                _ = response.content
            assert response.read() == response.content == data
            assert list(response.iter_bytes(60_000)) == [data[:60_000], data[60_000:]]
        assert client._settings.pool.used == 0

        async def go() -> bytes:
            async with http.AsyncClient(trust_env=False) as client, client.stream("GET", server.url) as response:
                return b"".join([part async for part in response.aiter_bytes(1000)])

        assert asyncio.run(go()) == data


def test_trailers_stand_behind_the_body() -> None:
    answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nX-Sum: 7\r\n\r\n"
    with answering(answer) as server, http.Client(trust_env=False) as client:
        assert client.get(server.url).trailers["x-sum"] == "7"


# ---- A response that is not read to its end ----


def test_a_dropped_response_gives_its_connection_back(calls: Calls) -> None:
    with answering(ok(b"x" * 1_000_000)) as server:
        pool = HttpPool(per_host=1)
        origin = HttpOrigin("http", "127.0.0.1", server.port)
        limits = (AT_ONCE, None, None, PATIENCE, PATIENCE, None)
        for _ in range(3):
            if calls.is_async:

                async def go() -> Any:
                    return await pool.send_async(origin, "GET", b"/", [], None, limits)

                response = asyncio.run(go())
            else:
                response = pool.send(origin, "GET", b"/", [], None, limits)
            assert response.status == 200
            del response
            assert (pool.used, pool.idle) == (0, 0)


def test_a_full_pool_names_the_holders() -> None:
    with answering(ok(b"x" * 1_000_000)) as server, http.Client(limits=http.Limits(per_host=1), trust_env=False) as client:
        with client.stream("GET", server.url), pytest.raises(http.PoolTimeout, match="1 of 1 connections"):
            client.get(server.url, timeout=http.Timeout(PATIENCE, pool=AT_ONCE))
        with client.stream("GET", server.url):
            pass


def test_a_closed_response_cannot_be_read() -> None:
    with answering(ok(b"x" * 1_000_000)) as server, http.Client(trust_env=False) as client:
        with client.stream("GET", server.url) as response:
            pass
        with pytest.raises(http.Closed):
            response.read()
        client.close()
        with pytest.raises(http.Closed):
            client.get(server.url)


# ---- Processes, threads, signals ----


def test_threads_share_a_client() -> None:
    with answering(ok()) as server, http.Client(trust_env=False, limits=http.Limits(per_host=4)) as client:
        results: list[int] = []

        def work() -> None:
            for _ in range(20):
                results.append(client.get(server.url).status)

        threads = [threading.Thread(target=work) for _ in range(8)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        assert results == [200] * 160 and server.connections <= 4
        assert client._settings.pool.used == 0


def test_a_client_made_before_a_fork_works_in_the_child() -> None:
    with answering(ok()) as server, http.Client(trust_env=False) as client:
        assert client.get(server.url).status == 200
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.write(writing, json.dumps([client.get(server.url).status, client._settings.pool.idle]).encode())
            finally:
                os._exit(0)
        os.close(writing)
        with open(reading, "rb") as file:
            assert json.loads(file.read()) == [200, 1]
        os.waitpid(child, 0)
        assert client.get(server.url).timings["reused"] is True
        assert server.connections == 2


INTERRUPTED = """
import sys, signal, threading, maitred.http as http
client = http.Client(trust_env=False, limits=http.Limits(per_host=1))
def on_alarm(*_): raise KeyboardInterrupt
signal.signal(signal.SIGALRM, on_alarm)
url = sys.argv[1]
try:
    if sys.argv[2] == "slot":
        with client.stream("GET", url + "/part"):
            signal.setitimer(signal.ITIMER_REAL, 0.1)
            client.get(url)
    else:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        client.get(url)
except KeyboardInterrupt:
    print("interrupted", client._settings.pool.used)
"""


@pytest.mark.parametrize("place", ["head", "slot"])
def test_a_signal_interrupts_a_call(place: str) -> None:
    with answering(lambda connection: server.wait(connection)) as server:
        if place == "slot":
            server.answers.insert(0, b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort")
        command = [sys.executable, "-c", INTERRUPTED, server.url, place]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
        assert (ended.stdout, ended.stderr) == ("interrupted 0\n", "")


def test_module_functions_and_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "_client", None)
    with answering(ok(b"proxied")) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        monkeypatch.delenv("REQUEST_METHOD", raising=False)
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        assert http.get("http://shop.example/a?b").text == "proxied"
        assert proxy.requests[0].startswith(b"GET http://shop.example/a?b HTTP/1.1\r\nHost: shop.example\r\n")
        assert http.post(proxy.url, json=1).text == "proxied"
        assert proxy.requests[1].startswith(b"POST / ")


def test_a_unix_socket_and_a_wrong_one(tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()

    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(65536)
            connection.sendall(ok(b"by a socket", b"Connection: close"))

    thread = threading.Thread(target=serve)
    thread.start()
    with http.Client(socket=path) as client:
        assert client.get("http://localhost/").text == "by a socket"
    thread.join()
    listener.close()
    with http.Client(socket=path + "-missing") as client, pytest.raises(http.ConnectError):
        client.get("http://localhost/")


def test_failures_of_the_engine_tell_kind_phase_and_origin() -> None:
    failure = HttpFailure("text", "timeout", "slot", "http://a:1")
    assert (str(failure), failure.kind, failure.phase, failure.origin) == ("text", "timeout", "slot", "http://a:1")
    for wrong in (("gopher", "a", 1), ("http", "ü", 1), ("http", "", 1), ("http", "a b", 1), ("http", "a", 0)):
        with pytest.raises(ValueError):
            HttpOrigin(*wrong)
    for options in ({"allow": "private"}, {"proxy": "socks5://a"}, {"allow": ["10.0.0.0/99"]}):
        with pytest.raises(ValueError):
            HttpOrigin("http", "a", 1, **options)
