"""The admin listener: wrong tokens are told, and those who are silent delay nobody."""

from __future__ import annotations

import re
import socket
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from conftest import PATIENCE, Serve
from crews import until

TOKEN = "0123456789abcdef"
APP = """
def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"x"]
"""


def status(place: str, path: str = "/status", token: str = "") -> int:
    request = urllib.request.Request(place + path, headers={"Authorization": f"Bearer {token}"} if token else {})
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as refused:
        return refused.code


@pytest.mark.parametrize("workers", ["1", "2"])
def test_wrong_tokens_are_told_counted_and_slowed(serve: Serve, tmp_path: Path, workers: str) -> None:
    (tmp_path / "token").write_text(TOKEN)
    (tmp_path / "token").chmod(0o600)
    server = serve("--workers", workers, "--admin", "127.0.0.1:0", "--admin-token-file", "token", source=APP)
    place = server.wait_for(r"(http://127\.0\.0\.1:\d+)/dashboard/")[1]
    until("it answers", lambda: status(place, token=TOKEN) == 200)
    assert status(place) == 401, "nothing was shown, which is no wrong token"
    answers = [status(place, token=f"wrong-{number}-{TOKEN}") for number in range(30)]
    assert answers[:10] == [401] * 10 and 429 in answers, answers
    server.wait_for(r"warn 127\.0\.0\.1: a wrong token at the admin listener; 401 \(--admin-token-file\)")
    # It is forgiven after a second.
    until("the right one is let in", lambda: status(place, token=TOKEN) == 200)
    request = urllib.request.Request(place + "/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        page = answer.read().decode()
    counted = re.findall(r'^maitred_rules_applied_total\{.*rule="wrong-token".*\} (\d+)$', page, re.MULTILINE)
    assert sum(map(int, counted)) == answers.count(401), page


def test_those_who_are_silent_delay_nobody(serve: Serve) -> None:
    server = serve("--admin", "127.0.0.1:0", source=APP)
    place = server.wait_for(r"(http://127\.0\.0\.1:\d+)/dashboard/")[1]
    port = int(place.rpartition(":")[2])
    silent = [socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) for _ in range(40)]
    try:
        assert status(place) == 200
        # They were told to go, not that their time is over.
        assert [peer.recv(100) for peer in silent[:5]] == [b""] * 5
    finally:
        for peer in silent:
            peer.close()


def test_a_folder_that_others_may_write_to_is_a_warning(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir(mode=0o777)
    (tmp_path / "run").chmod(0o777)
    server = serve(source=APP, XDG_RUNTIME_DIR=str(tmp_path / "run"))
    server.wait_for(r"warn no control socket: \S+/run is no folder of this user alone \(mode 0700\); correct that")
    assert server.fetch("/").status == 200
