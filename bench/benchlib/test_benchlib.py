"""Tests of what the benches rest on: `python3 -m unittest discover -s bench` from the repository root."""

import contextlib
import datetime
import http.server
import io
import importlib.machinery
import importlib.util
import os
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import unittest.mock
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

from benchlib import (chart, compare, costs, crowd, figures, load, machine, metrics, pages, peers, postgres, python_servers,
                      report, rounds, series, servers, stored, traffic, uploads)
from benchlib.series import Series
from suite import insight, mixed, workers
from suite import pages as pages_suite


class Figures(unittest.TestCase):
    def test_interval_of_nine_is_the_second_to_the_eighth(self) -> None:
        of = figures.spread([9, 1, 8, 2, 7, 3, 6, 4, 5])
        self.assertEqual((of.median, of.lower, of.upper, of.low, of.high), (5, 3, 7, 2, 8))
        self.assertAlmostEqual(of.confidence, 1 - 2 * 10 / 512)

    def test_few_values_give_the_whole_range(self) -> None:
        of = figures.spread([3, 1, 2])
        self.assertEqual((of.low, of.high, of.confidence), (1, 3, 0.75))
        self.assertEqual(figures.spread([4]).median, 4)

    def test_ratios_are_formed_pair_by_pair(self) -> None:
        self.assertEqual(figures.ratios([1, 10, 100], [2, 20, 200]).median, 0.5)

    def test_percentiles_are_measured_values(self) -> None:
        self.assertEqual(figures.percentile(range(1, 101), 0.99), 99)
        self.assertEqual(figures.percentile([7], 0.0), 7)


class TooShort(unittest.TestCase):
    """A short window of a fast server may show no CPU time at all: its report says so instead of failing."""

    def test_a_ratio_to_zero_is_nothing(self) -> None:
        self.assertEqual(rounds.ratio_text(figures.ratios([1.0, 2.0], [1.0, 0.0])), "too short")
        self.assertIn("x: too short", rounds.verdict("x", figures.ratios([1.0], [0.0]).median, 1.0))

    def test_the_comparing_report_is_written_without_a_cpu_time(self) -> None:
        sample = compare.Sample(0.0, 1.0, 1.0, 1.0, 0)
        result = compare.Result("hello", {"maitred": [sample], "granian": [sample]})
        written = report.Report("wsgi", "t", True)
        compare._write(written, result, "maitred", "both cores", [0.0])
        compare.gates(written, [result], "maitred", ["granian"], 0.85)
        compare.bars("t", [result])
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
            written.write(Path(folder))
            self.assertIn("too short", (Path(folder) / "wsgi.md").read_text())


class Pages(unittest.TestCase):
    HANDLER = next(page for page in pages.PAGES if page.handler)
    PAGE = next(page for page in pages.PAGES if not page.handler)

    @staticmethod
    def result(page: pages.Page, rates: dict[str, float], p99: float = 1.0) -> pages_suite.Result:
        def table() -> dict[str, series.Series]:
            found = {}
            for name, rate in rates.items():
                found[name] = series.Series(cpu=[1.0], rate=[rate])
                found[name].percentiles[0.99] = [p99 if name.startswith("maitred") else 1.0]
            return found

        return pages_suite.Result(page, table(), table(), table(), [], [])

    def test_the_best_peer_of_a_page_is_the_fastest_one_that_is_not_ours(self) -> None:
        result = self.result(self.PAGE, {"granian, 4 threads": 90.0, "peregrine": 100.0, "maitred": 97.0, "maitred, 1 thread": 120})
        self.assertEqual(result.best_peer(), "peregrine")
        lines = pages_suite.gates([result])
        self.assertIn("geometric mean of 1 pages: 0.970 against at least 0.950: **met**", lines[0])
        self.assertTrue(any("our best (maitred, 1 thread): 0.808" in line and "**not met**" in line for line in lines))

    def test_a_page_whose_tail_is_longer_misses_a_gate_at_every_load(self) -> None:
        lines = pages_suite.gates([self.result(self.PAGE, {"peregrine": 100.0, "maitred": 100.0}, p99=1.3)])
        self.assertEqual(sum("p99" in line and "**not met**" in line for line in lines), 3)

    def test_handlers_are_compared_with_as_many_threads(self) -> None:
        rates = {f"{server}, {number} threads": rate * number for number in (2, 4, 10)
                 for server, rate in (("granian", 100.0), ("weft", 150.0), ("maitred", 98.0))}
        result = self.result(self.HANDLER, rates | {"maitred": 980.0})
        lines = pages_suite.gates([result])
        self.assertTrue(any("maitred, 2 threads to granian: 0.980 against at least 0.970: **met**" in line for line in lines))
        self.assertFalse(any("geometric mean" in line for line in lines))
        self.assertEqual(pages_suite.rate(result, "maitred, 2 threads"), 0.7 * 300)
        self.assertEqual(pages_suite.rate(result, "maitred"), 0.7 * 1500)

    def test_every_contender_may_use_both_cores_and_has_a_name_of_its_own(self) -> None:
        place = pages.Place(peers.Environment(Path("/nowhere"), ""), {})
        for page in pages.PAGES:
            contenders = page.contenders(place)
            self.assertEqual(len({each.name for each in contenders}), len(contenders))
            self.assertFalse(any(each.pinned for each in contenders))
            self.assertIn(pages.OURS, [each.name for each in contenders])

    def test_a_name_and_its_threads_agree_with_the_servers(self) -> None:
        of = python_servers.Wsgi(peers.Environment(Path("/nowhere"), ""), "a:b")
        self.assertEqual(of.granian(4).name, pages.named("granian", 4))
        self.assertEqual(of.maitred().name, pages.OURS)
        self.assertEqual(pages.threads_of(of.weft(1).name), "1 thread")
        words = of.maitred(2).command(of.maitred(2), servers.Place(Path("/"), Path("/"), 1, 1))
        self.assertEqual(words[-2:], ["--max-threads", "2"])

    def test_a_server_without_a_command_is_absent_unless_its_package_is_there(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            of = python_servers.Wsgi(peers.Environment(Path(folder), ""), "a:b")
            self.assertEqual(of.freastal().absent(), "freastal")
            package = Path(folder) / "lib/python3.13/site-packages/freastal"
            package.mkdir(parents=True)
            python = Path(folder) / "bin/python"
            python.parent.mkdir()
            python.symlink_to(sys.executable)
            self.assertIsNone(of.freastal().absent())
            self.assertEqual(of.freastal().command(of.freastal(), servers.Place(Path("/"), Path("/"), 7, 1))[-2:], ["a:b", "7"])


class Stored(unittest.TestCase):
    def test_only_what_is_between_the_marks_is_replaced(self) -> None:
        text = f"a\n{stored.BEGIN}old\n{stored.END}z\n"
        self.assertEqual(stored.spliced(text, "new\n"), f"a\n{stored.BEGIN}new\n{stored.END}z\n")
        with self.assertRaises(ValueError):
            stored.spliced("no marks", "new")

    def test_the_table_shows_the_medians_and_the_ratio_to_the_best_peer(self) -> None:
        def figure(rate: float, cpu: float) -> dict[str, list[float]]:
            return {"rate": [rate - 1, rate, rate + 1], "cpu": [cpu] * 3, "p99": [1.0] * 3}

        form = {"gunicorn gthread, 4 threads": figure(100, 4), "granian, 4 threads": figure(1000, 2), "maitred": figure(1100, 1)}
        timed = {"nginx": {"p50": [10.0], "p90": [20.0]}, "maitred": {"p50": [11.0], "p90": [21.0]}}
        text = stored.section({
            "date": "2026-01-01", "machine": "m", "python": "p", "versions": "v",
            "pages": [{"name": "a page", stored.BOTH: form, stored.ONE: form}],
            "files": [{"name": "1 KiB file", stored.BOTH: {"nginx": figure(9, 1), "maitred": figure(10, 1)},
                       stored.ONE: {"nginx": figure(9, 2), "maitred": figure(10, 1)}}],
            "schedule": {stored.BOTH: timed, stored.ONE: timed}, "memory": {"nginx": [528.0], "maitred": [206.0]}})
        self.assertIn("| a page | 100 | 1,000 | – | – | 1,100 | 1.10 | 1.10 | 0.50 |", text)
        self.assertIn("| 1 KiB file, requests/s | 9 | – | 10 | 0.50 |", text)
        self.assertIn("p90 in µs | 20 | – | 21 | 1.05 |", text)

    def test_a_gate_that_is_not_met_is_listed_under_its_heading(self) -> None:
        text = "# T\n\n## Plain\n\n- Gate, x: 78 %: **not met**\n- y: **met**\n\n## Gates\n\n- Goal, z: 2 against 1: **not met**\n"
        self.assertEqual(stored.missed_in(text), ["Plain: Gate, x: 78 %", "Goal, z: 2 against 1"])
        self.assertTrue(rounds.verdict("x", 2, 1).endswith(stored.NOT_MET_MARK))

    def test_gates_with_the_same_measure_and_limit_share_a_line(self) -> None:
        same = [f"Gate, {name}: p99 to the quiet one: {figure} against 2" for name, figure in (("a", 3), ("b", 4), ("c", 5))]
        others = ["Gate, d: p99 to the quiet one: 9 against 3", "Goal, z: 2 against 1", "Plain: Gate, x: 78 %"]
        self.assertEqual(stored.gathered([*same, *others]), ["p99 to the quiet one, against 2: a 3; b 4; c 5", *others])
        self.assertEqual(stored.gathered(same[:2]), same[:2])

    def test_a_claim_whose_result_is_missing_or_older_than_fourteen_days_is_told_with_the_command_that_renews_it(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            results = Path(folder)
            for name, head in (("old", "2026-03-01 10:00 UTC; m."), ("due", "2026-03-02 10:00 UTC; m."), ("undated", "m."),
                               ("to-come", "2026-03-18 10:00 UTC; m.")):
                (results / f"{name}.md").write_text(f"# T\n\n{head}\n")
            names = stored.claimed("[a](bench/results/old.md) [b](bench/results/due.md) [c](bench/results/gone.md)\n"
                                   "[d](bench/results/undated.md) [e](bench/results/to-come.md) [f](bench/results/old.md)")
            self.assertEqual(stored.outdated(names, datetime.date(2026, 3, 16), results), [
                "bench/results/gone.md is missing: run bench/run gone",
                "bench/results/old.md is of 2026-03-01, 15 days old; the limit is 14: run bench/run old",
                "bench/results/to-come.md is of 2026-03-18, and today is 2026-03-16: run bench/run to-come",
                "bench/results/undated.md has no date: run bench/run undated"])

    def test_every_claim_of_the_readme_has_a_bench_which_test_all_runs(self) -> None:
        text = (machine.REPOSITORY / stored.README).read_text()
        names = stored.claimed(text)
        self.assertIn("readme", names)
        for name in names:
            self.assertTrue((machine.REPOSITORY / "bench/suite" / f"{name.replace('-', '_')}.py").exists(), name)
        self.assertEqual(names, [name for name in names if stored.measured_on((stored.RESULTS / f"{name}.md").read_text())])


class Workers(unittest.TestCase):
    def test_the_load_has_its_part_of_both_cores(self) -> None:
        two = series.Series(load=[1.0], cpu=[12.0], rate=[1.5e4])
        one = series.Series(load=[0.5], cpu=[10.0], rate=[1e4])
        # 100 us of the server and 10 of the load for each request, on two cores: 18,182 a second.
        self.assertAlmostEqual(workers.most_gain(two, one)[0], 2e6 / 110 / 1e4)


class Suites(unittest.TestCase):
    """What `scripts/test` makes of the benches."""

    def setUp(self) -> None:
        path = str(machine.REPOSITORY / "scripts/test")
        loader = importlib.machinery.SourceFileLoader("scripts_test", path)
        self.script = importlib.util.module_from_spec(importlib.util.spec_from_loader("scripts_test", loader))
        sys.modules["scripts_test"] = self.script
        loader.exec_module(self.script)
        self.addCleanup(sys.modules.pop, "scripts_test")

    def test_a_row_that_is_skipped_fails_unless_it_is_optional(self) -> None:
        optional = "x\nskipped: weft, 4 threads (weft is not installed or not built)\nskipped: freastal (freastal is not installed or not built)\nskipped: h2o (h2o is not installed or not built)\nskipped: 4,096 connections (limit of open files is 9)\n"
        self.assertIn("0 skipped", self.script.benches(optional))
        for line in ("skipped: uvicorn does not start: no module httptools", "wsgi: skipped: not installed: wrk"):
            with self.assertRaisesRegex(self.script.NothingToRun, "1 skipped"):
                self.script.benches(f"{optional}{line}\n{line}\n")

    def test_a_warning_of_the_compiler_fails_the_suite_that_looks_for_lints(self) -> None:
        end = "    Finished `test` profile [unoptimized] target(s) in 1s\n  Executable unittests src/lib.rs (target/debug/deps/a-1)\n"
        self.assertEqual(self.script.lints(end), end.splitlines()[0].strip())
        warning = "warning: called `map(f)` on an `Option` value\n\nwarning: `maitred-h1` (lib test) generated 1 warning (1 duplicate)\n"
        with self.assertRaisesRegex(self.script.Failed, r"^`maitred-h1` \(lib test\) generated 1 warning$"):
            self.script.lints(warning + end)

    def test_the_benches_after_one_that_fails_are_run_and_the_suite_fails(self) -> None:
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
            self.script.LOGS = Path(folder)
            commands = [["false"], ["touch", f"{folder}/after"]]
            for every in (False, True):
                suite = self.script.Suite("s", lambda: commands, lambda output: "end", 60, every=every)
                self.assertEqual(self.script.run(suite).code, 1)
                self.assertEqual((Path(folder) / "after").exists(), every)

    def test_all_commands_use_the_folder_in_which_cargo_builds(self) -> None:
        with tempfile.TemporaryDirectory() as folder, unittest.mock.patch.dict(os.environ, CARGO_TARGET_DIR=folder):
            self.assertEqual(self.script.target(), Path(folder))
            done = subprocess.run(["make", "-n", "binary", "PROFILE=release"], cwd=machine.REPOSITORY, capture_output=True, text=True, check=True)
            self.assertIn(f"split-debug {folder}/release/maitred", done.stdout)
            shown = [sys.executable, "-c", "from benchlib import load, servers; print(load.GENERATOR, servers.maitred().program)"]
            environment = {name: value for name, value in os.environ.items() if name != "MAITRED_BENCH_BINARY"}
            done = subprocess.run(shown, cwd=machine.REPOSITORY / "bench", env=environment, capture_output=True, text=True, check=True)
            self.assertEqual(done.stdout, f"{folder}/bench/release/openloop {folder}/release/maitred\n")


class Mixed(unittest.TestCase):
    def test_fast_requests_have_a_limit_whatever_the_server_did_before(self) -> None:
        def series(ms: float) -> Series:
            return Series(percentiles={0.99: [ms]})

        titles = [title for title, _ in mixed.BEFORE]
        for workload, limit in ((mixed.FRESH, 1.0), (mixed.BURNERS, 6.0), (mixed.BURST, 5.0)):
            self.assertIn(workload.name, [each.name for each in mixed.AFTER])
            table = {(workload.name, title): series(limit + (title == titles[-1]) * 0.1) for title in titles}
            lines = mixed._limits(table, 4)
            self.assertEqual([line.endswith(stored.NOT_MET_MARK) for line in lines], [False] * (len(titles) - 1) + [True])
            self.assertEqual(len(mixed._limits(table, 10)), 0 if workload is mixed.FRESH else len(titles))

    def test_each_measurement_has_a_fresh_server_with_the_other_load_before_it(self) -> None:
        done: list[object] = []

        @contextlib.contextmanager
        def running(*_: object) -> Iterator[list[servers.Server]]:
            done.append("start")
            yield [unittest.mock.Mock()]

        def load_before(options: rounds.Options, schedule: series.Schedule, *_: object, **__: object) -> None:
            done.append(schedule.lengths(options))

        def measured(options: rounds.Options, server: object, workload: series.Workload, *_: object) -> None:
            done.append(workload.name)

        patch = unittest.mock.patch
        out = unittest.mock.Mock()
        with (tempfile.TemporaryDirectory() as folder, patch.object(mixed.compare, "running", running),
              patch.object(mixed, "on_schedule", load_before), patch.object(mixed, "_round", measured),
              patch.object(mixed.traffic, "settle"), patch.object(mixed.work, "ours"), patch.object(mixed, "_write"),
              patch.object(mixed, "say")):
            options = rounds.Options(smoke=True, before=60.0)
            table = mixed._after(options, peers.Environment(Path(folder), ""), 4, Path(folder), out)
        names = [workload.name for workload in mixed.AFTER]
        self.assertEqual(done[:2 * len(names)], [step for name in names for step in ("start", name)])
        self.assertEqual(done[2 * len(names):], [step for _ in mixed.BEFORE[1:] for name in names for step in ("start", (60.0, 0.0), name)])
        self.assertEqual(len(table), len(mixed.BEFORE) * len(names))

    def test_the_loads_that_come_first_are_of_other_routes(self) -> None:
        measured = {request.wire for workload in mixed.AFTER for request in workload.requests}
        for _, other in mixed.BEFORE:
            self.assertFalse(other and measured & {request.wire for request in other.requests})


class Databases(unittest.TestCase):
    def test_a_server_of_its_own_comes_and_goes(self) -> None:
        try:
            postgres.need()
        except rounds.Missing as error:
            self.skipTest(str(error))
        with postgres.running() as folder:
            self.assertTrue(any(folder.glob(".s.PGSQL.*")))
        self.assertFalse(folder.exists())


class Accounting(unittest.TestCase):
    def test_cpu_time_is_that_of_the_process(self) -> None:
        own, total = time.process_time_ns(), machine.cpu_ns(os.getpid())
        while time.process_time_ns() - own < 100_000_000:
            pass
        self.assertAlmostEqual((machine.cpu_ns(os.getpid()) - total) / 1e6, 100, delta=25)

    def test_switches_are_counted_apart(self) -> None:
        before = machine.context_switches(os.getpid())
        for _ in range(5):
            time.sleep(0.001)
        after = machine.context_switches(os.getpid())
        self.assertGreaterEqual(machine.switched(before, after).voluntary, 5)
        ended = machine.switched({1: machine.Switches(9, 9), 2: machine.Switches(1, 0)}, {2: machine.Switches(4, 2)})
        self.assertEqual(ended, machine.Switches(3, 2))

    def test_memory_is_seen(self) -> None:
        before = machine.memory(os.getpid())
        held = b"x" * (16 << 20)
        self.assertAlmostEqual((machine.memory(os.getpid()).pss - before.pss) / len(held), 1, delta=0.1)


    def test_resident_memory_is_seen(self) -> None:
        before = machine.resident(os.getpid())
        held = b"x" * (16 << 20)
        self.assertAlmostEqual((machine.resident(os.getpid()) - before) / len(held), 1, delta=0.1)

    def test_open_files_below_a_folder_count_once_with_or_without_a_name(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name).resolve()
            with (folder / "named").open("wb") as named, tempfile.TemporaryFile(dir=folder) as nameless:
                for file in (named, nameless):
                    file.write(b"x" * 100)
                    file.flush()
                with (folder / "named").open("rb"):
                    self.assertEqual(machine.files_below(os.getpid(), folder), 200)
                self.assertEqual(machine.files_below(os.getpid(), folder / "other"), 0)
            self.assertEqual(machine.files_below(os.getpid(), folder), 0)


class Options(unittest.TestCase):
    def test_an_option_that_only_the_whole_help_names_is_there(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder) / "server"
            program.write_text('#!/bin/sh\necho "--listen ADDR"; [ "$2" = all ] && echo "--metrics-path /URL"\n')
            program.chmod(0o755)
            self.assertEqual([servers.offers(program, option) for option in ("--listen", "--metrics-path", "--metrics")], [True, True, False])


class Metrics(unittest.TestCase):
    TEXT = '''# HELP maitred_lock_acquisitions_total Taken.
maitred_lock_acquisitions_total{lock="idle \\"a\\""} 3
maitred_pool_queued_seconds_bucket{le="+Inf"} 7
maitred_pool_queued_seconds_count 7
maitred_connections -1
'''

    def test_samples_are_found_by_a_word(self) -> None:
        samples = metrics.parse(self.TEXT)
        self.assertEqual([each.text for each in metrics.named(samples, "queued")],
                         ["maitred_pool_queued_seconds_count"])
        self.assertEqual(samples[-1].value, -1)


class Rounds(unittest.TestCase):
    def test_rounds_apart_and_together(self) -> None:
        of = series.Series(latencies=[[1000.0, 9000.0], [2000.0, 3000.0]])
        of.percentiles[0.5] = [1.0, 2.0]
        self.assertEqual((of.at(0.5), of.together(0.5)), (1.5, 2.0))

    def test_a_schedule_has_its_lengths(self) -> None:
        schedule = series.Schedule(400, 6.0, 5 / 6)
        self.assertEqual(schedule.lengths(rounds.Options()), (6.0, 5.0))
        self.assertEqual(schedule.lengths(rounds.Options(seconds=12.0)), (12.0, 10.0))

    def test_a_gate_has_a_side(self) -> None:
        self.assertIn("**met**", rounds.verdict("x", 1, 2))
        self.assertIn("**not met**", rounds.verdict("x", 1, 2, least=True))

    def test_a_blend_keeps_its_shares(self) -> None:
        fast, slow = traffic.bare("/"), traffic.bare("/sleep/50")
        requests = traffic.mixed(fast, slow)
        self.assertEqual((len(requests), sum(each.background for each in requests)), (1000, 100))
        self.assertEqual(requests, traffic.mixed(fast, slow))


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/right" else 404)
        self.send_header("Content-Length", "6")
        self.end_headers()
        self.wfile.write(b"hello\n")

    def log_message(self, *_: object) -> None:
        pass


class Cores(unittest.TestCase):
    def test_they_are_the_same_for_who_is_held_to_one(self) -> None:
        cores = machine.cores()
        with machine.on_core(cores[1]):
            self.assertEqual(machine.cores(), cores)


class Costs(unittest.TestCase):
    COLUMNS = costs.Columns("CPU ms", 1e6, 1, "MiB/s", 0.5)

    def measure(self, written: report.Report, requests: int) -> dict[str, list[float]]:
        with subprocess.Popen(["sleep", "60"]) as process:
            up = [servers.Server(name, 0, process, Path()) for name in ("a", "b")]
            try:
                with contextlib.redirect_stderr(io.StringIO()):
                    return costs.measure("x", up, "a", 2, lambda _: load.Closed(requests, 2.0, 1), self.COLUMNS, written)
            finally:
                process.kill()

    def test_every_server_has_a_row_with_what_all_rounds_showed(self) -> None:
        written = report.Report("x", "t", True)
        self.assertEqual({name: len(values) for name, values in self.measure(written, 40).items()}, {"a": 2, "b": 2})
        lines = "\n".join(written._lines)
        self.assertIn("## x, 2 rounds", lines)
        self.assertRegex(lines, r"\| a \| \d\.\d \[.*\] \| – \| 10 \| 2 \|")

    def test_a_round_without_an_answer_ends_the_bench(self) -> None:
        with self.assertRaisesRegex(load.WrongAnswer, "a, x"):
            self.measure(report.Report("x", "t", True), 0)

    def test_ratios_are_ours_to_the_others(self) -> None:
        self.assertEqual(costs.ratios({"a": [1.0, 2.0], "b": [2.0, 4.0]}, "a"), {"b": 0.5})
        self.assertEqual(costs.ratios({"b": [2.0]}, "a"), {})


class Verification(unittest.TestCase):
    def test_wrong_status_length_and_bytes_are_refused(self) -> None:
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            port = server.server_address[1]
            load.verify("test", port, "/right", b"hello\n", 6)
            for path, body, length in (("/wrong", b"hello\n", 6), ("/right", b"hullo\n", 6), ("/right", None, 7)):
                with self.assertRaises(load.WrongAnswer):
                    load.verify("test", port, path, body, length)
            server.shutdown()


class AccessLogs(unittest.TestCase):
    def test_a_log_has_a_line_for_each_request_but_perhaps_of_those_under_way(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "log"
            for asked, under_way, right in ((3, 0, True), (2, 1, True), (4, 9, False), (1, 1, False)):
                file.write_bytes(b"started\n" + b'"GET / HTTP/1.1" 200\n' * 3)
                log = insight.Log(file, asked, under_way)
                with contextlib.nullcontext() if right else self.assertRaises(load.WrongAnswer):
                    self.assertEqual(log.check("test"), len(b'"GET / HTTP/1.1" 200\n'))
                self.assertFalse(file.exists())
            insight.Log(file).check("one that writes none")
            with self.assertRaises(load.WrongAnswer):
                insight.Log(file, 1).check("one that wrote none")


class _Watched(_Handler):
    asked, closed = threading.Semaphore(0), threading.Semaphore(0)

    def do_GET(self) -> None:
        super().do_GET()
        self.asked.release()

    def finish(self) -> None:
        super().finish()
        self.closed.release()


class Bursts(unittest.TestCase):
    def test_every_request_has_its_time_and_a_wrong_answer_is_one(self) -> None:
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            port = server.server_address[1]
            times = traffic.burst("test", port, traffic.bare("/right", b"hello\n"), 5)
            self.assertEqual((len(times), sorted(times)), (5, times))
            with self.assertRaises(load.WrongAnswer):
                traffic.burst("test", port, traffic.bare("/wrong"), 2)
            server.shutdown()


class SlowClients(unittest.TestCase):
    def test_they_ask_in_drips_again_and_again_until_an_answer_is_wrong(self) -> None:
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Watched) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            port = server.server_address[1]

            def kind(path: str) -> crowd.Kind:
                return crowd.Kind(2, traffic.bare(path).wire, sends=200, reads=10_000)

            with crowd.running(port, [kind("/right")]):
                for _ in range(6):
                    self.assertTrue(_Watched.asked.acquire(timeout=10))
            for _ in range(2):
                self.assertTrue(_Watched.closed.acquire(timeout=10))
            with self.assertRaisesRegex(load.WrongAnswer, "404"), crowd.running(port, [kind("/wrong")]):
                self.assertTrue(_Watched.closed.acquire(timeout=10))
            server.shutdown()


class _Taker(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = b"%d" % len(self.rfile.read(int(self.headers["Content-Length"])))
        answer = {"/wrong": b"0", "/silent": None}.get(self.path, body)
        if answer is None:
            time.sleep(0.5)
        else:
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

    def log_message(self, format: str, *arguments: object) -> None:
        pass


class Uploads(unittest.TestCase):
    LENGTH = 300_000

    def upload(self, path: str, rate: float | None = None, limit: float = 20) -> uploads.Outcome:
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Taker) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            with uploads.running(server.server_address[1], uploads.Plan(5, self.LENGTH, path, rate, limit)) as crowd:
                outcome = crowd.result()
            server.shutdown()
        return outcome

    def test_all_are_answered_as_fast_as_possible(self) -> None:
        outcome = self.upload("/right")
        self.assertEqual((outcome.right, outcome.wrong), (5, []))

    def test_a_rate_is_kept(self) -> None:
        outcome = self.upload("/right", rate=self.LENGTH / 0.5)
        self.assertEqual((outcome.right, outcome.wrong), (5, []))
        for seconds in outcome.times:
            self.assertTrue(0.45 < seconds < 1.5, seconds)

    def test_another_answer_is_wrong_and_none_is_neither(self) -> None:
        outcome = self.upload("/wrong")
        self.assertEqual((outcome.right, len(outcome.wrong)), (0, 5))
        self.assertIn("200", outcome.wrong[0])
        silent = self.upload("/silent", limit=0.2)
        self.assertEqual((silent.right, silent.wrong), (0, []))


class Charts(unittest.TestCase):
    def test_charts_are_well_formed(self) -> None:
        bars = chart.bars("a < b", "s", [("one", [chart.Bar("x & y", 1, 0.5, 2)])])
        lines = chart.lines("t", "x", "y", [chart.Line("l", [(1, 0.1), (10, 5000)])], log_x=True, log_y=True)
        for text in (bars, lines):
            self.assertTrue(ElementTree.fromstring(text).tag.endswith("svg"))

    def test_a_part_of_a_bar_is_paler(self) -> None:
        def rects(part: float) -> int:
            return chart.bars("t", "s", [("one", [chart.Bar("x", 4, 4, 4, part)])]).count("<rect")

        self.assertEqual(rects(1.0), rects(0.0) + 1)


if __name__ == "__main__":
    unittest.main()
