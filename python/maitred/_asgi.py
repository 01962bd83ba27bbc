"""The event loop of an ASGI application: its making, the application's lifespan, and the end.

Promises: the server listens only after ``lifespan.startup`` has come to its end; ``lifespan.shutdown``
comes after the last request; whatever is still running then is cancelled and named. Leaves out: requests
(the engine's).
"""

from __future__ import annotations

import asyncio
import importlib
import traceback
from collections.abc import Iterable
from typing import Any, Callable, Protocol

from maitred._load import LoadFailure

#: What of the time for the end is kept for ``lifespan.shutdown``, in seconds.
KEPT_FOR_SHUTDOWN = 2.0

#: How long a task that was cancelled may take to end, in seconds.
CANCEL_LIMIT = 0.5


class Engine(Protocol):
    """The engine's side (crates/maitred-python/src/asgi/runner.rs)."""

    request_type: type

    def use_loop(self, loop: asyncio.AbstractEventLoop) -> None: ...
    def ready(self, state: dict[str, Any] | None, loop: str) -> None: ...
    def failed(self, what: str, remedy: str, text: str) -> None: ...
    def is_abandoned(self, coroutine: Any) -> bool: ...
    def stop_polling(self) -> None: ...
    def error(self, entry: str) -> None: ...
    def info(self, entry: str) -> None: ...
    def debug(self, entry: str) -> None: ...


class Runner:
    """Runs the loop on the thread that calls :meth:`run`, from startup to the end."""

    def __init__(
        self,
        application: Callable[..., Any],
        choice: str,
        lifespan: str,
        engine: Engine,
        made: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        #: A loop that is there already, on this thread.
        self._made = made
        self._application = application
        self._choice = choice
        self._lifespan = lifespan
        self._engine = engine
        self._loop: asyncio.AbstractEventLoop | None = None
        self._life: asyncio.Task[None] | None = None
        self._finish: asyncio.Future[float] | None = None
        #: Of the applications that have started, in this order.
        self._lifespans: list[Lifespan] = []
        #: Startups of further applications.
        self._startups: set[asyncio.Task[None]] = set()

    def run(self) -> None:
        """Returns when everything has ended."""
        try:
            loop = self._made or make_loop(self._choice)
        except LoadFailure as failure:
            self._engine.failed(failure.what, failure.remedy, failure.traceback)
            return
        asyncio.set_event_loop(loop)
        try:
            self._engine.use_loop(loop)
            self._finish = loop.create_future()
            self._life = loop.create_task(self._live(loop), name="maitred")
            self._loop = loop
            self._run_until_end(loop, self._life)
        except BaseException as error:
            self._engine.failed(f"the event loop failed: {_summary(error)}", "see above", _text(error))
        finally:
            self._engine.stop_polling()
            asyncio.set_event_loop(None)
            loop.close()

    def add(self, application: Callable[..., Any], engine: Engine) -> None:
        """Runs the startup of a further application, whose engine is told of its end. Called on any thread, once the first
        application is ready; returns at once."""
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._add_soon, application, engine)

    def _add_soon(self, application: Callable[..., Any], engine: Engine) -> None:
        assert self._loop is not None
        startup = self._loop.create_task(self._start_further(application, engine), name="lifespan startup")
        self._startups.add(startup)
        startup.add_done_callback(self._startups.discard)

    async def _start_further(self, application: Callable[..., Any], engine: Engine) -> None:
        assert self._loop is not None
        lifespan = Lifespan(application, self._lifespan, engine)
        try:
            failure = await lifespan.start_up()
        except asyncio.CancelledError:
            engine.failed("the application was ended while it started", "see above", "")
            raise
        if failure is not None:
            engine.failed(failure.what, failure.remedy, failure.traceback)
        else:
            self._lifespans.append(lifespan)
            engine.ready(lifespan.state if lifespan.is_supported else None, _name(self._loop))

    def finish(self, limit: float) -> None:
        """Ends everything within ``limit`` seconds. Called on any thread; returns at once."""
        if self._loop is not None:
            try:
                self._loop.call_soon_threadsafe(self._finish_soon, limit)
            except RuntimeError:
                pass  # Closed: it has ended.

    def _finish_soon(self, limit: float) -> None:
        assert self._finish is not None and self._life is not None
        if not self._finish.done():
            self._finish.set_result(limit)
        elif limit == 0:
            self._life.cancel()

    def _run_until_end(self, loop: asyncio.AbstractEventLoop, life: asyncio.Task[None]) -> None:
        while not life.done():
            try:
                loop.run_until_complete(life)
            except BaseException as error:
                # SystemExit and KeyboardInterrupt of any task end run_until_complete, and so does
                # loop.stop(). The other tasks have nothing to do with it.
                if not life.done():
                    self._engine.error(f"an exception stopped the event loop; it goes on\n{_text(error)}")
        if not life.cancelled() and (failure := life.exception()) is not None:
            self._engine.error(f"the event loop ended\n{_text(failure)}")

    async def _live(self, loop: asyncio.AbstractEventLoop) -> None:
        assert self._finish is not None
        lifespan = Lifespan(self._application, self._lifespan, self._engine)
        startup = loop.create_task(lifespan.start_up(), name="lifespan startup")
        first: set[asyncio.Future[Any]] = {startup, self._finish}
        await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
        if not startup.done():
            startup.cancel()
        elif (failure := startup.result()) is not None:
            self._engine.failed(failure.what, failure.remedy, failure.traceback)
        else:
            self._engine.ready(lifespan.state if lifespan.is_supported else None, _name(loop))
            self._lifespans.append(lifespan)
            limit = await self._finish
            await self._end(loop, loop.time() + limit)
        await self._cancel(self._others(), "cancelled at the end")
        await self._close_generators()
        await loop.shutdown_asyncgens()
        await loop.shutdown_default_executor()

    async def _end(self, loop: asyncio.AbstractEventLoop, deadline: float) -> None:
        self._engine.stop_polling()
        requests = {task for task in self._others() if isinstance(task.get_coro(), self._engine.request_type)}
        # Nobody waits for what they do.
        gone = {task for task in requests if self._engine.is_abandoned(task.get_coro())}
        await self._cancel(gone, "requests without a client cancelled at the end")
        requests -= gone
        gone.clear()
        left = deadline - loop.time() - KEPT_FOR_SHUTDOWN
        if requests and left > 0:
            requests = (await asyncio.wait(requests, timeout=left))[1]
        await self._cancel(requests, "requests cancelled at the end")
        requests.clear()
        await self._close_generators()
        for lifespan in reversed(self._lifespans):
            await lifespan.shut_down(deadline - loop.time())

    async def _close_generators(self) -> None:
        """Lets asynchronous generators end that were left in the middle. Once nobody refers to such a one, the loop
        closes it by a task, which begins an iteration later."""
        for _ in range(2):
            await asyncio.sleep(0)
        closing = {task for task in self._others() if type(task.get_coro()).__name__ == "async_generator_athrow"}
        if closing:
            await asyncio.wait(closing, timeout=CANCEL_LIMIT)

    def _others(self) -> set[asyncio.Task[Any]]:
        return asyncio.all_tasks() - {asyncio.current_task()}

    async def _cancel(self, tasks: Iterable[asyncio.Task[Any]], what: str) -> None:
        tasks = set(tasks)
        if not tasks:
            return
        for task in tasks:
            task.cancel()
        _, left = await asyncio.wait(tasks, timeout=CANCEL_LIMIT)
        self._engine.info(f"{what}: {_names(tasks - left)}" if tasks - left else what)
        if left:
            self._engine.error(f"{what}, but still running: {_names(left)}")


class Lifespan:
    """One application's lifespan (ASGI Lifespan specification 2.0)."""

    def __init__(self, application: Callable[..., Any], mode: str, engine: Engine) -> None:
        self._mode = mode
        self.state: dict[str, Any] = {}
        self.is_supported = False
        self._application = application
        self._engine = engine
        self._events: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._told = asyncio.Event()
        self._answer: dict[str, Any] | None = None
        self._began = False
        self._task: asyncio.Task[None] | None = None
        self._error: BaseException | None = None

    async def start_up(self) -> LoadFailure | None:
        """Runs ``lifespan.startup`` to its end; returns why the application cannot start."""
        if self._mode == "off":
            return None
        self._task = asyncio.create_task(self._call(), name="lifespan")
        answer = await self._ask("lifespan.startup")
        if answer is not None:
            self.is_supported = answer["type"] == "lifespan.startup.complete"
            return None if self.is_supported else _failure(answer)
        error = self._error
        if self._mode == "on":
            said = "it returned at once" if error is None else _summary(error)
            remedy = "see above; --lifespan auto serves it without" if error else "--lifespan auto serves it without"
            return LoadFailure(f"the application takes no part in lifespan, and --lifespan is on: {said}", remedy, _text(error) if error else "")
        if error is None:
            self._engine.debug("the application takes no part in lifespan: it returned at once")
        elif isinstance(error, (SystemExit, KeyboardInterrupt)):
            return LoadFailure(f"the application ended itself at startup: {_summary(error)}", "see above", _text(error))
        elif self._began:
            self._engine.error(f"the application raised an exception at startup; it has no lifespan\n{_text(error)}")
        else:
            # What the specification has it do, Django for one: nobody has to hear of it.
            self._engine.debug(f"the application takes no part in lifespan: {_summary(error)}")
        return None

    async def shut_down(self, limit: float) -> None:
        """Runs ``lifespan.shutdown``, at most for ``limit`` seconds."""
        if not self.is_supported or self._task is None:
            return
        try:
            answer = await asyncio.wait_for(self._ask("lifespan.shutdown"), limit)
            if answer is not None and answer["type"] == "lifespan.shutdown.failed":
                self._engine.error(f"lifespan.shutdown failed: {answer.get('message', '')}".rstrip(": "))
            elif answer is not None:
                await asyncio.wait({self._task}, timeout=CANCEL_LIMIT)
        except asyncio.TimeoutError:
            self._engine.error(f"lifespan.shutdown did not end within {max(limit, 0):.0f} s")
        if self._error is not None:
            self._engine.error(f"the application raised an exception in its lifespan\n{_text(self._error)}")

    async def _call(self) -> None:
        scope = {"type": "lifespan", "asgi": {"version": "3.0", "spec_version": "2.0"}, "state": self.state}
        try:
            await self._application(scope, self._receive, self._send)
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            # Without our own frame. SystemExit would stop the loop before the application has its answer.
            self._error = error.with_traceback(error.__traceback__ and error.__traceback__.tb_next)

    async def _ask(self, kind: str) -> dict[str, Any] | None:
        """The answer to an event; ``None`` if the application has ended without one."""
        assert self._task is not None
        self._answer = None
        self._told.clear()
        self._events.put_nowait({"type": kind})
        told = asyncio.ensure_future(self._told.wait())
        try:
            await asyncio.wait({self._task, told}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            told.cancel()
        return self._answer

    async def _receive(self) -> dict[str, Any]:
        self._began = True
        return await self._events.get()

    async def _send(self, message: dict[str, Any]) -> None:
        kinds = [f"lifespan.{event}.{end}" for event in ("startup", "shutdown") for end in ("complete", "failed")]
        if message["type"] not in kinds:
            raise RuntimeError(f"{message['type']!r} is no message of lifespan")
        self._answer = message
        self._told.set()


def make_loop(choice: str) -> asyncio.AbstractEventLoop:
    """A new loop: ``auto``, ``asyncio``, ``uvloop`` or ``module:factory``."""
    if choice in ("auto", "uvloop"):
        try:
            return _made(importlib.import_module("uvloop").new_event_loop, choice)
        except ImportError as error:
            if choice == "uvloop":
                raise LoadFailure(f"uvloop cannot be imported: {error}", "pip install uvloop, or --loop asyncio")
    if choice in ("auto", "asyncio"):
        return asyncio.new_event_loop()
    module, _, names = choice.partition(":")
    try:
        factory: Any = importlib.import_module(module)
        for name in names.split("."):
            factory = getattr(factory, name)
    except (ImportError, AttributeError) as error:
        raise LoadFailure(f"the loop {choice} cannot be found: {error}", "write --loop module:factory") from None
    return _made(factory, choice)


def _made(factory: Any, choice: str) -> asyncio.AbstractEventLoop:
    try:
        loop = factory()
    except Exception as error:
        raise LoadFailure(f"the loop {choice} cannot be made: {_summary(error)}", "see above", _text(error)) from None
    if not isinstance(loop, asyncio.AbstractEventLoop):
        raise LoadFailure(f"{choice} made {type(loop).__name__}, not an event loop", "name a factory of event loops")
    return loop


def _name(loop: asyncio.AbstractEventLoop) -> str:
    return type(loop).__module__.partition(".")[0]


def _failure(answer: dict[str, Any]) -> LoadFailure:
    """The message is one line, or a traceback whose last line says what happened."""
    lines = str(answer.get("message", "")).strip().splitlines()
    what = f"the application failed to start: {lines[-1].strip()}" if lines else "the application failed to start"
    if len(lines) > 1:
        return LoadFailure(what, "see the traceback above", "\n".join(lines))
    return LoadFailure(what, "it said so by lifespan.startup.failed")


def _names(tasks: Iterable[asyncio.Task[Any]]) -> str:
    def name(task: asyncio.Task[Any]) -> str:
        coroutine = getattr(task.get_coro(), "__qualname__", "")
        return f"{coroutine} ({task.get_name()})" if coroutine else task.get_name()

    names = sorted(map(name, tasks))
    return ", ".join(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "")


def _text(error: BaseException) -> str:
    return "".join(traceback.format_exception(type(error), error, error.__traceback__)).rstrip()


def _summary(error: BaseException) -> str:
    return " ".join("".join(traceback.format_exception_only(type(error), error)).split())
