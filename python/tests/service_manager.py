"""A small stand-in for systemd's side: it hears what a service says, and passes sockets that listen."""

from __future__ import annotations

import select
import socket
import struct
import subprocess
import sys
from pathlib import Path

from conftest import MAITRED, PATIENCE, Server, environment_for

#: What a service manager tells a service.
VARIABLES = ["NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"]

#: Between fork and exec: sockets get the descriptors from 3 on, and the process is named, both of which the parent cannot do.
START = """
import fcntl, os, sys
count = int(sys.argv[1])
given = [int(number) for number in sys.argv[2 : 2 + count]]
kept = [fcntl.fcntl(number, fcntl.F_DUPFD, 100) for number in given]
for number in given:
    os.close(number)
for target, descriptor in enumerate(kept, 3):
    os.dup2(descriptor, target)
    os.close(descriptor)
for name in ("LISTEN_PID", "WATCHDOG_PID"):
    if os.environ.get(name) == "this":
        os.environ[name] = str(os.getpid())
os.execv(sys.argv[2 + count], sys.argv[2 + count :])
"""


class Manager:
    """What services say to the socket of ``NOTIFY_SOCKET``, and who says it."""

    def __init__(self, address: str) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self.socket.settimeout(PATIENCE)
        self.socket.bind("\0" + address[1:] if address.startswith("@") else address)
        self.address = address

    def hear(self) -> tuple[int, dict[str, str]]:
        """The next datagram: the process that has sent it, and its variables."""
        text, ancillary, _, _ = self.socket.recvmsg(4096, socket.CMSG_SPACE(struct.calcsize("3i")))
        process = next(struct.unpack("3i", data)[0] for _, kind, data in ancillary if kind == socket.SCM_CREDENTIALS)
        return process, dict(line.split("=", 1) for line in text.decode().splitlines())

    def wait_for(self, name: str) -> dict[str, str]:
        """The next datagram with this variable."""
        while True:
            _, said = self.hear()
            if name in said:
                return said

    def has_heard_nothing(self) -> bool:
        return not select.select([self.socket], [], [], 0)[0]

    def close(self) -> None:
        self.socket.close()


class Service(Server):
    """A server with sockets that have been passed. Without ``--listen`` it gets none of the test's own."""

    def __init__(self, arguments: list[str], folder: Path, environment: dict[str, str], sockets: list[socket.socket]) -> None:
        self.descriptors = tuple(passed.fileno() for passed in sockets)
        self.arguments = list(arguments)
        super().__init__(arguments, folder, environment)

    def command(self, arguments: list[str]) -> list[str | Path]:
        passed = [str(number) for number in self.descriptors]
        return [sys.executable, "-c", START, str(len(passed)), *passed, MAITRED, *self.arguments]


def listening(path: Path | None = None) -> socket.socket:
    """A socket that listens, as a ``.socket`` unit has it: on a free port, or with this file."""
    if path is None:
        return socket.create_server(("127.0.0.1", 0))
    made = socket.socket(socket.AF_UNIX)
    made.bind(str(path))
    made.listen()
    return made


def variables(count: int, *names: str, process: str = "this") -> dict[str, str]:
    """The environment of a service that gets so many sockets."""
    named = {"LISTEN_FDNAMES": ":".join(names)} if names else {}
    return {"LISTEN_PID": process, "LISTEN_FDS": str(count), **named}


def run(arguments: list[str], folder: Path, environment: dict[str, str], sockets: list[socket.socket]) -> tuple[int, str]:
    """A server that does not start: its exit code and what it has said."""
    passed = [passed.fileno() for passed in sockets]
    command = [sys.executable, "-c", START, str(len(passed)), *map(str, passed), str(MAITRED), *arguments]
    ended = subprocess.run(
        command, cwd=folder, env=environment_for(environment), pass_fds=passed, capture_output=True, text=True, timeout=PATIENCE
    )
    return ended.returncode, ended.stdout + ended.stderr
