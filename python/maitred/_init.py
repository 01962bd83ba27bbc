"""``maitred init``: a commented maitred.toml with the few keys that fit the application in a folder.

Promises: no code of the project is run; a file that is there stays as it is unless ``--force`` says otherwise; where several
applications are as likely, none is chosen. Leaves out how they are found (`_look`).
"""

from __future__ import annotations

import argparse
import ast
import os
import sys
from pathlib import Path
from typing import NoReturn

from maitred import _toml
from maitred._look import Candidate, Django, Looked, look, rank
from maitred._tools import Mistake

_FILE = "maitred.toml"

_EPILOG = """\
  maitred init                                  the project in this folder
  maitred init shop                             the one in shop
  maitred init --application shop.web:app       this application, without looking for one

Exit codes: 0, it was written; 2, no application was found, or several, or the file is there.
"""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise Mistake(message, "see maitred init --help")


def main(arguments: list[str]) -> int:
    """Runs the command with the arguments behind ``init`` and returns its exit code."""
    parser = _Parser(
        prog="maitred init",
        description="Writes a commented maitred.toml for the application in a folder. Nothing of the project is run.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", nargs="?", default=".", metavar="FOLDER")
    parser.add_argument("--application", metavar="MODULE:ATTR", help="the application, where several are there or none is found")
    parser.add_argument("--print", action="store_true", dest="show", help="print it and write nothing")
    parser.add_argument("--force", action="store_true", help="replace the maitred.toml that is there")
    options = parser.parse_args(arguments)
    folder = Path(options.folder)
    if not folder.is_dir():
        raise Mistake(f"{folder} is no folder", "name the folder of the project")
    file = folder / _FILE
    if file.exists() and not options.force and not options.show:
        raise Mistake(f"{file} is there already", "--print shows another one, --force replaces it")
    looked = look(folder)
    chosen = _chosen(looked, options.application, options.folder)
    if chosen is None:
        return 2
    text = _text(folder, looked, chosen)
    if options.show:
        print(text, end="")
        return 0
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise Mistake(f"{file} cannot be written: {error.strerror}", "--print prints it") from None
    _tell(folder, file, looked, chosen)
    return 0


def _chosen(looked: Looked, named: str | None, folder: str) -> Candidate | None:
    """The application; none if there are several, which are listed."""
    if named:
        known = [candidate for candidate in looked.candidates if candidate.target == named]
        return known[0] if known else Candidate(named, "", "auto", "--application")
    if not looked.candidates:
        raise Mistake(
            f"no application was found in {folder}, neither for Python nor an index.html",
            "name it: maitred init --application MODULE:ATTR",
        )
    best = [candidate for candidate in looked.candidates if rank(candidate) == rank(looked.candidates[0])]
    if len(best) == 1:
        return best[0]
    where = "" if folder == "." else f" {folder}"
    print(f"maitred: init: {len(best)} applications were found; say which one to serve:", file=sys.stderr)
    for candidate in best:
        made = f"{candidate.framework}, " if candidate.framework else ""
        print(f"  maitred init{where} --application {candidate.target}    # {made}{candidate.place}", file=sys.stderr)
    return None


def _tell(folder: Path, file: Path, looked: Looked, chosen: Candidate) -> None:
    what = f"{chosen.framework} " if chosen.framework else ""
    print(f"wrote {file}")
    print(f"found: {what}{chosen.target} ({chosen.place})")
    others = [candidate.target for candidate in looked.candidates if candidate is not chosen]
    if others:
        print(f"also there: {', '.join(others[:5])} (--application takes another one)")
    if looked.django and looked.django.static_root and not Path(looked.django.static_root).is_dir():
        print(f"next: python {looked.django.manage} collectstatic, then take the line 'static' in")
    if looked.django and chosen is looked.django.candidate:
        for text in _warnings(looked.django):
            print(f"warning: {text}")
    enter = "" if folder.resolve() == Path.cwd() else f"cd {folder}; "
    print(f"next: {enter}maitred check; maitred")


def _text(folder: Path, looked: Looked, chosen: Candidate) -> str:
    """The whole file. Sections: what is served, where, how much at a time, TLS, proxies, logs."""
    what = f"{chosen.framework}, " if chosen.framework else ""
    parts = [
        "# maitred.toml: how maitred serves this project. Start it in this folder: maitred\n",
        "# All options: 'maitred help all'; one of them: 'maitred help NAME'. A line with '# ' before it is an offer.\n\n",
        _comment(f"What to serve: {what}found in {chosen.place}."),
        _line("application", chosen.target),
    ]
    if chosen.factory:
        parts += [_comment("The attribute makes the application: it is called once, without arguments."), _line("factory", True)]
    if chosen.app_dir:
        parts += [_comment("Modules are looked for in this folder."), _line("app-dir", chosen.app_dir)]
    if looked.django and chosen is looked.django.candidate:
        parts += [_comment(f"Warning: {text}") for text in _warnings(looked.django)]
    parts.append("\n" + _comment("Where to listen. This machine alone can reach it; ':8000' is for everybody who can reach the machine."))
    parts.append(_line("listen", "127.0.0.1:8000"))
    parts.append(_static(folder, looked, chosen))
    parts.append(_capacity(chosen))
    parts.append("\n" + _comment("https: the certificate with its chain, and its key. 'tls = true' makes one for development."))
    parts += [_line("tls-cert", "fullchain.pem", offer=True), _line("tls-key", "privkey.pem", offer=True)]
    parts.append(_comment("With it, in the place of the line above, for everybody; who comes by http is led to https:"))
    parts.append(_line("listen", ["https://:443", "http://:80,redirect=https"], offer=True))
    parts.append("\n" + _comment("The address of a proxy in front, which may say who the client is. Nobody else is believed."))
    parts.append(_line("trusted-proxies", ["127.0.0.1"], offer=True))
    parts.append("\n" + _comment("A line for each request, on standard output; a path writes to a file."))
    parts.append(_line("access-log", "-", offer=True))
    parts.append("\n" + _comment("The number of the process, for signals: kill -HUP \"$(cat maitred.pid)\" loads the configuration again, and with workers new code."))
    parts.append(_line("pid-file", "maitred.pid", offer=True))
    if chosen.kind != "files":
        parts.append("\n" + _comment("The server answers this path itself, for balancers and health checks."))
        parts.append(_line("health-path", "/healthz", offer=True))
    if chosen.target == ".":
        parts.append("\n" + _comment("Everything in this folder can be read by everybody who reaches the server, but this file."))
        parts.append('[[filter]]\npath = "/maitred.toml"\naccess = ["deny all"]\n')
    return "".join(parts)


def _warnings(django: Django) -> list[str]:
    """What the settings have that the public should not meet."""
    found = []
    if django.debug:
        found.append(f"{django.debug} has DEBUG = True: everybody sees the source and the settings on a page of errors. Set it to False before others reach the server.")
    if django.no_hosts:
        found.append(f"{django.no_hosts} has no names in ALLOWED_HOSTS: with DEBUG = False Django answers every request with 400. Write the names of the site there.")
    return found


def _static(folder: Path, looked: Looked, chosen: Candidate) -> str:
    """Files that the server sends without the application."""
    django = looked.django
    if django is None or chosen is not django.candidate:
        return _folder_of_flask(folder, chosen)
    if not django.static_root:
        return "\n" + _comment(f"Static files: set STATIC_ROOT, run '{django.manage} collectstatic', and name its folder here.") + _line(
            "static", [f"{_url(django.static_url or '/static')}=staticfiles"], offer=True
        )
    pair = f"{_url(django.static_url or '/static')}={_short(folder, django.static_root)}"
    there = Path(django.static_root).is_dir()
    text = "\n" + _comment("Static files, sent without Django: STATIC_URL and STATIC_ROOT of the settings.")
    if not there:
        text += _comment(f"Run 'python {django.manage} collectstatic' first, which makes the folder; then take the line in.")
    text += _line("static", [pair], offer=not there)
    if django.media_url and django.media_root:
        media = f"{_url(django.media_url)}={_short(folder, django.media_root)}"
        text += _comment("With MEDIA_URL and MEDIA_ROOT: everybody sees what users have uploaded.")
        text += _line("static", [pair, media], offer=True)
    return text


def _folder_of_flask(folder: Path, chosen: Candidate) -> str:
    """Flask and Quart serve the folder static beside their module at /static, unless they are told otherwise."""
    if chosen.framework not in ("Flask", "Quart") or not chosen.file:
        return ""
    static = Path(chosen.file).parent / "static"
    if not static.is_dir() or _says_static(Path(chosen.file)):
        return ""
    pair = f"/static={_short(folder, str(static))}"
    return "\n" + _comment(f"Static files, sent without {chosen.framework}.") + _line("static", [pair])


def _says_static(file: Path) -> bool:
    """Whether the application names another folder or path for its files."""
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return True
    return any(isinstance(node, ast.keyword) and str(node.arg).startswith("static_") for node in ast.walk(tree))


def _capacity(chosen: Candidate) -> str:
    if chosen.kind == "files":
        return ""
    text = "\n" + _comment("Processes, for an application that computes: 'auto' is one for each processor.") + _line("workers", "auto", offer=True)
    if chosen.kind != "asgi":
        text += _comment("Requests of one process that the application handles at the same time. 1 is for one that threads must not share.")
        text += _line("max-threads", 10, offer=True)
    return text


def _url(text: str) -> str:
    return "/" + text.strip("/")


def _short(folder: Path, path: str) -> str:
    """Relative to the folder if it is in it."""
    relative = os.path.relpath(path, folder.absolute())
    return path if relative.startswith("..") else relative


def _comment(text: str) -> str:
    return f"# {_toml.comment(text)}\n"


def _line(key: str, value: _toml.Value, offer: bool = False) -> str:
    return f"{'# ' if offer else ''}{key} = {_toml.value(value)}\n"
