"""Options that texts name exist: what findings, reports and lines of the log advise, and what the documents say."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest
from conftest import MAITRED, PATIENCE, environment_for

ROOT = Path(__file__).resolve().parent.parent.parent
SOURCES = [path for path in sorted(ROOT.glob("crates/*/src/**/*.rs")) if "test" not in str(path.relative_to(ROOT))]

#: A text of Rust, on several lines too; not one in brackets of an attribute.
TEXT = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
FLAG = re.compile(r"(?<![\w-])--([a-z][a-z0-9]*(?:-[a-z0-9]+)*)(?![\w-])(?!-?\{)")
#: Advice names the options of other servers, to say what they are here, and those of programs that are run.
ELSEWHERE = {"familiar", "developing", "install_service"}
#: Of other programs that a text advises to run, those that stand for any name, and those of our own that only a supervisor uses.
OTHERS = {
    *("as-worker", "as-template", "as-successor", "name", "no-name"),
    *("cap-add", "cap-drop", "http2-prior-knowledge", "format", "jit", "load", "output", "exact", "ignored"),
}
#: Documents about other programs.
APART = {"migrate.md", "from-gunicorn-and-nginx.md", "releasing.md", "configuration.md"}


def options() -> set[str]:
    reference = (ROOT / "docs/operations/configuration.md").read_text()
    found = set(re.findall(r"^### ([a-z0-9-]+)$", reference, re.MULTILINE))
    assert {"workers", "worker-memory", "body-timeout"} <= found
    return found


def help_of(*words: str) -> str:
    command = [str(MAITRED), *words]
    return subprocess.run(command, env=environment_for({}), capture_output=True, text=True, timeout=PATIENCE).stdout


def known() -> set[str]:
    """The options, and those of the commands, as the program itself says."""
    listed = re.search(r"^Commands: ([a-z,\s-]+)", help_of("help"), re.MULTILINE)
    assert listed
    commands = re.findall(r"[a-z-]+", listed[1])
    assert {"ctl", "health", "report"} <= set(commands)
    # The names of other servers that are taken here, as the generated reference lists them.
    rows = re.findall(r"^\| (`--[^|]+) \|", (ROOT / "docs/operations/configuration.md").read_text(), re.MULTILINE)
    names = options() | {name for row in rows for name in FLAG.findall(row)}
    names |= {name for command in commands for name in FLAG.findall(help_of(command, "--help"))}
    return names | {f"no-{name}" for name in names}


def texts_of(source: Path) -> list[str]:
    # What stands behind is of tests.
    code = source.read_text().split("#[cfg(test)]\nmod tests")[0]
    code = re.sub(r"^\s*//.*$", "", code, flags=re.MULTILINE)
    return [text for text in TEXT.findall(code) if text != "--"]


def test_findings_name_options_that_exist() -> None:
    all_options = options()
    words = {word for text in texts_of(ROOT / "crates/maitred-finding/src/rules.rs") for word in re.findall(r"[a-z]+(?:-[a-z]+)+", text)}
    assert words - all_options == set(), "words with a hyphen are options here"


def test_advice_names_options_that_exist() -> None:
    names = known()
    wrong = {}
    for source in SOURCES:
        if ELSEWHERE & {*source.parts, source.stem}:
            continue
        unknown = {name for text in texts_of(source) for name in FLAG.findall(text)} - names - OTHERS
        if unknown:
            wrong[str(source.relative_to(ROOT))] = sorted(unknown)
    assert wrong == {}


def test_the_package_and_the_dashboard_name_options_that_exist() -> None:
    names = known_once()
    wrong = {}
    for source in [*sorted(ROOT.glob("python/maitred/**/*.py")), *sorted(ROOT.glob("crates/maitred-dashboard/assets/*.js"))]:
        # What is translated has the names of other servers.
        if "_migrate" in source.parts:
            continue
        if source.suffix == ".py":
            constants = (node.value for node in ast.walk(ast.parse(source.read_text())) if isinstance(node, ast.Constant))
            texts = [value for value in constants if isinstance(value, str)]
        else:
            texts = re.findall(r'"[^"\n]*"|`[^`]*`', source.read_text())
        # Variables of style sheets are written alike.
        texts = [text for text in texts if "var(--" not in text and not text.startswith('"--')]
        unknown = {name for text in texts for name in FLAG.findall(text)} - names - OTHERS
        if unknown:
            wrong[str(source.relative_to(ROOT))] = sorted(unknown)
    assert wrong == {}


#: A command in a document, until what another program is told.
COMMAND = re.compile(r"\bmaitred(?: [^\n`|&;#]*)?")


DOCUMENTS = [ROOT / "README.md", *sorted({*ROOT.glob("docs/**/*.md")} - {*ROOT.glob("docs/decisions/*")})]


@pytest.mark.parametrize("document", [path for path in DOCUMENTS if path.name not in APART], ids=lambda path: path.name)
def test_documents_name_options_that_exist(document: Path) -> None:
    text = document.read_text()
    names = known_once()
    code = re.findall(r"`([^`\n]+)`", text) + re.findall(r"^(?:\$ )?maitred .*$", text, re.MULTILINE)
    commands = [part for span in code for part in ([span] if span.startswith("--") else COMMAND.findall(span))]
    unknown = {name for command in commands for name in FLAG.findall(command)} - names - OTHERS
    assert unknown == set()


_known: set[str] = set()


def known_once() -> set[str]:
    if not _known:
        _known.update(known())
    return _known
