"""TLS: a certificate for all contenders, how each of them is told to use it, and the load, which chooses group and cipher suite."""

from __future__ import annotations

import dataclasses
import functools
import ssl
import subprocess
from dataclasses import dataclass
from pathlib import Path

from . import clients, load, peers, python_servers, rounds, servers
from .servers import Contender, Place, Server

#: The folder of the files, which granian does not serve at the root.
FOLDER = "/files"
#: The file that haproxy has as well, as an answer of its own: it serves no files.
SMALL = f"{FOLDER}/1k"
#: Longer than any measurement leaves a connection of haproxy alone.
PATIENCE_S = 60
#: As rustls names them.
GROUPS = {"x25519": "x25519", "hybrid": "x25519mlkem768"}
KEPT, FULL, RESUMED = "kept", "full", "resumed"
#: Of the handshakes of a probe, whose first ones are full; more, and a server does not resume.
MOST_FULL = 0.5


@dataclass(frozen=True)
class Pair:
    """The files of a self-signed certificate, ECDSA P-256, and its key; and both in one, as haproxy wants them."""

    certificate: Path
    key: Path
    both: Path


def pair(folder: Path) -> Pair:
    """One for localhost and 127.0.0.1, made by openssl."""
    made = Pair(folder / "certificate.pem", folder / "key.pem", folder / "both.pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30",
                    "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
                    "-keyout", made.key, "-out", made.certificate], check=True, capture_output=True)
    made.both.write_bytes(made.certificate.read_bytes() + made.key.read_bytes())
    return made


def trusting(protocol: str) -> ssl.SSLContext:
    """Of clients that take any certificate, for this protocol of ALPN.  No authorities are loaded, which takes as long as many handshakes."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols([protocol])
    return context


def maitred(files: Pair, threads: int = 1) -> Contender:
    plain = servers.maitred(threads)
    return dataclasses.replace(plain, command=functools.partial(_maitred, files))


def nginx(files: Pair) -> Contender:
    """As it comes but for TLS 1.0 and 1.1, which are off in later versions; session tickets are on by default."""
    server = f"ssl_certificate {files.certificate}; ssl_certificate_key {files.key}; ssl_protocols TLSv1.2 TLSv1.3;"
    return dataclasses.replace(servers.NGINX, options={**servers.NGINX.options, "listen": "ssl", "server": server})


def haproxy(files: Pair) -> Contender:
    """Its own TLS with nothing behind it: it answers `SMALL` itself."""
    return Contender("haproxy", "haproxy", functools.partial(_haproxy, files))


def granian(files: Pair, environment: peers.Environment) -> Contender:
    """Its own files, which Python does not see; from TLS 1.2 on."""
    return Contender("granian", environment.program("granian"), functools.partial(_granian, files),
                     environment={"PYTHONPATH": str(python_servers.APPS), "VIRTUAL_ENV": str(environment.folder)})


def _maitred(files: Pair, contender: Contender, place: Place) -> list[str]:
    program, folder, _, _, *rest = servers.maitred(1).command(contender, place)
    return [program, folder, "--listen", f"https://127.0.0.1:{place.port}", "--tls-cert", str(files.certificate),
            "--tls-key", str(files.key), *rest]


def _haproxy(files: Pair, contender: Contender, place: Place) -> list[str]:
    configuration = place.folder / "haproxy.cfg"
    configuration.write_text(f"""
global
  nbthread 1
  maxconn {place.connections + 512}
defaults
  mode http
  timeout connect 5s
  timeout client {PATIENCE_S}s
  timeout server {PATIENCE_S}s
frontend own
  bind 127.0.0.1:{place.port} backlog {servers.BACKLOG} ssl crt {files.both} ssl-min-ver TLSv1.2
  http-request return status 200 content-type application/octet-stream file {place.root}{SMALL}
""")
    return [str(contender.found()), "-db", "-f", str(configuration)]


def _granian(files: Pair, contender: Contender, place: Place) -> list[str]:
    return [str(contender.program), "plain_wsgi:application", "--interface", "wsgi", "--host", "127.0.0.1", "--port", str(place.port),
            "--http", "1", "--workers", "1", "--no-ws", "--static-path-route", FOLDER, "--static-path-mount", f"{place.root}{FOLDER}",
            "--ssl-certificate", str(files.certificate), "--ssl-keyfile", str(files.key), "--ssl-protocol-min", "tls1.2"]


@dataclass(frozen=True)
class Load:
    """What the clients do: `KEPT` connections, or one for each request with a `FULL` or a `RESUMED` handshake."""

    path: str
    length: int
    connections: int
    kind: str = KEPT
    version: str = "1.3"
    group: str = "x25519"


@dataclass(frozen=True)
class Outcome:
    closed: load.Closed
    #: Of the handshakes.
    resumed: int
    suite: str
    group: str


def run(server: Server, what: Load, seconds: float) -> rounds.Timed[Outcome]:
    """Load the server for so long, and account for it behind the warm-up.  Raise `CannotDo` where a handshake fails."""
    words = [str(server.port), what.path, str(what.length), str(seconds), str(what.connections), what.kind, what.version, what.group]
    said, meter = clients.play("secured", server, words, 2 * seconds)
    closed = load.Closed(int(said["answered"]), float(said["seconds"]), int(said["broken"]), int(said["bytes"]))
    outcome = Outcome(closed, int(said["resumed"]), said.get("suite", ""), said.get("group", ""))
    return rounds.Timed(outcome, meter.cpu_ns, meter.others)


def probe(server: Server, what: Load, seconds: float) -> Outcome:
    """A short run that shows whether the server does what the load asks for; raise `CannotDo` if not."""
    outcome = run(server, what, seconds).outcome
    share = outcome.resumed / max(outcome.closed.requests, 1)
    if what.kind == RESUMED and share < 1 - MOST_FULL:
        raise clients.CannotDo(f"{share:.0%} of the sessions are resumed")
    if outcome.group and outcome.group.lower() != GROUPS[what.group]:
        raise clients.CannotDo(f"it takes {outcome.group}")
    if what.kind == FULL and share:
        raise load.WrongAnswer(f"{server.name} resumes sessions that nobody has asked for")
    return outcome
