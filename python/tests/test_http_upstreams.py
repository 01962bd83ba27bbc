"""An application with two threads beside services that misbehave: it stays, and the log, the statistics, `Server-Timing` and the finding name
the service."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
from certificates import Authority
from conftest import Server
from crews import until
from test_control import asked, ctl
from test_finding_live import load
from upstreams import refused, unaccepting, upstream

#: The application asks the service of the path.
APP = """
import json, os
from maitred import http

LIMITS = http.Timeout(0.3, pool=1, total=0.5)
CASES = {name: (http.Client(timeout=LIMITS, verify=verify), url) for name, (url, verify) in json.loads(os.environ["CASES"]).items()}

def app(environ, start_response):
    name = environ["PATH_INFO"][1:]
    text = "home"
    if name:
        client, url = CASES[name]
        try:
            text = client.get(url).text
        except http.HTTPError as error:
            text = f"{type(error).__name__} {error.phase}"
    body = text.encode()
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
    by_authority: bool = False

    @property
    def logged(self) -> str:
        """The end in the client log."""
        return {"status": "complete", "time-out": f"timeout:{self.end.replace(' ', '.')}", "failure": self.end}[self.kind]

    @property
    def status(self) -> str:
        """That of the response, where one has begun."""
        return "200" if self.kind == "status" or self.name in ("dribbles", "stops", "cuts") else "-"


CASES = [
    Case("good", "plain", "/hello", "hello", "status", "200"),
    Case("sleeps", "plain", "/sleep", "ReadTimeout first_byte", "time-out", "first byte"),
    Case("dribbles", "plain", "/dribble", "TotalTimeout total", "time-out", "total"),
    Case("stops", "plain", "/stop", "ReadTimeout read", "time-out", "read"),
    Case("resets", "plain", "/reset", "ReadError read", "failure", "reset"),
    Case("cuts", "plain", "/cut", "ProtocolError read", "failure", "cut-off"),
    Case("talks-otherwise", "plain", "/nonsense", "ProtocolError read", "failure", "malformed"),
    Case("refuses", "none", "/hello", "ConnectError connect", "failure", "refused"),
    Case("never-accepts", "full", "/hello", "ConnectTimeout connect", "time-out", "connect"),
    Case("has-a-dead-address", "half", "/hello", "hello", "status", "200", host="localhost"),
    Case("expired", "expired", "/hello", "TLSError tls", "failure", "tls", "https", "localhost", by_authority=True),
    Case("other-name", "other", "/hello", "TLSError tls", "failure", "tls", "https", "localhost", by_authority=True),
    Case("unknown-authority", "right", "/hello", "TLSError tls", "failure", "tls", "https", "localhost"),
    Case("right-certificate", "right", "/hello", "hello", "status", "200", "https", "localhost", by_authority=True),
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
        cases = {case.name: (f"{case.scheme}://{case.host}:{ports[case.service]}{case.target}", str(authority.file) if case.by_authority else True)
                 for case in CASES}
        (folder / "app.py").write_text(APP)
        arguments = ["app.py", "--max-threads", "2", "--server-timing", "--control", "ctl.sock", "--access-log", "access.log", "--client-log", "client.log",
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
    written = re.compile(rf"id=\S+-\S+ server={re.escape(name)} status={case.status} end={case.logged} .*total=[\d.]+ ", re.MULTILINE)
    until(f"two lines {written.pattern}", lambda: len(written.findall((site.folder / "client.log").read_text())) >= 2)


def ends(site: Site, case: Case) -> int:
    """How many calls to the service of a case have ended in its way."""
    found = asked(site.folder, "upstreams")
    assert found["calls"] == sum(row["calls"] for row in found["ends"]), found
    way = (site.name_of(case), case.kind, case.end)
    return sum(row["calls"] for row in found["ends"] if (row["server"], row["kind"], row["end"]) == way)


def test_a_running_call_is_shown_with_its_service_and_part(site: Site) -> None:
    case = CASES[1]
    with load(site.server, f"/{case.name}", clients=2):
        until("a running call is shown", lambda: re.search(rf"{re.escape(site.name_of(case))}.*first byte|first byte.*{re.escape(site.name_of(case))}",
                                                          ctl(site.folder, "active").stdout) is not None)


def test_the_finding_names_a_service_that_slows_requests(site: Site) -> None:
    case = CASES[1]
    with load(site.server, f"/{case.name}", clients=4):
        until(f"the finding names {site.name_of(case)}", lambda: site.name_of(case) in ctl(site.folder, "finding").stdout, 60)
    assert site.server.fetch("/").body == b"home"
