"""The gates of `client`, from made measurements."""

from __future__ import annotations

import unittest

from benchlib import calls
from suite import client

BLOCKING, AWAITABLE, MANY = (client.Workload(client.BLOCKING, "1 KiB", 1), client.Workload(client.AWAITABLE, "1 KiB", 1),
                             client.Workload(client.AWAITABLE, "1 KiB", 100))


def samples(**cpu: float) -> client.Samples:
    """Three rounds of each, with this CPU time of a call."""
    return {name: [calls.Measured(10, value, value, value, 0.0)] * 3 for name, value in cpu.items()}


class Gates(unittest.TestCase):
    def test_each_gate_compares_what_its_words_say(self) -> None:
        cpu = {client.OURS: 15.0, "pycurl": 12.0, client.CURL: 600.0, "httpx, floor": 65.0, "httpx over maitred": 100.0}
        lines = client.gates({BLOCKING: samples(**cpu)})
        name = "Gate, blocking, 1 KiB, 1 caller: CPU"
        self.assertEqual(lines, [
            f"- {name} against pycurl: 1.250 against 1.500: **met**",
            f"- {name} of a process for each call, to ours: 40.000 against at least 50.000: **not met**",
            f"- {name} of httpx over maitred to its floor and our own call: 1.250 against 1.100: **not met**"])

    def test_growth_is_from_one_call_to_a_hundred_at_once(self) -> None:
        lines = client.gates({AWAITABLE: samples(**{client.OURS: 40.0}), MANY: samples(**{client.OURS: 50.0})})
        self.assertEqual(lines, ["- Gate, awaitable, 1 KiB: CPU of maitred.http with 100 at once, to 1: 1.250 against 1.100: **not met**"])

    def test_a_framework_takes_part_where_it_has_the_form(self) -> None:
        taking = {workload: {name for name in ("aiohttp", "requests over maitred", "httpx, floor", client.CURL, client.OURS)
                             if client.takes_part(workload, name)} for workload in (BLOCKING, MANY)}
        self.assertEqual(taking, {BLOCKING: {"requests over maitred", "httpx, floor", client.CURL, client.OURS},
                                  MANY: {"aiohttp", "httpx, floor", client.OURS}})


if __name__ == "__main__":
    unittest.main()
