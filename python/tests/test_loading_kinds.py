"""WSGI or ASGI: what frameworks and wrappers hand over is seen for what it is."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial, partialmethod, update_wrapper
from types import ModuleType
from typing import Any
from wsgiref.validate import validator

import pytest
from maitred._load import LoadFailure, load


class Star:
    """Middleware that says nothing about what it takes."""

    def __init__(self, application: Callable[..., Any]) -> None:
        self.application = application

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.application(*args, **kwargs)


class AsgiObject:
    async def __call__(self, *args: Any) -> None: ...


class AsgiEndpoint:
    """As Starlette's endpoints: the class is the application, and its instances are awaited."""

    def __init__(self, scope: Any, receive: Any, send: Any) -> None: ...


class Methods:
    def wsgi(self, environ: Any, start_response: Any) -> list[bytes]:
        return []

    async def asgi(self, scope: Any, receive: Any, send: Any) -> None: ...

    named = partialmethod(wsgi)

    @staticmethod
    def static(environ: Any, start_response: Any) -> list[bytes]:
        return []

    @classmethod
    def of_class(cls, environ: Any, start_response: Any) -> list[bytes]:
        return []


class WsgiSettings:
    """An instance takes two; the class takes nothing and is not the application."""

    def __call__(self, environ: Any, start_response: Any) -> list[bytes]:
        return []


def with_setting(setting: str, environ: Any, start_response: Any) -> list[bytes]:
    return []


def with_default(environ: Any, start_response: Any, exc_info: Any = None) -> list[bytes]:
    return []


def flask() -> Any:
    return pytest.importorskip("flask").Flask("kinds")


def bottle() -> Any:
    return pytest.importorskip("bottle").Bottle()


def falcon(kind: str) -> Any:
    return pytest.importorskip(kind).App()


def django(kind: str) -> Any:
    handlers = pytest.importorskip(f"django.core.handlers.{kind.lower()}")
    handler = getattr(handlers, f"{kind}Handler")
    return object.__new__(handler)  # Without settings: only what it is called with counts.


@pytest.mark.parametrize(
    ("make", "is_wsgi"),
    [
        (flask, True),
        (lambda: flask().wsgi_app, True),
        (bottle, True),
        (lambda: falcon("falcon"), True),
        (lambda: falcon("falcon.asgi"), False),
        (lambda: django("WSGI"), True),
        (lambda: django("ASGI"), False),
        (lambda: Star(flask()), True),
        (lambda: Star(validator(flask())), True),
        (lambda: update_wrapper(Star(with_default), with_default), True),
        (lambda: update_wrapper(Star(AsgiObject()), Methods().asgi), False),
        (lambda: Methods().wsgi, True),
        (lambda: Methods().named, True),
        (lambda: Methods.static, True),
        (lambda: Methods.of_class, True),
        (lambda: Methods().asgi, False),
        (lambda: with_default, True),
        (lambda: partial(with_setting, "x"), True),
        (lambda: partial(partial(with_setting), "x"), True),
        (AsgiObject, False),
        (lambda: partial(AsgiObject()), False),
        (lambda: partial(partial(AsgiObject(), 1)), False),
        (lambda: AsgiEndpoint, False),
        (WsgiSettings, True),
        (lambda: print, True),  # A native callable: nothing speaks against it.
    ],
)
def test_the_interface_is_seen(make: Callable[[], Any], is_wsgi: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    named = ModuleType("kinds_named")
    application = make()
    setattr(named, "app", application)
    monkeypatch.setitem(sys.modules, "kinds_named", named)
    if is_wsgi:
        assert load("kinds_named:app", "auto")[0] is application
    else:
        assert load("kinds_named:app", "auto")[1] == "ASGI kinds_named:app"


def test_what_is_neither_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    named = ModuleType("kinds_named")
    setattr(named, "app", partial(with_setting, setting="x"))
    monkeypatch.setitem(sys.modules, "kinds_named", named)
    with pytest.raises(LoadFailure):
        load("kinds_named:app", "auto")


def test_a_class_that_has_to_be_called_first_is_a_factory(monkeypatch: pytest.MonkeyPatch) -> None:
    named = ModuleType("kinds_named")
    setattr(named, "Site", WsgiSettings)
    monkeypatch.setitem(sys.modules, "kinds_named", named)
    with pytest.raises(LoadFailure) as caught:
        load("kinds_named:Site", "auto")
    assert caught.value.remedy.startswith("add --factory if it makes the application")
    application, description, _ = load("kinds_named:Site", "auto", factory=True)
    assert isinstance(application, WsgiSettings)
    assert description == "WSGI kinds_named:Site()"
