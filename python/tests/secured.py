"""The suite by TLS: with MAITRED_TEST_TLS=1 the servers of the tests have a certificate, and the tests' connections to them speak TLS.

``socket.create_connection`` knows the ports of these servers, so that the tests go on as they are. Those that cannot are in EXEMPT.
"""

from __future__ import annotations

import functools
import os
import socket
import ssl
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import by_h2
import pytest

WANTED = os.environ.get("MAITRED_TEST_TLS") == "1"
SCHEME = "https" if WANTED else "http"

#: Reason, and the files or tests for which it holds.
EXEMPT: dict[str, tuple[str, ...]] = {
    "speaks TLS by itself": (
        "test_acme.py",
        "test_acme_challenges.py",
        "test_acme_faults.py",
        "test_acme_folder.py",
        "test_acme_names.py",
        "test_acme_renewal.py",
        "test_tls_options.py",
        "test_tls_reload.py",
        "test_tls_sessions.py",
        "test_tls_abuse.py",
        "test_tls_names.py",
        "test_tls_client_hosts.py",
        "test_traces.py::test_tls",
        "test_websocket_clients.py",
    ),
    "connections in clear text are looked at": (
        "test_health.py::test_a_page_says_it",
        "test_tls_applications.py::test_fields_of_a_request_are_no_session",
        "test_tls_applications.py::test_asgi_without_tls_has_no_extension",
        "test_tls_applications.py::test_https_at_a_proxy_is_https",
    ),
    "speaks HTTP/2 by itself, and TLS where it wants": (
        "test_h2_abuse.py",
        "test_h2_browser.py",
        "test_h2_clients.py",
        "test_h2_drain.py",
        "test_h2_grpc.py",
        "test_h2_order.py",
        "test_h2_smuggling.py",
        "test_h2_spec.py",
        "test_h2_streams.py",
        "test_half_closed.py",
        "test_no_body.py",
        "test_path_readings.py",
        "test_slow_uploads.py",
        "test_traces.py::test_streams_of_http_2",
        "test_traces_hostile.py",
        "test_websocket_cases.py::test_case_over_http_2",
        "test_websocket_h2.py",
    ),
    "looks at TCP itself: segments, first packets, states of the kernel": ("test_tcp_options.py",),
    "a proxy in front speaks clear text to the server": ("test_front.py",),
    "the client is in another process and speaks clear text": ("test_asgi_concurrency.py::test_connections_and_servers_of_its_own",),
    "connections are to be open that nobody accepts yet, so that no handshake can be done": (
        "test_operation.py::test_without_descriptors_the_others_wait_and_nothing_spins",
        "test_workers.py::test_clients_that_come_while_no_worker_serves_are_served_by_the_next_one",
        "test_service_manager.py::test_sockets_are_chosen_by_name_and_have_options",
        "test_rights.py::test_who_connects_while_the_application_is_loaded_is_served",
        "test_rights.py::test_an_application_that_cannot_be_loaded_serves_nothing",
        "test_loop_requests.py::test_a_burst_is_not_refused_by_a_loop_that_is_idle",
    ),
    "the sockets are passed, and the client does not know which of them speak TLS": (
        "test_service_manager.py::test_all_sockets_are_served_and_stay_when_the_server_ends",
    ),
    "HTTP/2 by prior knowledge, which by TLS is agreed on in the handshake": ("test_trailers.py::test_http_2_has_them_behind_any_body",),
    "Python's ssl cannot end its side while answers come": ("test_operation.py::test_a_peer_that_has_ended_its_side_gets_every_answer",),
    "select() finds session tickets, and no answers": ("test_protection.py::test_the_engine_answers_while_the_application_is_stuck",),
    "the client goes on to https by itself, with TLS in TLS": ("test_starlette.py::test_routes",),
    "the client of many WebSockets at once, or another program, speaks clear text": ("test_websocket_autobahn.py", "test_websocket_load.py"),
    "thousands of handshakes of the client take longer than the test lasts": (
        "test_operation.py::test_ten_thousand_idle_connections",
        "test_operation.py::test_four_thousand_active_connections",
    ),
}

MARK = "not by TLS: "

#: Where servers of this process listen with TLS.
_ports: set[int] = set()
_connect = socket.create_connection


@functools.cache
def _files() -> tuple[Path, Path, Path]:
    """Authority, certificate and key; made once in each process of the tests."""
    from certificates import Authority

    # Not in /tmp, which servers of some tests have for themselves.
    folder = tempfile.TemporaryDirectory(prefix="maitred-tls-", dir="/var/tmp")
    # Kept as long as the process, and readable for servers with the rights of another user.
    _files.folder = folder  # type: ignore[attr-defined]
    os.chmod(folder.name, 0o755)
    authority = Authority(Path(folder.name))
    pair = authority.issue("localhost", "127.0.0.1")
    # The chain is whole, so that there is nothing to warn of.
    pair.certificate.write_text(pair.certificate.read_text() + authority.file.read_text())
    pair.key.chmod(0o644)
    return authority.file, pair.certificate, pair.key


@functools.cache
def context() -> ssl.SSLContext:
    """Trusts the certificate of the servers."""
    made = ssl.create_default_context(cafile=_files()[0])
    made.sslsocket_class = Secured
    return made


def environment(arguments: list[str], others: dict[str, str]) -> dict[str, str]:
    """What a server has to know to speak TLS; nothing where it knows already, or nobody wants it."""
    if not WANTED or any(name.startswith(("--tls", "--ssl")) for name in arguments) or "MAITRED_TLS_CERT" in others:
        return {}
    _, certificate, key = _files()
    return {"MAITRED_TLS_CERT": str(certificate), "MAITRED_TLS_KEY": str(key)}


def learn(ports: list[int], all_ports: list[int]) -> None:
    """A server of ours listens there now: at these with TLS that is ours to speak."""
    _ports.difference_update(all_ports)
    _ports.update(ports)


def wrapped(peer: socket.socket, port: int) -> socket.socket:
    """A connection that is open, with TLS on it if that port wants it, or translated to HTTP/2."""
    if by_h2.WANTED:
        return by_h2.wrapped(peer, port)
    return context().wrap_socket(peer, server_hostname="localhost") if port in _ports else peer


def _create_connection(address: tuple[str, int], *arguments: Any, **named: Any) -> socket.socket:
    peer = _connect(address, *arguments, **named)
    own = peer.getsockname()
    try:
        return wrapped(peer, address[1]) if address[0] in ("127.0.0.1", "localhost") else peer
    except BaseException as error:
        peer.close()
        # For who asks later from where the handshake was begun.
        error.connected_from = own  # type: ignore[attr-defined]
        raise


class Secured(ssl.SSLSocket):
    """What the tests use of a socket, by TLS."""

    #: Received, and looked at only.
    _ahead = b""

    def recv(self, buflen: int = 1024, flags: int = 0) -> bytes:
        ahead, enough = self._ahead, buflen if flags & socket.MSG_WAITALL else 1
        while len(ahead) < enough:
            try:
                part = super().recv(buflen - len(ahead))
            except ssl.SSLWantReadError as error:
                raise BlockingIOError(str(error)) from error
            except ssl.SSLZeroReturnError:
                break  # Both sides have said their end.
            if not part:
                break
            ahead += part
        self._ahead = ahead if flags & socket.MSG_PEEK else ahead[buflen:]
        return ahead[:buflen]

    def recv_into(self, buffer: Any, nbytes: int | None = None, flags: int = 0) -> int:
        if flags or self._ahead:
            part = self.recv(nbytes or len(buffer), flags & ~socket.MSG_TRUNC)
            if not flags & socket.MSG_TRUNC:
                buffer[: len(part)] = part
            return len(part)
        try:
            return super().recv_into(buffer, nbytes)
        except ssl.SSLWantReadError as error:
            raise BlockingIOError(str(error)) from error
        except ssl.SSLZeroReturnError:
            return 0

    def send(self, data: Any, flags: int = 0) -> int:
        try:
            return super().send(data, flags)
        except ssl.SSLWantWriteError as error:
            raise BlockingIOError(str(error)) from error

    def shutdown(self, how: int) -> None:
        """The end of the sending side alone is close_notify, and the other one goes on."""
        if how != socket.SHUT_WR:
            return super().shutdown(how)
        patience = self.gettimeout()
        self.settimeout(0)
        try:
            self._sslobj.shutdown()  # type: ignore[attr-defined]
        except ssl.SSLWantReadError:
            pass  # The other side's.
        finally:
            self.settimeout(patience)
        socket.socket.shutdown(self, how)


def configure(starts_others: bool) -> None:
    """For the whole process, which may start others that run the tests."""
    if WANTED:
        socket.create_connection = _create_connection  # type: ignore[assignment]
        # curl trusts the certificate, too.
        os.environ["CURL_CA_BUNDLE"] = str(_files()[0])
        if not starts_others:
            # Of the tests, and not of the programs that they start.
            del os.environ["MAITRED_TEST_TLS"]


def exempt(items: list[pytest.Item]) -> None:
    """Skips the tests that cannot run by TLS, each with its reason. Without MAITRED_TEST_TLS nothing is skipped: there they all run."""
    if WANTED:
        skip(items, EXEMPT, MARK)


def summary(reporter: Any) -> None:
    """How many ran, and why others did not."""
    if WANTED:
        tell(reporter, "by TLS", MARK)


def skip(items: list[pytest.Item], reasons: Mapping[str, Sequence[str]], mark: str) -> None:
    """Those whose file or name stands behind a reason, or whose name with its parameters."""
    for item in items:
        file = item.path.name
        whole = f"{file}::{item.nodeid.partition('::')[2]}"
        names = {file, whole, whole.partition("[")[0]}
        for reason, entries in reasons.items():
            if names & set(entries):
                item.add_marker(pytest.mark.skip(reason=mark + reason))


def tell(reporter: Any, how: str, mark: str) -> None:
    """How many ran, and how many were skipped for which reason."""
    told = (str(report.longrepr[2]) for report in reporter.stats.get("skipped", []) if isinstance(report.longrepr, tuple))
    reasons = Counter(text.partition(mark)[2] for text in told if mark in text)
    ran = sum(len(reporter.stats.get(kind, [])) for kind in ("passed", "failed"))
    reporter.write_sep("-", how)
    for reason, count in reasons.most_common():
        reporter.write_line(f"{how}: {count:4} exempt: {reason}")
    reporter.write_line(f"{how}: {ran} ran, {sum(reasons.values())} exempt for {len(reasons)} reasons")
