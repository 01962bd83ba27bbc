"""A plugin of pytest that writes what becomes of each test to the file PEERS_OUTCOMES: a JSON object a line."""

from __future__ import annotations

import json
import os
from collections.abc import Generator
from typing import Any

import pytest


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, None]:
    outcome = yield
    report = outcome.get_result()
    # Of the setting up and the taking down only what goes wrong.
    if report.when != "call" and report.outcome == "passed":
        return
    text = ""
    if report.outcome == "skipped":
        text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    elif call.excinfo is not None:
        text = call.excinfo.exconly(tryshort=True).strip()
    with open(os.environ["PEERS_OUTCOMES"], "a") as file:
        file.write(json.dumps({"test": item.nodeid, "outcome": report.outcome, "text": text.splitlines()[0] if text else ""}) + "\n")
