"""A server process for one test: ours, or uvicorn's own, by which the shims themselves are tried. PEERS_SERVER says which.

`Options` has what tests ask for, in words of neither; what a server has no option for is left out, and the test shows what follows.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
UVICORN, MAITRED = "uvicorn", "maitred"
START_LIMIT_S = 15.0
#: A server has to end by itself when it is asked to; its own limits for what is running are shorter.
END_LIMIT_S = 45.0


class Inside(Exception):
    """A test asks for what can be seen only inside of its own server."""


@dataclass(frozen=True)
class Options:
    """What a test says of its server; `None` is its default."""

    root_path: str = ""
    keep_alive: float | None = None
    max_message: int | None = None
    ping_interval: float | None = None
    ping_timeout: float | None = None
    #: `ping_interval` is `None` where there are to be none.
    pings: bool = True
    #: Whether there are WebSockets.
    sockets: bool = True
    deflate: bool = True
    date: bool = True
    server: bool = True
    #: Options of uvicorn's that choose one of its implementations.
    own: tuple[str, ...] = ()


def kind() -> str:
    return os.environ.get("PEERS_SERVER", MAITRED)


class Process:
    """A server with the application `MODULE:NAME` of a folder."""

    def __init__(self, application: str, folder: Path, port: int, options: Options, variables: dict[str, str], directory: Path | None = None) -> None:
        self.port = port
        command = _maitred if kind() == MAITRED else _uvicorn
        self._output = tempfile.TemporaryFile()
        words = command(application, folder, port, options)
        self._process = subprocess.Popen(words, env=os.environ | variables, cwd=directory or HERE, stdin=subprocess.DEVNULL, stdout=self._output,
                                         stderr=subprocess.STDOUT)

    def accepts(self) -> bool:
        """Whether it has come up; an error if it never will."""
        if self._process.poll() is not None:
            raise RuntimeError(f"the server has ended with {self._process.returncode}: {self.said()}")
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
        except OSError:
            return False
        return True

    def wait_until_up(self) -> None:
        end = time.monotonic() + START_LIMIT_S
        while not self.accepts():
            if time.monotonic() > end:
                self.kill()
                raise RuntimeError(f"the server does not start: {self.said()}")
            time.sleep(0.01)

    def ask_to_end(self) -> None:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)

    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def kill(self) -> None:
        """For the end of a test, whatever has happened."""
        self._process.kill()
        self._process.wait()

    def said(self) -> str:
        self._output.seek(0)
        return self._output.read().decode(errors="replace")


def relayed(socket_path: Path, port: int, options: Options, lifespan: str) -> Process:
    """A server that runs the relay."""
    variables = {"PEERS_SOCKET": str(socket_path), "PEERS_LIFESPAN": lifespan}
    return Process("relay:application", HERE, port, options, variables)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _maitred(application: str, folder: Path, port: int, options: Options) -> list[str]:
    command = [sys.executable, "-m", "maitred", application, "--app-dir", str(folder), "--listen", f"127.0.0.1:{port}", "--access-log", "off",
               "--control", "off"]
    if options.root_path:
        command += ["--root-path", options.root_path]
    if not options.pings:
        command += ["--websocket-ping", "0"]
    for name, value in (("--keep-alive", options.keep_alive), ("--websocket-max-message", options.max_message),
                        ("--websocket-ping", options.ping_interval), ("--websocket-timeout", options.ping_timeout)):
        if value is not None:
            command += [name, f"{value:g}" if isinstance(value, float) else str(value)]
    return command + ["--no-websocket-deflate"] * (not options.deflate) + ["--no-websockets"] * (not options.sockets)


def _uvicorn(application: str, folder: Path, port: int, options: Options) -> list[str]:
    command = [sys.executable, "-m", "uvicorn", application, "--app-dir", str(folder), "--host", "127.0.0.1", "--port", str(port), "--root-path",
               options.root_path, "--ws-per-message-deflate", json.dumps(options.deflate), *options.own]
    for name, value in (("--timeout-keep-alive", options.keep_alive), ("--ws-max-size", options.max_message),
                        ("--ws-ping-interval", options.ping_interval), ("--ws-ping-timeout", options.ping_timeout)):
        if value is not None:
            command += [name, f"{value:g}" if isinstance(value, float) else str(value)]
    command += ["--no-server-header"] * (not options.server) + ["--no-date-header"] * (not options.date)
    return command
