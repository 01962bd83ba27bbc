"""Finds the application that the command line names.

Promises: every failure is a :class:`LoadFailure` with one line that says what is wrong and one that
says what to do. Leaves out: how an application is called (that is the engine's).
"""

from __future__ import annotations

import _thread
import difflib
import functools
import glob
import importlib
import importlib.util
import inspect
import os
import re
import sys
import traceback
from collections.abc import Iterable
from importlib.machinery import PathFinder
from types import ModuleType
from typing import Any, Callable, NamedTuple, NoReturn

from maitred import _shared

#: Looked for, in this order, when the command line names a module only.
DEFAULT_NAMES = ("app", "application")

#: What a service manager has told the server (sd_notify(3), sd_listen_fds(3)): it has it by now, and processes that the
#: application starts must not believe that it is for them.
_OF_SERVICE_MANAGER = ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES")

#: The same when the attribute is a factory.
FACTORY_NAMES = ("create_app", "make_app")


#: Applications that are there already, by the names that the command has for them.
objects: dict[str, Callable[..., Any]] = {}

#: Why such an application has one process, and what to do.
OBJECT_ALONE = (
    "an application that is given as an object is in this process alone, and several workers cannot have it",
    "give its name, maitred.run('module:app', workers=4)",
)

#: Whether an application is being imported.
is_loading = False


class LoadFailure(Exception):
    """The application cannot be loaded.

    ``traceback`` is the traceback of an exception in the application's own code, or empty.
    """

    def __init__(self, what: str, remedy: str, traceback: str = "") -> None:
        super().__init__(f"{what}; {remedy}")
        self.what = what
        self.remedy = remedy
        self.traceback = traceback


class Loaded(NamedTuple):
    """An application that has been found."""

    application: Callable[..., Any]
    #: For the start-up line, such as ``WSGI app:app``.
    description: str
    #: ``wsgi`` or ``asgi``.
    interface: str


def load(
    target: str,
    interface: str,
    *,
    factory: bool = False,
    app_dir: str | None = None,
    environment: Iterable[tuple[str, str]] = (),
    identity: Iterable[tuple[str, str]] = (),
    root_path: str = "/",
) -> Loaded:
    """Imports ``target`` and returns the application.

    ``target`` is ``module``, ``module:attr``, ``path/to/app.py`` or ``path/to/app.py:attr``;
    ``attr`` may be dotted. ``interface`` is ``auto``, ``wsgi`` or ``asgi``. With ``factory`` the
    attribute is called without arguments and returns the application. Modules are looked for in
    ``app_dir``, else in the current directory. What ``environment`` has and ``os.environ`` has not is
    set before the import, and what ``identity`` has in any case: it says which user the process has become. ``root_path`` is the URL path below which the application stands.
    """
    if target.startswith("<"):
        prepare(app_dir, environment, identity)
        return _loaded(*_given(target, factory), interface, factory, root_path)
    place, attribute = _split(target)
    folder = prepare(app_dir, environment, identity)

    def found() -> tuple[Callable[..., Any], str]:
        module = import_target(place, folder)
        application, name = _find(module, place, attribute, FACTORY_NAMES if factory else DEFAULT_NAMES)
        name = f"{place}:{name}"
        return (_made(application, name), f"{name}()") if factory else (application, name)

    global is_loading
    is_loading = True
    try:
        application, name = _shared.in_turn(target, _folder_of(place, folder), found)
        _import_urls()
    except _shared.Clash as clash:
        raise LoadFailure(clash.what, clash.remedy) from None
    finally:
        is_loading = False
    return _loaded(application, name, interface, factory, root_path)


def _given(name: str, factory: bool) -> tuple[Callable[..., Any], str]:
    """An application that :func:`maitred.run` was given."""
    if name not in objects:
        raise LoadFailure(*OBJECT_ALONE)
    return (_made(objects[name], name), f"{name}()") if factory else (objects[name], name)


def _loaded(application: Callable[..., Any], name: str, interface: str, factory: bool, root_path: str) -> Loaded:
    _check_threads()
    kind = _interface(application, name, interface, factory)
    if kind == "wsgi" and root_path != "/":
        application = _Below(application, root_path)
    return Loaded(application, f"{kind.upper()} {name}", kind)


def _check_threads() -> None:
    """The threads that serve would be greenlets of one thread, which the engine then uses at the same time."""
    library = _thread.start_new_thread.__module__.partition(".")[0]
    if library in ("gevent", "eventlet"):
        patch = "gevent.monkey.patch_all(thread=False)" if library == "gevent" else "eventlet.monkey_patch(thread=False)"
        raise LoadFailure(
            f"{library} has replaced Python's threads, and maitred serves requests in real ones",
            f"write {patch}, or leave the patch out: a thread that waits holds up no other",
        )


#: What stands in a module with an application of ASGI, and hardly in one of WSGI.
_ASGI_SIGNS = re.compile(
    r"^\s*(?:from|import)\s+(?:fastapi|starlette|litestar|quart|channels)\b|\bget_asgi_application\b|\basync def \w+\((?:self,\s*)?scope\b", re.MULTILINE
)


def looks_like_asgi(target: str, app_dir: str | None = None) -> bool:
    """Whether the text of the module says so; nothing is imported. A module that has the application from another one does not tell."""
    place = target.partition(":")[0]
    folder = os.getcwd() if app_dir is None else app_dir
    stem = os.path.join(folder, *place.split("."))
    for file in [place] if _is_path(place) else [f"{stem}.py", os.path.join(stem, "__init__.py")]:
        try:
            with open(file, encoding="utf-8", errors="replace") as opened:
                return _ASGI_SIGNS.search(opened.read()) is not None
        except OSError:
            continue
    return False


def keep_agent() -> None:
    """Gives workers the PYTHONPATH of this process's own start. An agent that the interpreter imports first (older versions of
    ``opentelemetry-instrument``) takes its folder out of the variable, so that other programs do not have the agent; workers would not have it either."""
    try:
        with open("/proc/self/environ", "rb") as file:
            lines = file.read().split(b"\0")
    except OSError:
        return
    started = next((os.fsdecode(line[11:]) for line in lines if line.startswith(b"PYTHONPATH=")), "")
    # A variable with entries of its own was changed on purpose.
    if set(filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))) < set(started.split(os.pathsep)):
        os.environ["PYTHONPATH"] = started


def look(target: str, app_dir: str | None = None) -> None:
    """Looks whether the file or the module of ``target`` is there, and imports nothing. Raises :class:`LoadFailure` if it is not."""
    if target in objects:
        return
    place, _ = _split(target)
    if _is_path(place):
        folder, name = os.path.split(os.path.abspath(place))
        if not os.path.isfile(place):
            remedy = _nearest_file(os.path.splitext(name)[0], folder, as_module=False)
            raise LoadFailure(f"there is no file {place}", remedy)
        return
    folder = os.getcwd() if app_dir is None else os.path.abspath(app_dir)
    first, *rest = place.split(".")
    spec = PathFinder.find_spec(first, [folder, *sys.path])
    if spec is None:
        # One that is built in, or found in a way of its own.
        if importlib.util.find_spec(first) is None:
            remedy = _nearest_file(first, folder, as_module=True)
            raise LoadFailure(f"no module named {first!r} in {folder} or on sys.path", remedy)
        return
    name = first
    for part in rest:
        name = f"{name}.{part}"
        places = spec.submodule_search_locations
        spec = None if places is None else PathFinder.find_spec(name, list(places))
        if spec is None:
            raise LoadFailure(f"no module named {name!r}", f"correct the name, or look in {list(places)[0] if places else folder}")


def _import_urls() -> None:
    """Django imports the URLs, and with them all views, at the first request: a fault in them would be found by users, and after a deploy. Its application
    may be wrapped, so that what it has imported tells that it is there."""
    if "django.core.handlers.wsgi" not in sys.modules and "django.core.handlers.asgi" not in sys.modules:
        return
    settings = importlib.import_module("django.conf").settings
    # They are configured where Django is set up. Another application may have imported a part of it only.
    urls = getattr(settings, "ROOT_URLCONF", None) if settings.configured else None
    if urls is None:
        return
    try:
        # Those of included modules, too.
        _walk_urls(importlib.import_module("django.urls").get_resolver().url_patterns)
    except Exception as error:
        _import_failed(f"the URLs of Django ({urls})", error)


def _walk_urls(patterns: Iterable[Any]) -> None:
    for pattern in patterns:
        _walk_urls(getattr(pattern, "url_patterns", ()))


def prepare(
    app_dir: str | None, environment: Iterable[tuple[str, str]], identity: Iterable[tuple[str, str]]
) -> str:
    """Sets the variables, and has modules looked for in the folder that is returned."""
    for name in _OF_SERVICE_MANAGER:
        os.environ.pop(name, None)
    os.environ.update(dict(identity))
    for name, value in dict(environment).items():
        os.environ.setdefault(name, value)
    folder = os.getcwd() if app_dir is None else os.path.abspath(app_dir)
    if app_dir is not None or (folder not in sys.path and "" not in sys.path):
        sys.path.insert(0, folder)
    return folder


def import_target(place: str, folder: str) -> ModuleType:
    """The module of this name, which is looked for in ``folder`` first, or the one in the file at this path.

    Raises :class:`LoadFailure`, and :class:`maitred._shared.Clash` if it is not the one that is loaded under its name.
    """
    return _import_file(place) if _is_path(place) else _import_module(place, folder)


class _Below:
    """A WSGI application below a URL path (RFC 3875 sections 4.1.5 and 4.1.13).

    A path that is not below it comes from a proxy that has taken the URL path off.
    """

    def __init__(self, application: Callable[..., Any], root: str) -> None:
        self._application = application
        # PATH_INFO has the bytes of the path as Latin-1 (PEP 3333, "Unicode Issues").
        self._root = root.encode().decode("latin-1")
        self._below = self._root + "/"

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Any:
        path: str = environ["PATH_INFO"]
        if path.startswith(self._below) or path == self._root:
            environ["PATH_INFO"] = path[len(self._root) :]
        if path.startswith("/"):
            environ["SCRIPT_NAME"] = self._root
        return self._application(environ, start_response)


def _made(factory: Callable[..., Any], name: str) -> Callable[..., Any]:
    """The application that ``factory`` returns."""
    if inspect.iscoroutinefunction(factory):
        raise LoadFailure(
            f"{name} is a coroutine function", "a factory is a plain function that returns the application"
        )
    try:
        inspect.signature(factory).bind()
    except TypeError as error:
        raise LoadFailure(
            f"{name} cannot be called without arguments: {error}",
            "name a factory, or leave --factory out if this is the application",
        ) from None
    except ValueError:
        pass  # Native callables without a signature: the call will tell.
    try:
        application = factory()
    except Exception as error:
        text, summary = _told(error)
        raise LoadFailure(f"{name}() failed: {summary}", _cure(error), text) from None
    if not callable(application):
        raise LoadFailure(
            f"{name}() returned {type(application).__name__}, which is not callable",
            "a factory returns the application",
        )
    made: Callable[..., Any] = application
    return made


def _split(target: str) -> tuple[str, str | None]:
    place, colon, attribute = target.partition(":")
    if not place or (colon and not attribute):
        raise LoadFailure(
            f"{target!r} names no application", "write module:attribute or path/to/file.py:attribute"
        )
    return place, attribute or None


def _folder_of(place: str, app_dir: str) -> str:
    """Where the modules of an application are looked for first."""
    return os.path.dirname(os.path.abspath(place)) if _is_path(place) else app_dir


def _is_path(place: str) -> bool:
    return place.endswith(".py") or "/" in place or os.sep in place


def _import_module(name: str, folder: str) -> ModuleType:
    if not all(part.isidentifier() for part in name.split(".")):
        raise LoadFailure(f"{name!r} is not a module name", "write module:attribute or path/to/file.py")
    _shared.check_module(name, folder)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        # The application itself, or something it imports? Only the first is a typing error.
        if error.name and (name == error.name or name.startswith(error.name + ".")):
            remedy = _nearest_file(name.split(".")[0], folder, as_module=True)
            # The application may be a package that is installed.
            remedy = _other_environment(error, surely=True) or remedy
            raise LoadFailure(f"no module named {error.name!r} in {folder} or on sys.path", remedy) from None
        _import_failed(name, error)
    except Exception as error:
        _import_failed(name, error)


def _import_file(path: str) -> ModuleType:
    full = os.path.abspath(path)
    folder, file_name = os.path.split(full)
    stem = os.path.splitext(file_name)[0]
    if not os.path.isfile(full):
        raise LoadFailure(f"there is no file {path}", _nearest_file(stem, folder, as_module=False))
    if folder not in sys.path:
        sys.path.insert(0, folder)
    # A file may be called like a module that is loaded already (signal.py); both must work.
    name = _shared.free_name(stem)
    spec = importlib.util.spec_from_file_location(name, full)
    if spec is None or spec.loader is None:
        raise LoadFailure(f"{path} is not a Python file", "name a file that ends with .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        _import_failed(path, error)
    return module


def _import_failed(name: str, error: BaseException) -> NoReturn:
    text, summary = _told(error)
    raise LoadFailure(f"importing {name} failed: {summary}", _cure(error), text) from None


def _cure(error: BaseException) -> str:
    """What to do about an exception of the application's own code."""
    environment = _other_environment(error) if isinstance(error, ModuleNotFoundError) else ""
    return environment or "see the traceback above"


def _other_environment(error: ModuleNotFoundError, *, surely: bool = False) -> str:
    """What to do if the module is missing because maitred belongs to another virtual environment than the application.

    ``surely``: only if the module is there.
    """
    name = (error.name or "").partition(".")[0]
    active = os.environ.get("VIRTUAL_ENV", "")
    # The second is that of a project whose environment was not activated.
    for environment, why in ((active, "VIRTUAL_ENV is"), (os.path.abspath(".venv"), "the application's environment may be")):
        is_other = os.path.isfile(os.path.join(environment, "pyvenv.cfg")) and not _is_same(environment, sys.prefix)
        if not environment or not is_other or ((surely or environment != active) and not _has(environment, name)):
            continue
        python = os.path.join(environment, "bin", "python")
        has = f", which has {name}" if _has(environment, name) else ""
        if _has(environment, "maitred"):
            todo = f"start maitred as {python} -m maitred"
        else:
            todo = f"install maitred there, {python} -m pip install maitred, and start it as {python} -m maitred"
        return f"maitred runs in {sys.prefix}, but {why} {environment}{has}: {todo}"
    return ""


def _is_same(one: str, other: str) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


def _has(environment: str, module: str) -> bool:
    """Whether a module or package of this name is installed in a virtual environment."""
    folder = f"{glob.escape(environment)}/lib/python*/site-packages/{glob.escape(module)}"
    return bool(module) and any(glob.glob(folder + ending) for ending in ("", ".py"))


def _told(error: BaseException) -> tuple[str, str]:
    """The exception as Python prints it, and in one line."""
    text = "".join(traceback.format_exception(_without_import_frames(error)))
    return text, " ".join("".join(traceback.format_exception_only(error)).split())


def _without_import_frames(error: BaseException) -> BaseException:
    """The exception without the frames of the import machinery, which nobody asks for."""
    hidden = (__file__, importlib.__file__)
    frame = error.__traceback__
    while frame is not None and (
        frame.tb_frame.f_code.co_filename in hidden
        or frame.tb_frame.f_code.co_filename.startswith("<frozen importlib")
    ):
        frame = frame.tb_next
    # A syntax error has no frame of the application; its own text says where it is.
    return error.with_traceback(frame)


def _nearest_file(stem: str, folder: str, *, as_module: bool) -> str:
    try:
        stems = sorted(name[:-3] for name in os.listdir(folder) if name.endswith(".py"))
    except OSError:
        return f"there is no folder {folder}"
    if as_module and stem not in stems:
        for below in sorted(glob.glob(f"{glob.escape(folder)}/*/{glob.escape(stem)}.py"))[:1]:
            inner = os.path.basename(os.path.dirname(below))
            return f"{inner}/{stem}.py is there: add --app-dir {inner}, or write {inner}.{stem} if {inner} is a package"
    for nearest in difflib.get_close_matches(stem, stems, n=1):
        return f"did you mean {nearest}?" if as_module else f"did you mean {nearest}.py?"
    if not stems:
        return f"there is no .py file in {folder}"
    shown = ", ".join(stem if as_module else f"{stem}.py" for stem in stems[:5])
    return f"{folder} has {shown}{', …' if len(stems) > 5 else ''}"


def _find(
    module: ModuleType, place: str, attribute: str | None, defaults: tuple[str, ...]
) -> tuple[Callable[..., Any], str]:
    if attribute is None:
        for name in defaults:
            if callable(getattr(module, name, None)):
                return getattr(module, name), name
            if server := _server_of_dash(getattr(module, name, None)):
                return server, f"{name}.server"
        names = " nor ".join(defaults)
        raise LoadFailure(f"{place} has neither {names}", _candidates(module, place, ""))
    value: Any = module
    for part in attribute.split("."):
        try:
            value = getattr(value, part)
        except AttributeError:
            raise LoadFailure(
                f"{place} has no attribute {attribute!r}", _candidates(module, place, attribute)
            ) from None
    if server := _server_of_dash(value):
        return server, f"{attribute}.server"
    if not callable(value):
        raise LoadFailure(
            f"{place}:{attribute} is not callable, it is {type(value).__name__}",
            _candidates(module, place, attribute),
        )
    return value, attribute


def _server_of_dash(value: Any) -> Callable[..., Any] | None:
    """The Flask application of a Dash application, which itself cannot be called."""
    server = getattr(value, "server", None)
    is_dash = type(value).__module__.partition(".")[0] == "dash" and not callable(value)
    return server if is_dash and callable(server) else None


def _candidates(module: ModuleType, place: str, wanted: str) -> str:
    names = [name for name, value in vars(module).items() if not name.startswith("_") and _may_serve(value)]
    for nearest in difflib.get_close_matches(wanted, names, n=1):
        return f"did you mean {place}:{nearest}?"
    if not names:
        return f"define app in {place}, a callable that takes (environ, start_response)"
    return "name one: " + ", ".join(f"{place}:{name}" for name in names[:5])


def _may_serve(value: Any) -> bool:
    """Whether ``value`` can be called with ``environ`` and ``start_response``."""
    if isinstance(value, ModuleType) or not callable(value) or inspect.isclass(value):
        return False
    return _is_asgi(value) or can_take(value, 2)


def _interface(application: Callable[..., Any], name: str, interface: str, factory: bool) -> str:
    """``wsgi`` or ``asgi``; what ``interface`` says is believed."""
    if interface == "asgi" or (interface == "auto" and _is_asgi(application)):
        if _is_asgi_2(application):
            raise LoadFailure(f"{name} is an application of ASGI 2, which takes the scope alone", _ASGI_2_REMEDY)
        if not can_take(application, 3):
            raise LoadFailure(
                f"{name} cannot be called with (scope, receive, send)",
                "name an ASGI application, or set --interface wsgi",
            )
        return "asgi"
    if interface == "auto":
        if _is_asgi_2(application):
            raise LoadFailure(f"{name} is an application of ASGI 2, which takes the scope alone", _ASGI_2_REMEDY)
        if not can_take(application, 2):
            is_factory = not factory and can_take(application, 0)
            remedy = "add --factory if it makes the application" if is_factory else "name an application"
            raise LoadFailure(
                f"{name} can be called neither with (environ, start_response) nor with (scope, receive, send)",
                f"{remedy}, or set --interface",
            )
    return "wsgi"


_ASGI_2_REMEDY = "wrap it with asgiref.compatibility.guarantee_single_callable"


def _is_asgi_2(application: Callable[..., Any]) -> bool:
    """Whether it is a class that is called with the scope, and whose instances with receive and send."""
    if not inspect.isclass(application) or not inspect.iscoroutinefunction(getattr(application, "__call__", None)):
        return False
    parameters = _parameters(application)
    return parameters is not None and _required(parameters) == 1


def _is_asgi(application: Callable[..., Any]) -> bool:
    """Whether the callable is a coroutine function or takes exactly three arguments.

    A wrapper that takes ``*args`` says nothing about its arguments (``wsgiref.validate`` makes such
    wrappers of WSGI applications), so it counts only if it is a coroutine function, or says by
    ``__wrapped__`` what it wraps.
    """
    inner: Any = application
    while isinstance(inner, functools.partial):
        inner = inner.func
    # Of a class it is the instances that have its __call__, and calling the class makes one.
    call = None if inspect.isclass(inner) else getattr(type(inner), "__call__", None)
    if inspect.iscoroutinefunction(inner) or inspect.iscoroutinefunction(call):
        return True
    parameters = _parameters(application)
    return parameters is not None and _required(parameters) == 3


def can_take(application: Callable[..., Any], count: int) -> bool:
    """Whether so many positional arguments can be passed."""
    try:
        inspect.signature(application).bind(*[None] * count)
    except TypeError:
        return False
    except ValueError:
        return True  # Native callables without a signature: nothing speaks against it.
    return True


def _parameters(application: Callable[..., Any]) -> list[inspect.Parameter] | None:
    try:
        return list(inspect.signature(application).parameters.values())
    except (TypeError, ValueError):
        return None


def _required(parameters: list[inspect.Parameter]) -> int:
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(p.kind in positional and p.default is inspect.Parameter.empty for p in parameters)
