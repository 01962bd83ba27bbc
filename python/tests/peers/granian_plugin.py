"""A plugin of pytest for granian's own tests: the server that their fixtures start is another one, with granian's test applications."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from process import Inside, Options, Process

#: The side of their matrix that is the same for another server.
RUNTIME_MODE = "mt"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out = [item for item in items if isinstance(item, pytest.Function) and _mode(item) not in (None, RUNTIME_MODE)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]
    for plugin in config.pluginmanager.get_plugins():
        # Their fixtures look it up when they are used.
        if hasattr(plugin, "_server") and hasattr(plugin, "_serve"):
            setattr(plugin, "_server", serve)


def _mode(item: pytest.Function) -> Any:
    calls = getattr(item, "callspec", None)
    return calls.params.get("runtime_mode") if calls else None


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Coroutines run in a loop of their own, as they do with the plugin that granian uses."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


@contextlib.asynccontextmanager
async def serve(interface: str, port: int, runtime_mode: str, ws: bool = True, tls: Any = False, task_impl: str = "asyncio", **others: Any) -> AsyncIterator[int]:
    if interface == "rsgi":
        raise Inside("granian's own interface of applications")
    if tls or others:
        raise Inside("other options of granian")
    here = Path.cwd()
    process = Process(f"{interface}:app", here / "tests" / "apps", port, Options(), {}, here)
    try:
        process.wait_until_up()
        yield port
        process.ask_to_end()
    finally:
        process.kill()
