"""Threads that a library has replaced by greenlets: the start says so."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from conftest import MAITRED, PATIENCE

PATCH = """
import _thread

def start_new_thread(*arguments):
    raise RuntimeError

start_new_thread.__module__ = "{library}.thread"
_thread.start_new_thread = start_new_thread

def app(environ, start_response):
    pass
"""


@pytest.mark.parametrize("library", ["gevent", "eventlet"])
@pytest.mark.parametrize("workers", [(), ("--workers", "2")])
def test_they_are_refused_with_the_cure(tmp_path: Path, library: str, workers: tuple[str, ...]) -> None:
    (tmp_path / "app.py").write_text(PATCH.format(library=library))
    command = [MAITRED, "app:app", "--listen", "127.0.0.1:0", *workers]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 2
    said = done.stderr
    assert f"maitred: app:app: {library} has replaced Python's threads, and maitred serves requests in real ones; write {library}." in said
    assert "patch(thread=False)" in said or "patch_all(thread=False)" in said
