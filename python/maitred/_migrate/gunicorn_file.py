"""Reads gunicorn.conf.py, which is a program, without running it.

Promises: a setting whose value follows from the text alone is read; what depends on the machine or the environment is
read only in forms that are well known, and said to be so; everything else is named. With :func:`run` the file is
really run, as gunicorn does. Leaves out what the settings mean.
"""

from __future__ import annotations

import ast
import os
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from maitred._migrate.words import Given
from maitred._tools import Mistake

#: The functions that gunicorn calls; what each is for.
HOOKS = (
    "on_starting", "on_reload", "when_ready", "pre_fork", "post_fork", "post_worker_init", "worker_int", "worker_abort",
    "pre_exec", "pre_request", "post_request", "child_exit", "worker_exit", "nworkers_changed", "on_exit", "ssl_context",
)  # fmt: skip


@dataclass(frozen=True)
class Processors:
    """A number that the file computes from the number of processors, and its value on this machine."""

    count: int


@dataclass
class Read:
    settings: dict[str, Given] = field(default_factory=dict)
    hooks: dict[str, Given] = field(default_factory=dict)
    #: Settings whose values are computed, with their texts.
    computed: dict[str, Given] = field(default_factory=dict)
    #: Settings whose values an environment variable may replace.
    variable: dict[str, str] = field(default_factory=dict)
    #: Names that are no setting and that nothing uses.
    unused: dict[str, Given] = field(default_factory=dict)


class _Unknown(Exception):
    """The value does not follow from the text."""


def read(path: Path, known: frozenset[str]) -> Read:
    """What the text of the file says of the settings ``known``."""
    source = path.read_text(encoding="utf-8", errors="replace")
    try:
        tree = ast.parse(source, str(path))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None) or 1
        raise Mistake(f"{path.name}:{line}: this is no Python: {getattr(error, 'msg', error)}", "correct the file") from None
    reader = _Reader(path, source, known)
    for statement in tree.body:
        reader.statement(statement)
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    for name, given in reader.others.items():
        if name not in used and re.fullmatch("[a-z][a-z0-9_]*", name):
            reader.read.unused[name] = given
    return reader.read


class _Reader:
    def __init__(self, path: Path, source: str, known: frozenset[str]) -> None:
        self.read = Read()
        self._path = path
        self._source = source
        self._known = known
        self._names: dict[str, object] = {"__file__": str(path.absolute())}
        self.others: dict[str, Given] = {}
        #: Variables of the environment that the value depends on.
        self._seen: list[str] = []

    def statement(self, node: ast.stmt) -> None:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            if node.name in HOOKS:
                self.read.hooks[node.name] = Given(None, self._place(node), f"def {node.name}")
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                self._assign(target, node.value, node)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            self._assign(node.target, node.value, node)
        elif isinstance(node, (ast.If, ast.For, ast.While, ast.Try, ast.With, ast.AugAssign)):
            self._inside(node)

    def _inside(self, node: ast.stmt) -> None:
        """Assignments that are made only sometimes, or several times."""
        for inner in ast.walk(node):
            if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
                self._unknown(inner.id, inner, node)
            elif isinstance(inner, ast.FunctionDef) and inner.name in HOOKS:
                self.read.hooks[inner.name] = Given(None, self._place(inner), f"def {inner.name}")

    def _assign(self, target: ast.expr, value: ast.expr, node: ast.stmt) -> None:
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
            for part, of_part in zip(target.elts, value.elts):
                self._assign(part, of_part, node)
            return
        if not isinstance(target, ast.Name):
            return
        name = target.id
        self._seen = []
        if name in HOOKS:
            self.read.hooks[name] = Given(None, self._place(node), self._text(node))
            return
        if name not in self._known:
            self.others[name] = Given(None, self._place(node), self._text(node))
        try:
            found = self._value(value)
        except _Unknown:
            self._unknown(name, node, node)
            return
        self._names[name] = found
        if name in self._known:
            self.read.computed.pop(name, None)
            self.read.settings[name] = Given(found, self._place(node), self._shown(name, node))
            self.read.variable.pop(name, None)
            if self._seen:
                self.read.variable[name] = self._seen[-1]

    def _unknown(self, name: str, at: ast.AST, node: ast.stmt) -> None:
        self._names.pop(name, None)
        if name in self._known:
            self.read.settings.pop(name, None)
            self.read.variable.pop(name, None)
            self.read.computed[name] = Given(None, self._place(at), self._shown(name, node))

    def _place(self, node: ast.AST) -> str:
        return f"{self._path.name}:{getattr(node, 'lineno', 1)}"

    def _shown(self, name: str, node: ast.AST) -> str:
        """The statement; of variables of the environment, which may be secret, the name of the setting alone."""
        return name if name == "raw_env" else self._text(node)

    def _text(self, node: ast.AST) -> str:
        text = " ".join((ast.get_source_segment(self._source, node) or "").split())
        return text if len(text) <= 60 else text[:57] + "..."

    def _value(self, node: ast.expr) -> object:
        """The value of an expression that follows from the text, or is in one of the known forms."""
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name):
            if node.id in self._names:
                return self._names[node.id]
            raise _Unknown
        if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
            return [self._value(part) for part in node.elts]
        if isinstance(node, ast.Dict) and all(part is not None for part in node.keys):
            return {self._value(part): self._value(value) for part, value in zip(node.keys, node.values) if part is not None}
        if isinstance(node, ast.JoinedStr):
            values = [self._value(part) for part in node.values]
            if any(isinstance(value, Processors) for value in values):
                raise _Unknown
            return "".join(str(value) for value in values)
        if isinstance(node, ast.FormattedValue) and node.format_spec is None:
            return self._value(node.value)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return -_number(self._value(node.operand))
        if isinstance(node, ast.BinOp):
            return self._sum(node)
        if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or):
            first = self._value(node.values[0])
            return first if first else self._value(node.values[-1])
        if isinstance(node, ast.Subscript) and ast.unparse(node.value) == "os.environ":
            raise _Unknown
        if isinstance(node, ast.Call):
            return self._call(node)
        raise _Unknown

    def _sum(self, node: ast.BinOp) -> object:
        left, right = self._value(node.left), self._value(node.right)
        if isinstance(left, Processors) or isinstance(right, Processors):
            return Processors(int(self._of(node.op, _plain(left), _plain(right))))
        return self._of(node.op, left, right)

    def _of(self, op: ast.operator, left: object, right: object) -> Any:
        try:
            if isinstance(op, ast.Add):
                return left + right  # type: ignore[operator]
            if isinstance(op, ast.Mult) and max(_number(left), _number(right)) < 1e9:
                return _number(left) * _number(right)
            if isinstance(op, ast.Sub):
                return _number(left) - _number(right)
            if isinstance(op, ast.FloorDiv):
                return _number(left) // _number(right)
            if isinstance(op, ast.Div):
                return _number(left) / _number(right)
        except (TypeError, ZeroDivisionError, OverflowError):
            pass
        raise _Unknown

    def _call(self, node: ast.Call) -> object:
        name = ast.unparse(node.func)
        if name in ("multiprocessing.cpu_count", "cpu_count", "os.cpu_count", "mp.cpu_count", "os.process_cpu_count"):
            return Processors(os.cpu_count() or 1)
        if node.keywords:
            raise _Unknown
        if name in ("os.environ.get", "os.getenv", "environ.get", "getenv") and len(node.args) == 2:
            default = self._value(node.args[1])
            variable = self._value(node.args[0])
            self._seen.append(str(variable))
            return default
        values = [self._value(part) for part in node.args]
        if any(isinstance(value, Processors) for value in values):
            plain: dict[str, Any] = {"int": int, "min": min, "max": max}
            try:
                return Processors(int(plain[name](*(_number(_plain(value)) for value in values))))
            except (KeyError, TypeError, ValueError):
                raise _Unknown from None
        known: dict[str, Any] = {
            "int": int, "str": str, "float": float, "bool": bool, "min": min, "max": max, "os.path.join": os.path.join,
            "os.path.dirname": os.path.dirname, "os.path.abspath": os.path.abspath, "os.path.basename": os.path.basename,
            "os.path.realpath": os.path.realpath,
        }  # fmt: skip
        if name not in known:
            raise _Unknown
        try:
            return known[name](*values)
        except (TypeError, ValueError):
            raise _Unknown from None


def _plain(value: object) -> object:
    return value.count if isinstance(value, Processors) else value


def _number(value: object) -> Any:
    if isinstance(value, (int, float)):
        return value
    raise _Unknown


def run(path: Path, known: frozenset[str]) -> Read:
    """Runs the file as gunicorn does, with all that it does, and takes the values that it leaves."""
    module = ModuleType("__config__")
    module.__file__ = str(path.absolute())
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    sys.modules["__config__"] = module
    source = path.read_bytes()
    try:
        exec(compile(source, str(path), "exec"), module.__dict__)
    except Exception as error:
        raise Mistake(f"{path.name} raised {type(error).__name__}: {error}", "run it where gunicorn is run") from None
    text = source.decode("utf-8", "replace")
    result = Read()
    for name, value in vars(module).items():
        line = re.search(rf"^\s*(?:def\s+)?{re.escape(name)}\b", text, re.MULTILINE)
        place = f"{path.name}:{text.count(chr(10), 0, line.end()) + 1 if line else 1}"
        if name in HOOKS and callable(value):
            result.hooks[name] = Given(None, place, f"def {name}")
        elif name in known:
            result.settings[name] = Given(value, place, name if name == "raw_env" else f"{name} = {value!r}"[:60])
    return result
