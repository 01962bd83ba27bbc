"""Where the module of an application lies, from the names of files alone: nothing is imported.

Promises: app-dir is written only where one folder has the module; a folder that the server looks into anyway is not named.
Leaves out what an application is.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path

from maitred._migrate.result import Host, Result

#: Folders below each other that are looked into.
_DEPTH = 2
#: Folders that are looked into at most.
_MOST = 300
_OTHERS = frozenset(("node_modules", "site-packages", "__pycache__", "venv", "env", "static", "media"))


def name_folders(result: Result, folder: Path, start: Path | None = None) -> None:
    """Writes app-dir for the applications of a result, whose set-up lies in ``folder``; maitred is started in ``start``."""
    start = Path.cwd() if start is None else start
    if chdir := result.find("chdir"):
        start = start / str(chdir.value)
    if not start.is_dir():
        return
    for table in (result, *result.hosts.values()):
        _name_folder(result, table, folder, start)


def _name_folder(result: Result, table: Host, folder: Path, start: Path) -> None:
    line = table.find("application")
    if line is None or table.find("app-dir"):
        return
    module = str(line.value).partition(":")[0]
    parts = module.split(".")
    if not all(part.isidentifier() for part in parts) or _has(start, parts):
        return
    found = list(dict.fromkeys(place.resolve() for place in _around(folder, start) if _has(place, parts)))
    if len(found) == 1:
        inside = found[0].is_relative_to(start.resolve())
        shown = str(found[0].relative_to(start.resolve()) if inside else found[0])
        table.put("app-dir", shown, f"the module {module} lies there")
    elif found:
        shown = ", ".join(str(place) for place in found)
        result.decide(line.origin, f"{len(found)} folders have a module {module}: {shown}", "write the one that is meant: app-dir = DIR")
    elif not _is_installed(parts[0]):
        result.tell(
            line.origin, f"the module {module} was not found in {start} and around it", "start maitred in its folder, or name that: app-dir = DIR"
        )


def _around(folder: Path, start: Path) -> Iterator[Path]:
    """The folder of the set-up, the one in which maitred is started, and those below them."""
    count = 0
    for base in (folder, start):
        for root, folders, _ in os.walk(base):
            depth = len(Path(root).relative_to(base).parts)
            folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _OTHERS) if depth < _DEPTH else []
            yield Path(root)
            count += 1
            if count > _MOST:
                return


def _has(folder: Path, parts: list[str]) -> bool:
    base = folder.joinpath(*parts)
    return base.with_suffix(".py").is_file() or (base / "__init__.py").is_file()


def _is_installed(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except (ImportError, ValueError):
        return False
