"""Starts freastal, which has no command: `freastal_server.py MODULE:NAME PORT` serves this WSGI application at 127.0.0.1."""

import importlib
import sys

import freastal

if __name__ == "__main__":
    module, _, name = sys.argv[1].partition(":")
    freastal.serve(getattr(importlib.import_module(module), name), host="127.0.0.1", port=int(sys.argv[2]))
