"""A PostgreSQL server of the bench's own: made in a temporary folder, reached by a socket in it, ended and removed.

It refuses to run as root, so a bench that does gives it to the user `postgres`. It may lose what it wrote (no fsync):
the pages read.
"""

from __future__ import annotations

import contextlib
import glob
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from . import machine, servers
from .rounds import Missing

USER = "bench"
#: More than all contenders of a page hold together, each with all its threads.
CONNECTIONS = 200
START_LIMIT_S = 30.0
SETTINGS = {"listen_addresses": "", "fsync": "off", "max_connections": str(CONNECTIONS), "shared_buffers": "32MB",
            "autovacuum": "off"}


def need() -> None:
    """Raise `Missing` unless a server can run here."""
    _programs()
    _account()


@contextlib.contextmanager
def running() -> Iterator[Path]:
    """A server with an empty database, both for `USER`; gives the folder of its socket.  It may use all cores."""
    account, programs = _account(), _programs()
    # Not below the bench's own folder: only its owner may enter that, and the path of a socket has at most 107 bytes.
    folder = Path(tempfile.mkdtemp(prefix="bench-pg-"))
    data = folder / "data"
    user = group = None
    if account is not None:
        user, group = account.pw_uid, account.pw_gid
        os.chown(folder, user, group)
    groups: list[int] | None = None if account is None else []
    # The account reads no HOME of another one.
    environment = os.environ | {"HOME": str(folder)}
    try:
        with (folder / "output").open("wb") as output:
            def call(*command: str) -> None:
                done = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, env=environment, cwd=folder, user=user,
                                      group=group, extra_groups=groups, timeout=120, check=False)
                if done.returncode:
                    raise servers.CannotStart(f"{Path(command[0]).name}: {_tail(folder / 'output')}")

            call(str(programs / "initdb"), "-D", str(data), "-U", USER, "-A", "trust", "--locale=C", "--encoding=UTF8", "--no-sync")
            words = [word for name, value in SETTINGS.items() for word in ("-c", f"{name}={value}")]
            process = subprocess.Popen([*machine.pinned(*machine.cores()), str(programs / "postgres"), "-D", str(data),
                                        "-c", f"unix_socket_directories={folder}", *words],
                                       stdout=output, stderr=subprocess.STDOUT, env=environment, cwd=folder, user=user, group=group,
                                       extra_groups=groups)
            try:
                _await(process, folder)
                call(str(programs / "createdb"), "-h", str(folder), "-U", USER, USER)
                yield folder
            finally:
                # Fast shutdown: it ends its sessions.
                process.send_signal(signal.SIGINT)
                try:
                    process.wait(START_LIMIT_S)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _await(process: subprocess.Popen[bytes], folder: Path) -> None:
    limit = time.monotonic() + START_LIMIT_S
    while time.monotonic() < limit and process.poll() is None:
        # Its last line says "ready" once it accepts.
        pid_file = folder / "data/postmaster.pid"
        if pid_file.exists() and pid_file.read_text().rstrip().endswith("ready"):
            return
        time.sleep(0.02)
    raise servers.CannotStart(f"postgres does not start: {_tail(folder / 'output')}")


def _tail(output: Path) -> str:
    return output.read_text(errors="replace")[-1000:].strip()


def _programs() -> Path:
    """The folder of the server's programs: that of the `initdb` on the path, or Debian's for the newest version."""
    by_version = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"), key=lambda path: float(path.split("/")[4]))
    found = shutil.which("initdb") or (by_version[-1] if by_version else None)
    if found is None:
        raise Missing("not installed: initdb (PostgreSQL)")
    return Path(found).resolve().parent


def _account() -> pwd.struct_passwd | None:
    """Whom the server is given to; `None`: the bench is not root and keeps it."""
    if os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam("postgres")
    except KeyError:
        raise Missing("no user postgres, and PostgreSQL does not run as root") from None
