"""Redirects that `maitred.http` follows: where they lead, what goes along, and the limits that hold over all of them."""

from __future__ import annotations

import importlib
import itertools
from types import SimpleNamespace

import pytest
from answering import answering, ok
from calling import Calls, calls

import maitred.http as http

__all__ = ["calls"]

#: The package has a variable of the name of this module.
CLIENTS = importlib.import_module("maitred.http._client")


def to(place: bytes, status: bytes = b"302 Found") -> bytes:
    return ok(b"elsewhere", b"Location: " + place, status=status)


def test_redirects_are_followed_when_asked(calls: Calls) -> None:
    with answering(ok(b"other")) as other, answering(to(b"/next?a=1#f"), ok(b"here")) as server:
        assert calls.one("GET", server.url).status == 302
        server.requests.clear()
        response = calls.one("POST", server.url, content=b"body", follow_redirects=True)
        assert (response.text, [before.status for before in response.history]) == ("here", [302])
        assert server.requests[1].startswith(b"GET /next?a=1 ") and b"body" not in server.requests[1]
        # Status 307 sends the body again, and credentials stay with their origin.
        server.requests.clear()
        server.answers[:] = [to(other.url.encode() + b"/x", b"307 Temporary Redirect")]
        private = {"Authorization": "secret", "Cookie": "a=b", "X-Mine": "1"}
        response = calls.one("POST", server.url, content=b"body", headers=private, follow_redirects=True)
        assert response.text == "other" and b"secret" in server.requests[0]
        sent = other.requests[0]
        assert sent.startswith(b"POST /x ") and sent.endswith(b"body") and b"X-Mine: 1" in sent
        assert b"secret" not in sent and b"Cookie" not in sent and b"Host: 127.0.0.1:%d\r\n" % other.port in sent
        with pytest.raises(http.InvalidRequest, match="body again"):
            calls.one("POST", server.url, content=iter([b"once"]), follow_redirects=True)
        server.answers[:] = [to(b"/again", b"301 Moved")]
        with pytest.raises(http.TooManyRedirects):
            calls.one("GET", server.url, follow_redirects=True, client={"max_redirects": 2})


@pytest.mark.parametrize("place", [b"http://[x", b"http://[::1", b"ftp://host/", b"https:///path", b"http://host:0/", b"http://host:99999/", b"http://a b/"])
def test_a_location_that_is_no_url_is_an_answer_that_is_none(calls: Calls, place: bytes) -> None:
    with answering(to(place)) as server:
        assert calls.one("GET", server.url).status == 302
        with pytest.raises(http.ProtocolError, match="redirect"):
            calls.one("GET", server.url, follow_redirects=True)


@pytest.mark.parametrize(
    ("place", "target"),
    [
        ("/é?ü".encode(), b"/%C3%A9?%C3%BC"),
        ("/é?ü".encode("latin-1"), b"/%E9?%FC"),
        (b"/%C3%A9?a%20b", b"/%C3%A9?a%20b"),
        ("%s/ø".encode(), b"/%C3%B8"),
    ],
    ids=["utf-8", "latin-1", "encoded", "absolute"],
)
def test_a_location_is_encoded_once(calls: Calls, place: bytes, target: bytes) -> None:
    with answering(ok(b"here")) as server:
        server.answers.insert(0, to(place.replace(b"%s", server.url.encode())))
        assert calls.one("GET", server.url, follow_redirects=True).text == "here"
        assert server.requests[1].startswith(b"GET " + target + b" HTTP/1.1\r\n")


def test_the_total_limit_is_for_all_redirects_together(calls: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = itertools.count(0, 40)
    with answering(to(b"/again")) as server:
        monkeypatch.setattr(CLIENTS, "time", SimpleNamespace(monotonic=lambda: next(clock)))
        with pytest.raises(http.TotalTimeout) as raised:
            calls.one("GET", server.url, timeout=http.Timeout(total=100), follow_redirects=True)
        assert raised.value.phase == "total" and len(server.requests) == 3
        # Without a limit none is made up.
        with pytest.raises(http.TooManyRedirects):
            calls.one("GET", server.url, timeout=None, follow_redirects=True)
