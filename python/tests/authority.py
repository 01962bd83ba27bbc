"""An authority that signs certificates by ACME, for tests: Pebble, its server of names, a relay in front of it, and ways to a server.

    client -- https --> relay -- https --> Pebble -- challenges --> ways --> the server under test
                                             `-- names --> pebble-challtestsrv

Pebble asks fixed ports of all names, and a server of the tests has other ones: a ``Way`` leads there as soon as it is known. The relay
counts orders, and answers in Pebble's place where a test says so.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import os
import shutil
import socket
import ssl
import subprocess
import threading
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from certificates import Authority, needs_openssl
from conftest import PATIENCE, Server

TOOLS = Path(__file__).resolve().parents[2] / ".build/tools/bin"
PLACES = f"{TOOLS}:{os.environ.get('PATH', '')}"
PEBBLE, NAMES = (shutil.which(name, path=PLACES) for name in ("pebble", "pebble-challtestsrv"))

needs_pebble = [
    needs_openssl,
    pytest.mark.skipif(not (PEBBLE and NAMES), reason="needs pebble and pebble-challtestsrv (scripts/pebble .build/tools, with Go)"),
]

#: In seconds; a client that is told `tlsserver` must not get the first one.
PROFILES = {"default": 90 * 86400, "tlsserver": 45 * 86400, "shortlived": 6 * 86400}
EAB = ("kid-1", "zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W")


@dataclass(frozen=True)
class Order:
    """A request for an order, and the status of its answer."""

    names: tuple[str, ...]
    replaces: str
    profile: str
    status: int


@dataclass
class Fault:
    """An answer of the relay in Pebble's place."""

    resource: str
    #: 0: the connection ends without an answer.
    status: int
    problem: dict[str, Any]
    fields: dict[str, str]
    #: None: as often as it is asked.
    times: int | None


@dataclass
class Gate:
    """Requests for a resource wait here, and are passed on when it opens."""

    resource: str
    reached: threading.Event = field(default_factory=threading.Event)
    opened: threading.Event = field(default_factory=threading.Event)


class Way:
    """A port that leads to another one. Connections that come before that is known wait."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.listener.getsockname()[1]
        self.count = 0
        self._target = 0
        self._known = threading.Condition()
        self._open: set[socket.socket] = set()
        threading.Thread(target=self._accept, daemon=True).start()

    def leads_to(self, port: int) -> None:
        with self._known:
            self._target = port
            self._known.notify_all()

    def close(self) -> None:
        # shutdown: another thread waits in accept.
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for peer in list(self._open):
            peer.close()
        self.leads_to(-1)

    def _accept(self) -> None:
        while True:
            try:
                peer, _ = self.listener.accept()
            except OSError:
                return
            self.count += 1
            threading.Thread(target=self._lead, args=(peer,), daemon=True).start()

    def _lead(self, peer: socket.socket) -> None:
        with self._known:
            self._known.wait_for(lambda: self._target != 0)
        with contextlib.suppress(OSError), peer, socket.socket() as other:
            self._open |= {peer, other}
            try:
                other.connect(("127.0.0.1", self._target))
                back = threading.Thread(target=pump, args=(other, peer), daemon=True)
                back.start()
                pump(peer, other)
                back.join()
            finally:
                self._open -= {peer, other}


def pump(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while part := source.recv(65536):
            target.sendall(part)
        target.shutdown(socket.SHUT_WR)


class Relay(ThreadingHTTPServer):
    """Between clients and Pebble."""

    daemon_threads = True
    #: The directory's answer gives a resource its name.
    resources: dict[str, str]

    def __init__(self, context: ssl.SSLContext, pebble: Pebble) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.context, self.pebble, self.resources = context, pebble, {"/dir": "directory"}

    def finish_request(self, request: Any, client_address: Any) -> None:
        """The handshake is the thread's of the connection."""
        if not self.pebble.is_down:
            with contextlib.suppress(OSError), self.context.wrap_socket(request, server_side=True) as peer:
                self.RequestHandlerClass(peer, client_address, self)

    def resource(self, path: str) -> str:
        """As the directory calls it, or the first part of the path."""
        named = (name for start, name in self.resources.items() if path.startswith(start))
        return next(named, path.split("/")[1])


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Relay

    def do_GET(self) -> None:
        pebble, body = self.server.pebble, self.rfile.read(int(self.headers.get("Content-Length", 0)))
        resource = self.server.resource(self.path)
        pebble.requests.append(resource)
        pebble.pass_gates(resource)
        if pebble.is_down:
            self.close_connection = True
            return
        fault = pebble.next_fault(resource)
        if fault is None:
            status, fields, answer = self.pass_on(body)
        elif fault.status == 0:
            self.close_connection = True
            return
        else:
            answer = json.dumps({"type": "about:blank", "status": fault.status, **fault.problem}).encode()
            status, fields = fault.status, [("Content-Type", "application/problem+json"), *fault.fields.items()]
            if self.command == "POST":
                # As each answer to a POST.
                fields.append(("Replay-Nonce", pebble.nonce()))
        if resource == "directory" and fault is None:
            pebble.learn(json.loads(answer))
        if resource == "newOrder":
            asked = payload(body)
            names = tuple(each["value"] for each in asked.get("identifiers", ()))
            pebble.orders.append(Order(names, asked.get("replaces", ""), asked.get("profile", ""), status))
        self.send_response_only(status)
        for name, value in fields:
            self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer)

    do_HEAD = do_POST = do_GET

    def pass_on(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        """With the host that the client has named: Pebble makes its addresses of it."""
        connection = http.client.HTTPSConnection("127.0.0.1", self.server.pebble.port, context=self.server.pebble.trusting)
        connection.request(self.command, self.path, body, dict(self.headers))
        response = connection.getresponse()
        hop = ("content-length", "connection", "transfer-encoding")
        fields = [(name, value) for name, value in response.getheaders() if name.lower() not in hop]
        answer = response.read()
        connection.close()
        return response.status, fields, answer

    def log_message(self, format: str, *arguments: Any) -> None:
        """No lines between those of the tests."""


def payload(body: bytes) -> dict[str, Any]:
    """The wish of a signed request; the signature is Pebble's affair."""
    try:
        text = json.loads(body)["payload"]
        asked = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        return asked if isinstance(asked, dict) else {}
    except (ValueError, KeyError):
        return {}


class Pebble:
    """A running authority."""

    def __init__(
        self,
        folder: Path,
        authority: Authority,
        nonce_rejects: int = 5,
        authz_reuse: int = 0,
        alternate_roots: int = 0,
        chain_length: int = 1,
        eab: bool = False,
        profiles: dict[str, int] = PROFILES,
        blocked: tuple[str, ...] = (),
    ) -> None:
        self.folder, self.trust = folder, authority.file
        self.orders: list[Order] = []
        self.requests: list[str] = []
        self.is_down = False
        self.faults: list[Fault] = []
        self.gates: list[Gate] = []
        self.http, self.tls = Way(), Way()
        self.trusting = authority.client()
        self._processes: list[subprocess.Popen[bytes]] = []
        pair = authority.issue("localhost", "127.0.0.1")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pair.certificate, pair.key)
        self._relay = Relay(context, self)
        self.directory = f"https://localhost:{self._relay.server_port}/dir"
        self.options = ["--acme-directory", self.directory, "--acme-ca", str(self.trust)]
        self._settings = {
            "certificate": str(pair.certificate),
            "privateKey": str(pair.key),
            "httpPort": self.http.port,
            "tlsPort": self.tls.port,
            "externalAccountBindingRequired": eab,
            "externalAccountMACKeys": dict([EAB]) if eab else {},
            "domainBlocklist": blocked,
            "retryAfter": {"authz": 1, "order": 1},
            "keyAlgorithm": "ecdsa",
            "profiles": {name: {"description": name, "validityPeriod": seconds} for name, seconds in profiles.items()},
        }
        self._environment = {
            "PEBBLE_VA_NOSLEEP": "1",
            "PEBBLE_WFE_NONCEREJECT": str(nonce_rejects),
            "PEBBLE_AUTHZREUSE": str(authz_reuse),
            "PEBBLE_ALTERNATE_ROOTS": str(alternate_roots),
            "PEBBLE_CHAIN_LENGTH": str(chain_length),
        }
        self._start()
        threading.Thread(target=self._relay.serve_forever, daemon=True).start()

    def _start(self) -> None:
        """Both programs want to be told their ports; another program may have taken one meanwhile."""
        for _ in range(5):
            self.port, self.management, names, self.names = free_ports(4)
            file = self.folder / "pebble.json"
            addresses = {"listenAddress": f"127.0.0.1:{self.port}", "managementListenAddress": f"127.0.0.1:{self.management}"}
            file.write_text(json.dumps({"pebble": self._settings | addresses}))
            answers = [f"-{kind}=" for kind in ("http01", "https01", "doh", "tlsalpn01", "defaultIPv6")]
            commands = [
                [PEBBLE, "-strict", "-config", file, "-dnsserver", f"127.0.0.1:{names}"],
                [NAMES, *answers, f"-dnsserver=127.0.0.1:{names}", f"-management=127.0.0.1:{self.names}"],
            ]
            logs = [self.folder / "pebble.log", self.folder / "names.log"]
            for command, log in zip(commands, logs):
                with log.open("wb") as out:
                    environment = os.environ | self._environment
                    self._processes.append(subprocess.Popen(command, stdout=out, stderr=out, env=environment, cwd=self.folder))
            if all([self._listens(port) for port in (self.port, self.management, names, self.names)]):
                return
            self._end()
        raise AssertionError("\n".join(log.read_text() for log in logs))

    def _listens(self, port: int) -> bool:
        end = time.monotonic() + PATIENCE
        while all(process.poll() is None for process in self._processes) and time.monotonic() < end:
            with contextlib.suppress(OSError), socket.socket() as peer:
                peer.connect(("127.0.0.1", port))
                return True
            time.sleep(0.01)
        return False

    def _end(self) -> None:
        while self._processes:
            process = self._processes.pop()
            process.kill()
            process.wait()

    def close(self) -> None:
        for gate in self.gates:
            gate.opened.set()
        self._relay.shutdown()
        self._relay.server_close()
        self.http.close()
        self.tls.close()
        self._end()

    # Ways and names

    def leads_to(self, server: Server) -> None:
        """Challenges reach this server, whose first listener has no TLS; the second one has."""
        self.http.leads_to(server.ports[0])
        self.tls.leads_to(server.ports[1])

    def tell_names(self, command: str, **what: Any) -> None:
        """To the server of names: ``add-a``, ``set-txt`` and others."""
        request = urllib.request.Request(f"http://127.0.0.1:{self.names}/{command}", json.dumps(what).encode())
        with urllib.request.urlopen(request, timeout=PATIENCE) as response:
            assert response.status == 200

    # Faults

    def learn(self, directory: dict[str, Any]) -> None:
        """Paths of resources, longest first: one may begin as another."""
        paths = {"/" + str(url).split("/", 3)[3]: name for name, url in directory.items() if isinstance(url, str)}
        self._relay.resources = {"/dir": "directory"} | dict(sorted(paths.items(), reverse=True))

    def fail(self, resource: str, status: int, kind: str = "serverInternal", detail: str = "", times: int | None = 1, **fields: str) -> None:
        """The next answers for a resource of the directory. An underscore in a field's name is a hyphen."""
        problem = {"type": f"urn:ietf:params:acme:error:{kind}", "detail": detail or kind}
        named = {name.replace("_", "-"): value for name, value in fields.items()}
        self.faults.append(Fault(resource, status, problem, named, times))

    def next_fault(self, resource: str) -> Fault | None:
        for fault in self.faults:
            if fault.resource in (resource, "any"):
                if fault.times is not None:
                    fault.times -= 1
                    if fault.times == 0:
                        self.faults.remove(fault)
                return fault
        return None

    @contextlib.contextmanager
    def gate(self, resource: str) -> Iterator[Gate]:
        """Requests for this resource are not answered within."""
        gate = Gate(resource)
        self.gates.append(gate)
        try:
            yield gate
        finally:
            self.gates.remove(gate)
            gate.opened.set()

    def pass_gates(self, resource: str) -> None:
        for gate in [gate for gate in self.gates if gate.resource in (resource, "any")]:
            gate.reached.set()
            gate.opened.wait()

    # Answers of Pebble

    def nonce(self) -> str:
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, context=self.trusting)
        connection.request("HEAD", "/nonce-plz", headers={"User-Agent": "tests"})
        found = connection.getresponse().headers["Replay-Nonce"]
        connection.close()
        return str(found)

    def root(self, number: int = 0) -> str:
        """PEM; roots are others at each start."""
        with urllib.request.urlopen(f"https://127.0.0.1:{self.management}/roots/{number}", context=self.trusting) as response:
            return str(response.read().decode())

    def root_name(self, number: int) -> str:
        context = self.client(number)
        return next(str(value) for ((key, value),) in context.get_ca_certs()[0]["subject"] if key == "commonName")  # type: ignore[misc]

    def client(self, number: int = 0) -> ssl.SSLContext:
        """Trusts this root."""
        return ssl.create_default_context(cadata=self.root(number))

    def set_window(self, certificate: str, start: float, end: float) -> None:
        """When a certificate (PEM) is to be renewed, in seconds from now."""
        now = datetime.now(timezone.utc)
        window = {name: (now + timedelta(seconds=at)).isoformat() for name, at in (("start", start), ("end", end))}
        text = json.dumps({"certificate": certificate, "ariResponse": json.dumps({"suggestedWindow": window})})
        request = urllib.request.Request(f"https://127.0.0.1:{self.management}/set-renewal-info/", text.encode())
        with urllib.request.urlopen(request, context=self.trusting) as response:
            assert response.status == 200


def free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        listeners = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [int(listener.getsockname()[1]) for listener in listeners]


@contextlib.contextmanager
def pebble(folder: Path, authority: Authority, **knobs: Any) -> Iterator[Pebble]:
    folder.mkdir()
    running = Pebble(folder, authority, **knobs)
    try:
        yield running
    finally:
        running.close()
