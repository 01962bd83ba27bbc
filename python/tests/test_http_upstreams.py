"""An application with two threads beside services that misbehave: it stays, and the log, the statistics, `Server-Timing` and the finding name
the service."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from certificates import Authority
from conftest import Serve, Server
from crews import until
from test_control import asked, ctl
from test_finding_live import load
from upstreams import Upstream, refused, unaccepting, upstream

from maitred._engine import HttpPool

#: The application asks the service of the path, each with these limits: slot, connect, TLS, first byte, progress, the whole call.
APP = """
import json, os
from maitred._engine import HttpFailure, HttpOrigin, HttpPool

POOL = HttpPool(per_host=4)
LIMITS = (1.0, 0.3, 0.3, 0.3, 0.3, 0.5)
CASES = {name: (HttpOrigin(scheme, host, port, **more), target.encode(), host.encode())
         for name, (scheme, host, port, target, more) in json.loads(os.environ["CASES"]).items()}

def app(environ, start_response):
    name = environ["PATH_INFO"][1:]
    body = b"home"
    if name:
        origin, target, host = CASES[name]
        try:
            body = POOL.send(origin, "GET", target, [(b"Host", host)], None, LIMITS).read()
        except HttpFailure as failure:
            body = f"{failure.kind} {failure.phase}".encode()
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
    return [body]
"""


@dataclass(frozen=True)
class Case:
    """A service: where it is, what the application says of it, and how `ctl upstreams` counts the end."""

    name: str
    service: str
    target: str
    said: str
    kind: str
    end: str
    scheme: str = "http"
    host: str = "127.0.0.1"
    more: dict[str, Any] = field(default_factory=dict)


CASES = [
    Case("good", "plain", "/hello", "hello", "status", "200"),
    Case("sleeps", "plain", "/sleep", "timeout first_byte", "time-out", "first byte"),
    Case("dribbles", "plain", "/dribble", "timeout total", "time-out", "total"),
    Case("stops", "plain", "/stop", "timeout read", "time-out", "read"),
    Case("resets", "plain", "/reset", "read read", "failure", "reset"),
    Case("cuts", "plain", "/cut", "protocol read", "failure", "cut-off"),
    Case("talks-otherwise", "plain", "/nonsense", "protocol read", "failure", "malformed"),
    Case("refuses", "none", "/hello", "connect connect", "failure", "refused"),
    Case("never-accepts", "full", "/hello", "timeout connect", "time-out", "connect"),
    Case("has-a-dead-address", "half", "/hello", "hello", "status", "200", host="localhost"),
    Case("expired", "expired", "/hello", "tls tls", "failure", "tls", "https", "localhost", {"authorities": "ca"}),
    Case("other-name", "other", "/hello", "tls tls", "failure", "tls", "https", "localhost", {"authorities": "ca"}),
    Case("unknown-authority", "right", "/hello", "tls tls", "failure", "tls", "https", "localhost"),
    Case("right-certificate", "right", "/hello", "hello", "status", "200", "https", "localhost", {"authorities": "ca"}),
]


@dataclass
class Site:
    server: Server
    folder: Path
    ports: dict[str, int]

    def name_of(self, case: Case) -> str:
        return f"{case.scheme}://{case.host}:{self.ports[case.service]}"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("beside-services")
    authority = Authority(folder)
    pairs = {"right": authority.issue("localhost"), "other": authority.issue("other.example"), "expired": authority.issue_expired("localhost")}
    with contextlib.ExitStack() as stack:
        services = {name: stack.enter_context(upstream(pair.certificate, pair.key)) for name, pair in pairs.items()}
        services["plain"] = stack.enter_context(upstream())
        ports = {name: service.port for name, service in services.items()}
        ports |= {"none": refused(), "full": stack.enter_context(unaccepting()), "half": stack.enter_context(unaccepting())}
        stack.enter_context(upstream(host="::1", port=ports["half"]))
        cases = {case.name: (case.scheme, case.host, ports[case.service], case.target,
                             {name: str(authority.file) for name in case.more}) for case in CASES}
        (folder / "app.py").write_text(APP)
        arguments = ["app.py", "--max-threads", "2", "--server-timing", "--control", "ctl.sock", "--access-log", "access.log",
                     "--access-log-format", "$path $outgoing_calls $outgoing_failed $outgoing_slowest"]
        server = Server(arguments, folder, {"CASES": json.dumps(cases)})
        try:
            yield Site(server, folder, ports)
            assert server.stop() == 0, server.said
        finally:
            server.kill()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_application_stays_and_the_service_is_named(site: Site, case: Case) -> None:
    before = ends(site, case)
    with ThreadPoolExecutor(3) as clients:
        # Both threads are with the service.
        calls = [clients.submit(site.server.fetch, f"/{case.name}") for _ in range(2)]
        home = site.server.fetch("/")
        replies = [call.result() for call in calls]
    assert (home.status, home.body) == (200, b"home")
    assert "outgoing" not in home.headers["Server-Timing"]
    name = site.name_of(case)
    for reply in replies:
        assert (reply.status, reply.body.decode()) == (200, case.said)
        assert re.search(rf'outgoing;dur=\d+\.\d{{3}};desc="1 call, slowest {re.escape(name)}"', reply.headers["Server-Timing"])
    assert ends(site, case) == before + 2
    failed = 0 if case.kind == "status" else 1
    line = f"/{case.name} 1 {failed} {name}"
    log = site.folder / "access.log"
    until(f"two lines {line}", lambda: log.read_text().splitlines().count(line) == 2)


def ends(site: Site, case: Case) -> int:
    """How many calls to the service of a case have ended in its way."""
    found = asked(site.folder, "upstreams")
    assert found["calls"] == sum(row["calls"] for row in found["ends"]), found
    way = (site.name_of(case), case.kind, case.end)
    return sum(row["calls"] for row in found["ends"] if (row["server"], row["kind"], row["end"]) == way)


def test_a_running_call_is_shown_with_its_service_and_part(site: Site) -> None:
    case = CASES[1]
    with ThreadPoolExecutor(1) as clients:
        call = clients.submit(site.server.fetch, f"/{case.name}")
        shown = ""
        while site.name_of(case) not in shown:
            assert not call.done(), shown
            shown = ctl(site.folder, "active").stdout


def test_the_finding_names_a_service_that_slows_requests(site: Site) -> None:
    case = CASES[1]
    with load(site.server, f"/{case.name}", clients=4):
        until(f"the finding names {site.name_of(case)}", lambda: site.name_of(case) in ctl(site.folder, "finding").stdout, 60)
    assert site.server.fetch("/").body == b"home"
