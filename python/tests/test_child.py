"""A process that application code has forked, and in which it comes back to the server: only the parent answers."""

from __future__ import annotations

import socket
from http.client import HTTPResponse

import pytest
from conftest import PATIENCE, Serve, Server

COMMON = """
import asyncio, multiprocessing, os, signal, subprocess, sys, time
children = []

def fork():
    child = os.fork()
    if child:
        children.append(child)
    else:
        signal.alarm(20)  # One that serves on, against what is tested, would do so for ever.
    return not child

def code_of_child():
    while not children:
        time.sleep(0.001)  # close() is called when the client has the response.
    return os.waitstatus_to_exitcode(os.waitpid(children.pop(), 0)[1])

def put(queue):
    queue.put("from a child")

def by_multiprocessing():
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    process = context.Process(target=put, args=(queue,))
    process.start()
    said = queue.get()
    process.join()
    return f"{said} {process.exitcode}"

def by_subprocess():
    code = "print('from a program')"
    return subprocess.check_output([sys.executable, "-c", code], text=True, preexec_fn=lambda: None).strip()

def raise_in_child():
    if fork():
        raise ValueError("in the child")

def exit_in_child(code):
    if fork():
        sys.exit(code)

ANSWERS = {
    "/returns": lambda: fork() and "child" or "parent",
    "/exits": lambda: exit_in_child(3),
    "/exits-well": lambda: exit_in_child(None),
    "/exits-with-text": lambda: exit_in_child("last words"),
    "/raises": raise_in_child,
    "/code": code_of_child,
    "/multiprocessing": by_multiprocessing,
    "/subprocess": by_subprocess,
}
"""

WSGI = COMMON + """
def app(environ, start_response):
    path = environ["PATH_INFO"]
    if path == "/before-close":
        return Closing(start_response)
    if path in ANSWERS:
        answer = str(ANSWERS[path]()).encode()
        start_response("200 OK", [("Content-Type", "text/plain")])
        return [answer]
    write = start_response("200 OK", [("Content-Type", "text/plain")])
    if path == "/writes":
        write(b"par")
        if fork():
            write(b"child")
        return [b"ent"]
    return yields()

def yields():
    yield b"par"
    if fork():
        yield b"child"
    yield b"ent"

class Closing:
    def __init__(self, start_response):
        start_response("200 OK", [("Content-Type", "text/plain")])
    def __iter__(self):
        return iter([b"parent"])
    def close(self):
        exit_in_child(4)
"""

ASGI = COMMON + """
async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        return
    path = scope["path"]
    answer, more = "parent", False
    if path in ANSWERS:
        answer = str(ANSWERS[path]())
    if path == "/sends":
        await begin(send)
        if fork():
            await send({"type": "http.response.body", "body": b"child"})
        return await send({"type": "http.response.body", "body": b"parent"})
    if path == "/leaves" and fork():
        return
    if path == "/waits" and fork():
        await asyncio.sleep(0)
    if path == "/background":
        await asyncio.create_task(background())
    await begin(send)
    await send({"type": "http.response.body", "body": answer.encode()})

async def begin(send):
    await send({"type": "http.response.start", "status": 200})

async def background():
    fork()
"""


def ask(peer: socket.socket, path: str) -> bytes:
    peer.sendall(f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
    response = HTTPResponse(peer)
    response.begin()
    return response.read()


def answers_once(server: Server, path: str, answer: bytes, code: int) -> None:
    with socket.create_connection(("127.0.0.1", server.port), PATIENCE) as peer:
        assert ask(peer, path) == answer
        # The child has ended by then: what it has sent stands before the next response.
        assert server.fetch("/code").body == str(code).encode()
        assert ask(peer, "/subprocess") == b"from a program"


def stops(server: Server) -> None:
    assert server.stop() == 0, server.said
    with socket.create_server(("127.0.0.1", server.port)):
        pass


@pytest.mark.parametrize(
    ("path", "answer", "code", "said"),
    [
        ("/returns", b"parent", 0, ""),
        ("/exits", b"None", 3, ""),
        ("/exits-well", b"None", 0, ""),
        ("/exits-with-text", b"None", 1, "last words\n"),
        ("/raises", b"None", 1, "Traceback[^$]*ValueError: in the child\n"),
        ("/writes", b"parent", 1, "RuntimeError: this is a child process of the server"),
        ("/yields", b"parent", 0, ""),
        ("/before-close", b"parent", 4, ""),
    ],
)
def test_only_the_parent_answers(serve: Serve, path: str, answer: bytes, code: int, said: str) -> None:
    # The validator is a third who ends: it says in the child that close() was not called.
    server = serve("--access-log", "off", source=WSGI, checked=False)
    answers_once(server, path, answer, code)
    server.wait_for(said)
    assert " error " not in server.said
    stops(server)


@pytest.mark.parametrize(
    ("path", "answer", "code", "said"),
    [
        ("/leaves", b"parent", 0, ""),
        ("/returns", b"parent", 1, "RuntimeError: this is a child process of the server"),
        ("/exits", b"None", 3, ""),
        ("/raises", b"None", 1, "Traceback[^$]*ValueError: in the child\n"),
        ("/sends", b"parent", 1, "RuntimeError: this is a child process of the server"),
        ("/waits", b"parent", 1, "RuntimeError: a child process of the server cannot wait in its event loop"),
        ("/background", b"parent", 0, ""),
    ],
)
def test_only_the_parent_of_an_asgi_application_answers(
    serve_asgi: Serve, loop: str, path: str, answer: bytes, code: int, said: str
) -> None:
    server = serve_asgi("--loop", loop, "--access-log", "off", source=ASGI)
    answers_once(server, path, answer, code)
    server.wait_for(said)
    assert " error " not in server.said
    stops(server)


@pytest.mark.parametrize("source", [WSGI, ASGI], ids=["wsgi", "asgi"])
def test_children_that_do_not_come_back_are_the_application_s(serve_asgi: Serve, source: str) -> None:
    server = serve_asgi(source=source)
    for _ in range(3):
        assert server.fetch("/multiprocessing").body == b"from a child 0"
        assert server.fetch("/subprocess").body == b"from a program"
    stops(server)
