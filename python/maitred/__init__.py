"""maitred: an application server for Python.

The command ``maitred`` (or ``python -m maitred``) serves a WSGI or ASGI application::

    maitred app:app

:func:`run` is the same for programs that start it themselves, ``maitred.run("app:app", workers=4)``, and :func:`main` with the
arguments of a command line. :class:`RequestTimeout` is what a WSGI
application gets with ``--interrupt`` in the middle of a request that takes longer than ``--request-timeout``;
:class:`ClientDisconnected` is what ``send`` of an ASGI application raises when the client has gone.
"""

from __future__ import annotations

from maitred._engine import ClientDisconnected, RequestTimeout, __version__, deprecated, main

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from maitred._run import run

__all__ = ["ClientDisconnected", "RequestTimeout", "__version__", "deprecated", "main", "run"]


def __getattr__(name: str) -> Any:
    # What it imports takes 12 ms, and who instruments an application does not need it.
    if name == "run":
        from maitred._run import run

        globals()["run"] = run
        return run
    raise AttributeError(f"module 'maitred' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
