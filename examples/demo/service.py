"""A service beside the demo: the page Calls asks it by `maitred.http`, and it is quick or slow.

It listens on a port of its own that only this machine reaches, and begins with the first call.
"""

from __future__ import annotations

import json
import os
import threading
import time
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

#: How long the service thinks about a price that it has not at hand, in seconds.
THINKING = 0.6
#: Where a call goes: what it asks for.
VARIANTS = {"quick": "/price", "slow": "/price?fresh"}


class Service(BaseHTTPRequestHandler):
    """Prices, as another team's service would have them."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        if self.path == VARIANTS["slow"]:
            time.sleep(THINKING)
        body = json.dumps({"dish": "soup of the day", "price": 7.5, "process": os.getpid()}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        """The demo's own log has the calls."""


@cache
def address() -> str:
    """Where the service is; it begins here."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Service)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, name="service", daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"
