"""The arguments of clients and calls, for type checkers."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, TypedDict

from maitred.http._content import Content
from maitred.http._limits import Limits, Timeout
from maitred.http._settings import Certificate, HeaderTypes
from maitred.http._url import Params


class ClientOptions(TypedDict, total=False):
    """Of :class:`Client` and :class:`AsyncClient`."""

    base_url: str
    headers: HeaderTypes | None
    params: Params | None
    auth: tuple[str, str] | None
    timeout: Timeout | float | None
    limits: Limits | None
    verify: bool | str | os.PathLike[str]
    cert: Certificate | None
    proxy: str | None
    trust_env: bool
    socket: str | os.PathLike[str] | None
    allow: str | Sequence[str] | None
    follow_redirects: bool
    max_redirects: int
    propagate: bool


class CallOptions(TypedDict, total=False):
    """Of one call.

    ``content`` is bytes, str, a file or an iterable of bytes; ``data`` a form; ``json`` any value. ``repeatable`` says whether the
    request may be sent again when a kept connection turns out to be closed; None leaves that to the method.
    """

    headers: HeaderTypes | None
    params: Params | None
    content: Content | None
    data: Params | None
    json: Any
    auth: tuple[str, str] | None
    timeout: Timeout | float | None
    repeatable: bool | None
