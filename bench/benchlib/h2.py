"""HTTP/2: the contenders with it, in clear text by prior knowledge or by TLS, and h2load, which loads all of them alike."""

from __future__ import annotations

import dataclasses
import functools
import re
import ssl
import subprocess
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from . import figures, load, machine, python_servers, rounds, secured, servers, streams
from .peers import Environment
from .report import Report, say
from .servers import Contender, Place, Server

CLEAR, TLS = "clear text", "TLS"
WAYS = (CLEAR, TLS)
#: Connections, and streams on each.
CONNECTIONS, STREAMS = 10, 32
#: What a browser sends beside a path; h2load has fields of its own for method, scheme, authority and user agent.
FIELDS = (
    "accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
    "accept-language: de-CH,de;q=0.9,en;q=0.8",
    "accept-encoding: gzip, deflate, br, zstd",
    "referer: http://localhost/shop/items/00042",
    "cookie: session=9e3779b97f4a7c15; theme=dark; consent=none",
    "upgrade-insecure-requests: 1",
    "sec-fetch-dest: document",
    "sec-fetch-mode: navigate",
    "sec-fetch-site: same-origin",
    "sec-fetch-user: ?1",
    "priority: u=0, i",
    "te: trailers",
)
APACHE = Path("/usr/lib/apache2/modules")
APACHE_MODULES = ("mpm_event", "authz_core", "mime", "http2", "ssl", "socache_shmcb")


# Contenders


def files(way: str, pair: secured.Pair, threads: int | None, pinned: bool = True) -> list[Contender]:
    """Those that serve files: one thread each, or as many as they have by default (`None`)."""
    every = [_ours(way, pair, threads), *_nginx(way, pair), _h2o(way, pair, threads), _apache(way, pair)]
    return [dataclasses.replace(each, pinned=pinned) for each in every]


def _ours(way: str, pair: secured.Pair, threads: int | None) -> Contender:
    made = servers.maitred(threads or 1) if way == CLEAR else secured.maitred(pair, threads or 1)
    return made if threads else dataclasses.replace(made, command=functools.partial(_with_default_threads, made.command))


def _with_default_threads(command: Callable[[Contender, Place], list[str]], contender: Contender, place: Place) -> list[str]:
    words = command(contender, place)
    at = words.index("--max-threads") if "--max-threads" in words else len(words)
    return words[:at] + words[at + 2 :]


def _nginx(way: str, pair: secured.Pair) -> list[Contender]:
    """Also without sendfile, which saves system calls of small files."""
    plain = servers.NGINX if way == CLEAR else secured.nginx(pair)
    made = dataclasses.replace(plain, options={**plain.options, "listen": f"{plain.options.get('listen', '')} http2"})
    without = f"{plain.options.get('server', '')} sendfile off; tcp_nopush off;"
    return [made, dataclasses.replace(made, name=f"{made.name} without sendfile", options={**made.options, "server": without})]


def _h2o(way: str, pair: secured.Pair, threads: int | None) -> Contender:
    workers = threads or len(set(machine.cores()))
    return dataclasses.replace(servers.H2O, command=functools.partial(_h2o_command, way, pair), options={"workers": workers})


def _h2o_command(way: str, pair: secured.Pair, contender: Contender, place: Place) -> list[str]:
    command = servers.H2O.command(contender, place)
    configuration = place.folder / "h2o.conf"
    ssl = f", ssl: {{ certificate-file: {pair.certificate}, key-file: {pair.key} }}" if way == TLS else ""
    configuration.write_text(configuration.read_text().replace(f"port: {place.port} }}", f"port: {place.port}{ssl} }}"))
    return command


def _apache(way: str, pair: secured.Pair) -> Contender:
    """The event MPM and mod_http2 with their defaults."""
    return Contender("Apache", "apache2", functools.partial(_apache_command, way, pair))


def _apache_command(way: str, pair: secured.Pair, contender: Contender, place: Place) -> list[str]:
    modules = "\n".join(f"LoadModule {name}_module {APACHE}/mod_{name}.so" for name in APACHE_MODULES)
    ssl = f"SSLEngine on\nSSLCertificateFile {pair.certificate}\nSSLCertificateKeyFile {pair.key}\nSSLProtocol -all +TLSv1.2 +TLSv1.3"
    configuration = place.folder / "apache.conf"
    configuration.write_text(f"""
ServerRoot {place.folder}
{modules}
ServerName localhost
Listen 127.0.0.1:{place.port}
PidFile {place.folder}/pid
ErrorLog {place.folder}/error.log
TypesConfig /etc/mime.types
User nobody
Group nogroup
KeepAlive On
MaxKeepAliveRequests 0
KeepAliveTimeout {servers.KEEP_ALIVE_S}
Protocols {"h2 http/1.1" if way == TLS else "h2c http/1.1"}
{ssl if way == TLS else ""}
DocumentRoot {place.root}
<Directory {place.root}>
  Require all granted
</Directory>
""")
    return [str(contender.found()), "-DFOREGROUND", "-f", str(configuration)]


def python(environment: Environment, application: str, interface: str, pinned: bool = True) -> list[Contender]:
    """Those with HTTP/2 by prior knowledge that run Python, each with one worker and its defaults."""
    def one(name: str, command: Callable[[Contender, Place], list[str]], *words: str) -> Contender:
        variables = {"PYTHONPATH": str(python_servers.APPS), "VIRTUAL_ENV": str(environment.folder)}
        options: dict[str, object] = {"application": application, "words": list(words)}
        return Contender(name, environment.program(name), command, options, variables, pinned)

    return [one("hypercorn", functools.partial(_hypercorn, interface)),
            one("granian", _granian, "--interface", interface, *(["--loop", "uvloop"] if interface == "asgi" else [])),
            one("weft", _plain, "--interface", interface), one("peregrine", _plain, "--protocol", interface),
            python_servers.ours(environment, application, interface, pinned=pinned)]


def _words(contender: Contender) -> tuple[str, list[str]]:
    words = contender.options["words"]
    assert isinstance(words, list)
    return str(contender.options["application"]), words


def _hypercorn(interface: str, contender: Contender, place: Place) -> list[str]:
    application, _ = _words(contender)
    return [str(contender.program), f"{interface}:{application}", "--bind", f"127.0.0.1:{place.port}", "--workers", "1",
            *(["--worker-class", "uvloop"] if interface == "asgi" else [])]


def _granian(contender: Contender, place: Place) -> list[str]:
    application, words = _words(contender)
    return [str(contender.program), application, "--host", "127.0.0.1", "--port", str(place.port), "--http", "2", "--workers", "1", *words]


def _plain(contender: Contender, place: Place) -> list[str]:
    application, words = _words(contender)
    return [str(contender.program), application, "--host", "127.0.0.1", "--port", str(place.port), "--workers", "1", *words]


# Load


@dataclass(frozen=True)
class Load:
    """What h2load asks for: these paths in turn on each connection, whose answers have this length, with these fields."""

    way: str
    paths: Sequence[str]
    length: int
    fields: Sequence[str] = ()
    connections: int = CONNECTIONS
    streams: int = STREAMS


@dataclass(frozen=True)
class Outcome:
    closed: load.Closed
    #: Bytes of an answer's head on the wire.
    head: float


def verify(server: Server, what: Load, bodies: Sequence[bytes], certificate: Path | None = None) -> None:
    """Fetch every path by HTTP/2 and compare; raise `load.WrongAnswer` where that is not the body, or not HTTP/2."""
    context = None
    if what.way == TLS:
        context = ssl.create_default_context(cafile=certificate)
        context.set_alpn_protocols(["h2"])
    named = (each.partition(": ") for each in what.fields if not each.startswith("accept-encoding"))
    fields = b"".join(streams.own(name.encode(), value.encode()) for name, _, value in named)
    try:
        with streams.Connection(server.port, keeps=True, context=context) as connection:
            for path, body in zip(what.paths, bodies, strict=True):
                if connection.fetch(path.encode(), fields).body != body:
                    raise load.WrongAnswer(f"{server.name}, {what.way}: {path} has another body")
                connection.answers.clear()
    except OSError as error:
        raise load.WrongAnswer(f"{server.name}, HTTP/2 by {what.way}: {error}") from error


#: What h2load says when its window begins and ends.
BEGINS, ENDS = "Main benchmark duration is started", "Main benchmark duration is over"


def run(server: Server, what: Load, seconds: float, folder: Path, pinned: bool = True) -> rounds.Timed[Outcome]:
    """Load the server for so long behind a warm-up of a quarter of it, and account for it."""
    listed = folder / "paths"
    listed.write_text("\n".join(what.paths) + "\n")
    scheme = "http" if what.way == CLEAR else "https"
    fields = [word for field in what.fields for word in ("-H", field)]
    # h2load has no fractions of a unit.
    command = [*machine.pinned(*machine.cores()[1 if pinned else 0 :]), "h2load", "-t", "1", "-c", str(what.connections), "-m", str(what.streams),
               "-D", f"{round(seconds * 1000)}ms", f"--warm-up-time={max(round(seconds * 250), 10)}ms", "-B", f"{scheme}://127.0.0.1:{server.port}",
               "-i", str(listed), *fields]
    meter = rounds.Meter(server)
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    limit = threading.Timer(2 * seconds + load.SPARE_S, process.kill)
    limit.start()
    said = []
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith(BEGINS):
                meter.start()
            elif line.startswith(ENDS):
                meter.stop()
            said.append(line)
        if process.wait():
            raise load.WrongAnswer(f"{server.name}: h2load: {''.join(said).strip()[-300:] or 'took too long'}")
    finally:
        limit.cancel()
        process.kill()
        process.wait()
    return rounds.Timed(parsed(server.name, "".join(said), what, seconds), meter.cpu_ns, meter.others)


def parsed(name: str, said: str, what: Load, seconds: float) -> Outcome:
    """What h2load says at its end.  Requests on their way when the window ends count as failed by nobody."""
    requests = re.search(r"requests: (\d+) total, .* (\d+) succeeded, (\d+) failed, (\d+) errored, (\d+) timeout", said)
    statuses = re.search(r"status codes: (\d+) 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx", said)
    traffic = re.search(r"traffic: .*\((\d+)\) total, .*\((\d+)\) headers .*\((\d+)\) data", said)
    if not requests or not statuses or not traffic:
        raise load.WrongAnswer(f"{name}: h2load says {said.strip()[-300:]}")
    succeeded, failed, errored, timeout = (int(each) for each in requests.groups()[1:])
    if any(int(each) for each in statuses.groups()[1:]):
        raise load.WrongAnswer(f"{name}: other statuses than 2xx: {statuses[0]}")
    if failed or errored or timeout:
        raise load.WrongAnswer(f"{name}: {requests[0]}")
    _, heads, data = (int(each) for each in traffic.groups())
    # Of the largest files only a few are complete; the bytes count those on their way.
    counted = data / what.length if what.length > 1 << 20 else succeeded
    return Outcome(load.Closed(counted, seconds, 0, data), heads / max(succeeded, 1))


def able(up: Sequence[Server], what: Load, bodies: Sequence[bytes], ours: str, report: Report,
         certificate: Path | None = None) -> list[Server]:
    """Those that answer right by HTTP/2; one that does not is left out with a line, ours is an error."""
    right = []
    for server in up:
        try:
            verify(server, what, bodies, certificate)
            right.append(server)
        except load.WrongAnswer as error:
            if server.name == ours:
                raise
            say(f"left out: {error}")
            report.text(f"left out: {error}")
    return right


def version() -> str:
    """Of h2load, for the report."""
    return subprocess.run(["h2load", "--version"], capture_output=True, text=True, timeout=10, check=False).stdout.strip()


def heads(samples: dict[str, list[float]]) -> str:
    """For the report: how long the head of an answer is on the wire."""
    return "Bytes of an answer's head: " + ", ".join(f"{name} {figures.spread(values).median:.0f}" for name, values in samples.items()) + "."
