"""maitred: an application server for Python.

The command ``maitred`` (or ``python -m maitred``) serves a WSGI or ASGI application::

    maitred app:app

:func:`main` is the same command for programs that start it themselves. :class:`RequestTimeout` is what a WSGI
application gets with ``--interrupt`` in the middle of a request that takes longer than ``--request-timeout``.
"""

from maitred._engine import RequestTimeout, __version__, deprecated, main

__all__ = ["RequestTimeout", "__version__", "deprecated", "main"]
