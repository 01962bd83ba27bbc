"""What scripts/peers-tests says of the tests of other servers: a failure needs its reason, and a reason its failure."""

from __future__ import annotations

import importlib.util
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "peers-tests"

REASONS = """What the file is.

looks inside:
    a/test_x.py::test_one
    a/test_x.py::test_two[p-q]

has another text:
    b/test_y.py::test_three
    b/test_y.py::test_four, sometimes
"""


@pytest.fixture(scope="module")
def script() -> ModuleType:
    loader = SourceFileLoader("peers_tests", str(SCRIPT))
    spec = importlib.util.spec_from_loader("peers_tests", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    # Its dataclasses look their module up.
    sys.modules["peers_tests"] = module
    loader.exec_module(module)
    return module


def test_each_failure_is_explained_by_its_name_or_by_all_with_that_name(script: ModuleType) -> None:
    reasons = script.read_reasons(REASONS)
    assert [reason.text for reason in reasons] == ["looks inside", "has another text"]
    outcomes = [script.Outcome(name, outcome, "") for name, outcome in [
        ("a/test_x.py::test_one[p]", "failed"), ("a/test_x.py::test_one[q]", "passed"), ("a/test_x.py::test_two[p-q]", "failed"),
        ("a/test_x.py::test_two[p]", "failed"), ("a/test_x.py::test_one_more", "failed"), ("b/test_y.py::test_three", "passed"),
        ("b/test_y.py::test_four", "passed")]]
    by_reason, unexplained = script.explained(outcomes, reasons)
    assert {text: [each.test for each in tests] for text, tests in by_reason.items()} == {
        "looks inside": ["a/test_x.py::test_one[p]", "a/test_x.py::test_two[p-q]"]}
    assert [each.test for each in unexplained] == ["a/test_x.py::test_two[p]", "a/test_x.py::test_one_more"]
    # It passes by now.
    assert [line.rpartition(": ")[2] for line in script.stale(outcomes, reasons)] == ["b/test_y.py::test_three"]


def test_a_test_that_fails_when_it_is_taken_down_has_failed(script: ModuleType) -> None:
    lines = [f'{{"test": "tests/test_x.py::{name}", "outcome": "{outcome}", "text": ""}}' for name, outcome in
             [("test_one", "passed"), ("test_one", "failed"), ("test_two", "passed")]]
    assert [(each.test, each.outcome) for each in script.merged("a", lines)] == [("a/test_x.py::test_one", "failed"), ("a/test_x.py::test_two", "passed")]


def test_the_reasons_of_the_file_are_read_whole(script: ModuleType) -> None:
    text = script.REASONS.read_text()
    listed = [line.strip() for line in text.splitlines() if line.startswith("    ")]
    assert [test.removesuffix(script.SOMETIMES) for test in listed] == [test for reason in script.read_reasons(text) for test in reason.tests]
    assert len(set(listed)) == len(listed) > 0
