"""The thread of the event loop before the loop runs: applications of ASGI are imported on it.

Promises: what an application makes while it is imported, in its lifespan and in requests, belongs to one thread (``sqlite3.connect()``,
``threading.local``), and ``signal.signal`` and ``loop.add_signal_handler`` work there. Handlers run on the loop's thread, beside the server's
own. Leaves out: applications that are imported before workers are forked, and those that do not look like ASGI before they are.
"""

from __future__ import annotations

import asyncio
import functools
import os
import queue
import signal
import threading
from typing import Any, Callable

from maitred._asgi import make_loop

#: How often the main thread looks for signals while it waits for a job, in seconds.
LOOK = 0.05

#: How long the loop's thread waits for the main thread to set a handler, in seconds.
PATIENCE = 5.0

#: What the main thread is asked to do.
_asked: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()

#: Wakes the main thread; a descriptor.
bell: int | None = None

_set_signal = signal.signal


class Stage:
    """A thread with a loop that does not run yet."""

    def __init__(self, choice: str) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._choice = choice
        self._jobs: queue.SimpleQueue[Callable[[], Any] | None] = queue.SimpleQueue()
        # The interpreter must not wait for one that is stuck in the application.
        self.thread = threading.Thread(target=self._run, name="maitred-loop", daemon=True)
        self.thread.start()
        # A factory of the application's own is found when its folder is known.
        if ":" not in choice:
            self.do(self._open)

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The loop, as the main thread asks for it."""
        if self._loop is None:
            self.do(self._open)
        assert self._loop is not None
        return self._loop

    def do(self, function: Callable[..., Any], /, *arguments: Any, **options: Any) -> Any:
        """Calls it on that thread, and returns or raises what it does. Called on the main thread."""
        done, result = threading.Event(), _Result()

        def job() -> None:
            try:
                result.value = function(*arguments, **options)
            except BaseException as error:
                result.error = error
            finally:
                done.set()

        if self._loop is not None and self._loop.is_running():
            self._loop.call_soon_threadsafe(job)
        else:
            self._jobs.put(job)
        while not done.wait(LOOK):
            attend()
        if result.error is not None:
            raise result.error
        return result.value

    def serve(self, target: Callable[[], None]) -> None:
        """Calls it as the last thing on that thread. Returns at once."""
        self._jobs.put(target)
        self._jobs.put(None)

    def end(self) -> None:
        """There is no application of ASGI."""
        self.do(self._close)
        self._jobs.put(None)

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()

    def _open(self) -> None:
        self._loop = make_loop(self._choice)
        asyncio.set_event_loop(self._loop)
        _forward_signals(self._loop)

    def _close(self) -> None:
        asyncio.set_event_loop(None)
        if self._loop is not None:
            self._loop.close()


class _Result:
    value: Any = None
    error: BaseException | None = None


def attend() -> None:
    """Does what the main thread has been asked for, on it."""
    while not _asked.empty():
        _asked.get()()


def _forward_signals(loop: asyncio.AbstractEventLoop) -> None:
    """Only the main thread may set handlers of signals: the loop's asks it."""
    thread = threading.get_ident()

    @functools.wraps(_set_signal)
    def set_signal(number: Any, handler: Any) -> Any:
        # In a child that it has forked it is the main thread.
        if threading.get_ident() != thread or threading.current_thread() is threading.main_thread():
            return _set_signal(number, handler)
        wanted = _on_loop(loop, handler) if callable(handler) else handler
        return _by_main(functools.partial(_chain, number, wanted, handler))

    def add(number: int, callback: Callable[..., Any], *arguments: Any) -> None:
        if asyncio.iscoroutinefunction(callback):
            raise TypeError("coroutines cannot be used with add_signal_handler()")
        handler = functools.partial(_call_soon, loop, callback, *arguments)
        try:
            _by_main(functools.partial(_chain, number, lambda *_: handler(), handler))
        except (ValueError, OSError) as error:
            raise RuntimeError(str(error)) from None
        added.add(number)

    def remove(number: int) -> bool:
        if number not in added:
            return False
        added.discard(number)
        default = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
        _by_main(functools.partial(_chain, number, default, default))
        return True

    added: set[int] = set()
    signal.signal = set_signal  # type: ignore[assignment]
    # Of this loop alone.
    loop.add_signal_handler = add  # type: ignore[method-assign,assignment]
    loop.remove_signal_handler = remove  # type: ignore[method-assign,assignment]


def _on_loop(loop: asyncio.AbstractEventLoop, handler: Callable[..., Any]) -> Callable[..., Any]:
    return lambda number, frame: _call_soon(loop, handler, number, frame) if loop.is_running() else handler(number, frame)


def _call_soon(loop: asyncio.AbstractEventLoop, callback: Callable[..., Any], *arguments: Any) -> None:
    try:
        loop.call_soon_threadsafe(callback, *arguments)
    except RuntimeError:
        pass  # Closed: the application has ended.


def _by_main(act: Callable[[], Any]) -> Any:
    """What the main thread returns or raises for it."""
    done, result = threading.Event(), _Result()

    def job() -> None:
        try:
            result.value = act()
        except BaseException as error:
            result.error = error
        done.set()

    _asked.put(job)
    if bell is not None:
        os.write(bell, b"\0")
    if not done.wait(PATIENCE):
        raise ValueError("the main thread does not set the handler of a signal: the server starts or ends")
    if result.error is not None:
        raise result.error
    return result.value


def _chain(number: int, handler: Any, shown: Any) -> Any:
    """Sets a handler, beside the server's own if that is there; returns the application's before. On the main thread."""
    before = signal.getsignal(number)
    own: Any = before if type(before).__module__ == "maitred._engine" else getattr(before, "maitred_own", None)
    before = getattr(before, "maitred_shown", signal.SIG_DFL if before is own else before)

    def both(signal_number: int, frame: Any) -> None:
        if own is not None:
            own(signal_number, frame)
        if callable(handler) and shown is not signal.default_int_handler:
            handler(signal_number, frame)

    if own is None and not callable(handler):
        _set_signal(number, handler)
        return before
    both.maitred_own, both.maitred_shown = own, shown  # type: ignore[attr-defined]
    _set_signal(number, both if own is not None or shown is not signal.default_int_handler else shown)
    return before
