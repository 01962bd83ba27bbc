"""A collector of OpenTelemetry that takes everything and looks at nothing: `python taking.py` prints its port."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


class Taking(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *arguments: Any) -> None:
        return


@contextlib.contextmanager
def collector() -> Iterator[str]:
    """Its URL, while it runs on the load's core."""
    from . import machine

    command = [*machine.pinned(machine.cores()[1]), sys.executable, str(Path(__file__).resolve())]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.kill()


if __name__ == "__main__":
    with ThreadingHTTPServer(("127.0.0.1", 0), Taking) as server:
        print(server.server_address[1], flush=True)
        server.serve_forever()
