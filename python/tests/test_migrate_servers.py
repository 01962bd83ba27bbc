"""What migrate makes of whole set-ups: it passes the check, and maitred answers as the other server has."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import migrating
import pytest
from certificates import needs_openssl
from migrating import CASES, FOLDER, NGINX, RECORDS, Case

pytestmark = needs_openssl


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest, tmp_path: Path) -> Case:
    return migrating.prepare(request.param, tmp_path)


def test_the_recorded_answers_are_those_of_the_real_server(case: Case) -> None:
    if "server" not in case.given:
        pytest.skip("NGINX Unit cannot be started here: its answers are written by hand")
    if case.given["server"][0] == "nginx":
        if not NGINX:
            pytest.skip("needs nginx; its answers are recorded")
    else:
        pytest.importorskip(case.given["server"][0], reason="its answers are recorded")
    with migrating.other_server(case):
        answers = migrating.ask(case)
    if RECORDS:
        (FOLDER / case.name / "answers.json").write_text(json.dumps(answers, indent=1, sort_keys=True) + "\n")
    assert answers == case.recorded()


def test_the_translation_serves_the_same_urls(case: Case) -> None:
    done = migrating.migrate(case, "--output", "maitred.toml")
    assert done.returncode == case.given["exit"], done.stdout + done.stderr
    text = (case.folder / "maitred.toml").read_text()
    for line in case.given["lines"]:
        assert line in text, text
    for group, key in (("To be decided", "open"), ("Good to know", "told")):
        notes = re.search(rf"{group}.*?(?:\n\n|\Z)", done.stdout, re.DOTALL)
        for part in case.given.get(key, []):
            assert notes and part in notes[0], done.stdout
    opened = re.search(r"To be decided \((\d+)\)", done.stdout)
    assert (int(opened[1]) if opened else 0) == len(case.given.get("open", [])), done.stdout
    checked = migrating.maitred(case.folder, "check")
    assert checked.returncode == 0, checked.stderr
    with migrating.translated(case):
        answers = migrating.ask(case)
    recorded = case.recorded()
    assert len(answers) == len(recorded)
    for number, found in enumerate(answers):
        assert found == expected(case, number, recorded[number]), case.given["requests"][number]


def expected(case: Case, number: int, recorded: dict[str, Any]) -> dict[str, Any]:
    """What maitred answers: the same, but for what the case says."""
    differs = case.given.get("differs", {}).get(str(number), {})
    answer = {**recorded, **{key: value for key, value in differs.items() if key == "status"}}
    answer["headers"] = {**recorded["headers"], **differs.get("headers", {})}
    if "fields" in differs:
        told = json.loads(answer["body"])
        told["fields"] = {name: value for name, value in told["fields"].items() if not name.startswith("x-forwarded")}
        told["scheme"] = "https"
        answer["body"] = json.dumps(told, sort_keys=True)
    return answer
