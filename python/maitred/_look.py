"""Looks at the folder of a project and finds its applications, from the text of its files alone.

Promises: nothing is imported or run. Leaves out what is done with what was found (`maitred init`).
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

#: Classes of frameworks, by the name that calls them, with what they are.
_CLASSES = {
    "Flask": ("Flask", "wsgi"), "Bottle": ("Bottle", "wsgi"), "FastAPI": ("FastAPI", "asgi"), "Starlette": ("Starlette", "asgi"),
    "Quart": ("Quart", "asgi"), "Litestar": ("Litestar", "asgi"), "default_app": ("Bottle", "wsgi"),
    "falcon.App": ("Falcon", "wsgi"), "falcon.asgi.App": ("Falcon", "asgi"), "make_wsgi_app": ("Pyramid", "wsgi"),
    "get_wsgi_application": ("Django", "wsgi"), "get_asgi_application": ("Django", "asgi"), "ProtocolTypeRouter": ("Channels", "asgi"),
    "ASGIApp": ("Socket.IO", "asgi"), "Dash": ("Dash", "wsgi"),
}  # fmt: skip
_FACTORIES = ("create_app", "make_app")
#: Folders without the project's own applications.
_OTHERS = frozenset((
    "node_modules", "site-packages", "venv", "env", "tests", "test", "migrations", "docs", "__pycache__", "build", "dist", "static",
    "templates", "examples", "scripts", "bin",
))  # fmt: skip
_MOST_FILES = 400
_MOST_BYTES = 400_000
#: Where sites that are made of files usually are.
_SITES = ("", "public", "dist", "build", "_site", "site", "htdocs", "www", "output")


@dataclass(frozen=True)
class Candidate:
    """An application, as the command line names it."""

    target: str
    #: ``Flask``, ``WSGI``, ``static files``.
    framework: str
    #: ``wsgi``, ``asgi`` or ``files``.
    kind: str
    #: Where it was found, with the line.
    place: str
    factory: bool = False
    app_dir: str = ""
    file: str = ""


@dataclass
class Django:
    settings: str
    candidate: Candidate
    manage: str = "manage.py"
    static_url: str = ""
    static_root: str = ""
    media_url: str = ""
    media_root: str = ""
    #: Where the settings have DEBUG = True, and where an empty ALLOWED_HOSTS; empty if they have not.
    debug: str = ""
    no_hosts: str = ""


@dataclass
class Looked:
    candidates: list[Candidate] = field(default_factory=list)
    django: Django | None = None


def look(folder: Path) -> Looked:
    """What is in the folder; of several applications the likeliest first."""
    bases = _projects(folder)
    projects = [django for base in bases if (django := _django(base, folder))]
    django = projects[0] if len(projects) == 1 else None
    if django and not django.candidate.app_dir:
        return Looked([django.candidate], django)
    found = list(_applications(folder))
    if projects:
        outside = (one for one in found if not any(base in Path(one.file).parents for base in bases))
        return Looked(sorted([*(django.candidate for django in projects), *outside], key=rank), django)
    if not found:
        found = list(_sites(folder))
    return Looked(sorted(found, key=rank))


def rank(candidate: Candidate) -> int:
    """How likely an application is the one that is meant; lower is likelier."""
    name = Path(candidate.file).name
    if candidate.kind == "files":
        return 0
    usual = ("app.py", "main.py", "application.py", "server.py", "__init__.py", "api.py")
    place = 0 if name in ("wsgi.py", "asgi.py") else 2 if name in usual else 4
    return place + (1 if candidate.factory else 0)


# Django.


def _projects(folder: Path) -> list[Path]:
    """Where a manage.py is: in the folder, else at most two levels below it."""
    found: list[Path] = []
    for root, folders, files in os.walk(folder):
        depth = len(Path(root).relative_to(folder).parts)
        if "manage.py" in files:
            found.append(Path(root))
        folders[:] = sorted(_own(Path(root), folders)) if depth < 2 and not found[:1] == [folder] else []
    return found


def _django(base: Path, folder: Path) -> Django | None:
    """The project in ``base``, which is the folder that is looked at or below it."""
    manage = base / "manage.py"
    tree = _parsed(manage)
    if tree is None:
        return None
    settings = _settings_of(tree)
    if not settings:
        return None
    values = _Settings(base, settings, folder)
    candidate = _django_application(base, settings, values, folder)
    if candidate is None:
        return None
    if base != folder:
        candidate = replace(candidate, app_dir=str(base.relative_to(folder)))
    django = Django(settings, candidate, manage=str(manage.relative_to(folder)))
    for name in ("static_url", "static_root", "media_url", "media_root"):
        setattr(django, name, values.text(name.upper()))
    django.debug = values.place_of("DEBUG", True)
    django.no_hosts = values.place_of("ALLOWED_HOSTS", [])
    return django


def _settings_of(tree: ast.Module) -> str:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and len(node.args) == 2:
            texts = [part.value for part in node.args if isinstance(part, ast.Constant)]
            if len(texts) == 2 and texts[0] == "DJANGO_SETTINGS_MODULE" and isinstance(texts[1], str):
                return texts[1]
    return ""


def _django_application(folder: Path, settings: str, values: _Settings, shown: Path) -> Candidate | None:
    is_asgi = bool(values.text("ASGI_APPLICATION")) and any(app in values.apps() for app in ("channels", "daphne"))
    names = [("ASGI_APPLICATION", "asgi"), ("WSGI_APPLICATION", "wsgi")]
    for name, kind in names if is_asgi else names[1:]:
        module, _, attribute = values.text(name).rpartition(".")
        file = folder.joinpath(*module.split(".")).with_suffix(".py") if module else None
        if file is not None and file.is_file():
            return Candidate(f"{module}:{attribute}", "Django", kind, values.place(name), file=str(file))
    packages = settings.split(".")
    for kind in ("wsgi", "asgi"):
        for count in range(len(packages), -1, -1):
            file = folder.joinpath(*packages[:count], f"{kind}.py")
            if file.is_file():
                module = ".".join([*packages[:count], kind])
                return Candidate(f"{module}:application", "Django", kind, str(file.relative_to(shown)), file=str(file))
    return None


class _Settings:
    """Values of a settings module that follow from its text."""

    def __init__(self, folder: Path, module: str, shown: Path) -> None:
        #: Places are told from here.
        self._shown = shown
        self._values: dict[str, object] = {}
        self._places: dict[str, str] = {}
        #: What is set under a condition, or changed.
        self._unsure: set[str] = set()
        base = folder.joinpath(*module.split("."))
        self._read(base / "__init__.py" if base.is_dir() else base.with_suffix(".py"), 0)

    def text(self, name: str) -> str:
        value = self._values.get(name)
        return str(value) if isinstance(value, (str, Path)) else ""

    def place(self, name: str) -> str:
        return self._places.get(name, "")

    def place_of(self, name: str, value: object) -> str:
        """Where a setting has this value, if it surely has."""
        return self.place(name) if name not in self._unsure and self._values.get(name) == value else ""

    def apps(self) -> list[str]:
        value = self._values.get("INSTALLED_APPS")
        return [str(part) for part in value] if isinstance(value, list) else []

    def _read(self, file: Path, depth: int) -> None:
        tree = _parsed(file)
        if tree is None or depth > 5:
            return
        values = _Paths(file, self._values)
        for node in tree.body:
            if isinstance(node, ast.ImportFrom) and node.level == 1 and any(name.name == "*" for name in node.names):
                base = file.parent.joinpath(*(node.module or "").split("."))
                self._read(base / "__init__.py" if base.is_dir() else base.with_suffix(".py"), depth + 1)
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                name = node.targets[0].id
                try:
                    self._values[name] = values.of(node.value)
                    self._places[name] = f"{_relative(file, self._shown)}:{node.lineno}"
                except _Computed:
                    self._values.pop(name, None)
            else:
                stored = (inner for inner in ast.walk(node) if isinstance(inner, ast.Name))
                self._unsure.update(inner.id for inner in stored if isinstance(inner.ctx, ast.Store) or isinstance(node, ast.Expr))


class _Computed(Exception):
    """The value does not follow from the text."""


class _Paths:
    """Values of expressions about paths: pathlib and os.path."""

    def __init__(self, file: Path, names: dict[str, object]) -> None:
        self._file = file.absolute()
        self._names = names

    def of(self, node: ast.expr) -> object:
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name):
            if node.id == "__file__":
                return str(self._file)
            if node.id in self._names:
                return self._names[node.id]
        if isinstance(node, (ast.List, ast.Tuple)):
            return [self._or_none(part) for part in node.elts]
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            return Path(self._path(node.left)) / self._path(node.right)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            return self._path(node.left) + self._path(node.right)
        if isinstance(node, ast.Attribute) and node.attr == "parent":
            return Path(self._path(node.value)).parent
        if isinstance(node, ast.Call):
            return self._call(node)
        raise _Computed

    def _or_none(self, node: ast.expr) -> object:
        try:
            return self.of(node)
        except _Computed:
            return None

    def _path(self, node: ast.expr) -> str:
        value = self.of(node)
        if isinstance(value, (str, Path)):
            return str(value)
        raise _Computed

    def _call(self, node: ast.Call) -> object:
        name = ast.unparse(node.func)
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("resolve", "absolute") and not node.args:
            return Path(self._path(node.func.value))
        texts = [self._path(part) for part in node.args]
        if name in ("Path", "pathlib.Path", "str", "os.path.abspath", "os.path.realpath", "os.fspath") and len(texts) == 1:
            return texts[0] if name.startswith(("str", "os")) else Path(texts[0])
        if name in ("os.path.join", "path.join") and texts:
            return os.path.join(*texts)
        if name in ("os.path.dirname", "dirname") and len(texts) == 1:
            return os.path.dirname(texts[0])
        raise _Computed


# Other applications.


def _applications(folder: Path) -> Iterator[Candidate]:
    for file in _files(folder):
        tree = _parsed(file)
        if tree is not None:
            yield from _of_module(folder, file, tree)


def _own(root: Path, folders: list[str]) -> list[str]:
    """Those in which the project's own modules may be."""
    own = (name for name in folders if name not in _OTHERS and not name.startswith("."))
    return [name for name in own if not (root / name / "pyvenv.cfg").exists()]


def _files(folder: Path) -> Iterator[Path]:
    """Python files of the folder and three levels below it."""
    count = 0
    for root, folders, files in os.walk(folder):
        depth = len(Path(root).relative_to(folder).parts)
        folders[:] = sorted(_own(Path(root), folders)) if depth < 3 else []
        for name in sorted(files):
            if name.endswith(".py") and not name.startswith(("test_", "conftest", "setup.py")):
                count += 1
                if count > _MOST_FILES:
                    return
                yield Path(root) / name


def _of_module(folder: Path, file: Path, tree: ast.Module) -> Iterator[Candidate]:
    place, app_dir = _module(folder, file)
    callables = {node.name for node in tree.body if isinstance(node, ast.ClassDef) and _called_as_asgi(node)}
    for node in tree.body:
        found: tuple[str, str, str] | None = None
        factory = False
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if isinstance(target, ast.Name) and (what := _made_by(node.value, callables)):
                # It is not called itself, but its Flask application.
                name = f"{target.id}.server" if what[0] == "Dash" else target.id
                found = (name, *what)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            if what := _plain(node):
                found = (node.name, *what)
            elif node.name in _FACTORIES and isinstance(node, ast.FunctionDef) and (what := _returned(node)):
                found, factory = (node.name, *what), True
        if found:
            name, framework, kind = found
            at = f"{_relative(file, folder)}:{node.lineno}"
            yield Candidate(f"{place}:{name}", framework, kind, at, factory, app_dir, str(file))


def _module(folder: Path, file: Path) -> tuple[str, str]:
    """How the command line names the file, and the folder in which it is looked for."""
    parts = list(file.relative_to(folder).with_suffix("").parts)
    app_dir = ""
    if parts[0] == "src" and len(parts) > 1 and not (folder / "src" / "__init__.py").exists():
        app_dir, parts = "src", parts[1:]
    if parts[-1] == "__init__":
        parts = parts[:-1]
    if not parts or not all(part.isidentifier() for part in parts):
        return str(file.relative_to(folder)), ""
    return ".".join(parts), app_dir


def _made_by(value: ast.expr, callables: set[str]) -> tuple[str, str] | None:
    """What a call makes: its framework and its kind."""
    if not isinstance(value, ast.Call):
        return None
    name = ast.unparse(value.func)
    if name in callables:
        return "ASGI", "asgi"
    for known, what in _CLASSES.items():
        if name == known or name.endswith(f".{known}"):
            return what
    if name.rpartition(".")[2] in _FACTORIES:
        return "made by a factory", "auto"
    return None


def _plain(node: ast.FunctionDef | ast.AsyncFunctionDef) -> tuple[str, str] | None:
    """An application without a framework, by the names of its parameters (PEP 3333, ASGI 3)."""
    names = [part.arg for part in node.args.posonlyargs + node.args.args]
    if isinstance(node, ast.AsyncFunctionDef):
        return ("ASGI", "asgi") if names == ["scope", "receive", "send"] else None
    is_wsgi = len(names) == 2 and (node.name in ("app", "application") or names[0].startswith("env") and names[1].startswith("start"))
    return ("WSGI", "wsgi") if is_wsgi else None


def _called_as_asgi(node: ast.ClassDef) -> bool:
    return any(
        isinstance(part, ast.AsyncFunctionDef) and part.name == "__call__" and [arg.arg for arg in part.args.args][1:] == ["scope", "receive", "send"]
        for part in node.body
    )


def _returned(node: ast.FunctionDef) -> tuple[str, str] | None:
    """What a factory makes, if it can be called without arguments."""
    if len(node.args.args) + len(node.args.posonlyargs) > len(node.args.defaults):
        return None
    if any(default is None for default in node.args.kw_defaults):
        return None
    for inner in ast.walk(node):
        if isinstance(inner, ast.Call) and (what := _made_by(inner, set())):
            return what
    return None


# Files.


def _sites(folder: Path) -> Iterator[Candidate]:
    for name in _SITES:
        if (folder / name / "index.html").is_file():
            yield Candidate(name or ".", "static files", "files", f"{name + '/' if name else ''}index.html")
            return


def _parsed(file: Path) -> ast.Module | None:
    try:
        if file.stat().st_size > _MOST_BYTES:
            return None
        return ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _relative(file: Path, folder: Path) -> str:
    return os.path.relpath(file, folder)
