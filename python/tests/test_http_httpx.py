"""The transports for httpx and httpx2, blocking and awaitable: the framework's users see no difference but the speed."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import importlib
import os
import socket
import ssl
import struct
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from answering import Answering, answering, chunked, ok
from certificates import Authority, authority, needs_openssl
from conftest import PATIENCE, needs

__all__ = ["authority"]

needs("httpx")
needs("httpx2")

#: Shorter than any answer that a test lets come.
AT_ONCE = 0.05
#: Longer than a head takes to come on a busy machine.
SOON = 1.0


class Calls:
    """A client of one framework, of one form: the calls of a test are the same for both forms."""

    def __init__(self, framework: str, is_async: bool) -> None:
        self.framework: ModuleType = importlib.import_module(framework)
        self.transports: ModuleType = importlib.import_module(f"maitred.http.{framework}")
        self.is_async = is_async

    def transport(self, **named: Any) -> Any:
        return (self.transports.AsyncTransport if self.is_async else self.transports.Transport)(**named)

    def run(self, blocking: Callable[[Any], Any], awaitable: Callable[[Any], Any], transport: Any = None, **named: Any) -> Any:
        """What the test does with a client in its form."""
        transport = self.transport() if transport is None else transport
        named = {"timeout": PATIENCE, **named}
        if not self.is_async:
            with self.framework.Client(transport=transport, **named) as client:
                return blocking(client)

        async def go() -> Any:
            async with self.framework.AsyncClient(transport=transport, **named) as client:
                return await awaitable(client)

        return asyncio.run(go())

    def request(self, url: str, method: str = "GET", *, transport: Any = None, client: dict[str, Any] | None = None, **named: Any) -> Any:
        return self.run(lambda each: each.request(method, url, **named), lambda each: each.request(method, url, **named), transport, **(client or {}))

    def fails(self, kind: str, url: str, method: str = "GET", **named: Any) -> Exception:
        """The exception has this very class, and names its request."""
        with pytest.raises(self.framework.HTTPError) as raised:
            self.request(url, method, **named)
        assert type(raised.value) is getattr(self.framework, kind), repr(raised.value)
        assert raised.value.request.method == method
        return raised.value

    def failing_stream(self, url: str, **named: Any) -> tuple[bytes, Exception]:
        """The bytes that a stream gives before it fails, and its exception."""
        seen: list[bytes] = []

        def blocking(client: Any) -> None:
            with client.stream("GET", url) as response:
                seen.extend(response.iter_raw())

        async def awaitable(client: Any) -> None:
            async with client.stream("GET", url) as response:
                async for part in response.aiter_raw():
                    seen.append(part)

        with pytest.raises(self.framework.HTTPError) as raised:
            self.run(blocking, awaitable, **named)
        return b"".join(seen), raised.value


@pytest.fixture(params=["httpx", "httpx-async", "httpx2", "httpx2-async"])
def calls(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Calls:
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    framework, _, form = request.param.partition("-")
    return Calls(framework, form == "async")


def reset(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


# What comes


def test_fields_keep_order_and_case_and_the_extensions_tell_the_start_line(calls: Calls) -> None:
    with answering(ok(b"body", b"X-Two: 2", b"x-one: 1", b"X-Two: 3", status=b"299 Fine, thanks")) as server:
        response = calls.request(f"{server.url}/a%20b?c=d&e")
    assert response.headers.raw == [(b"X-Two", b"2"), (b"x-one", b"1"), (b"X-Two", b"3"), (b"Content-Length", b"4")]
    assert (response.status_code, response.content) == (299, b"body")
    assert (response.extensions["http_version"], response.extensions["reason_phrase"]) == (b"HTTP/1.1", b"Fine, thanks")
    assert (response.http_version, response.reason_phrase) == ("HTTP/1.1", "Fine, thanks")
    assert server.requests[0].startswith(b"GET /a%20b?c=d&e HTTP/1.1\r\n")
    assert f"\r\nHost: 127.0.0.1:{server.port}\r\n".encode().lower() in server.requests[0].lower()


def test_a_response_is_of_the_framework_and_its_connection_stays_with_the_pool(calls: Calls) -> None:
    with answering(ok()) as server:
        response = calls.request(server.url)
    assert isinstance(response, calls.framework.Response)
    stream = response.extensions["network_stream"]
    assert stream.get_extra_info("socket") is None
    with pytest.raises(calls.framework.UnsupportedProtocol):
        stream.write(b"")


def test_connections_are_used_again(calls: Calls) -> None:
    with answering(ok()) as server:
        def blocking(client: Any) -> None:
            for _ in range(5):
                assert client.get(server.url).text == "ok"

        async def awaitable(client: Any) -> None:
            for _ in range(5):
                assert (await client.get(server.url)).text == "ok"

        calls.run(blocking, awaitable)
        assert (len(server.requests), server.connections) == (5, 1)


def test_what_is_the_framework_s_stays_so(calls: Calls) -> None:
    """Redirects, cookies, decoding and hooks: the transport gives raw bytes."""
    packed = gzip.compress(b"unpacked")
    seen = []
    with answering(ok(b"", b"Location: /next", b"Set-Cookie: a=b", status=b"302 Found"), ok(packed, b"Content-Encoding: gzip")) as server:
        def hook(request: Any) -> None:
            seen.append(request.url.path)

        async def async_hook(request: Any) -> None:
            hook(request)

        hooks = {"request": [async_hook if calls.is_async else hook]}
        response = calls.request(f"{server.url}/first", client={"follow_redirects": True, "event_hooks": hooks})
    assert (response.text, seen) == ("unpacked", ["/first", "/next"])
    assert b"\r\nCookie: a=b\r\n" in server.requests[1]


def test_a_stream_comes_in_parts_as_it_arrives(calls: Calls) -> None:
    goes_on = threading.Event()

    def slowly(connection: socket.socket) -> bytes | None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n")
        if not goes_on.wait(PATIENCE):
            return None
        return b"6\r\nsecond\r\n0\r\n\r\n"

    with answering(slowly) as server:
        def blocking(client: Any) -> list[bytes]:
            with client.stream("GET", server.url) as response:
                return [part for part in response.iter_raw() if goes_on.set() is None]

        async def awaitable(client: Any) -> list[bytes]:
            async with client.stream("GET", server.url) as response:
                return [part async for part in response.aiter_raw() if goes_on.set() is None]

        assert calls.run(blocking, awaitable) == [b"first", b"second"]


# What goes


def test_a_body_goes_with_its_length_or_in_chunks(calls: Calls) -> None:
    def parts() -> Iterator[bytes]:
        yield b"one "
        yield b""
        yield b"two"

    async def async_parts() -> AsyncIterator[bytes]:
        for part in parts():
            yield part

    with answering(ok()) as server:
        calls.request(server.url, "POST", json={"a": 1})
        calls.request(server.url, "POST", content=async_parts() if calls.is_async else parts())
        calls.request(server.url, "POST", files={"file": ("name", b"in a file")})
        calls.request(server.url, "POST")
    json, streamed, multipart, empty = server.requests
    assert json.endswith((b'\r\n\r\n{"a":1}', b'\r\n\r\n{"a": 1}')) and b"\r\ncontent-length: " in json.lower()
    assert streamed.endswith(b"\r\n\r\none two") and b"\r\ntransfer-encoding: chunked\r\n" in streamed.lower()
    assert b"in a file" in multipart
    assert b"\r\ncontent-length: 0\r\n" in empty.lower()


def test_an_exception_of_the_body_is_the_caller_s_own(calls: Calls) -> None:
    def parts() -> Iterator[bytes]:
        yield b"one"
        raise ValueError("own")

    async def async_parts() -> AsyncIterator[bytes]:
        for part in parts():
            yield part

    with answering(ok()) as server, pytest.raises(ValueError, match="own"):
        calls.request(server.url, "POST", content=async_parts() if calls.is_async else parts())


def test_the_host_and_the_target_may_be_others_than_the_url_s(calls: Calls) -> None:
    with answering(ok()) as server:
        calls.request(server.url, "OPTIONS", headers={"Host": "other.example"}, extensions={"target": b"*"})
    assert server.requests[0].startswith(b"OPTIONS * HTTP/1.1\r\n")
    assert server.requests[0].lower().count(b"\r\nhost: ") == 1 and b"\r\nhost: other.example\r\n" in server.requests[0].lower()


def test_a_unix_socket(calls: Calls, tmp_path: Path) -> None:
    path = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(ok(b"by a socket"))

        thread = threading.Thread(target=serve)
        thread.start()
        assert calls.request("http://any.example/", transport=calls.transport(uds=str(path))).text == "by a socket"
        thread.join()


# Exceptions


def test_no_connection(calls: Calls) -> None:
    calls.fails("ConnectError", f"http://127.0.0.1:{closed_port()}/")
    calls.fails("ConnectError", "http://nowhere.invalid/")
    calls.fails("ConnectError", "http://127.0.0.1:123456/")
    calls.fails("UnsupportedProtocol", "ftp://127.0.0.1/")


def test_a_connect_timeout(calls: Calls) -> None:
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        port = full.getsockname()[1]
        # With its backlog full a listener answers no further SYN.
        waiting = [socket.socket() for _ in range(3)]
        for each in waiting:
            each.setblocking(False)
            each.connect_ex(("127.0.0.1", port))
        timeout = calls.framework.Timeout(PATIENCE, connect=AT_ONCE)
        calls.fails("ConnectTimeout", f"http://127.0.0.1:{port}/", client={"timeout": timeout})
        for each in waiting:
            each.close()


def test_a_read_timeout_before_the_head_and_in_the_stream(calls: Calls) -> None:
    timeout = calls.framework.Timeout(PATIENCE, read=AT_ONCE)

    def half(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
        server.wait(connection)

    with answering(lambda connection: server.wait(connection)) as server:
        calls.fails("ReadTimeout", server.url, client={"timeout": timeout})
    with answering(half) as server:
        seen, error = calls.failing_stream(server.url, timeout=calls.framework.Timeout(PATIENCE, read=SOON))
    assert (seen, type(error)) == (b"half", calls.framework.ReadTimeout)
    assert isinstance(error, calls.framework.TimeoutException)


def test_a_write_timeout(calls: Calls) -> None:
    """Reading has no limit here, writing has one."""
    timeout = calls.framework.Timeout(PATIENCE, write=AT_ONCE, read=None)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        # The kernel takes the connection, and no byte is read.
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        calls.fails("WriteTimeout", url, "POST", content=bytes(32 * 1024 * 1024), client={"timeout": timeout})


def test_a_pool_timeout(calls: Calls) -> None:
    framework = calls.framework
    transport = calls.transport(limits=framework.Limits(max_connections=1))
    timeout = framework.Timeout(PATIENCE, pool=AT_ONCE)
    with answering(ok(bytes(1_000_000))) as server:
        def blocking(client: Any) -> None:
            with client.stream("GET", server.url):
                client.get(server.url)

        async def awaitable(client: Any) -> None:
            async with client.stream("GET", server.url):
                await client.get(server.url)

        with pytest.raises(framework.PoolTimeout) as raised:
            calls.run(blocking, awaitable, transport, timeout=timeout)
    assert type(raised.value) is framework.PoolTimeout


def test_without_a_limit_a_pool_has_none(calls: Calls) -> None:
    framework = calls.framework
    timeout = framework.Timeout(PATIENCE, pool=AT_ONCE)
    many = 101
    with answering(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort") as server:
        def blocking(client: Any) -> int:
            with contextlib.ExitStack() as stack:
                return len([stack.enter_context(client.stream("GET", server.url)) for _ in range(many)])

        async def awaitable(client: Any) -> int:
            async with contextlib.AsyncExitStack() as stack:
                return len([await stack.enter_async_context(client.stream("GET", server.url)) for _ in range(many)])

        assert calls.run(blocking, awaitable, calls.transport(limits=framework.Limits(max_connections=None)), timeout=timeout) == many


@pytest.mark.parametrize("answer", [b"SSH-2.0-OpenSSH_9.2\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\nhello", b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n"],
                         ids=["no-http", "bad-length", "bad-field"])
def test_a_response_that_is_none(calls: Calls, answer: bytes) -> None:
    with answering(answer) as server:
        calls.fails("RemoteProtocolError", server.url)


def test_a_server_that_closes_without_a_response(calls: Calls) -> None:
    with answering(lambda connection: None) as server:
        calls.fails("RemoteProtocolError", server.url, "POST")


def test_a_server_that_resets(calls: Calls) -> None:
    with answering(reset) as server:
        calls.fails("ReadError", server.url, "POST")


@pytest.mark.parametrize("start", [b"Content-Length: 10\r\n\r\nhalf", b"Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n"], ids=["length", "chunked"])
def test_a_body_that_ends_early_is_told_while_it_is_read(calls: Calls, start: bytes) -> None:
    def half(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\n" + start)

    with answering(half) as server:
        seen, error = calls.failing_stream(server.url)
    assert (seen, type(error)) == (b"half", calls.framework.RemoteProtocolError)


def test_a_request_that_cannot_be_sent(calls: Calls) -> None:
    with answering(ok()) as server:
        calls.fails("LocalProtocolError", server.url, headers={"X-Bad": "a\r\nb"})
        calls.fails("LocalProtocolError", server.url, headers={"X Bad": "a"})
        calls.fails("LocalProtocolError", server.url, "POST", content=b"four", headers={"Content-Length": "5"})
    assert server.connections == 0 or not any(b"X-Bad" in each for each in server.requests)


# Arguments of the transport


def test_retries_are_for_connecting(calls: Calls) -> None:
    port = closed_port()
    attempts = []

    def count(event: str, info: dict[str, Any]) -> None:
        attempts.append(event)

    calls.fails("ConnectError", f"http://127.0.0.1:{port}/", transport=calls.transport(retries=1))
    with answering(reset) as server:
        calls.fails("ReadError", server.url, "POST", transport=calls.transport(retries=1))
        assert server.connections == 1


@pytest.mark.parametrize("named", [{"http1": False}, {"local_address": "127.0.0.1"}, {"socket_options": [(1, 2, 3)]}],
                         ids=lambda named: next(iter(named)))
def test_what_cannot_be_had_is_refused(calls: Calls, named: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(named))}.*leave it out"):
        calls.transport(**named)


def test_the_trace_tells_what_happens(calls: Calls) -> None:
    events: list[str] = []

    def trace(event: str, info: dict[str, Any]) -> None:
        events.append(event)

    async def async_trace(event: str, info: dict[str, Any]) -> None:
        events.append(event)

    with answering(ok()) as server:
        calls.request(server.url, extensions={"trace": async_trace if calls.is_async else trace})
    assert events == [f"http11.{part}.{end}" for part in ("receive_response_headers", "receive_response_body", "response_closed")
                      for end in ("started", "complete")]
    events.clear()
    calls.fails("ConnectError", f"http://127.0.0.1:{closed_port()}/", extensions={"trace": async_trace if calls.is_async else trace})
    assert events == ["http11.receive_response_headers.started", "http11.receive_response_headers.failed"]


# Proxies


def proxied(calls: Calls, server: Answering, **named: Any) -> Any:
    return calls.request("http://target.example/path?q", **named)


def test_a_proxy_is_an_argument_with_its_credentials(calls: Calls) -> None:
    with answering(ok(b"by the proxy")) as server:
        url = f"http://user:pass%20word@127.0.0.1:{server.port}"
        response = calls.request("http://target.example/path?q", transport=calls.transport(proxy=url))
    assert response.text == "by the proxy"
    assert server.requests[0].startswith(b"GET http://target.example/path?q HTTP/1.1\r\n")
    assert b"\r\nproxy-authorization: basic dxnlcjpwyxnzihdvcmq=\r\n" in server.requests[0].lower()


def test_the_environment_s_proxies_count_with_a_transport_too(calls: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    with answering(ok(b"by the proxy")) as server, answering(ok(b"direct")) as target:
        monkeypatch.setenv("HTTP_PROXY", f"127.0.0.1:{server.port}")
        assert calls.request("http://target.example/").text == "by the proxy"
        assert calls.request(target.url).text == "by the proxy"
        assert calls.request(target.url, transport=calls.transport(trust_env=False)).text == "direct"
        monkeypatch.setenv("NO_PROXY", "other.example, 127.0.0.0/8")
        assert calls.request(target.url).text == "direct"
        monkeypatch.delenv("NO_PROXY")
        # A client of CGI makes HTTP_PROXY of its field Proxy.
        monkeypatch.setenv("REQUEST_METHOD", "GET")
        assert calls.request(target.url).text == "direct"


def test_a_proxy_that_fails(calls: Calls) -> None:
    refusing = b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n"
    with answering(refusing) as server:
        calls.fails("ProxyError", "https://target.example/", transport=calls.transport(proxy=f"http://127.0.0.1:{server.port}"))
    with pytest.raises(ValueError, match="socks5"):
        calls.transport(proxy="socks5://127.0.0.1:1080")
    with pytest.raises(ValueError, match="port 0"):
        calls.transport(proxy="http://127.0.0.1:0")


# TLS


@pytest.fixture
def secure(authority: Authority) -> Iterator[Answering]:
    pair = authority.issue("127.0.0.1", "server.example")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.certificate, pair.key)
    names = []
    context.sni_callback = lambda connection, name, _: names.append(name)
    with answering(ok(b"by TLS"), tls=context) as server:
        server.names = names  # type: ignore[attr-defined]
        yield server


@needs_openssl
def test_certificates_are_verified(calls: Calls, authority: Authority, secure: Answering, monkeypatch: pytest.MonkeyPatch) -> None:
    calls.fails("ConnectError", secure.url)
    good: list[Any] = [str(authority.file), ssl.create_default_context(cafile=authority.file), False]
    for verify in good:
        assert calls.request(secure.url, transport=calls.transport(verify=verify)).text == "by TLS"
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))
    assert calls.request(secure.url).text == "by TLS"
    unnamed = secure.url.replace("127.0.0.1", "localhost")
    calls.fails("ConnectError", unnamed)
    named = {"extensions": {"sni_hostname": "server.example"}}
    assert calls.request(unnamed, **named).text == "by TLS"
    assert secure.names[-1] == "server.example"  # type: ignore[attr-defined]


@needs_openssl
def test_a_client_certificate_comes_from_files(calls: Calls, authority: Authority) -> None:
    server_pair, client_pair = authority.issue("127.0.0.1"), authority.issue("client.example")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=authority.file)
    context.load_cert_chain(server_pair.certificate, server_pair.key)
    context.verify_mode = ssl.CERT_REQUIRED
    own = ssl.create_default_context(cafile=authority.file)
    own.load_cert_chain(client_pair.certificate, client_pair.key)
    with answering(ok(b"known"), tls=context) as server:
        pair = (str(client_pair.certificate), str(client_pair.key))
        assert calls.request(server.url, transport=calls.transport(verify=str(authority.file), cert=pair)).text == "known"
        # The context's certificate cannot be seen, and the server refuses.
        with pytest.raises(calls.framework.TransportError):
            calls.request(server.url, transport=calls.transport(verify=own))


def test_a_context_that_says_more_than_can_be_had_is_refused(calls: Calls) -> None:
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    with pytest.raises(ValueError, match="minimum_version"):
        calls.transport(verify=context)
    context = ssl.create_default_context()
    context.check_hostname = False
    with pytest.raises(ValueError, match="check_hostname"):
        calls.transport(verify=context)
    with pytest.raises(ValueError, match="no certificate of an authority"):
        calls.transport(verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
    with pytest.raises(FileNotFoundError, match="no-such-file"):
        calls.transport(verify="/no-such-file.pem")


# Around


def test_addresses_may_be_public_ones_alone(calls: Calls) -> None:
    with answering(ok()) as server:
        calls.fails("ConnectError", server.url, transport=calls.transport(allow="public"))
        assert calls.request(server.url, transport=calls.transport(allow=["127.0.0.0/8"])).text == "ok"
    assert server.connections == 1


def test_a_call_that_is_cancelled_gives_its_connection_back(calls: Calls) -> None:
    if not calls.is_async:
        pytest.skip("a thread is not cancelled")
    limits = calls.framework.Limits(max_connections=1)

    async def go(client: Any) -> str:
        for _ in range(3):
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(client.get(f"{server.url}/late"), AT_ONCE)
        return str((await client.get(server.url)).text)

    def answer(connection: socket.socket) -> bytes | None:
        return server.wait(connection) if b"/late " in server.requests[-1] else ok()  # type: ignore[func-returns-value]

    with answering(answer) as server:
        assert calls.run(go, go, calls.transport(limits=limits), timeout=calls.framework.Timeout(PATIENCE, pool=1)) == "ok"


def test_the_package_imports_no_framework() -> None:
    code = "import sys, maitred.http; print(sorted({'httpx', 'httpx2', 'requests', 'urllib3'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_mounts_choose_the_transport(calls: Calls) -> None:
    with answering(ok(b"mounted")) as server:
        response = calls.request(server.url, transport=calls.framework.MockTransport(lambda request: calls.framework.Response(500)),
                                 client={"mounts": {"http://127.0.0.1": calls.transport()}})
    assert response.text == "mounted"


def test_chunked_with_trailers_ends(calls: Calls) -> None:
    with answering(chunked(b"a", b"b")[:-2] + b"X-Sum: 1\r\n\r\n") as server:
        assert calls.request(server.url).text == "ab"
