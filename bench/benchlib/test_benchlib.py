"""Tests of what the benches rest on: `python3 -m unittest discover -s bench` from the repository root."""

import contextlib
import http.server
import os
import tempfile
import threading
import time
import unittest
from pathlib import Path
from xml.etree import ElementTree

from benchlib import chart, crowd, figures, load, machine, metrics, rounds, series, traffic
from suite import insight


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


class Metrics(unittest.TestCase):
    TEXT = '''# HELP maitred_lock_acquisitions_total Taken.
# TYPE maitred_lock_acquisitions_total counter
maitred_lock_acquisitions_total{lock="queue"} 217000
maitred_lock_acquisitions_total{lock="idle \\"a\\""} 3
maitred_lock_contended_total{lock="queue"} 12
maitred_lock_wait_seconds_total{lock="queue"} 0.000025
maitred_lock_wait_longest_microseconds{lock="queue"} 4
maitred_pool_queued_seconds_bucket{le="+Inf"} 7
maitred_pool_queued_seconds_count 7
maitred_connections -1
'''

    def test_locks_are_found_by_their_label(self) -> None:
        locks = metrics.locks(metrics.parse(self.TEXT))
        self.assertEqual((locks["queue"].acquisitions, locks["queue"].contended), (217000, 12))
        self.assertAlmostEqual(locks["queue"].wait, 25e-6)
        self.assertAlmostEqual(locks["queue"].longest, 4e-6)
        self.assertEqual(len(locks), 2)
        earlier = metrics.Lock(200000, 10, 5e-6, 3e-6)
        self.assertEqual((locks["queue"] - earlier).acquisitions, 17000)
        self.assertEqual((locks["queue"] - earlier).longest, locks["queue"].longest)

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


class Charts(unittest.TestCase):
    def test_charts_are_well_formed(self) -> None:
        bars = chart.bars("a < b", "s", [("one", [chart.Bar("x & y", 1, 0.5, 2)])])
        lines = chart.lines("t", "x", "y", [chart.Line("l", [(1, 0.1), (10, 5000)])], log_x=True, log_y=True)
        for text in (bars, lines):
            self.assertTrue(ElementTree.fromstring(text).tag.endswith("svg"))


if __name__ == "__main__":
    unittest.main()
