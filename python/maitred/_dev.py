"""Applications in development (``maitred dev``): who may see tracebacks in the browser, and which exceptions become a page.

Promises: without the token that the terminal shows, and for a foreign ``Host``, no page has anything of an exception in it. A loopback address proves
nothing: proxies stand on it, and a name of somebody else may lead to it. Leaves out: what a page looks like (``_dev_page``).
"""

from __future__ import annotations

import hmac
import importlib
import ipaddress
import secrets
import sys
import traceback
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextvars import ContextVar
from http.cookies import CookieError, SimpleCookie
from typing import Any, NamedTuple

from maitred import _dev_page, _load
from maitred._load import Loaded, LoadFailure

#: URLs below it are ours, in every application.
PREFIX = "/.maitred/"

#: Exceptions whose local variables can still be asked for: each keeps its frames, and what they refer to.
KEPT = 8

#: Exceptions that follow one from another are all printed if there are fewer.
LONGEST_CHAIN = 4

#: Bytes of an answer with status 500 that are held back until it is known whether an exception is behind it.
HELD_BYTES = 1 << 20

#: Tells one process from the next: a page looks whether there is another one.
RUN = secrets.token_hex(4)

_UNKNOWN = (
    "Internal Server Error\n\nThe traceback is in the terminal. To see it here, open the link that the terminal shows "
    "(tracebacks in the browser).\n"
)

#: Exceptions that a framework has caught and told of, of the request that runs in this context.
_caught: ContextVar[list[BaseException] | None] = ContextVar("maitred_caught", default=None)


class Answer(NamedTuple):
    """A response of ours."""

    status: str
    headers: list[tuple[str, str]]
    body: bytes


def load(token: str, target: str, interface: str, **options: Any) -> Loaded:
    """As :func:`maitred._load.load`, for a server in development. An application that cannot be loaded is replaced by one that says why."""
    desk = Desk(token)
    # What is compiled is found by the second in which its source was written: two changes in one would be one.
    sys.dont_write_bytecode = True
    try:
        loaded = _load.load(target, interface, **options)
    except (LoadFailure, SystemExit) as error:
        return Loaded(_Failed(desk, _told(error, target)), f"the error of {target}", "wsgi")
    _listen_to_frameworks()
    if loaded.interface == "asgi":
        return loaded._replace(application=_Asgi(desk, loaded.application))
    return loaded._replace(application=_Wsgi(desk, loaded.application))


def _told(error: BaseException, target: str) -> BaseException:
    """Says in the terminal why the application cannot be loaded; returns the exception of the application, if there is one."""
    if isinstance(error, LoadFailure):
        text, line = error.traceback, str(error)
        cause = error.__context__ if error.traceback else None
    else:
        text, line, cause = "", f"{target} ends the process while it is imported ({error!r})", None
    _say(f"{text}maitred: {line}; the next change loads it again\n")
    return cause if cause is not None else error


def _as_text(error: BaseException) -> str:
    """The exception as Python prints it. Of a long chain, whose links mostly repeat the first one, the beginning and the end."""
    chain = "".join(traceback.format_exception(error))
    if chain.count("\nTraceback (most recent call last):") < LONGEST_CHAIN:
        return chain
    first = error
    seen: set[int] = set()
    while (before := first.__cause__ or first.__context__) is not None and id(before) not in seen:
        seen.add(id(before))
        first = before
    last = "".join(traceback.format_exception(error, chain=False))
    return f"{''.join(traceback.format_exception(first, chain=False))}\n... and further exceptions while it was handled, at last:\n\n{last}"


def _say(text: str) -> None:
    if sys.stderr is not None:
        sys.stderr.write(text)
        sys.stderr.flush()


class Desk:
    """Who may see what, and which exceptions there were."""

    def __init__(self, token: str) -> None:
        self._token = token
        #: Several servers on one machine have one cookie jar: each has a name of its own, which says nothing about the token.
        self._cookie = f"maitred-dev-{hmac.new(token.encode(), b'name', 'sha256').hexdigest()[:8]}"
        self._kept: OrderedDict[str, tuple[BaseException, _dev_page.Request]] = OrderedDict()

    def may_see(self, host: str, cookies: str) -> bool:
        """Whether a request with these fields is from the browser of who reads the terminal."""
        if not is_own_host(host):
            return False
        try:
            shown = SimpleCookie(cookies).get(self._cookie)
        except CookieError:
            return False
        return shown is not None and hmac.compare_digest(shown.value.encode(), self._token.encode())

    def answer(self, path: str, root: str, host: str, cookies: str, is_secure: bool) -> Answer | None:
        """What a path of ours brings; none for a path of the application. ``root`` is the URL of the application."""
        if not path.startswith(PREFIX):
            return None
        what, _, rest = path[len(PREFIX) :].partition("/")
        if what == "version":
            return _text("200 OK", RUN)
        if what == "open" and is_own_host(host) and hmac.compare_digest(rest.encode(), self._token.encode()):
            secure = "; Secure" if is_secure else ""
            cookie = f"{self._cookie}={self._token}; Path=/; HttpOnly; SameSite=Strict{secure}"
            page = _dev_page.opened(root + "/")
            return page_answer("200 OK", page, [("Set-Cookie", cookie)])
        if what == "locals" and self.may_see(host, cookies):
            kept = self._kept.get(rest)
            if kept is None:
                return _text("404 Not Found", "This exception is not kept any more: cause it again.\n")
            return page_answer("200 OK", _dev_page.page(kept[0], kept[1], run=RUN, with_locals=True))
        return _text("404 Not Found", "Not found\n")

    def report(self, error: BaseException, request: _dev_page.Request, accept: str) -> Answer:
        """The answer to a request that has raised this."""
        if not request.is_known:
            return _text("500 Internal Server Error", _UNKNOWN)
        if "text/html" not in accept and "*/*" not in accept:
            return _text("500 Internal Server Error", _as_text(error))
        number = secrets.token_hex(8)
        self._kept[number] = (error, request)
        while len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        link = f"{request.root}{PREFIX}locals/{number}"
        return page_answer("500 Internal Server Error", _dev_page.page(error, request, run=RUN, locals_link=link))


def is_own_host(host: str) -> bool:
    """Whether ``Host`` names this machine, or an address: neither can be a name of somebody else that leads here (DNS rebinding)."""
    name = host.rpartition(":")[0] if ":" in host and not host.endswith("]") else host
    name = name.strip("[]").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def page_answer(status: str, page: _dev_page.Page, more: Iterable[tuple[str, str]] = ()) -> Answer:
    """A page with the fields that keep it for whom it is."""
    headers = [
        ("Content-Type", "text/html; charset=utf-8"),
        ("Content-Length", str(len(page.body))),
        ("Content-Security-Policy", page.policy),
        ("Cache-Control", "no-store"),
        ("Referrer-Policy", "no-referrer"),
        ("X-Content-Type-Options", "nosniff"),
        ("X-Frame-Options", "DENY"),
        *more,
    ]
    return Answer(status, headers, page.body)


def _text(status: str, text: str) -> Answer:
    body = text.encode("utf-8", "backslashreplace")
    headers = [
        ("Content-Type", "text/plain; charset=utf-8"),
        ("Content-Length", str(len(body))),
        ("Cache-Control", "no-store"),
        ("X-Content-Type-Options", "nosniff"),
    ]
    return Answer(status, headers, body)


# ---- What frameworks catch ----


def _listen_to_frameworks() -> None:
    """Django, Flask and Quart make a page without a reason of every exception, and tell of it by a signal."""
    if "django" in sys.modules:
        _listen_to_django()
    for name in ("flask", "quart"):
        signal = getattr(sys.modules.get(name), "got_request_exception", None)
        if signal is not None:
            signal.connect(_note_of_flask, weak=False)


def _listen_to_django() -> None:
    try:
        # It shows a page of its own then.
        if importlib.import_module("django.conf").settings.DEBUG:
            return
        importlib.import_module("django.core.signals").got_request_exception.connect(_note_of_django, weak=False)
    except Exception as error:
        _say(f"maitred: exceptions that Django catches have no page: {error!r}\n")


def _note_of_django(**_: Any) -> None:
    error = sys.exc_info()[1]
    if error is not None:
        # Without DEBUG it is nowhere else.
        _say(_as_text(error))
        _note(error)


def _note_of_flask(_: Any, exception: BaseException, **__: Any) -> None:
    _note(exception)


def _note(error: BaseException) -> None:
    caught = _caught.get()
    if caught is not None:
        caught.append(error)


# ---- WSGI ----


class _Failed:
    """Stands for an application that cannot be loaded."""

    def __init__(self, desk: Desk, error: BaseException) -> None:
        self._desk, self._error = desk, error

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        answer = _answer_of_path(self._desk, environ)
        if answer is None:
            answer = self._desk.report(self._error, _request(self._desk, environ), environ.get("HTTP_ACCEPT", "*/*"))
        start_response(answer.status, answer.headers)
        return [answer.body]


class _Wsgi:
    def __init__(self, desk: Desk, application: Callable[..., Any]) -> None:
        self._desk, self._application = desk, application

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        answer = _answer_of_path(self._desk, environ)
        if answer is not None:
            start_response(answer.status, answer.headers)
            return [answer.body]
        caught: list[BaseException] = []
        token = _caught.set(caught)
        is_replaced = False

        def start(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Callable[[bytes], object]:
            nonlocal is_replaced
            is_replaced = bool(caught) and status.startswith("500")
            if is_replaced:
                return _drop
            written: Callable[[bytes], object] = start_response(status, headers, *([exc_info] if exc_info else []))
            return written

        def failed(error: BaseException) -> Iterable[bytes]:
            request = _request(self._desk, environ)
            answer = self._desk.report(error, request, environ.get("HTTP_ACCEPT", "*/*"))
            start_response(answer.status, answer.headers, (type(error), error, error.__traceback__))
            return [answer.body]

        try:
            result = self._application(environ, start)
            if is_replaced:
                _close(result)
                return failed(caught[-1])
        except Exception as error:
            _tell(error, environ["REQUEST_METHOD"], environ["PATH_INFO"])
            return failed(error)
        finally:
            _caught.reset(token)
        if isinstance(result, (list, tuple, environ["wsgi.file_wrapper"])):
            return result
        return _Blocks(result, failed, f"{environ['REQUEST_METHOD']} {environ['PATH_INFO']}")


class _Blocks:
    """The body of a response: an exception before its first byte becomes a page."""

    def __init__(
        self, result: Iterable[bytes], failed: Callable[[BaseException], Iterable[bytes]], request: str
    ) -> None:
        self._result, self._failed, self._request = result, failed, request
        self._blocks: Iterator[bytes] | None = None
        self._has_begun = False

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        try:
            if self._blocks is None:
                self._blocks = iter(self._result)
            block = next(self._blocks)
        except StopIteration:
            raise
        except Exception as error:
            if self._has_begun:
                raise
            self._has_begun = True
            method, _, path = self._request.partition(" ")
            _tell(error, method, path)
            self._blocks = iter(self._failed(error))
            return next(self._blocks)
        self._has_begun = self._has_begun or bool(block)
        return block

    def close(self) -> None:
        _close(self._result)


def _drop(_: bytes) -> None:
    """What a framework writes of a page that is replaced."""


def _close(result: Any) -> None:
    close = getattr(result, "close", None)
    if close is not None:
        close()


def _answer_of_path(desk: Desk, environ: dict[str, Any]) -> Answer | None:
    path: str = environ["PATH_INFO"]
    return desk.answer(
        path,
        environ.get("SCRIPT_NAME", ""),
        environ.get("HTTP_HOST", ""),
        environ.get("HTTP_COOKIE", ""),
        environ["wsgi.url_scheme"] == "https",
    )


def _request(desk: Desk, environ: dict[str, Any]) -> _dev_page.Request:
    root = environ.get("SCRIPT_NAME", "")
    query = environ.get("QUERY_STRING", "")
    return _dev_page.Request(
        environ["REQUEST_METHOD"],
        root + environ["PATH_INFO"] + (f"?{query}" if query else ""),
        root,
        desk.may_see(environ.get("HTTP_HOST", ""), environ.get("HTTP_COOKIE", "")),
    )


def _tell(error: BaseException, method: str, path: str) -> None:
    """The exception in the terminal, where the server itself would tell it if it were not caught here."""
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename == __file__:
        frames = frames.tb_next
    _say(f"{method} {path} raised an exception\n{_as_text(error.with_traceback(frames))}")


# ---- ASGI ----

Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class _Asgi:
    def __init__(self, desk: Desk, application: Callable[..., Any]) -> None:
        self._desk, self._application = desk, application
        #: Why the application could not start.
        self._failure: BaseException | None = None

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._lifespan(scope, receive, send)
        elif scope["type"] == "http":
            await self._http(scope, receive, send)
        else:
            await self._application(scope, receive, send)

    async def _lifespan(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """A start that fails is told by pages, as an import that fails."""

        async def tell(message: Message) -> None:
            if message["type"] == "lifespan.startup.failed":
                # Starlette and others tell it while they handle it.
                self._failure = sys.exc_info()[1] or RuntimeError(message.get("message") or "the application refused to start")
                _say(f"{message.get('message', '')}\nmaitred: the application did not start; the next change loads it again\n")
                message = {"type": "lifespan.startup.complete"}
            await send(message)

        try:
            await self._application(scope, receive, tell)
        except Exception:
            # Frameworks raise again what they have told. One that raises before has no lifespan: requests will tell.
            if self._failure is None:
                raise
        if self._failure is not None:
            while (await receive())["type"] != "lifespan.shutdown":
                pass
            await send({"type": "lifespan.shutdown.complete"})

    async def _http(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        path, root = scope["path"], scope.get("root_path", "")
        own = path[len(root) :] if path.startswith(root) else path
        host, cookies, accept = (_field(scope, name) for name in (b"host", b"cookie", b"accept"))
        answer = self._desk.answer(own, root, host, cookies, scope["scheme"] == "https")
        query = scope["query_string"].decode("latin-1")
        target = path + (f"?{query}" if query else "")
        request = _dev_page.Request(scope["method"], target, root, self._desk.may_see(host, cookies))
        if answer is None and self._failure is not None:
            answer = self._desk.report(self._failure, request, accept or "*/*")
        if answer is not None:
            return await _send(send, answer)
        held = _Held(send)
        caught: list[BaseException] = []
        token = _caught.set(caught)
        try:
            await self._application(scope, receive, held)
        except Exception as error:
            if held.has_begun:
                raise
            _tell(error, scope["method"], path)
            return await _send(send, self._desk.report(error, request, accept or "*/*"))
        finally:
            _caught.reset(token)
        if caught and held.messages:
            return await _send(send, self._desk.report(caught[-1], request, accept or "*/*"))
        await held.release()


class _Held:
    """``send`` of an application, which holds a response with status 500 back: an exception may be behind it."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.has_begun = False
        self.messages: list[Message] = []
        self._bytes = 0

    async def __call__(self, message: Message) -> None:
        is_start = message["type"] == "http.response.start"
        if self.messages or (is_start and message["status"] == 500):
            self.messages.append(message)
            self._bytes += len(message.get("body", b""))
            if self._bytes > HELD_BYTES:
                await self.release()
            return
        self.has_begun = self.has_begun or is_start
        await self._send(message)

    async def release(self) -> None:
        """Sends what is held."""
        messages, self.messages = self.messages, []
        self.has_begun = self.has_begun or bool(messages)
        for message in messages:
            await self._send(message)


def _field(scope: dict[str, Any], name: bytes) -> str:
    values = [value.decode("latin-1") for key, value in scope["headers"] if key == name]
    return ("; " if name == b"cookie" else ", ").join(values)


async def _send(send: Send, answer: Answer) -> None:
    headers = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in answer.headers]
    await send({"type": "http.response.start", "status": int(answer.status[:3]), "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})
