"""Finds the application that the command line names.

Promises: every failure is a :class:`LoadFailure` with one line that says what is wrong and one that
says what to do. Leaves out: how an application is called (that is the engine's).
"""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import inspect
import os
import sys
import traceback
from types import ModuleType
from typing import Any, Callable, NoReturn

#: Looked for, in this order, when the command line names a module only.
DEFAULT_NAMES = ("app", "application")


class LoadFailure(Exception):
    """The application cannot be loaded.

    ``traceback`` is the traceback of an exception in the application's own code, or empty.
    """

    def __init__(self, what: str, remedy: str, traceback: str = "") -> None:
        super().__init__(f"{what}; {remedy}")
        self.what = what
        self.remedy = remedy
        self.traceback = traceback


def load(target: str, interface: str) -> tuple[Callable[..., Any], str]:
    """Imports ``target`` and returns the application with a description for the start-up line.

    ``target`` is ``module``, ``module:attr``, ``path/to/app.py`` or ``path/to/app.py:attr``;
    ``attr`` may be dotted. ``interface`` is ``auto``, ``wsgi`` or ``asgi``.
    """
    place, attribute = _split(target)
    if os.getcwd() not in sys.path and "" not in sys.path:
        sys.path.insert(0, os.getcwd())
    module = _import_file(place) if _is_path(place) else _import_module(place)
    application, attribute = _find(module, place, attribute)
    name = f"{place}:{attribute}"
    _check_interface(application, name, interface)
    return application, f"WSGI {name}"


def _split(target: str) -> tuple[str, str | None]:
    place, colon, attribute = target.partition(":")
    if not place or (colon and not attribute):
        raise LoadFailure(
            f"{target!r} names no application", "write module:attribute or path/to/file.py:attribute"
        )
    return place, attribute or None


def _is_path(place: str) -> bool:
    return place.endswith(".py") or "/" in place or os.sep in place


def _import_module(name: str) -> ModuleType:
    if not all(part.isidentifier() for part in name.split(".")):
        raise LoadFailure(f"{name!r} is not a module name", "write module:attribute or path/to/file.py")
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        # The application itself, or something it imports? Only the first is a typing error.
        if error.name and (name == error.name or name.startswith(error.name + ".")):
            here = os.getcwd()
            remedy = _nearest_file(name.split(".")[0], here, as_module=True)
            raise LoadFailure(f"no module named {error.name!r} in {here} or on sys.path", remedy) from None
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
    name = stem if stem not in sys.modules else f"maitred_application_{stem}"
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
    text = "".join(traceback.format_exception(_without_import_frames(error)))
    summary = " ".join("".join(traceback.format_exception_only(error)).split())
    raise LoadFailure(f"importing {name} failed: {summary}", "see the traceback above", text) from None


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
    for nearest in difflib.get_close_matches(stem, stems, n=1):
        return f"did you mean {nearest}?" if as_module else f"did you mean {nearest}.py?"
    if not stems:
        return f"there is no .py file in {folder}"
    shown = ", ".join(stem if as_module else f"{stem}.py" for stem in stems[:5])
    return f"{folder} has {shown}{', …' if len(stems) > 5 else ''}"


def _find(module: ModuleType, place: str, attribute: str | None) -> tuple[Callable[..., Any], str]:
    if attribute is None:
        for name in DEFAULT_NAMES:
            if callable(getattr(module, name, None)):
                return getattr(module, name), name
        names = " nor ".join(DEFAULT_NAMES)
        raise LoadFailure(f"{place} has neither {names}", _candidates(module, place, ""))
    value: Any = module
    for part in attribute.split("."):
        try:
            value = getattr(value, part)
        except AttributeError:
            raise LoadFailure(
                f"{place} has no attribute {attribute!r}", _candidates(module, place, attribute)
            ) from None
    if not callable(value):
        raise LoadFailure(
            f"{place}:{attribute} is not callable, it is {type(value).__name__}",
            _candidates(module, place, attribute),
        )
    return value, attribute


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
    return _is_asgi(value) or _takes_two(value)


def _check_interface(application: Callable[..., Any], name: str, interface: str) -> None:
    if interface == "asgi" or (interface == "auto" and _is_asgi(application)):
        why = "" if interface == "asgi" else f"{name} is an ASGI application: "
        remedy = "wrap it in a WSGI adapter, or set --interface wsgi if it is a WSGI application"
        raise LoadFailure(f"{why}ASGI comes in a later version; this version serves WSGI", remedy)
    if interface == "auto" and not _takes_two(application):
        raise LoadFailure(
            f"{name} cannot be called with (environ, start_response)",
            "name a WSGI application, not a factory, or set --interface wsgi",
        )


def _is_asgi(application: Callable[..., Any]) -> bool:
    """Whether the callable is a coroutine function or takes exactly three arguments.

    A wrapper that takes ``*args`` says nothing about its arguments (``wsgiref.validate`` makes such
    wrappers of WSGI applications), so it counts only if it is a coroutine function.
    """
    call = getattr(type(application), "__call__", None)
    if inspect.iscoroutinefunction(application) or inspect.iscoroutinefunction(call):
        return True
    parameters = _parameters(application)
    return parameters is not None and _required(parameters) == 3


def _takes_two(application: Callable[..., Any]) -> bool:
    try:
        inspect.signature(application).bind(None, None)
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
