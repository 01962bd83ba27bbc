"""Tests of what the bench of TLS rests on."""

import unittest
from pathlib import Path
from unittest import mock

from benchlib import clients, load, rounds, secured, servers
from suite import tls


class Probes(unittest.TestCase):
    def probe(self, kind: str, requests: int, resumed: int) -> secured.Outcome:
        outcome = secured.Outcome(load.Closed(requests, 1.0, 0), resumed, "suite", "X25519")
        server = servers.Server("a", 0, mock.Mock(), Path())
        with mock.patch.object(secured, "run", return_value=rounds.Timed(outcome, 1, 0.0)):
            return secured.probe(server, secured.Load("/", 1, 1, kind), 0.1)

    def test_a_server_that_does_not_resume_cannot_do_it(self) -> None:
        self.assertEqual(self.probe(secured.RESUMED, 100, 98).resumed, 98)
        with self.assertRaisesRegex(clients.CannotDo, "40%"):
            self.probe(secured.RESUMED, 100, 40)

    def test_a_full_handshake_is_none_that_is_resumed(self) -> None:
        self.assertEqual(self.probe(secured.FULL, 100, 0).resumed, 0)
        with self.assertRaises(load.WrongAnswer):
            self.probe(secured.FULL, 100, 100)


class Rows(unittest.TestCase):
    def test_units_fit(self) -> None:
        # A second for a GiB; 10 microseconds for a request; 100 for a handshake.
        for columns, counted, cpu_ns in ((tls.BYTES, tls.GIB, 1e9), (tls.REQUESTS, 1, 1e4), (tls.HANDSHAKES, 1, 1e5)):
            self.assertEqual(cpu_ns / counted / columns.nanoseconds, 1.0)

    def test_all_but_the_hybrid_group_have_a_target(self) -> None:
        self.assertEqual([row.name for row in tls.ROWS if row.target is None], [row.name for row in tls.ROWS if row.load.group == "hybrid"])
