"""Tests of what the benches of HTTP/2 rest on."""

import unittest

from benchlib import h2, load, streams
from suite import http2, http2_abuse

SAID = """
finished in 2.01s, 155000.00 req/s, 170.31MB/s
requests: 310000 total, 310320 started, 310000 done, {succeeded} succeeded, {failed} failed, 0 errored, 0 timeout
status codes: {succeeded} 2xx, 0 3xx, {fourth} 4xx, 0 5xx
traffic: 340.62MB (357163520) total, 4.14MB (4340000) headers (space savings 92.44%), 302.73MB (317440000) data
"""


class Outcomes(unittest.TestCase):
    def parsed(self, length: int = 1024, succeeded: int = 310000, failed: int = 0, fourth: int = 0) -> h2.Outcome:
        return h2.parsed("a", SAID.format(succeeded=succeeded, failed=failed, fourth=fourth), h2.Load(h2.CLEAR, ["/"], length), 2.0)

    def test_requests_of_small_files_are_counted_and_of_the_largest_their_bytes(self) -> None:
        small = self.parsed()
        self.assertEqual((small.closed.requests, small.closed.rate, small.head), (310000, 155000.0, 14.0))
        self.assertAlmostEqual(self.parsed(length=10 << 20).closed.requests, 317440000 / (10 << 20))

    def test_what_fails_is_a_wrong_answer(self) -> None:
        for wrong in ({"failed": 1}, {"fourth": 2}):
            with self.assertRaises(load.WrongAnswer):
                self.parsed(**wrong)
        with self.assertRaises(load.WrongAnswer):
            h2.parsed("a", "Segmentation fault", h2.Load(h2.CLEAR, ["/"], 1), 1.0)


class Blocks(unittest.TestCase):
    def test_the_status_is_seen_behind_changes_of_the_table(self) -> None:
        for block, is_right in ((b"\x88", True), (b"\x3f\xe1\x1f\x88", True), (b"\x20\x88\x5f", True), (b"\x8d", False), (b"", False), (b"\x3f", False)):
            self.assertEqual(streams.begins_right(block), is_right, block)

    def test_a_request_has_the_fields_that_it_needs(self) -> None:
        self.assertEqual(streams.request(b"/a"), b"\x82\x86\x04\x02/a\x01\x09localhost")

    def test_a_head_is_in_as_many_frames_as_it_needs(self) -> None:
        wire = http2_abuse._blocks(b"x" * 40_000)
        kinds = []
        while wire:
            length, kind, flags = int.from_bytes(wire[:3], "big"), wire[3], wire[4]
            kinds.append((length, kind, flags))
            wire = wire[9 + length :]
        self.assertEqual(kinds, [(16384, streams.HEADERS, 1), (16384, streams.CONTINUATION, 0), (7232, streams.CONTINUATION, 4)])


class Rows(unittest.TestCase):
    def test_the_gate_of_the_smallest_files_is_a_third(self) -> None:
        self.assertEqual({row.length: row.gate for row in http2.ROWS}, {1024: 1 / 3, 64 << 10: 1.0, 10 << 20: 1.0})

    def test_attacks_have_names_of_their_own(self) -> None:
        self.assertEqual(len({each.name for each in http2_abuse.ATTACKS}), len(http2_abuse.ATTACKS))
        for each in http2_abuse.ATTACKS:
            self.assertTrue(next(iter(each.wire())), each.name)
