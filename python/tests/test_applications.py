"""The sections of docs/applications.md: their commands run as they are written, and a browser uses what they have started.

Each needs an environment with its application: scripts/applications makes those of which python/tests/applications has the requirements, and
names their folder in MAITRED_TEST_APPLICATIONS. Without it nothing here is run.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import guides
import pytest

PAGE = guides.ROOT / "docs" / "applications.md"
BROWSER = guides.HERE / "applications" / "browser.py"
FOLDER = Path(os.environ.get("MAITRED_TEST_APPLICATIONS", "/none"))
SECTIONS = {title.lower().replace(" ", "-"): text for title, text in re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", PAGE.read_text(), re.MULTILINE | re.DOTALL)}
#: Label Studio's database alone takes a minute.
SECONDS = 250.0
#: Those that nobody opens in a browser.
BY_CURL = {"litellm"}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", SECTIONS)
def test_an_application_works_as_its_note_says(name: str, tmp_path: Path) -> None:
    python = FOLDER / name / "bin" / "python"
    if not python.exists():
        pytest.skip(f"scripts/applications installs it where it has requirements; there is no {python}")
    section = tmp_path / f"{name}.md"
    section.write_text(SECTIONS[name] if name in BY_CURL else browsed(SECTIONS[name], name))
    guides.run(section, tmp_path, python, SECONDS)


def browsed(section: str, name: str) -> str:
    """The section, with a browser that uses the application each time before it is ended."""
    assert section.count("kill -TERM $SERVER") > 0
    return section.replace("kill -TERM $SERVER", f"{sys.executable} {BROWSER} {name}\nkill -TERM $SERVER")


def test_each_application_of_the_table_has_a_section() -> None:
    table = re.findall(r"^\| \[.*?\]\(#(.*?)\)", PAGE.read_text(), re.MULTILINE)
    assert table == list(SECTIONS)
    assert {file.stem for file in (guides.HERE / "applications").glob("*.txt")} <= SECTIONS.keys()
