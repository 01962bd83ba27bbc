"""Attacks with slowhttptest: whether the service stays, who is ended by which rule, and that an honest slow client is not."""

from __future__ import annotations

import concurrent.futures
import http.client
import re
import socket
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from benchlib import chart, figures, machine, metrics, rounds, servers, workbench
from benchlib.report import Report, say

TITLE = "Attacks with slowhttptest: service, and who is ended"
SECONDS, SMOKE_SECONDS = 60.0, 8.0
CONNECTIONS, SMOKE_CONNECTIONS = 1000, 50
LARGE, SMALL = 20 << 20, 1024
#: An honest slow client moves so many bytes, then rests: 8 KiB/s.
PIECE, GAP_S = 16 << 10, 2.0
#: From one probe to the next, and how long one may take.
PROBE_S, PROBE_LIMIT_S = 0.05, 5.0
RULE = "maitred_rules_applied_total"


@dataclass(frozen=True)
class Attack:
    """What slowhttptest is told."""

    name: str
    path: str
    words: tuple[str, ...]


ATTACKS = (
    Attack("headers", "/", ("-H", "-i", "5", "-x", "24")),
    Attack("body", "/", ("-B", "-i", "5", "-s", "8192", "-x", "10")),
    Attack("read", "/files/large", ("-X", "-w", "512", "-y", "1024", "-n", "5", "-z", "32", "-k", "3")),
    Attack("range", "/files/large", ("-R", "-a", "10", "-b", "3000", "-t", "HEAD")),
)


@dataclass(frozen=True)
class Outcome:
    """What the probes saw, which rules were applied, and what became of the honest clients."""

    latencies: list[float]
    lost: int
    rules: dict[str, int]
    logged: list[str]
    honest: dict[str, str]


def run(options: rounds.Options, folder: Path, report: Report) -> None:
    rounds.need("taskset", "slowhttptest")
    servers.cargo_build("workbench")
    seconds = options.duration(SECONDS, SMOKE_SECONDS)
    connections = SMOKE_CONNECTIONS if options.smoke else CONNECTIONS
    # A run of seconds needs limits of seconds, and honest clients that rest for less.
    words = ["--head-timeout", "2", "--min-rate-grace", "1"] if options.smoke else []
    gap = GAP_S / 10 if options.smoke else GAP_S
    report.text(
        f"The native server with {'limits of seconds' if options.smoke else 'its defaults'} and 2 threads on one core; "
        f"slowhttptest, probes and honest clients on another; {connections:,} connections and {seconds:g} s for each "
        f"attack, a fresh server each time. A probe is a request on a connection of its own, every {1e3 * PROBE_S:.0f} ms, half of them "
        f"to the application and half to a file; one that is not answered with 200 within {PROBE_LIMIT_S:g} s is lost. Honest: one "
        f"client that uploads, and one that downloads 20 MiB, at 8 KiB/s with gaps of {gap:g} s, from the start to the end.")
    outcomes = {attack: _measure(attack, connections, seconds, words, gap, folder) for attack in ATTACKS}
    _write(report, outcomes)


def _measure(attack: Attack, connections: int, seconds: float, words: list[str], gap: float, folder: Path) -> Outcome:
    say(f"attacks: {attack.name}")
    own = folder / attack.name
    files = own / "files"
    files.mkdir(parents=True)
    (files / "large").write_bytes(b"x" * LARGE)
    (files / "small").write_bytes(b"x" * SMALL)
    log = own / "log"
    contender = workbench.native(attack.name, [
        "--max-threads", "2", "--static", f"/files={files}", "--error-log", str(log), *metrics.WORDS, *words])
    command = ["slowhttptest", *attack.words, "-c", str(connections), "-r", str(max(connections // 5, 1)),
               "-l", str(int(seconds)), "-p", str(int(PROBE_LIMIT_S))]
    with servers.running(contender, files, own, connections) as server, concurrent.futures.ThreadPoolExecutor(3) as pool:
        ended = threading.Event()
        probes = pool.submit(_probe, server.port, ended)
        honest = {"upload": pool.submit(_upload, server.port, gap, ended),
                  "download": pool.submit(_download, server.port, gap, ended)}
        try:
            url = f"http://127.0.0.1:{server.port}{attack.path}"
            subprocess.run([*machine.pinned(machine.cores()[1]), *command, "-u", url], stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, timeout=seconds + 120, check=False)
        finally:
            ended.set()
        latencies, lost = probes.result()
        rules = {dict(sample.labels)["rule"]: int(sample.value)
                 for sample in metrics.read(server.port) if sample.name == RULE and sample.value}
        return Outcome(latencies, lost, rules, _logged(log),
                       {name: result.result() for name, result in honest.items()})


def _logged(log: Path) -> list[str]:
    """The options that lines of the error log name."""
    return sorted(set(re.findall(r"warn 127\.0\.0\.1: .* \(--([a-z-]+)\)", log.read_text())))


def _probe(port: int, ended: threading.Event) -> tuple[list[float], int]:
    latencies: list[float] = []
    lost = 0
    while not ended.wait(PROBE_S):
        path = "/files/small" if (len(latencies) + lost) % 2 else "/"
        begun = time.perf_counter()
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PROBE_LIMIT_S)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            answer.read()
            if answer.status != 200:
                raise OSError(answer.status)
            latencies.append(time.perf_counter() - begun)
        except (OSError, http.client.HTTPException):
            lost += 1
        finally:
            connection.close()
    return sorted(latencies), lost


def _upload(port: int, gap: float, ended: threading.Event) -> str:
    """Sends a body slowly to its end, which comes with that of the attack."""
    with socket.create_connection(("127.0.0.1", port), 30) as peer:
        peer.sendall(b"POST / HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n")
        sent = 0
        try:
            while not ended.wait(gap):
                peer.sendall(b"%x\r\n%s\r\n" % (PIECE, b"x" * PIECE))
                sent += PIECE
            peer.sendall(b"0\r\n\r\n")
            status = peer.recv(12, socket.MSG_WAITALL)
        except OSError as error:
            return f"ended after {sent >> 10} KiB: {error}"
    return "survived" if status == b"HTTP/1.1 200" else f"answered {status!r}"


def _download(port: int, gap: float, ended: threading.Event) -> str:
    with socket.create_connection(("127.0.0.1", port), 30) as peer:
        peer.sendall(b"GET /files/large HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n")
        taken, rest = 0, 0
        try:
            while not ended.wait(gap):
                part = peer.recv(PIECE, socket.MSG_WAITALL)
                if len(part) < PIECE:
                    return f"ended after {taken >> 10} KiB"
                taken += len(part)
            while part := peer.recv(1 << 20):
                rest += len(part)
        except OSError as error:
            return f"ended after {taken >> 10} KiB: {error}"
    return "survived" if taken + rest > LARGE else f"ended after {(taken + rest) >> 10} KiB"


def _write(report: Report, outcomes: dict[Attack, Outcome]) -> None:
    rows, shares = [], []
    for attack, outcome in outcomes.items():
        asked = len(outcome.latencies) + outcome.lost
        share = 100 * len(outcome.latencies) / max(asked, 1)
        shares.append((attack, outcome, share))
        p50, p99 = (f"{1e3 * figures.percentile(outcome.latencies or [0.0], part):.1f}" for part in (0.5, 0.99))
        rules = ", ".join(f"{name} {count:,}" for name, count in outcome.rules.items()) or "none"
        rows.append([attack.name, f"{asked:,}", f"{share:.2f} %", p50, p99,
                     f"{1e3 * max(outcome.latencies or [0.0]):.1f}", rules,
                     ", ".join(f"--{name}" for name in outcome.logged) or "none",
                     *(outcome.honest[name] for name in ("upload", "download"))])
    report.table(["attack", "probes", "answered", "p50 ms", "p99 ms", "longest ms", "ended by", "named in the log",
                  "honest upload", "honest download"], rows)
    report.text("The requests of the range attack are complete: they are answered, with the whole file for what has too many "
                "ranges, and nobody is ended.")
    lines = []
    for attack, outcome, share in shares:
        honest = all(fate == "survived" for fate in outcome.honest.values())
        named = attack.name == "range" or bool(outcome.logged)
        lines.append(rounds.verdict(f"Goal, {attack.name}: probes answered, %", share, 100.0, least=True))
        lines.append(f"- Goal, {attack.name}: attackers are ended by a rule that the log names, honest clients are not: "
                     f"**{'met' if honest and named else 'not met'}**")
    report.text("## Goal", "", *lines)
    bars = [chart.Bar(attack.name, share, share, share) for attack, _, share in shares]
    report.chart(chart.bars(TITLE, "probes that were answered, %", [("all", bars)]))
