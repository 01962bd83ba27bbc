"""Load: wrk, and our own generator for a fixed schedule and for many connections; on the load's core, bounded in time.

wrk is the load where only CPU time counts.  Its latencies are not used: it "corrects" them by assuming a rate, wrongly
so with pipelining, and its percentiles then come out as zero.
"""

from __future__ import annotations

import http.client
import json
import ssl
import struct
import subprocess
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from . import machine

#: How much longer than asked a load program may take (connecting 16,384 times, late answers).
SPARE_S = 30

_WRK_SCRIPT = """
done = function(summary, latency, requests)
  local e = summary.errors
  io.write(string.format(
    '\\n@{"requests":%d,"bytes":%.0f,"duration_us":%d,"connect":%d,"read":%d,"write":%d,"status":%d,"timeout":%d}\\n',
    summary.requests, summary.bytes, summary.duration, e.connect, e.read, e.write, e.status, e.timeout))
end
"""
GENERATOR = machine.TARGET / "bench/release/openloop"


class WrongAnswer(Exception):
    """A server answered something else than the file; its figures would mean nothing."""


@dataclass(frozen=True)
class Closed:
    """Outcome of a closed loop.  `p50`, `p99` and `max` in microseconds, from sending a batch to its last answer."""

    requests: int
    seconds: float
    failed: int
    bytes: int = 0
    p50: float = 0.0
    p99: float = 0.0
    p999: float = 0.0
    max: float = 0.0
    #: Of the failed ones, those that were answered with another status or length.
    wrong: int = 0
    #: What the load itself took; 0 where it is not known.
    cpu_ns: int = 0

    @property
    def rate(self) -> float:
        return self.requests / self.seconds


def wrk(port: int, path: str, connections: int, seconds: float, folder: Path,
        headers: Sequence[str] = (), body: int | None = None, pinned: bool = True) -> Closed:
    """Load `path` over so many keep-alive connections.  wrk takes whole seconds; less than one is one.  With `body` each request is
    a POST with so many bytes. Without `pinned` it may use the server's core too."""
    script = folder / "wrk.lua"
    post = "" if body is None else f'wrk.method = "POST"\nwrk.body = string.rep("x", {body})\n'
    script.write_text(post + _WRK_SCRIPT)
    duration = max(1, round(seconds))
    command = [*machine.pinned(*machine.cores()[1 if pinned else 0:]), "wrk", "-t1", f"-c{connections}", f"-d{duration}s",
               "--timeout", "10s", "-s", str(script), *(word for header in headers for word in ("-H", header)),
               f"http://127.0.0.1:{port}{path}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=duration + SPARE_S, check=False)
    lines = [line[1:] for line in done.stdout.splitlines() if line.startswith("@")]
    if done.returncode or not lines:
        raise RuntimeError(f"wrk failed: {done.stderr.strip() or done.stdout.strip()}")
    said = json.loads(lines[-1])
    if said["status"]:
        raise WrongAnswer(f"{said['status']} answers of {path} were not 2xx")
    failed = said["connect"] + said["read"] + said["write"] + said["timeout"]
    return Closed(said["requests"], said["duration_us"] / 1e6, failed, said["bytes"])


def one_path(path: str, length: int) -> list[str]:
    """What to send: this path, whose answers have a body of this length."""
    return ["--path", path, "--length", str(length)]


def listed(requests: Path) -> list[str]:
    """What to send: the requests of a file (see `traffic.write`), in turn."""
    return ["--requests", str(requests)]


def busy(port: int, what: Sequence[str], connections: int, depth: int, seconds: float, warm_up: float,
         marks: dict[str, Callable[[], None]], spin: bool = True, pinned: bool = True) -> Closed:
    """Keep every connection busy with `depth` requests.  `marks` are called at "measuring" and at "measured".

    Without `spin` the generator sleeps when nothing has come, and the server pays for waking it; without `pinned` it may
    use the server's core too."""
    command = [*_generator(port, what, connections, seconds, warm_up, pinned), "--closed", str(depth)]
    command += ["--spin"] * spin
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    limit = threading.Timer(seconds + warm_up + SPARE_S, process.kill)
    limit.start()
    said, spent = {}, {}
    try:
        assert process.stdout is not None and process.stderr is not None
        for line in process.stdout:
            name, _, value = line.strip().partition(" ")
            said[name] = value
            if name in marks:
                spent[name] = machine.cpu_ns(process.pid)
                marks[name]()
        if process.wait():
            raise RuntimeError(f"openloop failed: {process.stderr.read().strip() or 'took too long'}")
    finally:
        limit.cancel()
        process.kill()
        process.wait()
    return Closed(int(said["answered"]), float(said["seconds"]), int(said["wrong"]) + int(said["broken"]), 0,
                  float(said["p50_us"]), float(said["p99_us"]), float(said["p99.9_us"]), float(said["max_us"]),
                  int(said["wrong"]), spent.get("measured", 0) - spent.get("measuring", 0))


def _generator(port: int, what: Sequence[str], connections: int, seconds: float, warm_up: float,
               pinned: bool) -> list[str]:
    return [*machine.pinned(*machine.cores()[1 if pinned else 0:]), str(GENERATOR), "--connect", f"127.0.0.1:{port}", *what,
            "--connections", str(connections), "--seconds", str(seconds), "--warm-up", str(warm_up)]


@dataclass(frozen=True)
class Open:
    """Outcome of a fixed schedule.  Latencies count from the scheduled time; microseconds, every one, sorted.

    Those of background requests are not among them."""

    latencies: list[float]
    scheduled: int
    wrong: int
    broken: int
    missing: int
    lag_p99: float
    background: int = 0

    @property
    def answered(self) -> int:
        return len(self.latencies) + self.background


def openloop(port: int, what: Sequence[str], rate: float, seconds: float, warm_up: float, connections: int,
             folder: Path, poisson: int | None = None, pinned: bool = True) -> Open:
    """Send `rate` requests a second for so long, whatever the answers do; at random intervals with that seed.

    Without `pinned` the generator may use the server's core too."""
    dump = folder / "latencies"
    command = [*_generator(port, what, connections, seconds, warm_up, pinned), "--rate", str(rate), "--dump", str(dump)]
    if poisson is not None:
        command += ["--poisson", str(poisson)]
    done = subprocess.run(command, capture_output=True, text=True, check=True,
                          timeout=seconds + warm_up + SPARE_S)
    said = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    latencies = [tenths / 10 for (tenths,) in struct.iter_unpack("<I", dump.read_bytes())]
    return Open(latencies, int(said["scheduled"]), int(said["wrong"]), int(said["broken"]), int(said["missing"]),
                float(said["lag_p99_us"]), int(said["background"]))


def verify(name: str, port: int, path: str, body: bytes | None, length: int, context: ssl.SSLContext | None = None) -> None:
    """Fetch twice over one connection, by TLS with a context: 200, the right length, the right bytes (unless `body` is None)."""
    connection = (http.client.HTTPSConnection("127.0.0.1", port, timeout=10, context=context) if context
                  else http.client.HTTPConnection("127.0.0.1", port, timeout=10))
    try:
        for _ in range(2):
            connection.request("GET", path)
            answer = connection.getresponse()
            said = answer.read()
            if answer.status != 200 or len(said) != length or (body is not None and said != body):
                raise WrongAnswer(f"{name} answered {path} with {answer.status} and {len(said)} bytes, "
                                  f"not 200 and the {length} bytes of the file")
    finally:
        connection.close()
