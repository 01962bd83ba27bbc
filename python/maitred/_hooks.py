"""Finds the functions that ``--hooks`` names.

Promises: every failure is a :class:`maitred._load.LoadFailure`, also a function that looks like a hook and would never be called. Leaves
out: when they are called (the command decides).
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Iterable
from types import ModuleType
from typing import Any, Callable

from maitred import _load, _shared
from maitred._load import LoadFailure

#: The hooks, and what each is called with.
HOOKS = {"before_start": (), "worker_ready": ("worker", "pid"), "worker_exit": ("worker", "pid", "code")}

#: A function whose name is so much like that of a hook (difflib's ratio) is meant as one: ``worker_exited``, ``on_worker_exit``,
#: ``after_start``. Those of two hooks are less like each other.
ALIKE = 0.75


def load(
    target: str,
    *,
    app_dir: str | None = None,
    environment: Iterable[tuple[str, str]] = (),
    identity: Iterable[tuple[str, str]] = (),
) -> dict[str, Callable[..., Any]]:
    """Imports ``target``, which is ``module`` or ``path/to/file.py``, and returns its hooks by name. The rest is as for applications."""
    if ":" in target:
        raise LoadFailure(
            f"{target!r} is no module", "write module or path/to/file.py: hooks are found in it by their names"
        )
    folder = _load.prepare(app_dir, environment, identity)
    try:
        module = _load.import_target(target, folder)
    except _shared.Clash as clash:
        raise LoadFailure(clash.what, clash.remedy) from None
    hooks = {name: _checked(getattr(module, name), name, target) for name in HOOKS if hasattr(module, name)}
    for name in _own_functions(module):
        for nearest in difflib.get_close_matches(name, HOOKS, n=1, cutoff=ALIKE):
            raise LoadFailure(
                f"{target} has {name}, which is no hook: it would never be called",
                f"did you mean {nearest}? One that is no hook gets a name that begins with an underscore",
            )
    if not hooks:
        *others, last = HOOKS
        raise LoadFailure(f"{target} has neither {', '.join(others)} nor {last}", "define one, or leave the option out")
    return hooks


def _own_functions(module: ModuleType) -> list[str]:
    """Public ones that the module has not imported, and that are no hooks."""
    return [
        name
        for name, value in vars(module).items()
        if inspect.isfunction(value)
        and value.__module__ == module.__name__
        and not name.startswith("_")
        and name not in HOOKS
    ]


def _checked(hook: Any, name: str, place: str) -> Callable[..., Any]:
    parameters = HOOKS[name]
    signature = f"{name}({', '.join(parameters)})"
    if not callable(hook):
        raise LoadFailure(f"{name} in {place} is not callable, it is {type(hook).__name__}", f"define {signature}")
    if inspect.iscoroutinefunction(hook):
        raise LoadFailure(
            f"{name} in {place} is a coroutine function", "a hook is a plain function: call asyncio.run in it"
        )
    if not _load.can_take(hook, len(parameters)):
        raise LoadFailure(f"{name} in {place} cannot be called as {signature}", "give it these parameters")
    checked: Callable[..., Any] = hook
    return checked
