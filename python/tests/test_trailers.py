"""Fields behind the body of a response: the ASGI extension `http.response.trailers`."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest
from conftest import PATIENCE, Serve, Server
from h2 import events
from h2.connection import H2Connection

#: The path has one letter for each message that is sent.
SOURCE = """
TRAILERS = "http.response.trailers"

async def app(scope, receive, send):
    if scope["type"] != "http":
        return
    steps = scope["path"][1:]
    extensions = scope["extensions"]
    if steps == "extension":
        steps = "sb" if extensions.get(TRAILERS) == {} else "nb"
    said = []
    for step in steps:
        try:
            await MESSAGES[step](send)
        except Exception as error:
            said.append(f"{type(error).__name__}: {error}")
    if said:
        print("said", *said, sep=" | ", flush=True)

def start(**others):
    return lambda send: send({"type": "http.response.start", "status": 200, "headers": [(b"trailer", b"x-sum")], **others})

def body(text, **others):
    return lambda send: send({"type": "http.response.body", "body": text, **others})

def trailers(*headers, **others):
    return lambda send: send({"type": TRAILERS, "headers": headers, **others})

MESSAGES = {
    "s": start(trailers=True),
    "n": start(),
    "l": start(trailers=True, headers=[(b"content-length", b"4")]),
    "e": start(trailers=True, status=204, headers=[]),
    "p": body(b"part", more_body=True),
    "b": body(b"last"),
    "z": body(b""),
    "f": lambda send: send({"type": "http.response.pathsend", "path": __file__}),
    "t": trailers((b"x-sum", b"7"), (b"grpc-status", b"0")),
    "m": trailers((b"x-first", b"1"), more_trailers=True),
    "0": lambda send: send({"type": TRAILERS}),
    "i": trailers((b"bad name", b"1")),
    "v": trailers((b"x-bad", b"a\\r\\nb: c")),
    "w": trailers(b"x-sum"),
}
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, loop: str) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("trailers")
    (folder / "app.py").write_text(SOURCE)
    server = Server(["app.py", "--loop", loop], folder, {})
    try:
        yield server
        assert server.stop() == 0, server.said
    finally:
        server.kill()


def ask(server: Server, steps: str, *fields: bytes) -> tuple[bytes, bytes]:
    """The head, in small letters, and everything behind it."""
    lines = [b"GET /%s HTTP/1.1" % steps.encode(), b"Host: a", b"Connection: close", *fields, b"", b""]
    head, _, rest = server.raw(b"\r\n".join(lines)).partition(b"\r\n\r\n")
    return head.lower(), rest


TAKES = b"TE: trailers"
END = b"0\r\nx-sum: 7\r\ngrpc-status: 0\r\n\r\n"


@pytest.mark.parametrize("steps, expected", [("sbt", b"4\r\nlast\r\n"), ("spbt", b"4\r\npart\r\n4\r\nlast\r\n"), ("szt", b""), ("spzt", b"4\r\npart\r\n")])
def test_they_stand_behind_the_body(server: Server, steps: str, expected: bytes) -> None:
    head, rest = ask(server, steps, TAKES)
    assert rest == expected + END
    assert b"\r\ntransfer-encoding: chunked" in head and b"\r\ntrailer: x-sum" in head


def test_they_may_come_in_several_messages(server: Server) -> None:
    assert ask(server, "sbmmt", TAKES)[1] == b"4\r\nlast\r\n0\r\nx-first: 1\r\nx-first: 1\r\n" + END[3:]
    assert ask(server, "sbm0", TAKES)[1] == b"4\r\nlast\r\n0\r\nx-first: 1\r\n\r\n"
    assert ask(server, "sb0", TAKES)[1] == b"4\r\nlast\r\n0\r\n\r\n"


@pytest.mark.parametrize("fields", [(), (b"TE: gzip",)])
def test_a_client_that_does_not_take_them_gets_a_length(server: Server, fields: tuple[bytes, ...]) -> None:
    head, rest = ask(server, "sbt", *fields)
    assert (rest, b"\r\ncontent-length: 4" in head, b"trailer" in head) == (b"last", True, False)
    assert ask(server, "spbt", *fields)[1] == b"4\r\npart\r\n4\r\nlast\r\n0\r\n\r\n"


def test_the_scope_says_who_takes_them(server: Server) -> None:
    said = {fields: b"chunked" in ask(server, "extension", *fields)[0] for fields in [(), (TAKES,), (b"te: deflate , Trailers",)]}
    assert said == {(): False, (TAKES,): True, (b"te: deflate , Trailers",): True}
    received = server.raw(b"GET /extension HTTP/1.0\r\nTE: trailers\r\n\r\n")
    assert b"content-length: 4" in received.lower(), "HTTP/1.0 has no chunks"


def test_they_stand_behind_a_file_of_the_application(server: Server) -> None:
    rest = ask(server, "sft", TAKES)[1]
    assert rest == b"%x\r\n%s\r\n" % (len(SOURCE), SOURCE.encode()) + END


@pytest.mark.parametrize(
    "steps, said",
    [
        ("nbt", r'RuntimeError: http.response.trailers was sent and not announced; send http.response.start with "trailers": True'),
        ("npt", r'RuntimeError: http.response.trailers was sent and not announced; .* "trailers": True'),
        ("sptbt", "RuntimeError: http.response.trailers was sent before the last http.response.body, the one without more_body"),
        ("tsbt", "RuntimeError: http.response.trailers was sent before http.response.start"),
        ("sbbt", "RuntimeError: a body was sent after the last http.response.body; now comes http.response.trailers"),
        ("sbit", "ValueError: invalid header name 'bad name'|ValueError: invalid header name \"bad name\""),
        ("sbvt", "ValueError: the value of header \"x-bad\" has a CR, LF, NUL"),
        ("sbwt", "TypeError: a header must be a pair"),
    ],
)
def test_what_cannot_be_is_an_error_that_says_what(server: Server, steps: str, said: str) -> None:
    start = len(server.said)
    rest = ask(server, steps, TAKES)[1]
    server.wait_for(rf"said \| (?:{said})", start)
    if steps.startswith("s") or steps == "tsbt":
        assert rest.endswith(b"4\r\nlast\r\n" + END), "what comes after the error is taken"


@pytest.mark.parametrize("steps", ["sb", "sbm", "sz"])
def test_an_application_that_announces_them_and_sends_none_has_its_response_cut(server: Server, steps: str) -> None:
    start = len(server.said)
    rest = ask(server, steps, TAKES)[1]
    assert not rest.endswith(b"0\r\n\r\n"), "the peer sees that it is not whole"
    server.wait_for(rf"GET /{steps}: the application returned without the trailers that it had announced\n.*http.response.trailers", start)


def test_messages_after_the_end_are_ignored(server: Server) -> None:
    start = len(server.said)
    assert ask(server, "sbttbt", TAKES)[1] == b"4\r\nlast\r\n" + END
    ask(server, "tsbt", TAKES)
    server.wait_for(r"said \| ", start)
    assert server.said[start:].count("said |") == 1, "of the second one only"


def test_they_stand_behind_bodies_that_wait_for_their_readers(serve: Serve) -> None:
    """Twelve megabytes each, of which the budget of all has one: what waits goes to files, on the loop's own thread too."""
    size = 12_000_000
    source = SOURCE.replace('b"last"', f'b"x" * {size}')
    server = serve("--response-budget", "1m", source=source, checked=False)
    peers = [socket.create_connection(("127.0.0.1", server.port), PATIENCE) for _ in range(6)]
    for number, peer in enumerate(peers):
        peer.sendall(b"GET /%s HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTE: trailers\r\n\r\n" % (b"spbt", b"sbmt")[number % 2])
    for peer in peers:
        with peer, peer.makefile("rb") as file:
            received = file.read()
        body = b"%x\r\n" % size + b"x" * size + b"\r\n"
        assert received.count(body) == 1 and received.endswith(END[3:]), received[-99:]


def test_http_2_has_them_behind_any_body(serve: Serve) -> None:
    server = serve(source=SOURCE, checked=False)
    asked = {"sbt": True, "lbt": True, "szt": True, "sbmt": True, "ezt": False, "nb": False, "extension": None, "sb": False}
    with socket.create_connection(("127.0.0.1", server.port), PATIENCE) as peer:
        client = H2Connection()
        client.initiate_connection()
        paths = {}
        for steps in asked:
            stream = client.get_next_available_stream_id()
            paths[stream] = steps
            fields = [(":method", "GET"), (":scheme", "http"), (":authority", "a"), (":path", f"/{steps}")]
            client.send_headers(stream, fields, end_stream=True)
        heads: dict[str, list[tuple[bytes, bytes]]] = {}
        bodies = dict.fromkeys(asked, b"")
        trailers: dict[str, list[tuple[bytes, bytes]]] = {}
        ended: dict[str, str] = {}
        while len(ended) < len(asked):
            peer.sendall(client.data_to_send())
            received = peer.recv(65536)
            assert received, ended
            for event in client.receive_data(received):
                steps = paths.get(getattr(event, "stream_id", 0) or 0, "")
                if isinstance(event, events.ResponseReceived):
                    heads[steps] = [(bytes(name), bytes(value)) for name, value in event.headers]
                elif isinstance(event, events.DataReceived):
                    bodies[steps] += event.data
                elif isinstance(event, events.TrailersReceived):
                    trailers[steps] = [(bytes(name), bytes(value)) for name, value in event.headers]
                elif isinstance(event, (events.StreamEnded, events.StreamReset)):
                    ended[steps] = type(event).__name__
    sums = [(b"x-sum", b"7"), (b"grpc-status", b"0")]
    assert trailers == {"sbt": sums, "lbt": sums, "szt": sums, "sbmt": [(b"x-first", b"1"), *sums]}
    assert {steps for steps, how in ended.items() if how == "StreamReset"} == {"sb", "extension"}, "not whole"
    assert (b"trailer", b"x-sum") in heads["sbt"] and (b"content-length", b"4") in heads["lbt"]
    assert {steps: bodies[steps] for steps in ("sbt", "lbt", "szt", "ezt", "nb")} == {
        "sbt": b"last", "lbt": b"last", "szt": b"", "ezt": b"", "nb": b"last"
    }
