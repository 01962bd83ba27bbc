"""The contenders: how each server is configured, started, watched and ended.

Every server gets one thread (one worker), no access log unless the bench is about it, sendfile where it has it,
keep-alive without a limit worth mentioning, and the same root folder.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from . import machine

START_LIMIT_S = 10.0
END_LIMIT_S = 10.0
#: Idle connections must outlive every measurement.
KEEP_ALIVE_S = 3600
BACKLOG = 4096


class CannotStart(Exception):
    """A server did not come up; the text holds what it said."""


def _searched() -> str:
    """Debian keeps the programs of servers out of the path."""
    return os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin"


@dataclass(frozen=True)
class Place:
    """What a server is given: its root, a folder of its own, a port, and how many connections to expect."""

    root: Path
    folder: Path
    port: int
    connections: int


@dataclass(frozen=True)
class Contender:
    """A server that can be measured."""

    name: str
    program: str | Path
    #: Writes what the server needs and returns its command line.
    command: Callable[[Contender, Place], list[str]]
    options: dict[str, object] = field(default_factory=dict)
    #: Variables added to the bench's own.
    environment: dict[str, str] = field(default_factory=dict)
    #: Held to the server's core; otherwise it may use the load's as well.
    pinned: bool = True

    def found(self) -> str | None:
        return shutil.which(str(self.program), path=_searched())

    def absent(self) -> str | None:
        """The name of its program if that is not there."""
        return None if self.found() else Path(self.program).name


@dataclass
class Server:
    """A running server."""

    name: str
    port: int
    process: subprocess.Popen[bytes]
    #: Where its standard output and standard error go.
    output: Path
    #: Held to the server's core.
    pinned: bool = True

    @property
    def pid(self) -> int:
        return self.process.pid


def _nginx(contender: Contender, place: Place) -> list[str]:
    cache = "open_file_cache max=1000 inactive=60m; open_file_cache_valid 60m;" if contender.options["cache"] else ""
    temporary = " ".join(f"{kind}_temp_path {place.folder}/{kind};"
                         for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    configuration = place.folder / "nginx.conf"
    configuration.write_text(f"""
{"user root;" if os.geteuid() == 0 else ""}
worker_processes {contender.options.get("workers", 1)}; daemon off; pid {place.folder}/pid; error_log {place.folder}/error.log;
worker_rlimit_nofile {machine.raise_descriptor_limit()};
events {{ worker_connections {min(machine.raise_descriptor_limit(), place.connections + 4600)}; }}
http {{
  default_type application/octet-stream; {temporary}
  sendfile on; tcp_nopush on; tcp_nodelay on; {cache} {contender.options.get("more", "")}
  access_log {contender.options.get("log", "off")};
  keepalive_timeout {KEEP_ALIVE_S}s; keepalive_requests 1000000000;
  server {{ listen 127.0.0.1:{place.port} backlog={BACKLOG} {contender.options.get("listen", "")}; root {place.root}; {contender.options.get("server", "")} }}
}}
""")
    return [str(contender.found()), "-c", str(configuration), "-p", str(place.folder),
            "-e", str(place.folder / "error.log")]


def _h2o(contender: Contender, place: Place) -> list[str]:
    configuration = place.folder / "h2o.conf"
    configuration.write_text(f"""
{"user: root" if os.geteuid() == 0 else ""}
listen: {{ host: 127.0.0.1, port: {place.port} }}
num-threads: {contender.options.get("workers", 1)}
max-connections: {place.connections + 512}
http1-request-timeout: {KEEP_ALIVE_S}
error-log: {place.folder}/error.log
hosts:
  default:
    paths:
      /:
        file.dir: {place.root}
""")
    return [str(contender.found()), "-m", "worker", "-c", str(configuration)]


def _maitred(contender: Contender, place: Place) -> list[str]:
    return [str(contender.found()), f"{place.root}/", "--listen", f"127.0.0.1:{place.port}",
            "--max-threads", str(contender.options["threads"]), "--access-log", "off",
            "--keep-alive", str(KEEP_ALIVE_S)]


NGINX = Contender("nginx", "nginx", _nginx, {"cache": False})
NGINX_CACHE = Contender("nginx with open_file_cache", "nginx", _nginx, {"cache": True})


def nginx(name: str, more: str, log: str = "off") -> Contender:
    """nginx with more in its configuration, and an access log if there is to be one."""
    return Contender(name, "nginx", _nginx, {"cache": False, "more": more, "log": log})


H2O = Contender("h2o", "h2o", _h2o)


def maitred(threads: int = 1) -> Contender:
    """Ours, with as many application threads as told (one: what the others have)."""
    program = os.environ.get("MAITRED_BENCH_BINARY") or machine.TARGET / "release/maitred"
    return Contender("maitred", program, _maitred, {"threads": threads})


def cargo_build(package: str) -> None:
    """Build one of the small programs beside this module; an unchanged one takes no time."""
    manifest = machine.REPOSITORY / "bench" / package / "Cargo.toml"
    subprocess.run(["cargo", "build", "--quiet", "--locked", "--release", "--manifest-path", str(manifest),
                    "--target-dir", str(machine.TARGET / "bench")], check=True)


def version(program: str, option: str = "-v") -> str:
    """What a peer says of itself, for the report: `nginx 1.22.1`."""
    found = shutil.which(program, path=_searched())
    if found is None:
        return f"no {program}"
    done = subprocess.run([found, option], capture_output=True, text=True, timeout=10, check=False)
    number = re.search(r"\d+(?:\.\d+)+", done.stdout + done.stderr)
    return f"{program} {number.group() if number else '?'}"


@functools.cache
def offers(program: str | Path, option: str) -> bool:
    """Whether this program has an option of this name, by its whole help."""
    done = subprocess.run([str(program), "--help", "all"], capture_output=True, text=True, timeout=60, check=False)
    return re.search(rf"(?<![\w-]){re.escape(option)}(?![\w-])", done.stdout) is not None


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def running(contender: Contender, root: Path, folder: Path, connections: int = 512) -> Iterator[Server]:
    """Start a server on its core, wait until it accepts, end it afterwards (and nothing else)."""
    server = _start(contender, root, folder, connections)
    try:
        yield server
    finally:
        _end(server.process)


def _start(contender: Contender, root: Path, folder: Path, connections: int) -> Server:
    said = b""
    # Another process may take the port between the probe and the start.
    for attempt in range(3):
        own = folder / f"{contender.name.replace(' ', '-').replace(',', '')}-{attempt}-{time.monotonic_ns()}"
        own.mkdir(parents=True)
        place = Place(root, own, free_port(), connections)
        cores = machine.cores()[:1] if contender.pinned else machine.cores()
        command = [*machine.pinned(*cores), *contender.command(contender, place)]
        with (own / "output").open("wb") as output:
            process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                       env=os.environ | contender.environment)
        if _accepts(place, process):
            return Server(contender.name, place.port, process, own / "output", contender.pinned)
        _end(process)
        said = (own / "output").read_bytes()[-2000:]
    raise CannotStart(f"{contender.name} does not start: {said.decode(errors='replace').strip() or 'no output'}")


def _accepts(place: Place, process: subprocess.Popen[bytes]) -> bool:
    limit = time.monotonic() + START_LIMIT_S
    while time.monotonic() < limit and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", place.port), timeout=1).close()
        except OSError:
            time.sleep(0.01)
            continue
        # Somebody answers; it is ours only if ours still lives (a lost race for the port ends it).
        time.sleep(0.05)
        return process.poll() is None
    return False


def _end(process: subprocess.Popen[bytes]) -> None:
    members = machine.process_tree(process.pid) if process.poll() is None else []
    if process.poll() is None:
        process.terminate()
    try:
        process.wait(END_LIMIT_S)
    except subprocess.TimeoutExpired:
        for member in members:
            with contextlib.suppress(ProcessLookupError):
                os.kill(member, signal.SIGKILL)
        process.wait(END_LIMIT_S)
