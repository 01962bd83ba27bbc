"""Each request has a Task of its own, whose first statement may do what tasks can do."""

from __future__ import annotations

import json
import sys
import threading

import pytest
from conftest import Serve, Server

NEW = pytest.mark.skipif(sys.version_info < (3, 11), reason="asyncio has it from 3.11 on")


@pytest.mark.parametrize(
    "kind",
    ["current_task", "anyio_group", "collected", pytest.param("timeout", marks=NEW), pytest.param("task_group", marks=NEW)],
)
def test_a_request_runs_in_a_real_task(asgi: Server, kind: str) -> None:
    reply = asgi.fetch(f"/tasks?kind={kind}")
    assert reply.status == 200, asgi.said
    assert json.loads(reply.body) == "passed"


def test_a_request_can_cancel_itself(asgi: Server) -> None:
    assert json.loads(asgi.fetch("/tasks?kind=cancel_self").body) == "cancelled"


@pytest.mark.parametrize("path", ["/context?value=own", "/context_at_once"])
def test_requests_do_not_see_each_others_context_variables(asgi: Server, path: str) -> None:
    for _ in range(3):
        assert json.loads(asgi.fetch(path).body)[0] == "unset"


def test_many_requests_wait_at_the_same_time(asgi: Server) -> None:
    started = threading.Barrier(51)
    bodies = []

    def ask() -> None:
        connection = asgi.connect()
        connection.request("GET", "/parts?events=many")
        response = connection.getresponse()
        started.wait(30)
        bodies.append(response.read())
        connection.close()

    threads = [threading.Thread(target=ask) for _ in range(50)]
    for thread in threads:
        thread.start()
    started.wait(30)
    asgi.fetch("/sets?event=many")
    for thread in threads:
        thread.join(30)
    assert bodies == [b"manyend"] * 50


NESTED = """
import asyncio

async def app(scope, receive, send):
    assert scope["type"] == "http"
    # Whatever the loop watches for the server. nest_asyncio comes here, too, when something is there to be read.
    for key in list(asyncio.get_running_loop()._selector.get_map().values()):
        reader = key.data[0]
        if "maitred" in repr(reader):
            reader._callback()
    await send({"type": "http.response.start", "status": 200})
    await send({"type": "http.response.body", "body": b"answered"})
"""


def test_a_handler_may_run_the_loop_itself(serve_asgi: Serve) -> None:
    server = serve_asgi("--loop", "asyncio", source=NESTED)
    assert [server.fetch("/").body for _ in range(2)] == [b"answered"] * 2
