"""nginx and maitred with the result of its migration are asked the same: nothing is open, or taken, that nginx refuses."""

from __future__ import annotations

from pathlib import Path

import pytest
from migrate_compare import compare
from migrating import FOLDER, NGINX

FILES = sorted((FOLDER / "compare").glob("*.conf"))


@pytest.mark.skipif(not NGINX, reason="needs nginx: apt-get install nginx-light")
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_nothing_is_open_that_nginx_refuses(file: Path, tmp_path: Path) -> None:
    found = compare(file.read_text(), tmp_path)
    assert not found.failed, found.failed
    assert found.asked >= 200
    assert not found.opened, "\n".join([*found.opened, found.result])
    assert not found.limits, "\n".join([*found.limits, found.result])
    assert not found.unnamed, "\n".join([*found.unnamed, found.result])
