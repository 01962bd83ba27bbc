"""Each way in which another service fails has a failure of its own name, and the next call of the same pool is right."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from certificates import Authority, Pair, needs_openssl
from conftest import PATIENCE, open_files
from upstreams import Upstream, refused, unaccepting, upstream

from maitred._engine import HttpFailure, HttpOrigin, HttpPool, HttpResponse

Timeouts = tuple[float | None, float | None, float | None, float | None, float | None, float | None]
PATIENT: Timeouts = (PATIENCE,) * 6
#: A limit that a test waits for.
SHORT = 0.1


@pytest.fixture(scope="module")
def service() -> Iterator[Upstream]:
    with upstream() as running:
        yield running


@pytest.fixture
def pool() -> Iterator[HttpPool]:
    pool = HttpPool(per_host=2)
    yield pool
    pool.close()


def send(pool: HttpPool, port: int, target: bytes = b"/hello", limits: Timeouts = PATIENT, scheme: str = "http", host: str = "127.0.0.1",
         method: str = "GET", **of_origin: object) -> HttpResponse:
    origin = HttpOrigin(scheme, host, port, **of_origin)  # type: ignore[arg-type]
    return pool.send(origin, method, target, [(b"Host", host.encode())], None, limits)


def failed(pool: HttpPool, port: int, target: bytes = b"/hello", limits: Timeouts = PATIENT, **more: str) -> HttpFailure:
    with pytest.raises(HttpFailure) as failure:
        send(pool, port, target, limits, **more).read()
    return failure.value


def limits(**seconds: float) -> Timeouts:
    slot, connect, tls, first_byte, progress, total = (seconds.get(name, PATIENCE) for name in
                                                       ("slot", "connect", "tls", "first_byte", "progress", "total"))
    return slot, connect, tls, first_byte, progress, total


@pytest.mark.parametrize(
    ("target", "kind", "limit"),
    [
        ("/sleep", ("timeout", "first_byte"), {"first_byte": SHORT}),
        ("/sleep", ("timeout", "total"), {"total": SHORT}),
        ("/stop", ("timeout", "read"), {"progress": SHORT}),
        ("/dribble", ("timeout", "total"), {"total": 3 * SHORT, "progress": 2 * SHORT}),
        ("/reset", ("read", "read"), {}),
        ("/reset-body", ("read", "read"), {}),
        ("/close", ("protocol", "read"), {}),
        ("/cut", ("protocol", "read"), {}),
        ("/nonsense", ("protocol", "read"), {}),
    ],
)
def test_a_service_that_misbehaves(service: Upstream, pool: HttpPool, target: str, kind: tuple[str, str], limit: dict[str, float]) -> None:
    failure = failed(pool, service.port, target.encode(), limits(**limit))
    assert ((failure.kind, failure.phase), failure.origin) == (kind, f"http://127.0.0.1:{service.port}"), failure
    assert failure.origin in str(failure)
    assert send(pool, service.port).read() == b"hello"


def test_nothing_listens(pool: HttpPool, service: Upstream) -> None:
    failure = failed(pool, refused())
    assert (failure.kind, failure.phase) == ("connect", "connect")
    assert "refused" in str(failure).lower()
    assert send(pool, service.port).read() == b"hello"


def test_a_service_that_never_accepts(pool: HttpPool, service: Upstream) -> None:
    with unaccepting() as port:
        failure = failed(pool, port, limits=limits(connect=SHORT))
    assert (failure.kind, failure.phase) == ("timeout", "connect")
    assert send(pool, service.port).read() == b"hello"


def test_an_address_that_is_dead_beside_one_that_is_good(pool: HttpPool) -> None:
    with unaccepting() as port:
        try:
            other = Upstream(host="::1", port=port)
        except AssertionError:
            pytest.skip("no IPv6 on this machine")
        try:
            assert send(pool, port, host="localhost").read() == b"hello"
        finally:
            other.end()


ASK = """
import sys
from maitred import http
client = http.Client(timeout=20, trust_env=False)
print(client.get(sys.argv[1]).text, client.get(sys.argv[1]).timings["reused"])
"""


def test_a_dead_ipv6_address_beside_a_good_ipv4_address(service: Upstream, tmp_path: Path) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text("127.0.0.1 localhost\n::1 two.test\n127.0.0.1 two.test\n")
    # A look-up that has the addresses of this file alone.
    inside = ["unshare", "--map-root-user", "--mount", "sh", "-c", f'mount --bind {hosts} /etc/hosts && exec "$@"', "sh", sys.executable, "-c"]
    look = "import socket; print(len({row[4][0] for row in socket.getaddrinfo('two.test', 80, flags=socket.AI_ADDRCONFIG)}))"
    if not shutil.which("unshare") or subprocess.run([*inside, look], capture_output=True, text=True).stdout.strip() != "2":
        pytest.skip("no namespace of mounts, or no IPv6, on this machine")
    with unaccepting(socket.AF_INET6, service.port):
        done = subprocess.run([*inside, ASK, f"http://two.test:{service.port}/hello"], capture_output=True, text=True, timeout=PATIENCE)
    assert (done.stdout.strip(), done.returncode) == ("hello True", 0), done.stderr


def test_a_name_that_does_not_exist(pool: HttpPool) -> None:
    failure = failed(pool, 80, host="no-such-host.invalid")
    assert (failure.kind, failure.phase) == ("resolve", "resolve")
    assert "no-such-host.invalid" in str(failure)


def test_a_unix_socket_that_is_not_there(pool: HttpPool, tmp_path: Path) -> None:
    failure = failed(pool, 80, socket=str(tmp_path / "none.sock"))
    assert failure.kind == "connect"
    assert "none.sock" in str(failure)


def test_an_address_that_is_not_allowed(pool: HttpPool, service: Upstream) -> None:
    failure = failed(pool, service.port, allow="public")
    assert failure.kind == "allow"
    assert "127.0.0.1" in str(failure)
    assert send(pool, service.port, allow=["127.0.0.0/8"]).read() == b"hello"  # type: ignore[arg-type]


def test_a_stale_connection_is_not_seen_by_the_caller(pool: HttpPool, service: Upstream) -> None:
    for _ in range(20):
        assert send(pool, service.port, b"/once").read() == b"hello"


# TLS


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("upstream-authority"))


@contextlib.contextmanager
def secured(pair: Pair) -> Iterator[Upstream]:
    with upstream(pair.certificate, pair.key) as running:
        yield running


@needs_openssl
@pytest.mark.parametrize(
    ("names", "trusted", "word"),
    [(("localhost",), False, "no trusted authority"), (("other.example",), True, "not for localhost but for other.example")],
    ids=["unknown authority", "other name"],
)
def test_a_certificate_that_is_wrong_is_refused_by_default(pool: HttpPool, authority: Authority, names: tuple[str, ...], trusted: bool, word: str) -> None:
    more = {"authorities": str(authority.file)} if trusted else {}
    with secured(authority.issue(*names)) as service:
        failure = failed(pool, service.port, scheme="https", host="localhost", **more)
        assert failure.kind == "tls"
        assert word in str(failure).lower()
        # One that does not look gets the answer, and the pool keeps the two apart.
        assert send(pool, service.port, scheme="https", host="localhost", verify=False).read() == b"hello"
        assert failed(pool, service.port, scheme="https", host="localhost", **more).kind == "tls"


@needs_openssl
def test_an_expired_certificate_is_refused_by_default(pool: HttpPool, authority: Authority) -> None:
    with secured(authority.issue_expired("localhost")) as service:
        failure = failed(pool, service.port, scheme="https", host="localhost", authorities=str(authority.file))
        assert failure.kind == "tls"
        assert "expired" in str(failure).lower()


@needs_openssl
def test_a_right_certificate_of_an_authority_that_is_named(pool: HttpPool, authority: Authority) -> None:
    with secured(authority.issue("localhost")) as service:
        for _ in range(2):
            assert send(pool, service.port, scheme="https", host="localhost", authorities=str(authority.file)).read() == b"hello"


def test_a_plain_service_is_none_of_tls(pool: HttpPool, service: Upstream) -> None:
    assert failed(pool, service.port, scheme="https", verify=False).kind == "tls"  # type: ignore[arg-type]
    assert send(pool, service.port).read() == b"hello"


# Forks


def test_a_child_does_not_use_its_parents_connections(pool: HttpPool, service: Upstream) -> None:
    origin = HttpOrigin("http", "127.0.0.1", service.port)
    assert pool.send(origin, "GET", b"/hello", [(b"Host", b"localhost")], None, PATIENT).read() == b"hello"
    # A call is under way while the process forks.
    under_way = pool.send(origin, "GET", b"/bytes/1000000", [(b"Host", b"localhost")], None, PATIENT)
    # Others of the process, of pytest say, stay open.
    ours = connections(service.port)
    assert ours
    child = os.fork()
    if child == 0:
        code = 1
        try:
            answer = pool.send(origin, "GET", b"/hello", [(b"Host", b"localhost")], None, PATIENT).read()
            code = (answer != b"hello") + 2 * bool(ours & connections(service.port))
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert len(under_way.read()) == 1_000_000
    assert pool.send(origin, "GET", b"/hello", [(b"Host", b"localhost")], None, PATIENT).read() == b"hello"


def connections(port: int) -> set[str]:
    """The sockets of this process that are connected to a port."""
    rows = [line.split() for line in Path("/proc/self/net/tcp").read_text().splitlines()[1:]]
    inodes = {f"socket:[{row[9]}]" for row in rows if row[2].endswith(f":{port:04X}") and row[3] == "01"}
    return inodes & set(open_files(os.getpid()).values())
