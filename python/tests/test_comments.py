"""What scripts/comments takes for a riddle, and that it fails for one too many."""

from __future__ import annotations

import importlib.util
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "comments"


@pytest.fixture
def script() -> ModuleType:
    loader = SourceFileLoader("comments", str(SCRIPT))
    spec = importlib.util.spec_from_loader("comments", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def test_lines_with_a_question_or_a_pronoun_as_subject_are_riddles(script: ModuleType) -> None:
    text = """//! What the file is.
/// Who reads it.
    /// Waits until somebody has typed.
fn f() {} // What it does: no doc comment
/// Nobody's socket.
//! Tells Whoever asks,
/// and EVERYBODY else.
"""
    assert [line for line, _ in script.riddles(text)] == [1, 2, 3, 5, 6, 7]
    assert script.riddles(text)[2] == (3, "Waits until somebody has typed.")


def test_other_lines_are_none(script: ModuleType) -> None:
    text = """/// The peer's address.
/// Whatever comes, whole: says what it is and who reads it.
/// Whose turn it is.
// What a comment inside of code says.
//// What four slashes say.
let text = "/// What a literal says";
/// A body, anybodyelse.
"""
    assert script.riddles(text) == []


@pytest.mark.parametrize(("most", "code"), [(1, 0), (0, 1)])
def test_one_too_many_fails(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str], most: int, code: int
) -> None:
    file = tmp_path / "a.rs"
    file.write_text("fn f() {}\n/// What it is.\n")
    monkeypatch.setattr(script, "ROOT", tmp_path)
    monkeypatch.setattr(script, "MOST", most)
    monkeypatch.setattr(script, "sources", lambda: [file])
    assert script.main(["--list"]) == code
    assert capsys.readouterr().out.splitlines() == ["a.rs:2: What it is.", f"comments: 1 riddles in 1 files, at most {most} (goal 150)"]


def test_without_sources_it_fails(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script, "sources", list)
    assert script.main([]) == 1


def test_it_looks_at_the_crates(script: ModuleType) -> None:
    names = {str(file.relative_to(script.ROOT)) for file in script.sources()}
    assert {"crates/maitred-http/src/lib.rs", "xtask/src/main.rs"} <= names
    assert any(name.startswith("fuzz/") for name in names)
    assert not any("/tests/suite/" in name for name in names)
