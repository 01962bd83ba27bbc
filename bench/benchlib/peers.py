"""The interpreter of the Python benches: one for all contenders, ours too, with whatever of them can be installed.

A full run uses `.build/peers-X.Y`, made on demand: the peers by pip, ours as a wheel built for that interpreter. A
smoke run uses `.venv` as it is and installs nothing: `make setup` puts the peers there.
"""

from __future__ import annotations

import glob
import hashlib
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from . import machine
from .report import say
from .rounds import Missing, Options

#: The interpreter whose figures are published.
VERSION = "3.13"
#: What pip installs, each by itself: one that cannot be installed is left out, and with it its contender.
PACKAGES, ALONE = (tuple(line for line in (machine.REPOSITORY / f"python/requirements-bench{which}.txt").read_text().splitlines()
                         if line and not line.startswith("#")) for which in ("", "-alone"))
INSTALL_LIMIT_S = 300
BUILD_LIMIT_S = 1200
_BUILD = machine.REPOSITORY / ".build"


@dataclass(frozen=True)
class Environment:
    """A virtual environment whose programs are measured."""

    folder: Path
    #: What the interpreter says of itself.
    description: str

    def program(self, name: str) -> Path:
        return self.folder / "bin" / name

    def package(self, name: str) -> Path | None:
        """The folder of an installed package."""
        return next(self.folder.glob(f"lib/python*/site-packages/{name}"), None)

    @property
    def alone(self) -> Path:
        """A folder of packages that would change others of the environment, for PYTHONPATH."""
        return self.folder / "alone"

    def has(self, *modules: str, alone: bool = False) -> bool:
        """Whether its interpreter finds all these modules; with `alone` in that folder, too."""
        code = f"import importlib.util as u, sys; sys.exit(not all(map(u.find_spec, {modules!r})))"
        done = subprocess.run([str(self.program("python")), "-c", code], timeout=60, check=False, capture_output=True,
                              env=_variables(self.alone if alone else None))
        return done.returncode == 0


def environment(options: Options) -> Environment:
    """The environment of this run; made first if it is a full one, or the one that `MAITRED_BENCH_ENVIRONMENT` names,
    as it is."""
    named = os.environ.get("MAITRED_BENCH_ENVIRONMENT")
    if named:
        folder = Path(named).resolve()
        if not (folder / "bin/python").exists():
            raise Missing(f"no interpreter in {folder}")
        return Environment(folder, _said(folder / "bin/python", _DESCRIBE))
    if options.smoke and options.python is None:
        folder = machine.REPOSITORY / ".venv"
        if not (folder / "bin/python").exists():
            raise Missing("no .venv (make build)")
        return Environment(folder, _said(folder / "bin/python", _DESCRIBE))
    python = _interpreter(options.python)
    folder = _BUILD / f"peers-{_said(python, _TAG)}"
    if not (folder / "bin/python").exists():
        say(f"{folder.relative_to(machine.REPOSITORY)}: made with {python}")
        _run([python, "-m", "venv", folder], INSTALL_LIMIT_S)
    _install_peers(folder)
    _install_ours(folder)
    return Environment(folder, _said(folder / "bin/python", _DESCRIBE))


_TAG = "import sys, sysconfig as c; print('%d.%d' % sys.version_info[:2] + 't' * bool(c.get_config_var('Py_GIL_DISABLED')))"
_DESCRIBE = ("import platform as p, sysconfig as c; print(p.python_implementation(), p.python_version() "
             "+ ' free-threaded' * bool(c.get_config_var('Py_GIL_DISABLED')))")


def _interpreter(asked: Path | None) -> Path:
    """`--python`, else the one of `VERSION` on the path or among pyenv's, else that of `.venv`."""
    if asked is not None:
        if not shutil.which(asked):
            raise Missing(f"no interpreter {asked}")
        return Path(asked)
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    installed = sorted(glob.glob(f"{pyenv}/versions/{VERSION}*/bin/python{VERSION}"))
    candidates = [shutil.which(f"python{VERSION}"), *reversed(installed), machine.REPOSITORY / ".venv/bin/python"]
    for candidate in candidates:
        # pyenv puts a program on the path for every version, which fails unless that version is chosen.
        if candidate and _runs(candidate):
            return Path(candidate)
    raise Missing(f"no Python {VERSION} and no .venv (--python PATH)")


def _runs(python: str | Path) -> bool:
    try:
        return subprocess.run([str(python), "-c", ""], capture_output=True, timeout=60, check=False).returncode == 0
    except OSError:
        return False


def _install_peers(folder: Path) -> None:
    """Once for each environment; the versions stay what they are until the folder is removed."""
    stamp, wanted = folder / "packages", "\n".join((*PACKAGES, *ALONE))
    if stamp.exists() and stamp.read_text() == wanted:
        return
    own: list[str | Path] = ["--upgrade", "--target", folder / "alone"]
    for package, where in [*((package, []) for package in PACKAGES), *((package, own) for package in ALONE)]:
        say(f"pip install {package}")
        try:
            _run([folder / "bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *where, package],
                 INSTALL_LIMIT_S)
        except subprocess.SubprocessError:
            say(f"left out: {package} cannot be installed")
    stamp.write_text(wanted)


def _install_ours(folder: Path) -> None:
    """The wheel that `MAITRED_BENCH_WHEEL` names, else that of this tree; an unchanged one is not installed again."""
    stamp, python = folder / "ours", folder / "bin/python"
    named = os.environ.get("MAITRED_BENCH_WHEEL")
    wheel = Path(named).resolve() if named else _wheel(folder)
    if not wheel.exists():
        raise Missing(f"no wheel {wheel}")
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    if not stamp.exists() or stamp.read_text() != digest:
        _run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-index",
              "--force-reinstall", wheel], INSTALL_LIMIT_S)
        stamp.write_text(digest)


def _wheel(folder: Path) -> Path:
    """Built of this tree as a release builds it; an unchanged one takes a few seconds."""
    wheels = folder / "wheels"
    say("scripts/wheel")
    _run([machine.REPOSITORY / "scripts/wheel", "--no-sdist", "--out", wheels, _said(folder / "bin/python", _TAG)], BUILD_LIMIT_S)
    return max(wheels.glob("*.whl"), key=lambda path: path.stat().st_mtime)


def versions(environment: Environment, packages: tuple[str, ...], alone: bool = False) -> str:
    """What is measured, for the report: `granian 2.8, gunicorn 23.0`; with `alone` what that folder has."""
    code = ("import importlib.metadata as m, sys\n"
            "for name in sys.argv[1:]:\n"
            "    try: print(name, m.version(name))\n"
            "    except m.PackageNotFoundError: pass")
    return ", ".join(_said(environment.program("python"), code, *packages, path=environment.alone if alone else None).splitlines())


def _said(python: Path, code: str, *arguments: str, path: Path | None = None) -> str:
    done = subprocess.run([str(python), "-c", code, *arguments], capture_output=True, text=True, timeout=60, check=True,
                          env=_variables(path))
    return done.stdout.strip()


def _variables(path: Path | None) -> dict[str, str] | None:
    """The environment of an interpreter that looks into this folder first."""
    return None if path is None else os.environ | {"PYTHONPATH": str(path)}


def _run(command: list[str | Path], limit: float) -> None:
    subprocess.run([str(word) for word in command], cwd=machine.REPOSITORY, timeout=limit, check=True)
