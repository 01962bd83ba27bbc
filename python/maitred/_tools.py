"""The commands of ``maitred`` that are written in Python.

The engine calls :func:`run` for a word of the command line that it has no tool of its own for.
"""

from __future__ import annotations

import importlib
import sys

#: The module of each command; it has ``main(arguments) -> int``. Imported only when its command is run.
_MODULES = {"init": "maitred._init", "migrate": "maitred._migrate"}


class Mistake(Exception):
    """An error of the user's making: what is wrong, and what to do."""

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(f"{what}; {remedy}")


def run(name: str, arguments: list[str]) -> int | None:
    """Runs a command and returns its exit code; ``None`` if there is none of this name."""
    module = _MODULES.get(name)
    if module is None:
        return None
    try:
        code: int = importlib.import_module(module).main(arguments)
        sys.stdout.flush()
        return code
    except Mistake as mistake:
        print(f"maitred: {name}: {mistake}", file=sys.stderr)
        return 2
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        return 1
