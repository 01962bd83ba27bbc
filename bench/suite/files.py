"""Files: CPU of the server per request beside nginx, warm under load and cold, one after the other."""

from __future__ import annotations

import http.client
import os
import time
from collections.abc import Sequence
from pathlib import Path

from benchlib import chart, figures, load, machine, rounds, servers
from benchlib.report import Report, say

TITLE = "Files: CPU per request, warm and cold"
CONNECTIONS = 64
#: Name, bytes, files that are asked for cold in a round, of which each is another one.
KINDS = (("1 KiB", 1024, 1000), ("64 KiB", 64 * 1024, 400), ("10 MiB", 10 * 1024 * 1024, 12))
PAIRS, SECONDS, WARM_UP_S = 9, 2, 1
#: What a disk does differs from one time to the next, and a round of small files takes little time.
COLD_PAIRS = 25
OURS, BASE = "maitred", servers.NGINX.name


def run(options: rounds.Options, folder: Path, report: Report) -> None:
    rounds.need("wrk", "taskset", "nginx")
    contenders, skipped = rounds.present(options, [servers.maitred(options.threads), servers.NGINX])
    root = folder / "root"
    root.mkdir()
    report.text(f"Warm: {CONNECTIONS} keep-alive connections, load by wrk. Cold: one connection, each request for another file whose pages "
                "have been dropped (posix_fadvise), so that the disk is asked. CPU-microseconds (user and system) of the server for "
                f"each request; for 10 MiB warm, for each 10 MiB. {rounds.INTERVAL_NOTE}", *skipped)
    groups, lines = [], []
    with rounds.all_running(contenders, root, folder) as running:
        for name, size, count in KINDS:
            files = write(root, size, max(3, count // 20) if options.smoke else count)
            for how, samples, shares in (("warm", *warm(options, running, files[0], size, folder)),
                                         ("cold", *cold(options, running, root, files, size))):
                if not samples:
                    report.text(f"## {name}, {how}", "Left out: the pages of these files cannot be dropped here (a file system in memory).")
                    continue
                groups.append((f"{name}, {how}", [bar(server, values) for server, values in samples.items()]))
                lines += write_down(report, f"{name}, {how}", samples, shares)
    report.text("## Gate: at most the CPU of nginx")
    report.text(*lines)
    report.chart(chart.bars(TITLE, "CPU-microseconds per request", groups))


def write(root: Path, size: int, count: int) -> list[str]:
    """So many files, on the disk; their names."""
    names = [f"{size}-{number}" for number in range(count)]
    for name in names:
        with (root / name).open("wb") as file:
            file.write(os.urandom(size))
            file.flush()
            os.fsync(file.fileno())
    return names


Samples = dict[str, list[float]]


def warm(options: rounds.Options, running: Sequence[servers.Server], path: str, size: int,
         folder: Path) -> tuple[Samples, list[float]]:
    samples: Samples = {server.name: [] for server in running}
    shares = []
    for number in range(-1, options.rounds(PAIRS)):
        say(f"files /{path}: warm, round {number + 1}")
        for server in running:
            meter = rounds.Meter(server)
            meter.start()
            closed = load.wrk(server.port, f"/{path}", CONNECTIONS, WARM_UP_S if number < 0 else options.duration(SECONDS), folder)
            meter.stop()
            if closed.failed:
                raise load.WrongAnswer(f"{server.name}: {closed.failed} failed requests")
            if number >= 0:
                requests = closed.bytes / size if size > 1 << 20 else closed.requests
                samples[server.name].append(meter.cpu_ns / requests / 1e3)
                shares.append(meter.others)
    return samples, shares


def cold(options: rounds.Options, running: Sequence[servers.Server], root: Path, paths: list[str],
         size: int) -> tuple[Samples, list[float]]:
    if not can_drop(root / paths[-1]):
        return {}, []
    samples: Samples = {server.name: [] for server in running}
    shares = []
    for number in range(options.rounds(COLD_PAIRS if size < 1 << 20 else PAIRS)):
        say(f"files of {size} bytes: cold, round {number + 1}")
        for server in running if number % 2 else reversed(running):
            for path in paths:
                drop(root / path)
            meter = rounds.Meter(server)
            meter.start()
            with machine.on_core(machine.cores()[1]):
                ask(server, paths, size)
            meter.stop()
            samples[server.name].append(meter.cpu_ns / len(paths) / 1e3)
            shares.append(meter.others)
            # What a server keeps in its own memory would be no disk's: each file is another one next time.
            for path in paths:
                os.utime(root / path)
    return samples, shares


def ask(server: servers.Server, paths: list[str], size: int) -> None:
    """Ask for these files, one after the other."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    for path in paths:
        connection.request("GET", f"/{path}")
        answer = connection.getresponse()
        if answer.status != 200 or len(answer.read()) != size:
            raise load.WrongAnswer(f"{server.name} answered /{path} with {answer.status}, or not the {size} bytes")
    connection.close()


def drop(path: Path) -> None:
    """Has the kernel forget the pages of a file."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        # The times that were set are to be written first.
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)


def can_drop(path: Path) -> bool:
    """Whether that works here.  Looking has the kernel read the pages again, so it is done once."""
    for _ in range(50):
        drop(path)
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.preadv(descriptor, [bytearray(1)], 0, os.RWF_NOWAIT)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
        # Somebody may still look at them.
        time.sleep(0.02)
    return False


def bar(server: str, values: list[float]) -> chart.Bar:
    of = figures.spread(values)
    return chart.Bar(server, of.median, of.lower, of.upper)


def write_down(report: Report, title: str, samples: Samples, shares: list[float]) -> list[str]:
    rows = []
    for server, values in samples.items():
        of = figures.spread(values)
        rows.append([server, f"{of.median:.1f} [{of.lower:.1f}, {of.upper:.1f}]", rounds.against(samples, server, BASE)])
    report.text(f"## {title}")
    report.table(["server", "CPU µs for each request", f"ratio to {BASE}"], rows)
    report.text(rounds.others_text(shares))
    if OURS in samples and BASE in samples:
        return [rounds.verdict(title, figures.ratios(samples[OURS], samples[BASE]).median, 1.0)]
    return []
