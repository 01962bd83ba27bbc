"""The cases in the folder migrate: a set-up of another server, and what it answers.

A case has a configuration with realistic paths below /srv/shop and fixed ports; both are replaced before anything is started.
``answers.json`` has what the other server has answered; MAITRED_TEST_RECORD=1 writes it anew. Those of NGINX Unit, which
nobody can start here, are written by hand from its documentation.
"""

from __future__ import annotations

import http.client
import io
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

import pytest
from conftest import MAITRED, PATIENCE, environment_for
from maitred import _tools

FOLDER = Path(__file__).resolve().parent / "migrate"
CASES = sorted(path.parent.name for path in FOLDER.glob("*/case.json"))
RECORDS = bool(os.environ.get("MAITRED_TEST_RECORD"))
NGINX = shutil.which("nginx", path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin")
#: The port of a server behind the one that is replaced.
BEHIND = "8001"


@dataclass
class Case:
    name: str
    folder: Path
    given: dict[str, Any]
    ports: dict[str, int]

    @property
    def command(self) -> list[str]:
        """The arguments of ``maitred migrate``."""
        source = self.given.get("input") or self.here(self.given["command"])
        return [source, *self.given.get("arguments", [])]

    @property
    def own_ports(self) -> list[int]:
        return [port for fixed, port in self.ports.items() if fixed != BEHIND]

    def here(self, text: str) -> str:
        """A text with the paths and ports of this run."""
        text = text.replace("/srv/shop", str(self.folder))
        return re.sub(r"\b(%s)\b" % "|".join(self.ports), lambda match: str(self.ports[match[1]]), text)

    def back(self, text: str) -> str:
        """A text of this run with the ports of the case."""
        for fixed, free in self.ports.items():
            text = text.replace(f":{free}", f":{fixed}")
        return text

    def recorded(self) -> list[dict[str, Any]]:
        answers: list[dict[str, Any]] = json.loads((FOLDER / self.name / "answers.json").read_text())
        return answers


def prepare(name: str, folder: Path) -> Case:
    """Lays the site and the configuration of a case into a folder."""
    shutil.copytree(FOLDER / "site", folder, dirs_exist_ok=True)
    given = json.loads((FOLDER / name / "case.json").read_text())
    case = Case(name, folder, given, dict(zip(given["ports"], free_ports(len(given["ports"])))))
    for file in (FOLDER / name).rglob("*"):
        if file.is_file() and file.name not in ("case.json", "answers.json"):
            target = folder / file.relative_to(FOLDER / name)
            target.parent.mkdir(exist_ok=True)
            target.write_text(case.here(file.read_text()))
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30"]
    command += ["-subj", "/CN=shop.example", "-addext", "subjectAltName=DNS:shop.example,DNS:www.shop.example,IP:127.0.0.1"]
    subprocess.run([*command, "-keyout", folder / "key.pem", "-out", folder / "cert.pem"], check=True, capture_output=True)
    return case


def free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [listener.getsockname()[1] for listener in sockets]


def migrated(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """What ``maitred migrate`` says, run in this process: a new interpreter for each of some hundred sources costs more than the translation.
    The tests in test_migrate_servers.py and test_migrate_join.py run the command."""
    before = os.getcwd()
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        for name in os.environ.keys() - environment_for({}).keys():
            patch.delenv(name)
        for name, value in environment_for({}).items():
            patch.setenv(name, value)
        os.chdir(folder)
        try:
            code = _tools.run("migrate", list(arguments))
        finally:
            os.chdir(before)
    assert code is not None
    return subprocess.CompletedProcess(["maitred", "migrate", *arguments], code, out.getvalue(), err.getvalue())


def migrate(case: Case, *more: str) -> subprocess.CompletedProcess[str]:
    return maitred(case.folder, "migrate", *case.command, *more)


def maitred(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [MAITRED, *arguments]
    return subprocess.run(command, cwd=folder, env=environment_for({}), capture_output=True, text=True, timeout=PATIENCE)


@contextmanager
def running(
    command: Sequence[str | Path], folder: Path, addresses: Sequence[int | Path], environment: dict[str, str]
) -> Iterator[None]:
    """A server, from the moment at which it accepts at all these addresses."""
    with open(folder / "said.txt", "ab") as said:
        process = subprocess.Popen(command, cwd=folder, env=environment_for(environment), stdout=said, stderr=said, start_new_session=True)
    try:
        for address in addresses:
            until = time.monotonic() + PATIENCE
            while not accepts(address):
                assert process.poll() is None and time.monotonic() < until, (folder / "said.txt").read_text()
                time.sleep(0.02)
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def accepts(address: int | Path) -> bool:
    try:
        if isinstance(address, int):
            socket.create_connection(("127.0.0.1", address), PATIENCE).close()
            return True
        with socket.socket(socket.AF_UNIX) as peer:
            peer.connect(str(address))
        return True
    except OSError:
        return False


@contextmanager
def other_server(case: Case) -> Iterator[None]:
    """The server that the case is for, and the one behind it."""
    with ExitStack() as stack:
        behind = [case.here(word) for word in case.given.get("behind", [])]
        if behind:
            address = case.ports.get(BEHIND, case.folder / "gunicorn.sock")
            stack.enter_context(running([sys.executable, "-m", *behind], case.folder, [address], {}))
        command = _command(case, [case.here(word) for word in case.given["server"]])
        stack.enter_context(running(command, case.folder, case.own_ports, case.given.get("environment", {})))
        yield


def _command(case: Case, words: list[str]) -> list[str | Path]:
    if words[0] != "nginx":
        return [sys.executable, "-m", *words]
    assert NGINX
    file = case.folder / "real.conf"
    text = (case.folder / "nginx.conf").read_text()
    # Else its workers could not read the folder of the test.
    own = "user root;\n" if os.geteuid() == 0 else ""
    file.write_text(own + re.sub(r"^user .*\n", "", text, flags=re.MULTILINE))
    return [NGINX, "-p", case.folder, "-c", file, "-e", "stderr", "-g", "daemon off;"]


@contextmanager
def translated(case: Case) -> Iterator[None]:
    """maitred with the result of the migration."""
    with running([MAITRED], case.folder, case.own_ports, case.given.get("environment", {})):
        yield


def ask(case: Case) -> list[dict[str, Any]]:
    """What the server that runs answers to the requests of the case."""
    return [settled(case, request) for request in case.given["requests"]]


def settled(case: Case, request: dict[str, Any]) -> dict[str, Any]:
    """The answer that has the field ``until``: maitred does not compress a file that was written a moment ago."""
    end = time.monotonic() + PATIENCE
    while True:
        found = answer(case, request)
        if "until" not in request or request["until"] in found["headers"] or time.monotonic() > end:
            return found
        time.sleep(0.1)


def answer(case: Case, request: dict[str, Any]) -> dict[str, Any]:
    url = urlsplit(case.here(request["url"]))
    assert url.port
    if url.scheme == "https":
        context = ssl._create_unverified_context()
        connection: http.client.HTTPConnection = http.client.HTTPSConnection("127.0.0.1", url.port, timeout=PATIENCE, context=context)
    else:
        connection = http.client.HTTPConnection("127.0.0.1", url.port, timeout=PATIENCE)
    body = request.get("body", "x" * request["large"] if "large" in request else None)
    fields = dict(request.get("fields", {}))
    if "host" in request:
        fields["Host"] = f"{request['host']}:{url.port}"
    try:
        connection.request(request.get("method", "GET"), url.path + (f"?{url.query}" if url.query else ""), body, fields)
        response = connection.getresponse()
        text = response.read()
    finally:
        connection.close()
    headers: dict[str, Any] = {}
    for name in case.given["headers"]:
        values = [case.back(value) for value in response.headers.get_all(name, [])]
        if name == "location":
            # Both forms are the same for clients (RFC 9110 section 10.2.2).
            base = f"{url.scheme}://{fields.get('Host', url.netloc)}{url.path}"
            values = [case.back(urljoin(base, value)) for value in values]
        if values:
            headers[name] = values[0] if len(values) == 1 else sorted(values)
    found: dict[str, Any] = {"status": response.status, "headers": headers}
    if not request.get("no_body"):
        found["body"] = case.back(text.decode())
    return found
