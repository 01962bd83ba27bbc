"""Answers with what stands in the files of the folder BODIES, from memory, as text that may be compressed."""

import os
from pathlib import Path

BODIES = {f"/{path.name}": path.read_bytes() for path in Path(os.environ["BODIES"]).iterdir()}


def application(environ, start_response):
    body = BODIES[environ["PATH_INFO"]]
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [body]
