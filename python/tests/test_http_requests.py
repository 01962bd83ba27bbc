"""The adapter for requests: what users of a Session, of `Response.raw` and of urllib3's Retry rely on."""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import pickle
import socket
import ssl
import struct
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from answering import Answering, answering, chunked, ok
from certificates import Authority, authority, needs_openssl
from conftest import PATIENCE, needs

needs("requests")

import requests
import urllib3
from maitred.http.requests import Adapter, mount

__all__ = ["authority"]

AT_ONCE = 0.05
#: Longer than a head takes to come on a busy machine.
SOON = 1.0


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Iterator[requests.Session]:
    for name in [name for name in os.environ if name.lower().endswith("_proxy") or name.endswith("CA_BUNDLE")]:
        monkeypatch.delenv(name)
    with requests.Session() as made:
        mount(made)
        yield made


def with_retries(session: requests.Session, retries: Any) -> requests.Session:
    mount(session, Adapter(max_retries=retries))
    return session


def reset(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def fails(session: requests.Session, kind: type[Exception], url: str, method: str = "GET", **named: Any) -> requests.RequestException:
    with pytest.raises(requests.RequestException) as raised:
        session.request(method, url, **{"timeout": PATIENCE, **named})
    assert type(raised.value) is kind, repr(raised.value)
    assert raised.value.request is not None
    return raised.value


# Responses


def test_a_response_has_all_that_a_session_fills_in(session: requests.Session) -> None:
    with answering(ok(b"body", b"X-One: 1", b"X-One: 2", b"Content-Type: text/plain; charset=utf-8", status=b"299 Fine, thanks")) as server:
        response = session.get(f"{server.url}/a%20b?c=d")
    assert (response.status_code, response.reason, response.text, response.encoding) == (299, "Fine, thanks", "body", "utf-8")
    assert (response.headers["x-one"], response.url) == ("1, 2", f"{server.url}/a%20b?c=d")
    assert response.request.method == "GET" and isinstance(response.connection, Adapter)
    assert (response.raw.version, response.raw.headers.getlist("X-One")) == (11, ["1", "2"])
    assert server.requests[0].startswith(b"GET /a%20b?c=d HTTP/1.1\r\n")


def test_cookies_reach_the_session(session: requests.Session) -> None:
    with answering(ok(b"", b"Set-Cookie: a=1", b"Set-Cookie: b=2; Path=/", b"Location: /next", status=b"302 Found"), ok()) as server:
        response = session.get(server.url)
    assert dict(session.cookies) == dict(response.history[0].cookies) == {"a": "1", "b": "2"}
    assert b"\r\nCookie: a=1; b=2\r\n" in server.requests[1]
    assert server.connections == 1


def test_bodies_are_decoded_where_requests_decodes_them(session: requests.Session) -> None:
    packed = gzip.compress(b"unpacked")
    with answering(ok(packed, b"Content-Encoding: gzip")) as server:
        assert session.get(server.url).content == b"unpacked"
        assert session.get(server.url, stream=True).raw.read() == packed
        assert session.get(server.url, stream=True).raw.read(decode_content=True) == b"unpacked"
    with answering(ok(b"no gzip", b"Content-Encoding: gzip")) as server, pytest.raises(requests.exceptions.ContentDecodingError):
        session.get(server.url)


def test_parts_have_the_size_that_was_asked(session: requests.Session) -> None:
    with answering(ok(bytes(10_000))) as server, session.get(server.url, stream=True) as response:
        assert [len(part) for part in response.iter_content(4096)] == [4096, 4096, 1808]
    with answering(ok(b"line 1\nline 2\n")) as server, session.get(server.url, stream=True) as response:
        assert list(response.iter_lines()) == [b"line 1", b"line 2"]
    with answering(ok(b"abcdef")) as server:
        raw = session.get(server.url, stream=True).raw
        assert (raw.read(2), raw.read(3), raw.tell(), raw.read(9), raw.read(9)) == (b"ab", b"cde", 5, b"f", b"")


@pytest.mark.parametrize("coding", ["", "gzip"])
def test_events_come_as_they_are_sent(session: requests.Session, coding: str) -> None:
    """A chunked response does not wait for a full part."""
    goes_on = threading.Event()
    packer = gzip.zlib.compressobj(wbits=31)  # type: ignore[attr-defined]

    def chunk(text: bytes) -> bytes:
        data = packer.compress(text) + packer.flush(gzip.zlib.Z_SYNC_FLUSH) if coding else text  # type: ignore[attr-defined]
        return b"%x\r\n%s\r\n" % (len(data), data)

    def slowly(connection: socket.socket) -> bytes | None:
        fields = b"Content-Encoding: gzip\r\n" if coding else b""
        connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n" + fields + b"\r\n" + chunk(b"data: 1\n"))
        if not goes_on.wait(PATIENCE):
            return None
        return chunk(b"data: 2\n") + b"0\r\n\r\n"

    with answering(slowly) as server, session.get(server.url, stream=True) as response:
        assert [line for line in response.iter_lines() if goes_on.set() is None] == [b"data: 1", b"data: 2"]


def test_a_response_that_is_left_gives_its_connection_up(session: requests.Session) -> None:
    with answering(ok(bytes(1_000_000)), ok()) as server:
        with session.get(server.url, stream=True) as response:
            response.raw.read(10)
        response.raw.release_conn()
        assert list(response.raw.stream(10)) == []
        assert session.get(server.url).text == "ok"
        assert server.connections == 2


def test_head_and_no_content(session: requests.Session) -> None:
    with answering(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n", b"HTTP/1.1 204 No Content\r\n\r\n", ok()) as server:
        assert session.head(server.url).content == session.delete(server.url).content == b""
        assert session.get(server.url).text == "ok"
        assert server.connections == 1


# Bodies of requests


def test_bodies_of_all_kinds(session: requests.Session, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"in a file")
    with answering(ok()) as server:
        for data in ["späte", b"bytes", bytearray(b"array"), io.BytesIO(b"stream"), iter([b"one ", "two"]), file.open("rb"), {"a": "b"}]:
            session.post(server.url, data=data, timeout=PATIENCE)
        session.post(server.url)
        session.post(server.url, files={"file": ("name", b"uploaded")})
    ends = ["späte".encode(), b"bytes", b"array", b"stream", b"one two", b"in a file", b"a=b", b""]
    assert [request.partition(b"\r\n\r\n")[2] for request in server.requests[:-1]] == ends
    chunks = [b"\r\ntransfer-encoding: chunked\r\n" in request.lower() for request in server.requests]
    assert chunks == [False, False, False, False, True, False, False, False, False]
    assert b"uploaded" in server.requests[-1]


def test_a_file_is_rewound_at_a_redirect_and_at_a_retry(session: requests.Session) -> None:
    file = io.BytesIO(b"skipped,sent")
    file.seek(8)
    with answering(ok(b"", b"Location: /next", status=b"307 Temporary Redirect"), ok()) as server:
        session.post(server.url, data=file)
    assert [request.partition(b"\r\n\r\n")[2] for request in server.requests] == [b"sent", b"sent"]
    with_retries(session, urllib3.Retry(1, status_forcelist=[503], allowed_methods=None))
    file.seek(8)
    with answering(ok(status=b"503 Busy"), ok()) as server:
        assert session.post(server.url, data=file).status_code == 200
    assert [request.partition(b"\r\n\r\n")[2] for request in server.requests] == [b"sent", b"sent"]


# Timeouts and exceptions


def test_exceptions_are_requests_own(session: requests.Session) -> None:
    exceptions = requests.exceptions
    fails(session, exceptions.ConnectionError, f"http://127.0.0.1:{closed_port()}/")
    fails(session, exceptions.ConnectionError, "http://nowhere.invalid/")
    with answering(lambda connection: None) as server:
        fails(session, exceptions.ConnectionError, server.url, "POST")
    with answering(reset) as server:
        fails(session, exceptions.ConnectionError, server.url, "POST")
    with answering(b"SSH-2.0-OpenSSH_9.2\r\n\r\n") as server:
        fails(session, exceptions.ConnectionError, server.url)
    with answering(ok()) as server:
        with pytest.raises(exceptions.InvalidHeader):
            session.get(server.url, headers={"X-Bad": "a\r\nb"})
        with pytest.raises(exceptions.InvalidURL):
            session.get("http://127.0.0.1:99999/")


@pytest.mark.parametrize("timeout", [AT_ONCE, (PATIENCE, AT_ONCE), urllib3.Timeout(connect=PATIENCE, read=AT_ONCE), urllib3.Timeout(total=AT_ONCE)],
                         ids=["one", "two", "urllib3", "total"])
def test_timeouts_of_all_forms(session: requests.Session, timeout: Any) -> None:
    with answering(lambda connection: server.wait(connection)) as server:
        fails(session, requests.ReadTimeout, server.url, timeout=timeout)


def test_a_timeout_that_is_none(session: requests.Session) -> None:
    with answering(ok()) as server:
        for timeout in [(1, 2, 3), "soon", 0, (1, "soon")]:
            with pytest.raises(ValueError, match="[Tt]imeout"):
                session.get(server.url, timeout=timeout)
        assert session.get(server.url, timeout=(None, None)).text == "ok"


def test_a_connect_timeout(session: requests.Session) -> None:
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        waiting = [socket.socket() for _ in range(3)]
        for each in waiting:
            each.setblocking(False)
            each.connect_ex(full.getsockname())
        fails(session, requests.ConnectTimeout, f"http://127.0.0.1:{full.getsockname()[1]}/", timeout=(AT_ONCE, PATIENCE))
        for each in waiting:
            each.close()


@pytest.mark.parametrize("start", [b"Content-Length: 10\r\n\r\nhalf", b"Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n"], ids=["length", "chunked"])
def test_a_body_that_ends_early_is_told_while_it_is_read(session: requests.Session, start: bytes) -> None:
    def half(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\n" + start)

    with answering(half) as server, session.get(server.url, stream=True) as response:
        with pytest.raises(requests.exceptions.ChunkedEncodingError):
            response.content


def test_a_late_body_is_a_connection_error_as_in_requests(session: requests.Session) -> None:
    def half(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
        server.wait(connection)

    with answering(half) as server, session.get(server.url, stream=True, timeout=SOON) as response:
        with pytest.raises(requests.exceptions.ConnectionError):
            response.content


# Retries


def test_retry_counts_states_and_gives_up(session: requests.Session) -> None:
    retry = urllib3.Retry(2, status_forcelist=[503])
    with_retries(session, retry)
    busy = ok(b"busy", status=b"503 Busy")
    with answering(busy, busy, ok()) as server:
        response = session.get(server.url)
        assert (response.text, len(server.requests), server.connections) == ("ok", 3, 1)
        assert [each.status for each in response.raw.retries.history] == [503, 503]
    with answering(busy) as server:
        fails(session, requests.exceptions.RetryError, server.url)
        assert len(server.requests) == 3
    # POST is not among its methods.
    with answering(busy) as server:
        assert session.post(server.url).status_code == 503
    with answering(busy) as server:
        with_retries(session, urllib3.Retry(1, status_forcelist=[503], raise_on_status=False))
        assert session.get(server.url).status_code == 503
        assert len(server.requests) == 2


def test_retry_waits_as_the_server_says(session: requests.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr("urllib3.util.retry.time.sleep", waits.append)
    with_retries(session, urllib3.Retry(2, status_forcelist=[500], backoff_factor=0.5))
    with answering(ok(b"", b"Retry-After: 7", status=b"429 Slowly"), ok()) as server:
        assert session.get(server.url).status_code == 200
    assert waits == [7]
    waits.clear()
    port = closed_port()
    fails(session, requests.ConnectionError, f"http://127.0.0.1:{port}/")
    assert waits == [1.0]


def test_a_number_of_retries_is_for_connecting(session: requests.Session) -> None:
    with_retries(session, 3)
    with answering(reset, ok()) as server:
        fails(session, requests.ConnectionError, server.url, "POST")
        assert len(server.requests) == 1
    with answering(lambda connection: server.wait(connection), ok()) as server:
        fails(session, requests.ReadTimeout, server.url, "POST", timeout=AT_ONCE)


# Proxies and TLS


def test_proxies_of_a_call_and_of_the_environment(session: requests.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    with answering(ok(b"by the proxy")) as server:
        proxy = f"http://user:pass@127.0.0.1:{server.port}"
        assert session.get("http://target.example/path?q", proxies={"http": proxy}).text == "by the proxy"
        monkeypatch.setenv("http_proxy", proxy)
        assert session.get("http://target.example/").text == "by the proxy"
        assert server.requests[0].startswith(b"GET http://target.example/path?q HTTP/1.1\r\n")
        assert b"\r\nproxy-authorization: basic dxnlcjpwyxnz\r\n" in server.requests[0].lower()
    fails(session, requests.exceptions.ProxyError, "http://target.example/", proxies={"http": f"http://127.0.0.1:{closed_port()}"})
    with answering(b"HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n") as server:
        fails(session, requests.exceptions.ProxyError, "https://target.example/", proxies={"https": server.url})
    for proxy in ("socks5://127.0.0.1", "http://127.0.0.1:0"):
        with pytest.raises(requests.exceptions.InvalidProxyURL):
            session.get("http://target.example/", proxies={"http": proxy})


@pytest.fixture
def secure(authority: Authority) -> Iterator[Answering]:
    pair = authority.issue("127.0.0.1")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=authority.file)
    context.load_cert_chain(pair.certificate, pair.key)
    context.verify_mode = ssl.CERT_OPTIONAL
    with answering(ok(b"by TLS"), tls=context) as server:
        yield server


@needs_openssl
def test_certificates_are_verified_as_verify_says(session: requests.Session, authority: Authority, secure: Answering,
                                                  monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fails(session, requests.exceptions.SSLError, secure.url)
    assert session.get(secure.url, verify=str(authority.file)).text == "by TLS"
    folder = tmp_path / "authorities"
    folder.mkdir()
    (folder / "one.pem").write_bytes(authority.file.read_bytes())
    assert session.get(secure.url, verify=str(folder)).text == "by TLS"
    with pytest.warns(urllib3.exceptions.InsecureRequestWarning):
        assert session.get(secure.url, verify=False).text == "by TLS"
    # What one call has not verified is no connection for the next.
    fails(session, requests.exceptions.SSLError, secure.url)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(authority.file))
    assert session.get(secure.url).text == "by TLS"
    with pytest.raises(OSError, match="no-such-file"):
        session.get(secure.url, verify="/no-such-file.pem")


@needs_openssl
def test_a_client_certificate(session: requests.Session, authority: Authority, secure: Answering) -> None:
    pair = authority.issue("client.example")
    both = (str(pair.certificate), str(pair.key))
    assert session.get(secure.url, verify=str(authority.file), cert=both).text == "by TLS"
    with pytest.raises(OSError, match="no-such-file"):
        session.get(secure.url, verify=str(authority.file), cert="/no-such-file.pem")


# Around


def test_addresses_may_be_public_ones_alone(session: requests.Session) -> None:
    mount(session, Adapter(allow="public"))
    with answering(ok()) as server:
        fails(session, requests.ConnectionError, server.url)
    assert server.connections == 0


def test_an_adapter_is_pickled_and_goes_on_behind_its_close(session: requests.Session) -> None:
    with_retries(session, urllib3.Retry(4))
    with answering(ok()) as server:
        session.get(server.url)
        copy = pickle.loads(pickle.dumps(session))
        assert copy.get_adapter(server.url).max_retries.total == 4
        assert copy.get(server.url).text == "ok"
        copy.close()
        assert copy.get(server.url).text == "ok"


def test_a_pool_that_blocks_has_so_many_connections(session: requests.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("maitred.http.requests.SLOT_TIMEOUT", AT_ONCE)
    mount(session, Adapter(pool_maxsize=1, pool_block=True))
    with answering(ok(bytes(1_000_000))) as server, session.get(server.url, stream=True):
        fails(session, requests.ConnectTimeout, server.url)


def test_a_pool_that_does_not_block_has_no_limit(session: requests.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("maitred.http.requests.SLOT_TIMEOUT", AT_ONCE)
    with answering(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort") as server, contextlib.ExitStack() as stack:
        answers = [stack.enter_context(session.get(server.url, stream=True)) for _ in range(101)]
        assert {each.status_code for each in answers} == {200}


def test_many_threads_share_a_session(session: requests.Session) -> None:
    texts = []
    with answering(chunked(b"a", b"b")) as server:
        threads = [threading.Thread(target=lambda: texts.extend(session.get(server.url).text for _ in range(10))) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert texts == ["ab"] * 80
        assert server.connections <= 8


def test_nothing_warns(session: requests.Session) -> None:
    with warnings.catch_warnings(), answering(ok()) as server:
        warnings.simplefilter("error")
        session.get(server.url)
