"""The command for programs that start a server themselves: ``maitred.run(app, workers=4)``.

Promises: the options, their errors and the end are those of the command; an application that is given as an object is served as
it is. Leaves out: which options there are (the engine's table), and serving beside other work of the program: the call blocks.
"""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Callable, Iterable
from typing import Any, Union, cast

from maitred import _load
from maitred._engine import main

TYPE_CHECKING = False
if TYPE_CHECKING:
    # Type checkers have it; at run time it is not needed.
    from typing_extensions import Unpack

    from maitred._options import Options

#: One value of an option.
Value = Union[str, int, float, bool, "os.PathLike[str]"]
#: What an option may be given: a value, several of one that is repeatable, or ``None``, which leaves it out.
Option = Union[Value, Iterable[Value], None]

_NAME = re.compile(r"[a-z][a-z0-9_]*")
_MODULE = re.compile(r"\w+(\.\w+)*(:.*)?")

#: Options that say how many processes serve.
_WORKERS = ("workers", "w")

_is_running = False


def run(app: str | os.PathLike[str] | Callable[..., Any], **options: Unpack[Options]) -> None:
    """Serves an application until a signal ends it: the command ``maitred`` as a function.

    ``app`` is what the command takes (``"module:name"``, ``"path/to/app.py"``, ``"folder/"``), or the application itself, a WSGI
    or ASGI callable. An application that is given as an object is served by this process alone: with ``workers`` above 1 it has
    to be a name, which each worker imports.

    ``options`` are those of the command with underscores for hyphens, and those of other servers that the command knows::

        if __name__ == "__main__":
            maitred.run("app:app", host="127.0.0.1", port=8000, workers=4)
            maitred.run(app, listen=[":8000", "unix:/run/app.sock"], max_threads=20, access_log="-")

    A list gives a repeatable option several values; ``True`` is ``--name`` and ``False`` is ``--no-name``; ``None`` leaves the
    option out. ``maitred.toml`` in the current directory and ``MAITRED_*`` variables count as for the command, and what is given
    here wins. Logs go where the command writes them, and ``maitred ctl`` finds the server.

    The call blocks, takes SIGTERM, SIGINT, SIGHUP and SIGUSR1, and returns when a first signal has ended the server and all
    requests were answered. Otherwise it raises ``SystemExit`` with the exit code of the command: 2 after an error of the user's
    making, in the options or in the application, which one line on standard error tells; 1 when the system refused something or
    requests were cut off; 130 or 143 after a second signal.

    Call it under ``if __name__ == "__main__":``, because workers import the module of the application again: a call that they
    meet there raises ``RuntimeError``. So do a call on another thread than the main one, which alone takes signals, and one in a
    coroutine, whose event loop it would block. Raises ``TypeError`` for an ``app`` or a value of a type that is none of these.
    """
    global _is_running
    _check_place()
    given = cast("dict[str, Option]", options)
    arguments = _arguments(given)
    name = _name(app, given)
    _is_running = True
    try:
        code = main(["maitred", *arguments, "--", name], _command(name))
    finally:
        _is_running = False
        _load.objects.clear()
    if code:
        raise SystemExit(code)


def _check_place() -> None:
    if _load.is_loading or _is_running:
        raise RuntimeError(
            "maitred.run() is called while a server imports its application; put the call under if __name__ == '__main__':"
        )
    if threading.current_thread() is not threading.main_thread():
        raise RuntimeError("maitred.run() is called on another thread than the main one, which alone takes signals")
    asyncio = sys.modules.get("asyncio")
    if asyncio is not None and asyncio._get_running_loop() is not None:
        raise RuntimeError("maitred.run() is called in a coroutine, and would block its event loop; call it outside of asyncio.run()")


def _name(app: Any, options: dict[str, Option]) -> str:
    """What the command is told to serve."""
    if isinstance(app, (str, os.PathLike)):
        return os.fspath(app)
    if not callable(app):
        raise TypeError(f"app is a name such as 'module:app' or a callable, not {type(app).__name__}")
    for option in _WORKERS:
        if str(options.get(option, 1)) not in ("1", "None"):
            print(f"maitred: {option}: {_load.OBJECT_ALONE[0]}; {_load.OBJECT_ALONE[1]}", file=sys.stderr, flush=True)
            raise SystemExit(2)
    name = f"<{type(app).__name__} object>"
    _load.objects[name] = app
    return name


def _arguments(options: dict[str, Option]) -> list[str]:
    arguments = []
    for name, value in options.items():
        if not _NAME.fullmatch(name):
            raise TypeError(f"{name!r} is no name of an option; write it with underscores, such as max_threads")
        dashed = name.replace("_", "-")
        flag = f"-{name}" if len(name) == 1 else f"--{dashed}"
        if value is None:
            continue
        if isinstance(value, bool):
            arguments.append(flag if value else f"--no-{dashed}")
        elif isinstance(value, Iterable) and not isinstance(value, (str, bytes, os.PathLike, dict)):
            arguments += [f"{flag}={_text(name, item)}" for item in value]
        else:
            arguments.append(f"{flag}={_text(name, value)}")
    return arguments


def _text(name: str, value: Any) -> str:
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise TypeError(f"{name} takes text, numbers, True, False or a list of them, not {type(value).__name__}")
    return str(value)


def _command(name: str) -> list[str] | None:
    """How workers are started. They find modules where this program does: beside its script, too."""
    folder = sys.path[0] if sys.path else ""
    if not folder or not os.path.isdir(folder) or os.path.samefile(folder, ".") or not _MODULE.fullmatch(name):
        return None
    code = f"import sys; sys.path.insert(1, {folder!r}); from maitred.__main__ import main; sys.exit(main())"
    return [sys.executable, "-c", code]
