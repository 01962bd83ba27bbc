"""maitred: an application server for Python.

The command ``maitred`` (or ``python -m maitred``) serves a WSGI or ASGI application::

    maitred app:app

:func:`run` is the same for programs that start it themselves, ``maitred.run("app:app", workers=4)``, and :func:`main` with the
arguments of a command line. :class:`RequestTimeout` is what a WSGI
application gets with ``--interrupt`` in the middle of a request that takes longer than ``--request-timeout``.
"""

from maitred._engine import RequestTimeout, __version__, deprecated, main
from maitred._run import run

__all__ = ["RequestTimeout", "__version__", "deprecated", "main", "run"]
