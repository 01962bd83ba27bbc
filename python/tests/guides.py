"""Runs the commands of a Markdown page as a reader would paste them: in one shell, from an empty folder, in their order.

Each ```sh block is run. A comment on the line before a block says more:

    <!-- test: skip REASON -->   the block is not run: it needs root, or a public host
    <!-- test: output -->        the block is what the commands above it print

A line of output is compared as it stands, but for `…`, which stands for anything. Other lines may come between: a server in the
background says something, too.

The shell has a network and processes of its own (unshare(1)), so that pages use port 8000 as their readers do, side by side.
Where the system does not let us have that, other ports take their place. Nothing is installed: `pip` looks whether what it is
asked for is there, and `python3 -m venv` makes a folder that leads to the interpreter of the tests.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from conftest import HERE, PATIENCE, environment_for

ROOT = HERE.parent.parent
BLOCK = re.compile(r"(?:^<!-- test: (?P<mark>.*?) -->\n)?^```(?P<kind>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
#: Between the outputs of two blocks: a record separator, and the number of the block.
MARK = "\x1e"
#: A port that a page names behind an address or an option.
PORT = re.compile(r"(?<=[:=])([89]\d{3})\b")

CURL = """#!/bin/sh
# A reader sees that the server has started before he asks it.
for attempt in $(seq 100); do
    {curl} "$@"
    code=$?
    [ $code = 7 ] || exit $code
    sleep 0.05
done
exit 7
"""

MAITRED_SCRIPT = """#!/bin/sh
# Likewise: who asks a server by `ctl` has seen that it has started.
if [ "$1" = ctl ]; then
    for attempt in $(seq 100); do
        ls "$XDG_RUNTIME_DIR"/*.sock >/dev/null 2>&1 && break
        sleep 0.05
    done
fi
exec {command} "$@"
"""

PYTHON = """#!/bin/sh
case "$*" in
    "-m venv "*) mkdir -p "$3/bin" && cp {bin}/* "$3/bin/" ;;
    "-m pip "*) shift 2; exec {bin}/pip "$@" ;;
    *) exec {python} "$@" ;;
esac
"""

PIP = """#!{python}
import importlib.metadata, re, sys

def missing(name):
    name, _, extra = name.partition("[")
    if name == "." or name.endswith(".whl"):
        name = "maitred"
    try:
        import importlib.util
        importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return importlib.util.find_spec(name) is None

names = [name for name in sys.argv[2:] if not name.startswith("-")]
gone = [name for name in names if missing(re.split("[<>=~!]", name)[0])]
if sys.argv[1] != "install" or not names or gone:
    sys.exit(f"pip: these are not there: {{gone or sys.argv[1:]}}")
"""


@dataclass(frozen=True)
class Block:
    line: int
    kind: str
    text: str
    mark: str


def blocks(page: Path) -> list[Block]:
    text = page.read_text()
    return [
        Block(text.count("\n", 0, found.start("kind")) + 1, found["kind"], found["text"], found["mark"] or "")
        for found in BLOCK.finditer(text)
    ]


def run(page: Path, folder: Path, python: Path = Path(sys.executable), seconds: float = 2 * PATIENCE) -> None:
    """Runs the page in `folder`, and raises AssertionError where a command fails or prints something else.

    Its commands are those of the environment of `python`.
    """
    found = blocks(page)
    commands = [block for block in found if block.kind == "sh" and not block.mark.startswith("skip ")]
    assert commands, f"{page}: no commands"
    script = "set -e\n" + "".join(f"echo '{MARK}{block.line}'\n{block.text}" for block in commands)
    site, tools = folder / "site", folder / "bin"
    site.mkdir()
    make_tools(tools, python)
    (folder / "run").mkdir(mode=0o700)
    environment = environment_for({
        "PATH": f"{tools}:{python.parent}:{os.environ['PATH']}:/usr/sbin:{ROOT}/.build/tools/bin",
        "HOME": str(folder),
        "XDG_RUNTIME_DIR": str(folder / "run"),
        "PYTHONUNBUFFERED": "1",
    })
    before = namespaces()
    ports = {}
    if not before:
        script += "kill $(jobs -p) || true\n"
        ports = {port: str(free_port()) for port in {"8000", *PORT.findall(script)}}
        script = PORT.sub(lambda port: ports[port[0]], script)
        if "listen =" not in script:
            environment["MAITRED_LISTEN"] = f"127.0.0.1:{ports['8000']}"
    (folder / "script").write_text(script)
    process = subprocess.Popen(
        [*before, "bash", folder / "script"],
        cwd=site,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        # What it has left in the background keeps the pipe open: it ends with the namespace, or with the group.
        said = finish(process, seconds)
    finally:
        end(process)
    for port, other in ports.items():
        said = said.replace(other, port)
    last = said.rpartition(MARK)[2].partition("\n")
    assert process.returncode == 0, f"{page.name}:{last[0]}: the commands failed ({process.returncode}):\n{last[2]}"
    for block, command in expected(found):
        start = said.index(f"{MARK}{command.line}\n")
        compare(page, block, said[start:])


def expected(found: list[Block]) -> list[tuple[Block, Block]]:
    """Blocks of output, each with the commands above it."""
    pairs, command = [], None
    for block in found:
        if block.kind == "sh":
            command = None if block.mark.startswith("skip ") else block
        elif block.mark == "output" and command:
            pairs.append((block, command))
    return pairs


def compare(page: Path, block: Block, said: str) -> None:
    lines = iter(said.replace("\r", "").splitlines())
    for line in block.text.splitlines():
        pattern = re.compile(".*".join(map(re.escape, line.rstrip().split("…"))))
        where = f"{page.name}:{block.line}: {line!r} is not in this order in\n{said}"
        assert any(pattern.fullmatch(printed.rstrip()) for printed in lines), where


def finish(process: subprocess.Popen[str], seconds: float) -> str:
    try:
        return process.communicate(timeout=seconds)[0]
    except subprocess.TimeoutExpired as late:
        said = (late.stdout or b"").decode(errors="replace")
        raise AssertionError(f"the commands did not end, behind line {said.rpartition(MARK)[2]}") from None


def end(process: subprocess.Popen[str]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


@functools.cache
def namespaces() -> tuple[str, ...]:
    """How a command is started with a network and processes of its own; nothing if that is not allowed."""
    lead = ("unshare", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", 'ip link set lo up && exec "$@"', "-")
    for command in (lead, (lead[0], "--user", "--map-root-user", *lead[1:])):
        if shutil.which("unshare") and subprocess.run([*command, "true"], capture_output=True).returncode == 0:
            return command
    return ()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def make_tools(folder: Path, python: Path) -> None:
    folder.mkdir()
    own = python.with_name("maitred")
    command = str(own) if own.exists() else f"{python} -m maitred"
    tools = {
        "maitred": MAITRED_SCRIPT.format(command=command),
        "pip": PIP.format(python=python),
        "python3": PYTHON.format(bin=folder, python=python),
        "python": PYTHON.format(bin=folder, python=python),
        "curl": CURL.format(curl=shutil.which("curl")),
        # `activate` of a virtual environment: its commands are those of the tests already.
        "activate": "",
    }
    for name, text in tools.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
