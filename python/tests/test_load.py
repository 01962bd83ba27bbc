"""Finding the application a command line names."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial, wraps
from pathlib import Path
from types import ModuleType
from wsgiref.validate import validator

import pytest
from maitred._load import LoadFailure, load

WSGI = "def {name}(environ, start_response): return ['{name}']\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The current folder of the test; what it imports is forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path.copy())
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def failure(target: str, interface: str = "auto") -> LoadFailure:
    with pytest.raises(LoadFailure) as caught:
        load(target, interface)
    assert "\n" not in caught.value.what + caught.value.remedy
    return caught.value


@pytest.mark.parametrize(
    ("names", "target", "found"),
    [
        (["app", "application", "other"], "site_a", "app"),
        (["application", "other"], "site_a", "application"),
        (["app", "other"], "site_a:other", "other"),
        (["app", "application"], "site_a.py", "app"),
        (["app", "other"], "./site_a.py:other", "other"),
    ],
)
def test_what_is_found(folder: Path, names: list[str], target: str, found: str) -> None:
    (folder / "site_a.py").write_text("".join(WSGI.format(name=name) for name in names))
    application, description, _ = load(target, "auto")
    assert application({}, print) == [found]
    place = target.partition(":")[0]
    assert description == f"WSGI {place}:{found}"


def test_a_dotted_attribute_and_a_module_in_a_package(folder: Path) -> None:
    (folder / "package").mkdir()
    (folder / "package" / "__init__.py").touch()
    (folder / "package" / "web.py").write_text("class Site:\n    @staticmethod\n    def app(e, s): return ['in']\n")
    assert load("package.web:Site.app", "auto")[0]({}, print) == ["in"]


def test_a_file_finds_its_neighbours_and_may_be_called_like_a_module(folder: Path) -> None:
    (folder / "deep").mkdir()
    (folder / "deep" / "neighbour.py").write_text("TEXT = 'hello'\n")
    (folder / "deep" / "signal.py").write_text("from neighbour import TEXT\ndef app(e, s): return [TEXT]\n")
    assert load("deep/signal.py", "auto")[0]({}, print) == ["hello"]
    assert "deep" not in (sys.modules["signal"].__file__ or "")


def test_a_missing_module_is_named_with_its_nearest(folder: Path) -> None:
    (folder / "website.py").touch()
    error = failure("webste")
    assert "no module named 'webste'" in error.what
    assert error.remedy == "did you mean website?"
    assert error.traceback == ""
    assert failure("other").remedy.endswith("has website")
    (folder / "website.py").unlink()
    assert failure("other").remedy.startswith("there is no .py file in ")


def test_a_missing_file_is_named_with_its_nearest(folder: Path) -> None:
    (folder / "website.py").touch()
    error = failure("./webste.py")
    assert error.what == "there is no file ./webste.py"
    assert error.remedy == "did you mean website.py?"


def test_a_missing_attribute_is_named_with_its_nearest(folder: Path) -> None:
    (folder / "site_b.py").write_text("import os\n" + WSGI.format(name="web_application") + "number = 1\n")
    error = failure("site_b:web_aplication")
    assert error.what == "site_b has no attribute 'web_aplication'"
    assert error.remedy == "did you mean site_b:web_application?"
    assert failure("site_b").what == "site_b has neither app nor application"
    assert failure("site_b").remedy == "name one: site_b:web_application"
    assert failure("site_b:number").what == "site_b:number is not callable, it is int"
    assert failure("site_b:a.b").what == "site_b has no attribute 'a.b'"


@pytest.mark.parametrize("target", ["site:", ":app", ""])
def test_an_incomplete_name(target: str) -> None:
    assert "names no application" in failure(target).what


@pytest.mark.parametrize("target", ["broken", "broken.py"])
def test_an_exception_during_the_import_has_a_traceback_of_the_application(folder: Path, target: str) -> None:
    (folder / "broken.py").write_text("def setup():\n    raise ValueError('no\\nconfiguration')\nsetup()\n")
    error = failure(target)
    assert error.what == f"importing {target} failed: ValueError: no configuration"
    assert "in setup" in error.traceback
    assert "importlib" not in error.traceback and "_load.py" not in error.traceback


def test_a_module_missing_inside_the_application_is_not_mistaken_for_it(folder: Path) -> None:
    (folder / "needy.py").write_text("import nothing_like_this\n")
    error = failure("needy")
    assert error.what == "importing needy failed: ModuleNotFoundError: No module named 'nothing_like_this'"
    assert "needy.py" in error.traceback


def test_a_syntax_error(folder: Path) -> None:
    (folder / "wrong.py").write_text("def app(:\n")
    assert failure("wrong").what.startswith("importing wrong failed: ")
    assert "def app(:" in failure("wrong").traceback


def wsgi(environ, start_response):
    return []


async def asgi(scope, receive, send):
    pass


class AsgiObject:
    async def __call__(self, scope, receive, send):
        pass


class WsgiObject:
    def __call__(self, environ, start_response, extra=None):
        return []

    def method(self, environ, start_response):
        return []


class WsgiClass:
    def __init__(self, environ, start_response):
        pass

    def __iter__(self):
        return iter([])


def star(application: Callable) -> Callable:
    def wrapper(*args, **kwargs):
        return application(*args, **kwargs)

    return wrapper


def three(scope, receive, send):
    return asgi(scope, receive, send)


@pytest.mark.parametrize(
    ("application", "accepted"),
    [
        (wsgi, True),
        (WsgiObject(), True),
        (WsgiObject().method, True),
        (WsgiClass, True),
        (validator(wsgi), True),
        (star(wsgi), True),
        (star(asgi), True),  # Nothing can be seen from outside; its first request says so.
        (wraps(wsgi)(star(wsgi)), True),
        (partial(lambda setting, e, s: [], 1), True),
        (asgi, False),
        (AsgiObject(), False),
        (AsgiObject().__call__, False),
        (partial(asgi), False),
        (wraps(asgi)(star(asgi)), False),
        (three, False),
    ],
)
def test_the_interface_is_seen(application: object, accepted: bool) -> None:
    named = sys.modules["named"] = ModuleType("named")
    named.app = application
    if accepted:
        assert load("named:app", "auto")[0] is application
    else:
        assert load("named:app", "auto") == (application, "ASGI named:app", "asgi")
        assert load("named:app", "wsgi")[2] == "wsgi", "who says it is WSGI is believed"


class Asgi2:
    def __init__(self, scope):
        pass

    async def __call__(self, receive, send):
        pass


def test_the_interface_by_option(folder: Path) -> None:
    (folder / "named.py").write_text(WSGI.format(name="app") + "def create_app(): return app\n")
    assert failure("named", "asgi").what == "named:app cannot be called with (scope, receive, send)"
    error = failure("named:create_app")
    assert error.what.startswith("named:create_app can be called neither with (environ, start_response) nor")


@pytest.mark.parametrize("interface", ["auto", "asgi"])
def test_asgi_2_is_refused(interface: str) -> None:
    named = sys.modules["named"] = ModuleType("named")
    named.app = Asgi2
    error = failure("named:app", interface)
    assert error.what == "named:app is an application of ASGI 2, which takes the scope alone"
    assert "asgiref.compatibility" in error.remedy
