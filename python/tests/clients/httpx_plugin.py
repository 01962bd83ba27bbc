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


@pytest.fixture(params=["asyncio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """asyncio alone: maitred's awaitable calls belong to its loops."""
    return str(request.param)
