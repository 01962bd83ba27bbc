"""Calls one address again and again by one library, and says what the calls take: `python bench/callers` starts one for each library.

    python bench/callers NAME blocking|awaitable CALLERS SIZE URL

When every caller has had a right answer, a line `ready` comes. Each line of standard input is a number of seconds; its answer is a line
of JSON: calls, their CPU time, and the p50 and p99 of a call, in nanoseconds. CPU is that of this process with all of its threads and of
the programs that it has started and that have ended. Before each measurement comes a tenth of it as a warm-up: connections that were
idle for long are opened anew there.
"""

from __future__ import annotations

import asyncio
import json
import math
import resource
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Sequence

import awaitable
import blocking

Latencies = list[int]
Counts = dict[str, float]


class WrongAnswer(Exception):
    """A call got another status or length than was asked for."""


def main(name: str, form: str, callers: int, size: int, url: str) -> None:
    if form == "blocking":
        calls = blocking.CALLS[name](url, callers, size)
        for call in calls:
            checked(call(), size)
        serve(lambda seconds: measured(lambda: threads(calls, seconds, size)))
    else:
        asyncio.run(on_a_loop(awaitable.CALLS[name], url, callers, size))


def serve(measure: Callable[[float], Counts]) -> None:
    print("ready", flush=True)
    for line in sys.stdin:
        measure(float(line) / 10)
        print(json.dumps(measure(float(line))), flush=True)


def measured(work: Callable[[], Latencies]) -> Counts:
    cpu = spent_ns()
    latencies = work()
    return counts(latencies, spent_ns() - cpu)


def counts(latencies: Latencies, cpu: int) -> Counts:
    latencies.sort()
    return {"calls": len(latencies), "cpu_ns": cpu, "p50_ns": percentile(latencies, 0.5), "p99_ns": percentile(latencies, 0.99)}


def percentile(ordered: Sequence[int], share: float) -> int:
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def spent_ns() -> int:
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time_ns() + round(1e9 * (ended.ru_utime + ended.ru_stime))


def checked(answer: tuple[int, int], size: int) -> None:
    if answer != (200, size):
        raise WrongAnswer(f"status {answer[0]} and {answer[1]} bytes instead of 200 and {size}")


def threads(calls: Sequence[blocking.Call], seconds: float, size: int) -> Latencies:
    """One caller is this thread itself; more are a thread each."""
    if len(calls) == 1:
        return one_after_the_other(calls[0], seconds, size)
    start = threading.Barrier(len(calls))
    found: list[Latencies] = []
    failures: list[BaseException] = []

    def run(call: blocking.Call) -> None:
        start.wait()
        try:
            found.append(one_after_the_other(call, seconds, size))
        except BaseException as error:
            failures.append(error)

    running = [threading.Thread(target=run, args=(call,)) for call in calls]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    if failures:
        raise failures[0]
    return [latency for each in found for latency in each]


def one_after_the_other(call: blocking.Call, seconds: float, size: int) -> Latencies:
    latencies: Latencies = []
    clock, expected = time.perf_counter_ns, (200, size)
    now = clock()
    end = now + round(1e9 * seconds)
    while now < end or not latencies:
        answer = call()
        if answer != expected:
            checked(answer, size)
        after = clock()
        latencies.append(after - now)
        now = after
    return latencies


async def on_a_loop(make: Callable[[str, int, int], Awaitable[awaitable.Call]], url: str, callers: int, size: int) -> None:
    call = await make(url, callers, size)
    for answer in await asyncio.gather(*(call() for _ in range(callers))):
        checked(answer, size)
    print("ready", flush=True)
    # The loop stands still while it waits for a line: nothing is measured then.
    for line in sys.stdin:
        await tasks(call, callers, float(line) / 10, size)
        cpu = spent_ns()
        latencies = await tasks(call, callers, float(line), size)
        print(json.dumps(counts(latencies, spent_ns() - cpu)), flush=True)


async def tasks(call: awaitable.Call, callers: int, seconds: float, size: int) -> Latencies:
    clock, expected = time.perf_counter_ns, (200, size)
    # One end for all: a transport that answers at once never leaves its turn to the others.
    end = clock() + round(1e9 * seconds)

    async def run() -> Latencies:
        latencies: Latencies = []
        now = clock()
        while now < end or not latencies:
            answer = await call()
            if answer != expected:
                checked(answer, size)
            after = clock()
            latencies.append(after - now)
            now = after
        return latencies

    found = await asyncio.gather(*(run() for _ in range(callers)))
    return [latency for each in found for latency in each]


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5])
