"""The machine: cores, processes, CPU time, memory.  Everything is read from /proc.

Only processes that a bench started are ever signalled, each by its own id.
"""

from __future__ import annotations

import contextlib
import os
import platform
import resource
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
#: Where cargo builds.
TARGET = REPOSITORY / os.environ.get("CARGO_TARGET_DIR", "target")
TICKS = os.sysconf("SC_CLK_TCK")


#: As long as nothing is held to a core.
USABLE = tuple(sorted(os.sched_getaffinity(0)))


def cores() -> tuple[int, int]:
    """The server's core and the load's core: the first two this process may use (the same one if it has one)."""
    return USABLE[0], USABLE[1] if len(USABLE) > 1 else USABLE[0]


def pinned(*allowed: int) -> list[str]:
    """The words before a command that tie it to a core or some, at the chosen priority (`bench/run --nice`)."""
    nice = os.environ.get("MAITRED_BENCH_NICE", "0")
    cpus = ",".join(map(str, allowed))
    if nice == "0":
        return ["taskset", "-c", cpus]
    # Where the kernel groups processes by session, niceness counts only inside a group: a session of its own, and
    # the same niceness for that.
    script = 'echo "$0" 2>/dev/null >/proc/self/autogroup; exec nice -n "$0" taskset -c "$@"'
    return ["setsid", "sh", "-c", script, nice, cpus]


def raise_descriptor_limit() -> int:
    """Raise the soft limit of open files to the hard one; children inherit it.  Returns it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def process_tree(pid: int) -> list[int]:
    """A process and all its descendants (nginx's workers, for example)."""
    found, open_ends = [], [pid]
    while open_ends:
        current = open_ends.pop()
        found.append(current)
        for children in Path(f"/proc/{current}/task").glob("*/children"):
            try:
                open_ends += [int(child) for child in children.read_text().split()]
            except (FileNotFoundError, ProcessLookupError):
                continue
    return found


def cpu_ns(pid: int) -> int:
    """User and system CPU time of a process tree so far, in nanoseconds.

    The sum over living threads has nanosecond resolution but forgets threads that ended; the process total
    remembers them but counts in ticks (10 ms).  The larger of the two, when they differ by more than two ticks.
    """
    total = 0
    for member in process_tree(pid):
        threads = _thread_ns(member)
        ticks = _ticks_ns(member)
        total += ticks if ticks - threads > 2 * 1_000_000_000 // TICKS else threads
    return total


def _thread_ns(pid: int) -> int:
    total = 0
    for thread in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        try:
            total += int(thread.read_text().split()[0])
        except (FileNotFoundError, ProcessLookupError):
            continue
    return total


def _ticks_ns(pid: int) -> int:
    try:
        # The name in parentheses may hold spaces and parentheses.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return (int(fields[11]) + int(fields[12])) * 1_000_000_000 // TICKS


@dataclass(frozen=True)
class Switches:
    """Context switches: because a thread had to wait, and because another was to run."""

    voluntary: int = 0
    involuntary: int = 0


def context_switches(pid: int) -> dict[int, Switches]:
    """Context switches of every thread of a process tree so far, by its id."""
    threads = {}
    for member in process_tree(pid):
        for status in Path(f"/proc/{member}/task").glob("*/status"):
            try:
                lines = status.read_text().splitlines()
            except (FileNotFoundError, ProcessLookupError):
                continue
            counts = dict(line.split()[:2] for line in lines if "_ctxt_switches:" in line)
            threads[int(status.parent.name)] = Switches(int(counts.get("voluntary_ctxt_switches:", 0)),
                                                        int(counts.get("nonvoluntary_ctxt_switches:", 0)))
    return threads


def switched(before: dict[int, Switches], after: dict[int, Switches]) -> Switches:
    """The switches between two looks; those of threads that ended between them are forgotten."""
    pairs = [(before.get(thread, Switches()), now) for thread, now in after.items()]
    return Switches(sum(now.voluntary - then.voluntary for then, now in pairs),
                    sum(now.involuntary - then.involuntary for then, now in pairs))


@contextlib.contextmanager
def on_core(core: int) -> Iterator[None]:
    """Hold the calling thread, and what it starts, to a core."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def core_busy_ns(core: int) -> int:
    """Time a core was busy or stolen since boot, in nanoseconds (10 ms resolution)."""
    for line in Path("/proc/stat").read_text().splitlines():
        name, *fields = line.split()
        if name == f"cpu{core}":
            user, nice, system, _idle, _wait, irq, softirq, steal = map(int, fields[:8])
            return (user + nice + system + irq + softirq + steal) * 1_000_000_000 // TICKS
    return 0


def cores_busy_ns() -> int:
    """The same of the server's and the load's core together."""
    return sum(core_busy_ns(core) for core in set(cores()))


@dataclass(frozen=True)
class Memory:
    """Memory of a process tree, in bytes; the kernel's own (sockets, buffers, epoll) is not in it."""

    pss: int
    private: int


def memory(pid: int) -> Memory:
    """Proportional set size and private resident memory of a process tree."""
    pss = private = 0
    for member in process_tree(pid):
        for line in Path(f"/proc/{member}/smaps_rollup").read_text().splitlines()[1:]:
            name, value, *_ = line.split()
            if name == "Pss:":
                pss += int(value) * 1024
            elif name in ("Private_Clean:", "Private_Dirty:"):
                private += int(value) * 1024
    return Memory(pss, private)


#: Memory counts as settled when two readings this far apart agree, or after the limit.
SETTLE_STEP_S, SETTLE_LIMIT_S = 0.5, 10.0


def settled_memory(pid: int) -> Memory:
    """The memory once it has stopped changing."""
    limit = time.monotonic() + SETTLE_LIMIT_S
    last = memory(pid)
    while time.monotonic() < limit:
        time.sleep(SETTLE_STEP_S)
        now = memory(pid)
        if now == last:
            break
        last = now
    return last


def resident(pid: int) -> int:
    """Resident memory of a process tree, in bytes: pages that its processes share count for each.  Quick to read."""
    pages = 0
    for member in process_tree(pid):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            pages += int(Path(f"/proc/{member}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def files_below(pid: int, folder: Path) -> int:
    """Length of all files below a folder that a process tree has open, in bytes; those without a name count too."""
    total, seen = 0, set()
    for member in process_tree(pid):
        try:
            links = list(Path(f"/proc/{member}/fd").iterdir())
        except (FileNotFoundError, ProcessLookupError):
            continue
        for link in links:
            # It may have been closed in the meantime.
            with contextlib.suppress(OSError):
                if link.readlink().is_relative_to(folder):
                    status = link.stat()
                    if (status.st_dev, status.st_ino) not in seen and stat.S_ISREG(status.st_mode):
                        seen.add((status.st_dev, status.st_ino))
                        total += status.st_size
    return total


def model() -> str:
    """Processor, cores, kernel."""
    name = next(
        (line.partition(":")[2].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
         if line.startswith("model name")), platform.machine())
    return f"{name}, {os.cpu_count()} cores, Linux {platform.release()}"


def description(pinned: bool = True) -> str:
    """One line for the report: the machine, where the load is, load by others."""
    server, load = cores()
    where = f"server on core {server}, load on core {load}" if pinned else f"server and load on cores {server} and {load}"
    if os.environ.get("MAITRED_BENCH_NICE", "0") != "0":
        where += f", both at nice {os.environ['MAITRED_BENCH_NICE']}"
    average = " ".join(f"{value:.1f}" for value in os.getloadavg())
    return f"{model()}; {where}; load average at start {average}"
