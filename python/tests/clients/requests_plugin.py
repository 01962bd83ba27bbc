"""A plugin of pytest for requests' own tests: its sessions use maitred's adapter by themselves."""

from __future__ import annotations

import os

import requests

if os.environ["CLIENT_TRANSPORT"] == "maitred":
    from maitred.http.requests import Adapter

    for module in (requests.adapters, requests.sessions):
        module.HTTPAdapter = Adapter  # type: ignore[misc, attr-defined]
