"""What the applications of one process share, so that two of them cannot have it: Django's configuration, and the name of a
module.

Promises: an application that would silently get what is another one's is refused, with what to do instead.
"""

from __future__ import annotations

import importlib.machinery
import os
import sys
from collections.abc import Callable
from types import ModuleType
from typing import TypeVar

SETTINGS = "DJANGO_SETTINGS_MODULE"

#: What helps whenever one process is not enough.
APART = "run each in a maitred of its own (--listen unix:/run/NAME.sock), with a proxy that knows the hosts in front"


class Clash(Exception):
    """Two applications cannot be in one process."""

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(f"{what}; {remedy}")
        self.what = what
        self.remedy = remedy


#: The settings of the Django project that has been loaded, and the application that it is; none if there is none yet.
_project: tuple[str, str] | None = None
#: Whether its settings are in the environment from the start: then all applications are meant to have them. None until the first
#: application is loaded.
_is_given: bool | None = None

#: The modules that were there before the first application.
_before: frozenset[str] | None = None
#: Modules of other applications that the one which is loaded now must not get.
_aside: dict[str, ModuleType] = {}

Made = TypeVar("Made")


def in_turn(target: str, folder: str, make: Callable[[], Made]) -> Made:
    """Calls ``make``, which imports the application ``target``, whose modules are in ``folder``.

    Raises :class:`Clash` if that is another Django project than one loaded before, or if it imports a module of its folder that
    has the name of a module which an application before it has imported from elsewhere. Whatever else ``make`` raises passes.
    """
    global _before
    if _before is None:
        _before = frozenset(sys.modules)
    _aside.update(_set_aside(folder, _before))
    try:
        made = _with_its_project(target, make)
        for name, other in _aside.items():
            if name in sys.modules and "." not in name:
                raise _same_name(name, folder, other)
        return made
    finally:
        sys.modules.update(_aside)
        _aside.clear()


def _set_aside(folder: str, before: frozenset[str]) -> dict[str, ModuleType]:
    """Takes what applications have imported out of ``sys.modules`` if something else in ``folder`` has its name: an application
    there would get it, and nobody would see it. Returns what was taken out."""
    others = {name for name in list(sys.modules) if "." not in name and name not in before and _differs(name, folder)}
    return {name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] in others}


def _with_its_project(target: str, make: Callable[[], Made]) -> Made:
    global _project, _is_given
    if _is_given is None:
        _is_given = SETTINGS in os.environ
    hidden = None
    if _project is not None and not _is_given:
        # `setdefault` in wsgi.py would keep the settings of the other project, and nobody would see it.
        hidden = os.environ.pop(SETTINGS, None)
    try:
        made = make()
    except Exception as error:
        if _project is not None and "Settings already configured" in str(error):
            raise _two(target, "settings of its own") from None
        _check(target)
        raise
    finally:
        if hidden is not None:
            os.environ.setdefault(SETTINGS, hidden)
    _check(target)
    settings = _configured()
    if settings is not None and _project is None:
        _project = (settings, target)
    return made


def _configured() -> str | None:
    """What Django is configured with; none if it is not."""
    conf = sys.modules.get("django.conf")
    if conf is None or not conf.settings.configured:
        return None
    return str(getattr(conf.settings, "SETTINGS_MODULE", None) or "settings.configure()")


def _check(target: str) -> None:
    wanted = os.environ.get(SETTINGS)
    if _project is not None and wanted is not None and wanted != _project[0] and not _project[0].endswith(")"):
        os.environ[SETTINGS] = _project[0]
        raise _two(target, wanted)


def _two(target: str, wanted: str) -> Clash:
    assert _project is not None
    settings, other = _project
    return Clash(
        f"{other} ({settings}) and {target} ({wanted}) are two Django projects, and a process can have one: Django has one"
        " configuration",
        APART,
    )


def check_module(name: str, folder: str) -> None:
    """Raises :class:`Clash` if the module ``name`` in ``folder`` is not the one that is loaded under this name."""
    top = name.partition(".")[0]
    if _differs(top, folder):
        raise _same_name(top, folder, _loaded(top))


def _loaded(name: str) -> ModuleType | None:
    return sys.modules.get(name) or _aside.get(name)


def _differs(name: str, folder: str) -> bool:
    """Whether a module is loaded under this name, and another one of this name is in ``folder``."""
    loaded = _loaded(name)
    wanted = importlib.machinery.PathFinder.find_spec(name, [folder]) if loaded is not None else None
    if loaded is None or wanted is None:
        return False
    if wanted.origin is None and getattr(loaded, "__file__", None) is not None:
        # A folder without __init__.py comes after every module with a file.
        return False
    (own, other) = (_places(wanted.origin, wanted.submodule_search_locations), _places_of(loaded))
    return bool(own and other and own.isdisjoint(other))


def _same_name(name: str, folder: str, loaded: ModuleType | None) -> Clash:
    places = sorted(_places_of(loaded)) if loaded is not None else []
    return Clash(
        f"the module {name!r} of {folder} has the name of one that is loaded already, {', '.join(places[:1])}",
        f"rename one of them, or {APART}",
    )


def _places_of(module: ModuleType) -> set[str]:
    return _places(getattr(module, "__file__", None), getattr(module, "__path__", None))


def _places(file: str | None, folders: object) -> set[str]:
    """Where a module is: its file, or the folders of a namespace."""
    if file is not None:
        return {os.path.realpath(file)}
    return {os.path.realpath(str(folder)) for folder in folders} if hasattr(folders, "__iter__") else set()


def free_name(stem: str) -> str:
    """A name in ``sys.modules`` for a file that is called so."""
    name, number = stem, 1
    while _loaded(name) is not None:
        name, number = f"maitred_application_{stem}" + (f"_{number}" if number > 1 else ""), number + 1
    return name
