"""A PostgreSQL server of the tests' own, which counts statements itself (pg_stat_statements)."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import PATIENCE

#: Who counts, and who is counted.
OWNER, APPLICATION = "owner", "application"
SETTINGS = {
    "listen_addresses": "",
    "fsync": "off",
    "autovacuum": "off",
    "shared_preload_libraries": "pg_stat_statements",
    "pg_stat_statements.track_utility": "off",
}
SETUP = f"""
create extension pg_stat_statements;
create role {APPLICATION} login;
create table item (id serial primary key, name text unique);
grant all on all tables in schema public to {APPLICATION};
grant all on all sequences in schema public to {APPLICATION};
"""
#: The server's own checks of foreign keys at COMMIT, which nobody has sent, are no statements of the application.
COUNTED = f"""from pg_stat_statements
where userid = '{APPLICATION}'::regrole and query not like 'SELECT _ FROM ONLY %' and query not like 'SELECT $_ FROM ONLY %'"""


class Postgres:
    """A running server; ``folder`` has its socket."""

    def __init__(self, folder: Path, programs: Path) -> None:
        self.folder = folder
        self.programs = programs

    @property
    def address(self) -> str:
        """For libpq."""
        return f"host={self.folder} user={APPLICATION} dbname=postgres"

    def psql(self, text: str) -> str:
        command = [self.programs / "psql", "-h", self.folder, "-U", OWNER, "-d", "postgres", "-AtqX", "-v", "ON_ERROR_STOP=1"]
        done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=PATIENCE, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def forget(self) -> None:
        """From here on statements count."""
        self.psql("truncate item restart identity; select pg_stat_statements_reset();")

    def counted(self) -> int:
        """Statements of the application since then."""
        return int(self.psql(f"select coalesce(sum(calls), 0) {COUNTED};"))

    def statements(self) -> str:
        """Which ones, and how often, for whoever looks for a difference."""
        return self.psql(f"select calls, query {COUNTED} order by 1;")


@contextlib.contextmanager
def postgres() -> Iterator[Postgres]:
    """Skips where none is installed.  It refuses to run as root, so root gives it to the user postgres."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: float(path.parts[4]))
    path = shutil.which("initdb")
    if not path and not found:
        pytest.skip("PostgreSQL is not installed")
    programs = Path(path).resolve().parent if path else found[-1].parent
    account = None
    if os.geteuid() == 0:
        try:
            account = pwd.getpwnam("postgres")
        except KeyError:
            pytest.skip("PostgreSQL does not run as root, and there is no user postgres")
    # The path of a socket has at most 107 bytes; only root may enter the folders of pytest.
    folder = Path(tempfile.mkdtemp(prefix="maitred-pg-"))
    options = {} if account is None else {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
    if account is not None:
        os.chown(folder, account.pw_uid, account.pw_gid)
    folder.chmod(0o755)
    data, output = folder / "data", folder / "output"
    try:
        with output.open("wb") as log:
            common = {"stdout": log, "stderr": subprocess.STDOUT, "cwd": folder, "env": os.environ | {"HOME": str(folder)}, **options}
            made = [programs / "initdb", "-D", data, "-U", OWNER, "-A", "trust", "--locale=C", "--encoding=UTF8", "--no-sync"]
            assert subprocess.run(made, timeout=PATIENCE * 2, check=False, **common).returncode == 0, output.read_text()
            words = [word for name, value in SETTINGS.items() for word in ("-c", f"{name}={value}")]
            command = [programs / "postgres", "-D", data, "-c", f"unix_socket_directories={folder}", *words]
            process = subprocess.Popen(command, **common)
        try:
            limit = time.monotonic() + PATIENCE
            ready = data / "postmaster.pid"
            # Its last line says "ready" once it accepts.
            while not (ready.exists() and ready.read_text().rstrip().endswith("ready")):
                assert process.poll() is None and time.monotonic() < limit, output.read_text()
                time.sleep(0.02)
            server = Postgres(folder, programs)
            server.psql(SETUP)
            yield server
        finally:
            # Fast shutdown: it ends its sessions.
            process.send_signal(signal.SIGINT)
            process.wait(PATIENCE)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
