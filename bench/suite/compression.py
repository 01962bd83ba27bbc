"""Compression: CPU for each byte and ratio of every coding and level, beside the gzip of nginx."""

from __future__ import annotations

import gzip
import http.client
import json
import random
from collections.abc import Sequence
from pathlib import Path

from benchlib import figures, load, machine, peers, python_servers, rounds, servers
from benchlib.report import Report, say

TITLE = "Compression: CPU per byte, and ratio"
CONNECTIONS = 8
ROUNDS, SECONDS, WARM_UP_S = 5, 1, 1
#: Levels of nginx that ours are compared with, and ours.
NGINX_LEVELS = (1, 4, 6, 9)
OURS = ("gzip:1", "gzip:2", "gzip:3", "gzip:4", "gzip:5", "gzip:6", "gzip:7", "gzip:9", "zstd:1", "zstd:3", "zstd:6", "zstd:9",
        "br:1", "br:3", "br:4", "br:5", "br:6")
SMOKE = ("gzip:6", "zstd:3", "br:4")
#: Two ratios that differ by less are equal.
EQUAL = 0.005


def run(options: rounds.Options, folder: Path, report: Report) -> None:
    rounds.need("wrk", "taskset", "nginx")
    root = folder / "bodies"
    root.mkdir()
    for name, body in bodies().items():
        (root / name).write_bytes(body)
    environment = peers.environment(options)
    contenders, skipped = rounds.present(options, [*nginx(options.smoke), *ours(environment, root, options.smoke)])
    report.text(f"Bodies from memory (ours: a WSGI application) or the page cache (nginx), compressed for each request; {CONNECTIONS} "
                "keep-alive connections, load by wrk. CPU: user and system time of the server, for each byte before compression, "
                "with everything else that a request costs; ratio: bytes before by bytes behind. " + rounds.INTERVAL_NOTE,
                *skipped)
    samples: dict[str, dict[str, list[float]]] = {}
    ratios: dict[str, dict[str, float]] = {}
    shares: list[float] = []
    with rounds.all_running(contenders, root, folder, 64) as running:
        for path in sorted(root.iterdir()):
            body = path.read_bytes()
            ratios[path.name] = {each.name: len(body) / fetched(each, path.name, body) for each in running}
            samples[path.name] = measured(options, running, path.name, len(body), folder, shares)
    for name, body in bodies().items():
        table(report, f"{name}, {len(body) / 1024:.0f} KiB", samples[name], ratios[name])
    report.text(rounds.others_text(shares))
    gates(report, samples, ratios)


def bodies() -> dict[str, bytes]:
    """Prose of this repository, and records as an interface gives them."""
    pages = sorted((machine.REPOSITORY / "docs").rglob("*.md"))
    prose = b"".join(path.read_bytes() for path in pages)[: 100 * 1024]
    chance = random.Random(1)
    words = sorted({word for word in prose.decode(errors="replace").split() if word.isalpha()})
    records = [{"id": number, "name": " ".join(chance.choices(words, k=3)), "price": round(chance.uniform(1, 999), 2),
                "tags": chance.choices(words, k=4), "created": f"2026-{chance.randint(1, 12):02}-{chance.randint(1, 28):02}"}
               for number in range(1000)]
    listed = json.dumps(records).encode()
    return {"prose": prose, "records": listed[: 100 * 1024], "short-records": listed[: 4 * 1024]}


def nginx(smoke: bool) -> list[servers.Contender]:
    return [servers.nginx(f"nginx gzip {level}", f"gzip on; gzip_comp_level {level}; gzip_types *; gzip_min_length 0;")
            for level in ((6,) if smoke else NGINX_LEVELS)]


def ours(environment: peers.Environment, root: Path, smoke: bool) -> list[servers.Contender]:
    return [python_servers.ours(environment, "bodies_wsgi:application", "wsgi", f"maitred {coding}", 1,
                                ["--compress", "--compress-encodings", coding], {"BODIES": str(root)})
            for coding in (SMOKE if smoke else OURS)]


def coding_of(name: str) -> str:
    return "gzip" if name.startswith("nginx") else name.split()[1].partition(":")[0]


def fetched(server: servers.Server, path: str, body: bytes) -> int:
    """The length of the compressed body, which is looked at where Python can."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    coding = coding_of(server.name)
    connection.request("GET", f"/{path}", headers={"Accept-Encoding": coding})
    answer = connection.getresponse()
    made = answer.read()
    connection.close()
    if answer.status != 200 or answer.headers["Content-Encoding"] != coding:
        raise load.WrongAnswer(f"{server.name} answered /{path} with {answer.status} and {answer.headers['Content-Encoding']}")
    if coding == "gzip" and gzip.decompress(made) != body:
        raise load.WrongAnswer(f"{server.name} answered /{path} with another body")
    return len(made)


def measured(options: rounds.Options, running: Sequence[servers.Server], path: str, length: int, folder: Path,
             shares: list[float]) -> dict[str, list[float]]:
    """CPU nanoseconds for each byte."""
    samples: dict[str, list[float]] = {server.name: [] for server in running}
    for number in range(-1, options.rounds(ROUNDS)):
        if number >= 0:
            say(f"compression {path}: round {number + 1}")
        for server in running:
            meter = rounds.Meter(server)
            meter.start()
            header = [f"Accept-Encoding: {coding_of(server.name)}"]
            seconds = WARM_UP_S if number < 0 else options.duration(SECONDS)
            closed = load.wrk(server.port, f"/{path}", CONNECTIONS, seconds, folder, header)
            meter.stop()
            if closed.failed:
                raise load.WrongAnswer(f"{server.name}: {closed.failed} failed requests")
            if number >= 0:
                samples[server.name].append(meter.cpu_ns / closed.requests / length)
                shares.append(meter.others)
    return samples


def table(report: Report, title: str, samples: dict[str, list[float]], ratios: dict[str, float]) -> None:
    rows = []
    for name, values in samples.items():
        of = figures.spread(values)
        rows.append([name, f"{ratios[name]:.2f}", f"{of.median:.2f} [{of.lower:.2f}, {of.upper:.2f}]",
                     f"{1000 / of.median:.0f}" if of.median else rounds.TOO_SHORT])
    report.text(f"## {title}")
    report.table(["server, coding and level", "ratio", "CPU ns for each byte", "MB for each CPU second"], rows)


def gates(report: Report, samples: dict[str, dict[str, list[float]]], ratios: dict[str, dict[str, float]]) -> None:
    """For each level of nginx, the cheapest gzip of ours that compresses no less."""
    lines = []
    for body, of_body in samples.items():
        for base in (name for name in of_body if name.startswith("nginx")):
            enough = [name for name in of_body if name.startswith("maitred gzip")
                      and ratios[body][name] >= ratios[body][base] * (1 - EQUAL)]
            if not enough:
                best = max(ratios[body][name] for name in of_body if name.startswith("maitred gzip"))
                lines.append(f"- {body}, {base} ({ratios[body][base]:.2f}): no gzip of ours reaches this ratio, the best is {best:.2f}: "
                             "**not met**")
                continue
            cheapest = min(enough, key=lambda name: figures.spread(of_body[name]).median)
            ratio = figures.ratios(of_body[cheapest], of_body[base]).median
            words = f"{body}, {cheapest} ({ratios[body][cheapest]:.2f}) to {base} ({ratios[body][base]:.2f}), CPU"
            lines.append(rounds.verdict(words, ratio, 1.0))
    report.text("## Gate: at equal ratio (within 0.5 %) not slower for each byte than nginx")
    report.text(*lines)
