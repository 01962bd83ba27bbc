"""Tests of what the bench of WebSockets rests on."""

import struct
import tempfile
import unittest
import zlib
from pathlib import Path
from unittest import mock

from benchlib import clients, load, peers, rounds, servers, sockets
from suite import websocket


class Messages(unittest.TestCase):
    def test_texts_differ_and_have_their_length(self) -> None:
        for length in websocket.SIZES.values():
            texts = sockets.texts(length)
            self.assertEqual({len(text) for text in texts}, {length})
            self.assertEqual(len(set(texts)), len(texts))
            self.assertGreaterEqual(len(texts) * length, 1 << 15)
            texts[0].decode("ascii")

    def test_the_file_has_each_text_and_what_it_is_when_it_is_opened_by_itself(self) -> None:
        texts = sockets.texts(1024)[:3]
        with tempfile.TemporaryDirectory() as folder:
            wire = sockets.write(Path(folder) / "messages", texts).read_bytes()
        parts = []
        while wire:
            (length,) = struct.unpack_from("<I", wire)
            parts.append(wire[4 : 4 + length])
            wire = wire[4 + length :]
        self.assertEqual(parts[::2], texts)
        for text, sealed in zip(parts[::2], parts[1::2], strict=True):
            self.assertLess(len(sealed), len(text) / 2)
            self.assertEqual(zlib.decompressobj(-sockets.WINDOW_BITS).decompress(sealed + b"\0\0\xff\xff"), text)


class Loads(unittest.TestCase):
    def test_an_outcome_is_what_the_client_says(self) -> None:
        said = {"answered": "2000", "seconds": "0.5", "bytes": "50000", "compressed": "500", "idle": "0.75"}
        server = servers.Server("a", 0, mock.Mock(), Path())
        with mock.patch.object(clients, "play", return_value=(said, mock.Mock(cpu_ns=7, others=0.0))) as play:
            done = sockets.run(server, sockets.Load(Path("m"), 64, sockets.DEFLATE), 0.5)
        self.assertEqual(play.call_args.args[2], ["0", sockets.PATH, "m", "64", "deflate", "load", "0.5"])
        self.assertEqual((done.cpu_ns, done.outcome.closed.rate), (7, 4000.0))
        self.assertEqual((done.outcome.answer_bytes, done.outcome.compressed, done.outcome.idle), (25.0, 0.25, 0.75))

    def test_ours_has_every_form_and_a_peer_may_not(self) -> None:
        each = websocket.workloads(True)[0]
        for name in (websocket.OURS, "granian"):
            server, report = servers.Server(name, 0, mock.Mock(), Path()), mock.Mock()
            with mock.patch.object(sockets, "run", side_effect=clients.CannotDo("no")):
                if name == websocket.OURS:
                    with self.assertRaises(load.WrongAnswer):
                        websocket._can(server, each, mock.Mock(), rounds.Options(smoke=True), report)
                else:
                    self.assertFalse(websocket._can(server, each, mock.Mock(), rounds.Options(smoke=True), report))
                    self.assertIn(each.name, report.text.call_args.args[0])


class Contenders(unittest.TestCase):
    def test_each_has_a_name_of_its_own_and_what_is_chosen_counts(self) -> None:
        every = sockets.contenders(peers.Environment(Path("/environment"), ""))
        self.assertEqual(len({each.name for each in every}), len(every))
        self.assertEqual(every[-1].name, websocket.OURS)
        words = next(each for each in every if each.name == "uvicorn, wsproto, asyncio").options["words"]
        assert isinstance(words, list)
        self.assertEqual(words[-4:], ["--ws", "wsproto", "--loop", "asyncio"])


class Summary(unittest.TestCase):
    def test_a_cell_has_the_median_and_our_part_of_it(self) -> None:
        report = mock.Mock()
        websocket._summary({"row": {"a": [2.0, 4.0, 3.0], websocket.OURS: [1.0, 1.0, 1.5]}}, ["a", "b", websocket.OURS], report)
        self.assertEqual(report.table.call_args.args[1], [["row", "3.00 (0.50)", "–", "1.00"]])
