"""The README, the tutorial and the guides: their commands run as they are written and print what the pages say (guides.py)."""

from __future__ import annotations

import os
from pathlib import Path

import authority
import guides
import pytest

PAGES = [guides.ROOT / "README.md", guides.ROOT / "docs/tutorial.md", *sorted((guides.ROOT / "docs/guides").glob("*.md"))]
#: These take more than five seconds.
LONG: set[str] = set()
#: Readers wait a moment where a page says `sleep`. On a machine that is busy with other things it may not be long enough.
ATTEMPTS = 3
#: What the commands of these pages need, and no test has.
NEEDS = {"systemd": "systemd, as root", "container": "a container runtime"} | ({} if authority.PEBBLE else {"certificates": "Pebble"})


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_commands_of_a_page_work_when_they_are_pasted(page: Path, tmp_path: Path) -> None:
    if page.stem in NEEDS:
        pytest.skip(NEEDS[page.stem])
    if page.stem in LONG and not os.environ.get("MAITRED_LONG"):
        pytest.skip("with MAITRED_LONG=1")
    for attempt in range(ATTEMPTS):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        try:
            return guides.run(page, folder)
        except AssertionError:
            if attempt == ATTEMPTS - 1:
                raise


def test_a_skipped_block_says_why() -> None:
    reasons = [block.mark.removeprefix("skip") for page in PAGES for block in guides.blocks(page) if block.mark.startswith("skip")]
    assert all(reason.startswith(" ") and len(reason) > 10 for reason in reasons), reasons


@pytest.mark.parametrize(
    "text",
    [
        "```sh\nfalse\n```\n",
        "```sh\necho one\n```\n<!-- test: output -->\n```text\ntwo\n```\n",
        "```sh\npip install no-such-package\n```\n",
    ],
)
def test_what_is_wrong_on_a_page_is_found(text: str, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(text)
    with pytest.raises(AssertionError, match=r"page.md:\d"):
        guides.run(page, tmp_path)
