"""The WebSocket part of the ASGI specification over the wire: messages and their order, and the end."""

from __future__ import annotations

from typing import Any

import pytest
from sites import Site, differs
from websocket_frames import close, more, ping, text
from websocket_site import ACCEPT, CLOSE, Told, does, opened, ours, send, site, told, tried
from websocket_wire import request

__all__ = ["site", "told"]

#: What send may raise when the WebSocket is closed.
DISCONNECTED = {"RuntimeError", "ClientDisconnected"}

# Messages


@pytest.mark.parametrize("message", ["text", "", "caf\u00e9 \U0001f600 \0", b"bytes", b"", bytes(range(256))])
def test_a_message_comes_as_one_kind(site: Site, told: Told, message: str | bytes) -> None:
    with opened(site, does("receive", ACCEPT, "receive")) as socket:
        socket.say(message)
        name = "text" if isinstance(message, str) else "bytes"
        assert told.list()[1] == {"type": "websocket.receive", name: message}


@pytest.mark.parametrize("size", [1, 125, 126, 65535, 65536, 1 << 20])
def test_messages_of_all_sizes_are_echoed(site: Site, size: int) -> None:
    with opened(site, "/echo") as socket:
        assert socket.echo("x" * size) == "x" * size
        assert socket.echo(bytes(256) * (size // 256) + b"y" * (size % 256)) == bytes(256) * (size // 256) + b"y" * (size % 256)


def test_fragments_with_a_ping_between_are_one_message(site: Site) -> None:
    with opened(site, "/echo") as socket:
        socket.send(text("one, ", fin=False), ping(b"between"), more("two"))
        assert {socket.event(), socket.event()} == {("pong", b"between"), ("text", "one, two")}


def test_messages_stay_in_order(site: Site) -> None:
    with opened(site, "/echo") as socket:
        sent = [f"message {number}" for number in range(500)]
        socket.send(*map(text, sent))
        assert [socket.message() for _ in sent] == sent


def test_what_may_be_sent(site: Site, told: Told) -> None:
    right = [send(text="a"), send(text="", bytes=None), send(bytes=b""), send(text=None, bytes=b"b"), send(bytes=b"c", more="is ignored")]
    with opened(site, does("receive", ACCEPT, *map(tried, right))) as socket:
        assert [socket.message() for _ in right] == ["a", "", b"", b"b", b"c"]
        assert told.list()[1:] == [None] * len(right), "send returns nothing"


@ours
def test_buffers_are_sent(site: Site) -> None:
    with opened(site, "/buffers") as socket:
        assert [socket.message() for _ in range(3)] == [b"an array", b"a view", b"slice"]


WRONG_MESSAGES: dict[str, dict[str, Any]] = {
    "neither": send(),
    "both": send(text="a", bytes=b"b"),
    "both empty": send(text="", bytes=b""),
    "none": send(text=None, bytes=None),
    "bytes as text": send(text=b"a"),
    "text as bytes": send(bytes="a"),
    "a number": send(text=1),
    "half a pair": send(text="\ud800"),
}


@ours
@pytest.mark.parametrize("name", WRONG_MESSAGES)
def test_what_cannot_be_sent_raises_and_the_websocket_goes_on(site: Site, told: Told, name: str) -> None:
    with opened(site, does("receive", ACCEPT, tried(WRONG_MESSAGES[name]), send(text="goes on"))) as socket:
        assert socket.message() == "goes on"
        assert told.list()[1][0] in {"RuntimeError", "ValueError", "TypeError", "UnicodeEncodeError"}


def test_receive_may_be_given_up(site: Site) -> None:
    with opened(site, "/waits") as socket:
        assert socket.message() == "waits"
        socket.say("not lost")
        assert socket.message() == "not lost"


def test_tasks_send_while_another_one_receives(site: Site) -> None:
    with opened(site, "/side_by_side") as socket:
        came = [str(socket.message()) for _ in range(1000)]
        for name in range(10):
            own = [message for message in came if message.startswith(f"{name} ")]
            assert own == [f"{name} {number}" for number in range(100)]
        socket.say("last")
        assert socket.message() == "last"


# The end


CLOSES = {
    "by default": (CLOSE, (1000, "")),
    "with a code": (CLOSE | {"code": 3001}, (3001, "")),
    "with a reason": (CLOSE | {"code": 4999, "reason": "caf\u00e9"}, (4999, "caf\u00e9")),
    "with no reason": (CLOSE | {"code": 1001, "reason": None}, (1001, "")),
    "with the longest reason": (CLOSE | {"reason": "x" * 123}, (1000, "x" * 123)),
}


@pytest.mark.parametrize("name", CLOSES)
def test_the_application_closes(site: Site, told: Told, name: str) -> None:
    message, expected = CLOSES[name]
    with opened(site, does("receive", ACCEPT, send(text="last"), message)) as socket:
        assert socket.message() == "last"
        assert socket.closed() == expected
    told.list()
    assert "Traceback" not in told.log


@ours
@pytest.mark.parametrize("reason", [b"x", 1, [{"why": "a test"}]])
def test_a_reason_that_is_no_text_closes_all_the_same(site: Site, reason: Any) -> None:
    """FastAPI has a list for one."""
    with opened(site, does("receive", ACCEPT, CLOSE | {"code": 4000, "reason": reason})) as socket:
        assert socket.closed()[0] == 4000


@ours
def test_a_reason_that_is_too_long_is_cut(site: Site) -> None:
    """A frame has 123 bytes for it (RFC 6455, section 5.5), and what is left is UTF-8."""
    with opened(site, does("receive", ACCEPT, CLOSE | {"code": 4000, "reason": "x" + "\u00e9" * 100})) as socket:
        assert socket.closed() == (4000, "x" + "\u00e9" * 61)


@ours
@pytest.mark.parametrize("wrong", [{"code": code} for code in (0, 999, 1004, 1005, 1006, 1015, 2999, 5000, "1000")])
def test_closing_with_what_no_frame_can_carry_raises(site: Site, told: Told, wrong: dict[str, Any]) -> None:
    with opened(site, does("receive", ACCEPT, tried(CLOSE | wrong), CLOSE | {"code": 4000})) as socket:
        assert socket.closed() == (4000, "")
    assert told.list()[1][0] in {"RuntimeError", "ValueError", "TypeError"}


@ours
def test_after_its_own_close_the_application_gets_disconnect(site: Site, told: Told) -> None:
    with opened(site, does("receive", ACCEPT, CLOSE | {"code": 4001}, "receive", tried(send(text="late")), tried(CLOSE))) as socket:
        assert socket.closed() == (4001, "")
    _, gone, late, again = told.list()
    assert (gone["type"], gone["code"]) == ("websocket.disconnect", 4001)
    assert late[0] in DISCONNECTED and again[0] in DISCONNECTED


@differs("who returns has said all: the server closes, and does not break off", "uvicorn")
def test_a_return_closes_with_1000(site: Site) -> None:
    with opened(site, does("receive", ACCEPT, send(text="last"))) as socket:
        assert socket.message() == "last"
        assert socket.closed() == (1000, "")


@differs("the peer is told of a failure by 1011 (RFC 6455, section 7.4.1)", "uvicorn")
def test_a_failure_closes_with_1011_and_is_in_the_log(site: Site, told: Told) -> None:
    with opened(site, does("receive", ACCEPT, send(text="last"), "raise")) as socket:
        assert socket.message() == "last"
        assert socket.closed()[0] == 1011
    told.server.wait_for("ValueError: as told\n", told.start)


@pytest.mark.parametrize(
    ("frame", "code", "reason"),
    [(close(1000), 1000, ""), (close(1001, "caf\u00e9"), 1001, "caf\u00e9"), (close(4000, "x" * 123), 4000, "x" * 123), (close(None), 1005, "")],
)
def test_the_peer_closes(site: Site, told: Told, frame: bytes, code: int, reason: str) -> None:
    with opened(site, does("receive", ACCEPT, "receive", "receive")) as socket:
        socket.send(text("last"), frame)
        kind, (answered, _) = socket.event() or ("", (0, ""))
        assert (kind, answered) == ("close", code)
        assert socket.event() is None
    _, last, gone = told.list()
    assert last == {"type": "websocket.receive", "text": "last"}
    assert (gone["type"], gone["code"], gone.get("reason") or "") == ("websocket.disconnect", code, reason)
    assert "Traceback" not in told.log


@differs("send raises an OSError then, and the code is 1006", "uvicorn")
@pytest.mark.parametrize("how", ["abort", "finish"])
def test_the_peer_vanishes(site: Site, told: Told, how: str) -> None:
    """By a reset, or by the end of its side without a close."""
    with opened(site, does("receive", ACCEPT, send(text="open"), "receive", tried(send(text="late")))) as socket:
        assert socket.message() == "open"
        getattr(socket.pipe, how)()
        _, gone, late = told.list()
    assert (gone["type"], gone["code"]) == ("websocket.disconnect", 1006)
    assert late[1] is True, "an OSError"


@ours
def test_the_peer_vanishes_before_accept(site: Site, told: Told) -> None:
    with site.connection() as peer:
        peer.sendall(request(does("receive", "say", "receive", tried(ACCEPT))))
        # A request whose peer has left before is not run.
        told.said()
    _, gone, late = told.list()
    assert (gone["type"], gone["code"]) == ("websocket.disconnect", 1006)
    assert late in {None, ("ClientDisconnected", True)}


@ours
def test_disconnect_is_said_as_often_as_one_asks(site: Site, told: Told) -> None:
    with opened(site, does("receive", ACCEPT, "receive", "receive", "receive")) as socket:
        assert socket.close(4000) == (4000, "")
    gone = told.list()[1:]
    assert [(each["type"], each["code"]) for each in gone] == [("websocket.disconnect", 4000)] * 3


@ours
def test_send_after_disconnect_raises_an_oserror_that_is_not_logged(site: Site, told: Told) -> None:
    late = send(text="late")
    with opened(site, does("receive", ACCEPT, "receive", tried(late), tried(CLOSE), late)) as socket:
        assert socket.close(1000) == (1000, "")
    _, gone, first, closing = told.list()
    assert gone["type"] == "websocket.disconnect" and first[1] is True, "an OSError"
    assert first[0] == "ClientDisconnected"
    assert closing is None or closing[0] == "ClientDisconnected", "who closes what is closed has what it wants"
    assert site.json("/hello") == "hello"
    assert "Traceback" not in told.log, "it is no failure of the application"


def test_what_comes_after_a_close_is_not_read(site: Site, told: Told) -> None:
    with opened(site, does("receive", ACCEPT, "receive", "receive")) as socket:
        socket.send(text("before"), close(), text("after"), ping())
        assert socket.event() == ("close", (1000, ""))
        assert socket.event() is None
    assert [message["type"] for message in told.list()] == ["websocket.connect", "websocket.receive", "websocket.disconnect"]


def test_a_fault_of_the_peer_is_a_disconnect(site: Site, told: Told) -> None:
    with opened(site, does("receive", ACCEPT, "receive", "receive")) as socket:
        socket.send(text("before"), text(b"\xff"))
        assert socket.closed()[0] == 1007
    *_, last, gone = told.list()
    assert last == {"type": "websocket.receive", "text": "before"}
    assert gone["type"] == "websocket.disconnect" and gone["code"] in {1006, 1007}
