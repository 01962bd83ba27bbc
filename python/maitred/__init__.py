"""maitred: an application server for Python.

The command ``maitred`` (or ``python -m maitred``) serves a WSGI or ASGI application::

    maitred app:app

:func:`main` is the same command for programs that start it themselves.
"""

from maitred._engine import __version__, main

__all__ = ["__version__", "main"]
