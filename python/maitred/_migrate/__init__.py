"""``maitred migrate``: the maitred.toml for a set-up of gunicorn, uvicorn, granian, hypercorn, daphne, waitress, uWSGI, NGINX Unit or nginx.

Promises: nothing of the set-up is left out silently: a line stands in the result, or in the list of what was not taken
over, or is known to need nothing. Nothing of it is run or imported, but gunicorn.conf.py with ``--run``.
"""

from __future__ import annotations

import argparse
import getpass
import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import NoReturn

from maitred._migrate import checked, commands, granian, gunicorn, join, meaning, modules, nginx, others, unit, uvicorn, uwsgi, words
from maitred._migrate.result import EXIT_OPEN, Result
from maitred._tools import Mistake

_EPILOG = """\
FILE is gunicorn.conf.py, uwsgi.ini, a unit of systemd, a Procfile, a Dockerfile, compose.yaml, a file of supervisord, a shell script,
unit.json of NGINX Unit, or nginx.conf or a part of it.

  maitred migrate "gunicorn -w 4 -b :8000 shop.wsgi"
  maitred migrate gunicorn.conf.py --output maitred.toml
  maitred migrate /etc/nginx/sites-enabled/shop --application shop.wsgi:application
  maitred migrate /etc/nginx/nginx.conf gunicorn.conf.py --output maitred.toml

nginx and the server behind it become one maitred.toml: the site from nginx, the application and its processes from the other.

Exit codes: 0, everything that matters was taken over; 3, something needs a decision (the list says what, where and
what to do); 2, the input cannot be read.
"""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise Mistake(message, "see maitred migrate --help")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="maitred migrate",
        description="Prints the maitred.toml for the set-up of another server, and what could not be taken over.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("source", nargs="+", metavar='FILE|"COMMAND LINE"', help="one, or nginx.conf and the server behind it")
    parser.add_argument("--output", metavar="FILE", help="write the result to FILE, which must not be there, and print the list only")
    parser.add_argument("--force", action="store_true", help="replace FILE if it is there")
    parser.add_argument("--command", action="store_true", help="print a command line instead of maitred.toml")
    parser.add_argument("--run", action="store_true", help="run gunicorn.conf.py, as gunicorn does, to know computed values")
    parser.add_argument(
        "--application",
        action="append",
        default=[],
        metavar="[UPSTREAM=]MODULE:ATTR",
        help="the application where the source names none; of nginx the one behind proxy_pass, or behind the one that goes to UPSTREAM; repeatable",
    )
    parser.add_argument("--tls-cert", metavar="FILE", help="of NGINX Unit: the certificate that its listeners name")
    parser.add_argument("--tls-key", metavar="FILE", help="the key of it")
    return parser


def main(arguments: list[str]) -> int:
    """Runs the command with the arguments behind ``migrate`` and returns its exit code."""
    options = _parser().parse_args(arguments)
    result = _translate(options)
    checked.settle(result)
    if options.command:
        return _command(result)
    output = Path(options.output) if options.output else None
    if output and output.exists() and not options.force:
        raise Mistake(f"{output} is there already", "name another file, or replace it with --force")
    _place_environment(result, output, options.force)
    if output is None:
        print(result.toml(), end="")
    else:
        _write(output, result.toml(), options.force, 0o666)
        print(f"wrote {output}")
        print(result.notes(), end="")
        print(_next(result, output))
    if result.open:
        print(f"maitred: migrate: {_to_decide(result)}", file=sys.stderr)
    return result.exit_code()


def _next(result: Result, output: Path) -> str:
    """How the result is looked at beside what runs, at an address of its own."""
    config = "" if output == Path("maitred.toml") else f" --config {shlex.quote(str(output))}"
    check = f"next: maitred check{config}; beside what runs: "
    if not any(table.find("tls-cert") for table in (result, *result.hosts.values())):
        return f"{check}maitred{config} --listen 127.0.0.1:9000"
    # Keys are readable for root alone, as a rule; who it is goes on as is said behind --user.
    line = f"maitred{config} --listen https://127.0.0.1:9443"
    name = os.environ.get("SUDO_USER") or _user()
    if name == "root" or result.find("user"):
        return check + line
    return f"{check}sudo {shutil.which('maitred') or 'maitred'}{line.removeprefix('maitred')} --user {name}"


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "root"


def _to_decide(result: Result) -> str:
    count = len(result.open)
    return f"{count} {'point needs' if count == 1 else 'points need'} a decision, see the list; exit code {EXIT_OPEN}"


def _command(result: Result) -> int:
    if result.environment:
        for name, _, place in result.environment:
            result.tell(place, f"{name} is a variable of the application", "set it in front of the command")
    print(result.command(), end="")
    print(result.notes(), end="", file=sys.stderr)
    return result.exit_code()


def _translate(options: argparse.Namespace) -> Result:
    sources: list[str] = options.source
    if len(sources) == 1:
        return _translate_one(sources[0], options)
    fronts = [source for source in sources if _is_nginx(source)]
    if len(sources) != 2 or len(fronts) != 1:
        raise Mistake(
            "only a file of nginx and the one server behind it become one maitred.toml",
            "name those two, or each alone; write a command line in quotes",
        )
    behind = next(source for source in sources if source != fronts[0])
    named = [name for name in options.application if "=" not in name]
    of_behind = argparse.Namespace(**{**vars(options), "application": named})
    result = join.translate(Path(fronts[0]), _translate_one(behind, of_behind), options.application)
    if not any(note.what.startswith("the module ") for note in result.told):
        modules.name_folders(result, Path(behind).parent if _is_file(behind) else Path())
    return result


def _is_file(source: str) -> bool:
    try:
        return Path(source).is_file()
    except (OSError, ValueError):
        return False


def _is_nginx(source: str) -> bool:
    path = Path(source)
    if not _is_file(source) or path.suffix in (".py", ".json") or path.name.startswith("Procfile"):
        return False
    text = path.read_text(encoding="utf-8", errors="replace")
    return "ExecStart=" not in text and not text.lstrip().startswith("{") and not commands.kind(path, text)


def _translate_one(source: str, options: argparse.Namespace) -> Result:
    path = Path(source)
    if not _is_file(source):
        if path.suffix in (".py", ".json", ".conf", ".service") and " " not in source:
            raise Mistake(f"{source} is not there", "write the path of a file, or a command line in quotes")
        return _of_line(words.split(source), Path(), options)
    if path.suffix == ".py":
        result = gunicorn.translate_file(path, options.run)
        _name_application(result, options.application)
        modules.name_folders(result, path.parent)
        return result
    text = path.read_text(encoding="utf-8", errors="replace")
    if path.suffix == ".json" or text.lstrip().startswith("{"):
        return unit.translate(path, text, options.tls_cert, options.tls_key)
    if path.name.startswith("Procfile"):
        return _of_line(words.procfile(text), path.parent, options)
    if which := commands.kind(path, text):
        return _of_published(path, text, which, options)
    if "ExecStart=" in text:
        line = words.unit_file(text)
        return _of_line(line, Path(line.unit.get("WorkingDirectory") or path.parent), options)
    result = nginx.translate(path, options.application)
    modules.name_folders(result, path.parent)
    return result


def _of_published(path: Path, text: str, which: str, options: argparse.Namespace) -> Result:
    if which == "uwsgi":
        result = uwsgi.translate_file(path, text)
        _name_application(result, options.application)
        modules.name_folders(result, path.parent)
        return result
    line, found, more = commands.read(path, text, which)
    result = _of_line(line, path.parent, options)
    result.source = f"{path.name} ({line.server})"
    commands.note(result, found, more)
    if found.folder and not result.find("chdir") and which == "supervisord":
        result.put("chdir", found.folder, f"{found.place}: directory")
    elif found.folder:
        result.tell(found.place, f"it was started in {found.folder}", "start maitred there, or set chdir")
    return result


def _name_application(result: Result, named: list[str]) -> None:
    """The application that gunicorn has on its command line, and not in its file."""
    if named and not result.find("application"):
        result.put("application", named[-1], "--application")
        result.open = [note for note in result.open if note.key != "application"]


def _of_line(line: words.CommandLine, folder: Path, options: argparse.Namespace) -> Result:
    known = {"gunicorn": gunicorn.translate, "granian": granian.translate, "uwsgi": uwsgi.translate, "daphne": others.translate, "waitress-serve": others.translate}
    translate = known.get(line.server, uvicorn.translate)
    result = translate(line, folder, options.run)
    _name_application(result, options.application)
    modules.name_folders(result, folder, Path(line.unit["WorkingDirectory"]) if "WorkingDirectory" in line.unit else None)
    meaning.command_line_rest(result, line.wrappers, line.unknown, line.beside)
    if line.unit:
        kept = {name.removeprefix("Environment ") for name in line.unit if name.startswith("Environment ")}
        result.environment = [entry for entry in result.environment if entry[0] not in kept]
        result.tell("the unit", f"{', '.join(line.unit)} stay in the unit", "replace ExecStart= by: maitred, and take Type=notify")
    return result


def _place_environment(result: Result, output: Path | None, force: bool) -> None:
    """Variables of the application go to a file of their own, which nobody else can read."""
    if not result.environment or result.find("env-file"):
        for name, _, place in result.environment:
            result.decide(place, f"{name} is a variable of the application", f"write it into {_file_of(result)}")
        return
    names = ", ".join(name for name, _, _ in result.environment)
    place = result.environment[0][2]
    if output is None:
        result.decide(place, f"{names}: variables of the application", "write them into a file and name it in env-file; --output does so")
        result.offer("env-file", "maitred.env", f"{place}: with the lines of {names}")
        return
    file = output.with_suffix(".env")
    _write(file, result.environment_file(), force, 0o600)
    # Relative paths begin at chdir, and the file lies beside the output.
    result.put("env-file", str(file.absolute() if result.find("chdir") else file), f"{place}: {names}")


def _file_of(result: Result) -> str:
    line = result.find("env-file")
    return str(line.value) if line else "an env-file"


def _write(path: Path, text: str, force: bool, mode: int) -> None:
    flags = os.O_WRONLY | os.O_CREAT | (os.O_TRUNC if force else os.O_EXCL)
    try:
        with open(os.open(path, flags, mode), "w", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise Mistake(f"{path} is there already", "name another file, or replace it with --force") from None
    except OSError as error:
        raise Mistake(f"{path} cannot be written: {error.strerror}", "name another file") from None
