from __future__ import annotations

import contextlib
import importlib
import os
import struct
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from suite import mixes as suite

from . import idleness, mixes, python_servers
from .mixes import MIXES, Outcome

LIMIT_S = 20.0


class TheTable(unittest.TestCase):
    def test_every_page_of_every_mix_is_one_that_the_application_has(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            with (unittest.mock.patch.dict(os.environ, {"BENCH_MIXES_FOLDER": folder}),
                  unittest.mock.patch.object(sys, "path", [str(python_servers.APPS), *sys.path])):
                application = importlib.import_module("mixes")
            application.fill()
            for path in {each.path for mix in MIXES for each in mix.classes}:
                words = urlsplit(path)
                said: list[str] = []
                body = application.application({"PATH_INFO": words.path, "QUERY_STRING": words.query}, lambda status, _: said.append(status))
                self.assertEqual(([*body], said), ([mixes.HELLO], ["200 OK"]), path)
            (record,) = Path(folder).glob("inside-*")
            self.assertEqual(record.read_bytes()[4:8], bytes(4), "nobody is inside any more")

    def test_names_tell_mixes_and_classes_apart(self) -> None:
        self.assertEqual(len({mix.name for mix in MIXES}), len(MIXES))
        for mix in MIXES:
            self.assertEqual(len({each.name for each in mix.classes}), len(mix.classes), mix.name)

    def test_a_part_is_a_loop_or_a_schedule(self) -> None:
        loop, schedule = mixes.Mix("", 4, "page8*16 wait0.5@2.5").classes
        self.assertEqual(loop.words, "page8 clients=16 /both?compute_ms=2&wait_ms=4")
        self.assertEqual(schedule.words, f"wait0.5 rate=2.5 clients={mixes.SCHEDULE_CLIENTS} /wait?ms=0.5")


def _run(**rates: float) -> suite.Run:
    """A server whose classes have these throughputs, and as many milliseconds of p99."""
    return suite.Run({name: [Outcome(rate, 0, rate, 0, 0)] for name, rate in rates.items()}, [0.02], [0.005], [0.5])


class Gates(unittest.TestCase):
    def test_the_default_is_held_against_the_best_other_server(self) -> None:
        table = {suite.OURS: _run(slow=30, fast=100), "one": _run(slow=60, fast=200), "two": _run(slow=1, fast=2000)}
        self.assertEqual(suite.best(table), "one")
        self.assertAlmostEqual(suite.score(table, "one"), 0.5)
        self.assertEqual(suite.tails(table, "one"), {"slow": 0.5, "fast": 0.5})
        lines = suite.gates([(MIXES[0], table)])
        self.assertEqual([line.endswith("**met**") for line in lines], [False, True, True, False, True])

    def test_the_lowest_round_is_shown_beside_the_median(self) -> None:
        ours, theirs = _run(slow=100, fast=100), _run(slow=100, fast=100)
        for run, rate in ((ours, 25), (theirs, 100)):
            for outcomes in run.classes.values():
                outcomes += [outcomes[0], Outcome(rate, 0, rate, 0, 0)]
        table = {suite.OURS: ours, "one": theirs}
        self.assertAlmostEqual(suite.score(table, "one"), 1.0)
        self.assertAlmostEqual(suite.lowest(table, "one"), 0.25)

    def test_a_class_that_starves_has_a_ratio(self) -> None:
        table = {suite.OURS: _run(slow=0, fast=100), "one": _run(slow=100, fast=100)}
        self.assertLess(suite.score(table, "one"), 0.1)
        self.assertGreater(suite.score(table, "one"), 0.0)


@contextlib.contextmanager
def _child(code: str) -> Iterator[int]:
    """A process that runs this code after it has said that it is there."""
    command = [sys.executable, "-c", f"import time; print(flush=True); {code}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            yield process.pid
        finally:
            process.kill()


class Idleness(unittest.TestCase):
    """A request waits; two threads, of which so many are inside."""

    def test_a_server_that_sleeps_beside_a_request_is_idle(self) -> None:
        found = self._look("time.sleep(60)", inside=1, least="idle")
        self.assertGreater(found.idle, 0)

    def test_a_server_that_computes_is_not(self) -> None:
        found = self._look("exec('while True: pass')", inside=1, least="held")
        self.assertEqual((found.held > 0, found.idle), (True, 0))

    def test_without_an_idle_thread_nothing_counts(self) -> None:
        found = self._look("time.sleep(60)", inside=2, least="looks")
        self.assertEqual((found.held, found.idle), (0, 0))

    def test_what_is_inside_does_not_wait(self) -> None:
        found = self._look("time.sleep(60)", inside=1, least="looks", outstanding=1)
        self.assertEqual((found.held, found.idle), (0, 0))

    def _look(self, code: str, inside: int, least: str, outstanding: int = 3) -> idleness.Found:
        """Looks until there are five of these, or until the limit."""
        with tempfile.TemporaryDirectory() as name, _child(code) as server, _child("time.sleep(60)") as load:
            folder = Path(name)
            (folder / "outstanding").write_bytes(struct.pack("<II", outstanding, 0))
            (folder / "inside-1").write_bytes(b"".join(struct.pack("<II", 1, 1) for _ in range(inside)))
            watch = idleness.Watch(idleness.Place(server, 2, folder, folder / "outstanding"), load)
            limit = time.monotonic() + LIMIT_S
            while time.monotonic() < limit and getattr(watch.found, least) < 5:
                watch.look()
            found = watch.found
            watch.close()
            return found


if __name__ == "__main__":
    unittest.main()
