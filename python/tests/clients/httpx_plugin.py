"""A plugin of pytest for httpx's own tests: its clients use maitred's transports by themselves.

CLIENT_FRAMEWORK says which framework they test: httpx, or httpx2 in its place. CLIENT_TRANSPORT=own leaves the framework as it is.
"""

from __future__ import annotations

import importlib
import os

import pytest

FRAMEWORK = os.environ["CLIENT_FRAMEWORK"]
framework = importlib.import_module(FRAMEWORK)
if FRAMEWORK == "httpx2":
    framework.alias_httpx()
if os.environ["CLIENT_TRANSPORT"] == "maitred":
    transports = importlib.import_module(f"maitred.http.{FRAMEWORK}")
    for module in (framework, importlib.import_module(f"{FRAMEWORK}._client")):
        module.HTTPTransport, module.AsyncHTTPTransport = transports.Transport, transports.AsyncTransport


def pytest_configure(config: pytest.Config) -> None:
    for name in ("copied_from", "network"):
        config.addinivalue_line("markers", f"{name}: of httpx's own tests")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """asyncio alone: maitred's awaitable calls belong to its loops."""
    left_out = [item for item in items if item.name.endswith(("[trio]", "-trio]", "[trio-"))] if os.environ["CLIENT_TRANSPORT"] == "maitred" else []
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]
