"""Proxies in front of a server: haproxy and nginx, configured as docs/operations/proxies.md says, and what they do.

They keep connections alive on both sides, write no log, and have a thread or a worker for each core that they may use.
"""

from __future__ import annotations

import dataclasses
import http.client
import json
import re
import subprocess
from pathlib import Path

from . import machine, servers
from .load import WrongAnswer
from .servers import Contender, Place, Server

#: Connections that nginx keeps to the server behind it, for each worker; haproxy keeps all.
KEPT = 64
#: Longer than any measurement leaves a connection alone.
PATIENCE_S = 60
#: A client's address that is no proxy's: all of 127.0.0.0/8 is this machine.
CLIENT = "127.0.0.9"


def haproxy(name: str, behind: Contender, reuse: str = "safe") -> Contender:
    """haproxy in front of this server: by TCP with X-Forwarded fields, or by its Unix socket with PROXY v2.

    `reuse` is its `http-reuse`: whose connections to the server another client may have; without it its default."""
    return Contender(name, "haproxy", _haproxy, {"reuse": reuse}, pinned=behind.pinned, behind=behind)


def nginx(name: str, behind: Contender, prefix: str, folder: Path) -> Contender:
    """nginx in front of this server; it serves the files below the prefix itself, as is usual."""
    return Contender(name, "nginx", _nginx, {**servers.NGINX.options, "prefix": prefix, "files": folder},
                     pinned=behind.pinned, behind=behind)


def threads(pinned: bool) -> int:
    """Threads of haproxy and workers of nginx."""
    return 1 if pinned else len(set(machine.cores()))


def _haproxy(contender: Contender, place: Place) -> list[str]:
    behind = _behind(place)
    if behind.socket:
        fields, server = "", f"unix@{behind.socket} send-proxy-v2"
    else:
        fields = "option forwardfor\n  http-request set-header X-Forwarded-Proto https if { ssl_fc }"
        server = f"127.0.0.1:{behind.port}"
    configuration = place.folder / "haproxy.cfg"
    configuration.write_text(f"""
global
  nbthread {threads(contender.pinned)}
  maxconn {place.connections + 512}
defaults
  mode http
  timeout connect 5s
  timeout client {PATIENCE_S}s
  timeout server {PATIENCE_S}s
  http-reuse {contender.options["reuse"]}
listen front
  bind 127.0.0.1:{place.port} backlog {servers.BACKLOG}
  {fields}
  server application {server}
""")
    return [str(contender.found()), "-db", "-f", str(configuration)]


def _nginx(contender: Contender, place: Place) -> list[str]:
    behind = _behind(place)
    address = f"unix:{behind.socket}" if behind.socket else f"127.0.0.1:{behind.port}"
    forwarded = " ".join(f"proxy_set_header {name} {value};" for name, value in (
        ("Connection", '""'), ("Host", "$host"), ("X-Forwarded-For", "$proxy_add_x_forwarded_for"),
        ("X-Forwarded-Proto", "$scheme")))
    more = {"workers": threads(contender.pinned),
            "more": f"upstream application {{ server {address}; keepalive {KEPT}; }}",
            "server": f"location {contender.options['prefix']}/ {{ alias {contender.options['files']}/; }} "
                      f"location / {{ proxy_pass http://application; proxy_http_version 1.1; {forwarded} }}"}
    return servers.NGINX.command(dataclasses.replace(contender, options={**contender.options, **more}), place)


def _behind(place: Place) -> Server:
    assert place.behind is not None, "a proxy has a server behind it"
    return place.behind


def version(program: str) -> str:
    """What the program says of itself, for the report: `haproxy 2.6.12`."""
    found = Contender(program, program, _haproxy).found()
    if found is None:
        return f"no {program}"
    done = subprocess.run([found, "-v"], capture_output=True, text=True, timeout=10, check=False)
    number = re.search(r"\d+(?:\.\d+)+", done.stdout + done.stderr)
    return f"{program} {number.group() if number else '?'}"


@dataclasses.dataclass(frozen=True)
class Counts:
    """What one of ours has taken since it started."""

    connections: int
    requests: int


def counts(program: Path, server: Server) -> Counts:
    """Those of the last server, by `maitred ctl` of this program."""
    command = [str(program), "ctl", "--server", str(server.parts[-1].pid), "--json", "stats"]
    said = json.loads(subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout)
    return Counts(said["connections"], said["requests"])


def known(server: Server, path: str, answer: str) -> None:
    """Ask for a path whose answer says who the client is, as another client than the proxy.  Raise unless it is right."""
    client = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10, source_address=(CLIENT, 0))
    try:
        client.request("GET", path)
        said = client.getresponse().read().decode(errors="replace")
    except (OSError, http.client.HTTPException) as error:
        raise WrongAnswer(f"{server.name} did not answer {path}: {error!r}") from error
    finally:
        client.close()
    if said != answer:
        raise WrongAnswer(f"{server.name}: the application takes the client for {said!r}, not {answer!r}")
