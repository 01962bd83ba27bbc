"""What an ASGI application may expect of the task and the loop it runs in.

A server that runs an application by other means than an ordinary task is found out here: time-outs, task groups and
cancel scopes as the first statement, cancellation from inside, context variables, threads, subprocesses, and sockets
of the application's own.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator

import httpx
import pytest
from conftest import needs
from sites import DIGEST, LARGE, RAW_COMMON, SERVER, Site, asgi_site

needs("anyio")

since_3_11 = pytest.mark.skipif(sys.version_info < (3, 11), reason="new in Python 3.11")

SOURCE = RAW_COMMON + """
import concurrent.futures, contextvars, functools, os, signal
import anyio, anyio.to_thread

# First statements

@route
async def timeout(scope, receive, send):
    async with asyncio.timeout(PATIENCE):
        await asyncio.sleep(0)
        await reply(send, "in time")

@route
async def timeout_passed(scope, receive, send):
    try:
        async with asyncio.timeout(0.001):
            await asyncio.Event().wait()
    except TimeoutError:
        await reply(send, ["too late", asyncio.current_task().cancelling()])

@route
async def task_group(scope, receive, send):
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(asyncio.sleep(0, number)) for number in range(10)]
    await reply(send, [task.result() for task in tasks])

@route
async def task_group_fails(scope, receive, send):
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(asyncio.Event().wait())
            group.create_task(fail())
            await asyncio.Event().wait()
    except BaseExceptionGroup as group:
        await reply(send, [str(error) for error in group.exceptions])

async def fail():
    await asyncio.sleep(0)
    raise ValueError("a child failed")

@route
async def anyio_group(scope, receive, send):
    results = []
    async def child(number):
        await anyio.sleep(0)
        results.append(number)
    async with anyio.create_task_group() as group:
        for number in range(10):
            group.start_soon(child, number)
    await reply(send, sorted(results))

@route
async def anyio_group_cancelled(scope, receive, send):
    async with anyio.create_task_group() as group:
        group.start_soon(anyio.sleep_forever)
        group.cancel_scope.cancel()
    await reply(send, "cancelled")

@route
async def move_on(scope, receive, send):
    with anyio.move_on_after(0.001) as limit:
        await anyio.sleep_forever()
    await reply(send, limit.cancelled_caught)

@route
async def fail_after(scope, receive, send):
    try:
        with anyio.fail_after(0.001):
            await anyio.sleep_forever()
    except TimeoutError:
        await reply(send, "too late")

@route
async def wait_for(scope, receive, send):
    try:
        await asyncio.wait_for(asyncio.Event().wait(), 0.001)
    except asyncio.TimeoutError:
        await reply(send, "too late")

@route
async def self_cancel(scope, receive, send):
    asyncio.current_task().cancel()
    try:
        await asyncio.sleep(0)
    except asyncio.CancelledError:
        if sys.version_info >= (3, 11):
            asyncio.current_task().uncancel()
    await reply(send, "cancelled by itself")

@route
async def self_cancel_in_send(scope, receive, send):
    await begin(send)
    asyncio.current_task().cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await block(send, b"one ")  # It need not wait, so it need not notice.
        await asyncio.sleep(0)
    await finish(send, b"two")

@route
async def self_cancel_uncaught(scope, receive, send):
    asyncio.current_task().cancel()
    await asyncio.sleep(0)

@route
async def shielded(scope, receive, send):
    await reply(send, await asyncio.shield(asyncio.sleep(0, "shielded")))

# The task

@route
async def task(scope, receive, send):
    task = asyncio.current_task()
    name = task.get_name()
    await asyncio.sleep(0)
    await read(receive)
    same = asyncio.current_task() is task and task in asyncio.all_tasks() and not task.done()
    task.set_name("renamed")
    await asyncio.sleep(0)
    await reply(send, {"name": name, "same": same, "renamed": asyncio.current_task().get_name(),
                       "coroutine": asyncio.iscoroutine(task.get_coro()),
                       "loop": type(asyncio.get_running_loop()).__module__.split(".")[0]})

@route
async def main_thread(scope, receive, send):
    await reply(send, threading.current_thread() is threading.main_thread())

@route
async def signal_handler(scope, receive, send):
    loop = asyncio.get_running_loop()
    try:
        loop.add_signal_handler(signal.SIGURG, happen, "signal")
    except (RuntimeError, ValueError) as error:
        return await reply(send, str(error), 501)
    os.kill(os.getpid(), signal.SIGURG)
    await reply(send, await seen("signal"))
    loop.remove_signal_handler(signal.SIGURG)

@route
async def tasks_that_remain(scope, receive, send):
    await reply(send, sum(not task.done() for task in asyncio.all_tasks()))

@route
async def done_callback(scope, receive, send):
    asyncio.current_task().add_done_callback(lambda task: happen(f"done {task.exception()}"))
    await reply(send)

# Context variables

variable = contextvars.ContextVar("variable", default="unset")

@route
async def context(scope, receive, send):
    before, value = variable.get(), query(scope)["value"]
    variable.set(value)
    found = [variable.get()]
    await asyncio.sleep(0)
    found.append(variable.get())
    await read(receive)
    found.append(variable.get())
    await asyncio.create_task(check(found))
    found.append(await asyncio.to_thread(variable.get))
    found.append(await anyio.to_thread.run_sync(variable.get))
    await begin(send)
    found.append(variable.get())
    await finish(send, json.dumps([before, found]).encode())

async def check(found):
    found.append(variable.get())
    variable.set("changed by a child")

meeting = defaultdict(asyncio.Event)

@route
async def context_meets(scope, receive, send):
    value = query(scope)["value"]
    variable.set(value)
    meeting[value].set()
    for event in (meeting["a"], meeting["b"]):
        await asyncio.wait_for(event.wait(), PATIENCE)
    await reply(send, variable.get())

# Threads, subprocesses, sockets, timers

@route
async def threads(scope, receive, send):
    loop = asyncio.get_running_loop()
    names = [await asyncio.to_thread(lambda: threading.current_thread().name),
             await loop.run_in_executor(None, lambda: threading.current_thread().name)]
    with concurrent.futures.ThreadPoolExecutor(thread_name_prefix="own") as pool:
        names.append(await loop.run_in_executor(pool, lambda: threading.current_thread().name))
    sums = await asyncio.gather(*(asyncio.to_thread(sum, range(number)) for number in range(100)))
    await reply(send, [threading.main_thread().name in names, names[2][:3], sum(sums)])

@route
async def from_a_thread(scope, receive, send):
    loop = asyncio.get_running_loop()
    def work():
        asyncio.run_coroutine_threadsafe(begin(send), loop).result(PATIENCE)
        body = asyncio.run_coroutine_threadsafe(read(receive), loop).result(PATIENCE)
        asyncio.run_coroutine_threadsafe(finish(send, digest(body).encode()), loop).result(PATIENCE)
    await asyncio.to_thread(work)

@route
async def thread_exception(scope, receive, send):
    try:
        await asyncio.to_thread(int, "no number")
    except ValueError as error:
        await reply(send, str(error))

@route
async def subprocess(scope, receive, send):
    pipe = asyncio.subprocess.PIPE
    code = "import sys; print(sys.stdin.read()[::-1], end=''); sys.exit(3)"
    child = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdin=pipe, stdout=pipe)
    output, _ = await child.communicate(await read(receive))
    shell = await asyncio.create_subprocess_shell("echo $((6 * 7))", stdout=pipe)
    answer, _ = await shell.communicate()
    sleeper = await asyncio.create_subprocess_exec("sleep", "60")
    sleeper.kill()
    await reply(send, [output.decode(), child.returncode, answer.decode(), await sleeper.wait()])

@route
async def itself(scope, receive, send):
    host, port = scope["server"]
    reader, writer = await asyncio.open_connection(host, port)
    writer.write(b"GET /shielded HTTP/1.1\\r\\nHost: a\\r\\nConnection: close\\r\\n\\r\\n")
    answer = await asyncio.wait_for(reader.read(), PATIENCE)
    writer.close()
    await reply(send, answer.decode().split("\\r\\n\\r\\n")[1])

@route
async def own_server(scope, receive, send):
    async def serve(reader, writer):
        writer.write((await reader.readline()).upper())
        writer.close()
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    writer.write(b"hello\\n")
    answer = await reader.read()
    writer.close()
    server.close()
    await reply(send, answer.decode())

@route
async def timers(scope, receive, send):
    loop, order, done = asyncio.get_running_loop(), [], asyncio.Event()
    began = loop.time()
    loop.call_later(0.02, order.append, "second")
    loop.call_later(0.01, order.append, "first")
    loop.call_soon(order.append, "soon")
    loop.call_later(0.03, done.set)
    loop.call_later(0.025, order.append, "never").cancel()
    await done.wait()
    await reply(send, [order, loop.time() - began >= 0.029])

queue = asyncio.Queue(1)

@route
async def put(scope, receive, send):
    for number in range(100):
        await queue.put(number)
    await reply(send, "put")

@route
async def take(scope, receive, send):
    await reply(send, [await asyncio.wait_for(queue.get(), PATIENCE) for _ in range(100)])

@route
async def forget(scope, receive, send):
    async def later():
        await gone()
        happen("later")
    forget.task = asyncio.create_task(later())
    await reply(send)

@route
async def busy(scope, receive, send):
    # Twenty thousand sends without one that waits must not shut out the others.
    await begin(send)
    for number in range(20_000):
        await block(send, b"%06d" % number)
        if number == 1000:
            happen("busy")
    await finish(send)

routes["/partial"] = functools.partial(lambda first, scope, receive, send: reply(send, first), "partial")

@on_startup.append
def begin_serving():
    variable.set("of the lifespan")
"""


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory, loop: str) -> Iterator[Site]:
    yield from asgi_site(tmp_path_factory.mktemp("tasks"), "site_tasks", SOURCE, loop)


@since_3_11
def test_timeouts_as_the_first_statement(tasks: Site) -> None:
    assert tasks.json("/timeout") == "in time"
    assert tasks.json("/timeout_passed") == ["too late", 0]


@since_3_11
def test_task_groups_as_the_first_statement(tasks: Site) -> None:
    assert tasks.json("/task_group") == list(range(10))
    assert tasks.json("/task_group_fails") == ["a child failed"]


def test_anyio_as_the_first_statement(tasks: Site) -> None:
    assert tasks.json("/anyio_group") == list(range(10))
    assert tasks.json("/anyio_group_cancelled") == "cancelled"
    assert tasks.json("/move_on") is True
    assert tasks.json("/fail_after") == "too late"


def test_wait_for_and_shield_as_the_first_statement(tasks: Site) -> None:
    assert tasks.json("/wait_for") == "too late"
    assert tasks.json("/shielded") == "shielded"


def test_a_task_may_cancel_itself(tasks: Site) -> None:
    assert tasks.json("/self_cancel") == "cancelled by itself"
    assert tasks.client.get("/self_cancel_in_send").content in {b"one two", b"two"}
    try:
        assert tasks.client.get("/self_cancel_uncaught").status_code == 500
    except httpx.RemoteProtocolError:
        pass  # Or the connection is closed; it is not left waiting.
    assert tasks.server.fetch("/shielded").body == b'"shielded"'


def test_a_request_runs_in_one_task_of_the_loop(tasks: Site, loop: str) -> None:
    about = tasks.json("/task")
    assert about.pop("name")
    expected = {"same": True, "renamed": "renamed", "coroutine": True, "loop": loop}
    assert about == expected
    assert tasks.json("/done_callback") is None
    assert tasks.seen("done None")


def test_tasks_do_not_remain(tasks: Site) -> None:
    before = tasks.json("/tasks_that_remain")
    for _ in range(50):
        tasks.json("/shielded")
    assert tasks.json("/tasks_that_remain") <= before


def test_context_variables_are_kept_within_a_request_and_not_beyond(tasks: Site) -> None:
    for value in ("1", "2"):
        before, found = tasks.json("/context", params={"value": value})
        assert before in {"unset", "of the lifespan"}, "not of the request before on this connection"
        assert found == [value] * 7


def test_context_variables_of_requests_at_the_same_time(tasks: Site) -> None:
    async def ask() -> list[httpx.Response]:
        async with tasks.asynchronous() as client:
            return await asyncio.gather(*(client.get("/context_meets", params={"value": value}) for value in "ab"))

    assert [reply.json() for reply in asyncio.run(ask())] == ["a", "b"]


def test_threads(tasks: Site) -> None:
    assert tasks.json("/threads") == [False, "own", sum(sum(range(number)) for number in range(100))]
    assert "no number" in tasks.json("/thread_exception")


def test_receive_and_send_from_threads(tasks: Site) -> None:
    assert tasks.client.post("/from_a_thread", content=LARGE).text == DIGEST


def test_subprocesses(tasks: Site) -> None:
    assert tasks.json("/subprocess", "POST", content=b"abc") == ["cba", 3, "42\n", -9]


def test_connections_and_servers_of_its_own(tasks: Site) -> None:
    assert tasks.json("/itself") == '"shielded"'
    assert tasks.json("/own_server") == "HELLO\n"


def test_timers(tasks: Site) -> None:
    assert tasks.json("/timers") == [["soon", "first", "second"], True]


def test_handlers_of_signals_can_be_set(tasks: Site) -> None:
    """On maitred the main thread waits for signals and sets the handlers, and applications run beside it; uvicorn runs them on it."""
    assert tasks.json("/main_thread") is not (SERVER == "maitred")
    assert tasks.json("/signal_handler") == 1


def test_requests_wait_for_each_other(tasks: Site) -> None:
    async def ask() -> list[httpx.Response]:
        async with tasks.asynchronous() as client:
            return await asyncio.gather(client.get("/take"), client.get("/put"))

    taken, put = asyncio.run(ask())
    assert (taken.json(), put.json()) == (list(range(100)), "put")


def test_a_task_goes_on_after_its_request(tasks: Site) -> None:
    assert tasks.json("/forget") is None
    assert tasks.client.get("/go").status_code == 204
    assert tasks.seen("later")


def test_many_sends_do_not_shut_out_others(tasks: Site) -> None:
    with tasks.client.stream("GET", "/busy") as response:
        assert tasks.seen("busy")
        assert response.read() == b"".join(b"%06d" % number for number in range(20_000))


def test_callables_that_are_no_functions(tasks: Site) -> None:
    assert tasks.json("/partial") == "partial"
