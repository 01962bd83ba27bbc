"""The clients: ``Client`` for threads, ``AsyncClient`` for event loops of asyncio."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any

from maitred._engine import HttpFailure
from maitred.http._errors import InvalidRequest, error_of, is_of_engine
from maitred.http._limits import Limits
from maitred.http._response import Response
from maitred.http._settings import Request, Settings

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from maitred.http._arguments import CallOptions, ClientOptions

#: The body of a redirect is read up to here, so that its connection can be used again.
_MOST_OF_REDIRECT = 64 * 1024


class Client:
    """Calls by threads, which may share it. ``with Client() as client`` closes its connections at the end.

    A call is made on the thread that asks, and the interpreter is released meanwhile. Arguments:

    - ``base_url``, ``headers``, ``params``, ``auth``: of every call; those of a call come on top
    - ``timeout``: a :class:`Timeout`, seconds for each phase and the whole call, or None for no limit
    - ``limits``: the :class:`Limits` of the pool and of bodies
    - ``verify``: True, False, or a file or folder of authorities; ``cert``: the client's certificate, a file, (certificate, key) or
      (certificate, key, password)
    - ``proxy``: the URL of a proxy for all calls; without one, and with ``trust_env``, HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and
      NO_PROXY count
    - ``socket``: the path of a Unix socket to which all calls go
    - ``allow``: ``"public"``, an address, a network or a list of these: the only addresses that are connected, redirects included
    - ``follow_redirects``, ``max_redirects``: whether, and how many. Credentials do not go to another origin; ``total`` of the time
      limits is for all of them together
    - ``propagate``: traceparent, tracestate and X-Request-ID of the request that is being served go out with the call, to whatever
      server; with a redirect they do not go to another origin. False: they never go
    """

    def __init__(self, **options: Unpack[ClientOptions]) -> None:
        self._settings = Settings(**options)

    def request(
        self, method: str, url: str, *, follow_redirects: bool | None = None, **options: Unpack[CallOptions]
    ) -> Response:
        """Sends a request and reads its response. Raises :class:`HTTPError`."""
        response = self._send(self._settings.request(method, url, **options), follow_redirects)
        response.read()
        return response

    @contextmanager
    def stream(
        self, method: str, url: str, *, follow_redirects: bool | None = None, **options: Unpack[CallOptions]
    ) -> Iterator[Response]:
        """Sends a request; the body of its response is read within the block, and the call ends with it."""
        response = self._send(self._settings.request(method, url, **options), follow_redirects)
        try:
            yield response
        finally:
            response.close()

    def get(self, url: str, **options: Any) -> Response:
        """``request("GET", ...)``."""
        return self.request("GET", url, **options)

    def head(self, url: str, **options: Any) -> Response:
        """``request("HEAD", ...)``."""
        return self.request("HEAD", url, **options)

    def options(self, url: str, **options: Any) -> Response:
        """``request("OPTIONS", ...)``."""
        return self.request("OPTIONS", url, **options)

    def post(self, url: str, **options: Any) -> Response:
        """``request("POST", ...)``."""
        return self.request("POST", url, **options)

    def put(self, url: str, **options: Any) -> Response:
        """``request("PUT", ...)``."""
        return self.request("PUT", url, **options)

    def patch(self, url: str, **options: Any) -> Response:
        """``request("PATCH", ...)``."""
        return self.request("PATCH", url, **options)

    def delete(self, url: str, **options: Any) -> Response:
        """``request("DELETE", ...)``."""
        return self.request("DELETE", url, **options)

    def _send(self, request: Request, follow: bool | None) -> Response:
        settings, began = self._settings, time.monotonic()
        response = self._send_once(request)
        if not (settings.follow_redirects if follow is None else follow):
            return response
        history: list[Response] = []
        total = request.seconds[-1]
        while response.is_redirect:
            try:
                response._raw.read(_MOST_OF_REDIRECT)
            except HttpFailure:
                pass
            finally:
                response.close()
            response._content = b""
            history.append(response)
            request = settings.redirect(request, response, len(history))
            if total is not None:
                request = request.within(began + total - time.monotonic())
            response = self._send_once(request)
        response.history = history
        return response

    def _send_once(self, request: Request) -> Response:
        method, url, origin, target, headers, body, seconds, repeatable, propagate = request
        settings = self._settings
        try:
            raw = settings.pool.send(
                origin, method, target, headers, body, seconds, repeatable=repeatable, propagate=propagate  # type: ignore[arg-type]
            )
        except HttpFailure as failure:
            raise error_of(failure) from failure
        except ValueError as error:
            if not is_of_engine(error, __name__):
                raise
            raise InvalidRequest(f"{method} {url}: {error}") from error
        return Response(raw, method, url, settings.limits)

    @property
    def limits(self) -> Limits:
        return self._settings.limits

    def close(self) -> None:
        """Closes the idle connections; calls cannot be made any more."""
        self._settings.closed = True
        self._settings.pool.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()


class AsyncClient:
    """Calls within event loops of asyncio (uvloop, and that of maitred, too), which may share it. Arguments as of :class:`Client`.

    A task that is cancelled ends its call at once. Without an event loop (trio, plain threads) use :class:`Client`.
    """

    def __init__(self, **options: Unpack[ClientOptions]) -> None:
        self._settings = Settings(**options)

    async def request(
        self, method: str, url: str, *, follow_redirects: bool | None = None, **options: Unpack[CallOptions]
    ) -> Response:
        """Sends a request and reads its response. Raises :class:`HTTPError`."""
        response = await self._send(self._settings.request(method, url, **options), follow_redirects)
        await response.aread()
        return response

    @asynccontextmanager
    async def stream(
        self, method: str, url: str, *, follow_redirects: bool | None = None, **options: Unpack[CallOptions]
    ) -> AsyncIterator[Response]:
        """Sends a request; the body of its response is read within the block, and the call ends with it."""
        response = await self._send(self._settings.request(method, url, **options), follow_redirects)
        try:
            yield response
        finally:
            response.close()

    async def get(self, url: str, **options: Any) -> Response:
        """``request("GET", ...)``."""
        return await self.request("GET", url, **options)

    async def head(self, url: str, **options: Any) -> Response:
        """``request("HEAD", ...)``."""
        return await self.request("HEAD", url, **options)

    async def options(self, url: str, **options: Any) -> Response:
        """``request("OPTIONS", ...)``."""
        return await self.request("OPTIONS", url, **options)

    async def post(self, url: str, **options: Any) -> Response:
        """``request("POST", ...)``."""
        return await self.request("POST", url, **options)

    async def put(self, url: str, **options: Any) -> Response:
        """``request("PUT", ...)``."""
        return await self.request("PUT", url, **options)

    async def patch(self, url: str, **options: Any) -> Response:
        """``request("PATCH", ...)``."""
        return await self.request("PATCH", url, **options)

    async def delete(self, url: str, **options: Any) -> Response:
        """``request("DELETE", ...)``."""
        return await self.request("DELETE", url, **options)

    async def _send(self, request: Request, follow: bool | None) -> Response:
        settings, began = self._settings, time.monotonic()
        response = await self._send_once(request)
        if not (settings.follow_redirects if follow is None else follow):
            return response
        history: list[Response] = []
        total = request.seconds[-1]
        while response.is_redirect:
            try:
                await response._raw.read_async(_MOST_OF_REDIRECT)
            except HttpFailure:
                pass
            finally:
                response.close()
            response._content = b""
            history.append(response)
            request = settings.redirect(request, response, len(history))
            if total is not None:
                request = request.within(began + total - time.monotonic())
            response = await self._send_once(request)
        response.history = history
        return response

    async def _send_once(self, request: Request) -> Response:
        method, url, origin, target, headers, body, seconds, repeatable, propagate = request
        settings = self._settings
        try:
            raw = await settings.pool.send_async(
                origin, method, target, headers, body, seconds, repeatable=repeatable, propagate=propagate
            )
        except HttpFailure as failure:
            raise error_of(failure) from failure
        except ValueError as error:
            if not is_of_engine(error, __name__):
                raise
            raise InvalidRequest(f"{method} {url}: {error}") from error
        return Response(raw, method, url, settings.limits)

    @property
    def limits(self) -> Limits:
        return self._settings.limits

    async def aclose(self) -> None:
        """Closes the idle connections; calls cannot be made any more."""
        self._settings.closed = True
        self._settings.pool.close()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        await self.aclose()
