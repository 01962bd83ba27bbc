"""The page that shows an exception in the browser (``maitred dev``): what was raised where, with the lines of source around it.

Promises: everything of the application's is escaped; no script but ours runs, no address but this server's is asked; values of variables are on the page
only if they are asked for, and what is called like a secret is not shown.
"""

from __future__ import annotations

import html
import linecache
import os
import re
import reprlib
import secrets
import sys
import sysconfig
import traceback
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import NamedTuple

#: Lines of source before and behind the one that raised.
AROUND = 5

#: Exceptions of a chain, and of a group, that are shown at most.
MOST = 10

_SECRET = re.compile(
    r"pass(wd|word|phrase)|pwd|secret|token|(api|access|private|signing|encryption)_?key|auth|cookie|session|credential|dsn|database_url|signature",
    re.IGNORECASE,
)


class Request(NamedTuple):
    """What is known of who asks."""

    method: str
    target: str
    #: The URL of the application: its paths, and ours, are below it.
    root: str
    #: Whether it is the browser of who reads the terminal.
    is_known: bool


class Page(NamedTuple):
    """A page, and what it may do (Content-Security-Policy)."""

    body: bytes
    policy: str


class _Frame(NamedTuple):
    file: str
    line: int
    name: str
    is_own: bool
    variables: Mapping[str, object]


def page(
    error: BaseException, request: Request, *, run: str, with_locals: bool = False, locals_link: str = ""
) -> Page:
    """The page of an exception. ``run`` is the process that shows it: the page loads itself again when there is another one."""
    linecache.checkcache()
    kind, message = _title(error)
    parts = [
        f'<p class="request">{_text(request.method)} {_text(request.target)}</p>',
        f"<h1>{_text(kind)}</h1>",
        f'<p class="message">{_text(message)}</p>' if message else "",
    ]
    for position, (part, relation) in enumerate(_chain(error)):
        if position:
            parts.append(f'<p class="relation">{relation}</p><h2>{_text(": ".join(filter(None, _title(part))))}</h2>')
        parts.extend(f'<p class="note">{_text(note)}</p>' for note in getattr(part, "__notes__", ()))
        parts.append(_syntax(part) if isinstance(part, SyntaxError) else "")
        parts.append(_frames(part, with_locals))
        parts.extend(f"<h2>In the group: {_text(': '.join(filter(None, _title(one))))}</h2>{_frames(one, with_locals)}" for one in _group(part))
    if locals_link:
        parts.append(f'<p><a href="{_text(locals_link)}">Show the values of local variables</a></p>')
    whole = "".join(traceback.format_exception(error))
    parts.append(f"<details><summary>As text</summary><pre>{_text(whole)}</pre></details>")
    parts.append('<footer>maitred dev. This page loads itself again when the code has changed.</footer>')
    script = _SCRIPT % (_in_script(f"{request.root}/.maitred/version"), _in_script(run), _in_script(request.method))
    return _page(f"{kind}: {message}" if message else kind, "".join(parts), script)


def opened(root: str) -> Page:
    """What the link of the terminal brings."""
    body = (
        "<h1>This browser shows tracebacks now</h1><p>Until the server ends. Others see that there was an error, and no more.</p>"
        f'<p><a href="{_text(root)}">To the application</a></p>'
    )
    return _page("maitred dev", body, "")


def _page(title: str, body: str, script: str) -> Page:
    nonce = secrets.token_urlsafe(12)
    text = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{_text(title)}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<style nonce="{nonce}">{_STYLE}</style></head><body><main>{body}</main>'
        f'<script nonce="{nonce}">{script}</script></body></html>\n'
    )
    policy = (
        f"default-src 'none'; style-src 'nonce-{nonce}'; script-src 'nonce-{nonce}'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return Page(text.encode("utf-8", "backslashreplace"), policy)


def _text(text: object) -> str:
    return html.escape(str(text))


def _in_script(text: str) -> str:
    """A text as a literal of JavaScript that cannot end the element it is in."""
    return "'" + "".join(f"\\u{ord(each):04x}" if not each.isalnum() and each not in "/.-_" else each for each in text) + "'"


def _title(error: BaseException) -> tuple[str, str]:
    kind = type(error)
    name = kind.__qualname__ if kind.__module__ in ("builtins", "__main__") else f"{kind.__module__}.{kind.__qualname__}"
    try:
        return name, str(error)
    except Exception as other:
        return name, f"(its text cannot be had: {type(other).__name__})"


def _chain(error: BaseException) -> Iterator[tuple[BaseException, str]]:
    """The exception, and those that it came from, with how the one before them came from them."""
    seen: set[int] = set()
    relation = ""
    one: BaseException | None = error
    while one is not None and id(one) not in seen and len(seen) < MOST:
        seen.add(id(one))
        yield one, relation
        if one.__cause__ is not None:
            one, relation = one.__cause__, "It was raised because of:"
        elif one.__context__ is not None and not one.__suppress_context__:
            one, relation = one.__context__, "It was raised while this one was handled:"
        else:
            one = None


def _group(error: BaseException) -> tuple[BaseException, ...]:
    if sys.version_info >= (3, 11) and isinstance(error, BaseExceptionGroup):
        return error.exceptions[:MOST]
    return ()


def _syntax(error: SyntaxError) -> str:
    """Where the text is that is no Python."""
    if error.filename is None or error.lineno is None:
        return ""
    marked = ""
    if error.text is not None and error.offset is not None:
        line = error.text.rstrip("\n")
        marked = f"<pre>{_text(line)}\n{_text(' ' * (max(error.offset, 1) - 1))}<b>^</b></pre>"
    source = _source(error.filename, error.lineno)
    return f'<section class="own"><h3>{_text(_shown(error.filename))}:{error.lineno}</h3>{source}{marked}</section>'


def _frames(error: BaseException, with_locals: bool) -> str:
    frames = [frame for frame in _walk(error.__traceback__) if os.path.dirname(frame.file) != os.path.dirname(__file__)]
    # The innermost first: it is where the reader begins.
    last_own = next((position for position in reversed(range(len(frames))) if frames[position].is_own), len(frames) - 1)
    parts = []
    for position in reversed(range(len(frames))):
        frame = frames[position]
        is_open = " open" if position == last_own or (frame.is_own and position > last_own) else ""
        variables = _variables(frame.variables) if with_locals else ""
        parts.append(
            f'<details class="{"own" if frame.is_own else "other"}"{is_open}><summary><b>{_text(_shown(frame.file))}:{frame.line}</b> '
            f"in {_text(frame.name)}</summary>{_source(frame.file, frame.line)}{variables}</details>"
        )
    return "".join(parts)


def _walk(frames: TracebackType | None) -> Iterator[_Frame]:
    while frames is not None:
        code = frames.tb_frame.f_code
        file = code.co_filename
        if not file.startswith("<frozen importlib"):
            yield _Frame(file, frames.tb_lineno, code.co_name, _is_own(file), frames.tb_frame.f_locals)
        frames = frames.tb_next


def _is_own(file: str) -> bool:
    """Whether the file is of the application, not of Python's library or of a package."""
    library = (sysconfig.get_path("stdlib"), sysconfig.get_path("purelib"), sysconfig.get_path("platlib"))
    return not file.startswith("<") and not file.startswith(library) and "site-packages" not in file


def _shown(file: str) -> str:
    """The file as its author knows it."""
    current = os.getcwd() + os.sep
    return file[len(current) :] if file.startswith(current) else file


def _source(file: str, line: int) -> str:
    lines = linecache.getlines(file)
    first = max(line - AROUND, 1)
    rows = []
    for number in range(first, min(line + AROUND, len(lines)) + 1):
        text = _text(lines[number - 1].rstrip("\n"))
        row = f'<span class="number">{number}</span> {text}'
        rows.append(f"<mark>{row}</mark>" if number == line else row)
    return "<pre>{}</pre>".format("\n".join(rows)) if rows else ""


class _Values(reprlib.Repr):
    """Values in short; of a mapping, what is called like a secret is not shown."""

    def __init__(self) -> None:
        super().__init__()
        self.maxstring = self.maxother = 400
        self.maxlist = self.maxtuple = self.maxdict = self.maxset = 12

    def repr_dict(self, x: dict[object, object], level: int) -> str:
        masked = {key: "…" if isinstance(key, str) and _SECRET.search(key) else value for key, value in x.items()}
        return super().repr_dict(masked, level)


def _variables(variables: Mapping[str, object]) -> str:
    rows = []
    for name, value in variables.items():
        if name.startswith("__"):
            continue
        if _SECRET.search(name):
            shown = "not shown: it is called like a secret"
        else:
            try:
                shown = _Values().repr(value)
            except Exception as error:
                shown = f"(no value: {type(error).__name__})"
        rows.append(f"<tr><th>{_text(name)}</th><td><code>{_text(shown)}</code></td></tr>")
    return f"<table>{''.join(rows)}</table>" if rows else ""


#: Looks for another process, whose code is another one. A form is not sent again by itself.
_SCRIPT = """
const ask = async () => {
  try {
    const answer = await fetch(%s, { cache: 'no-store' });
    if (answer.ok && (await answer.text()) !== %s && %s === 'GET') return location.reload();
  } catch {}
  setTimeout(ask, 500);
};
setTimeout(ask, 500);
"""

_STYLE = """
:root { color-scheme: light dark; --own: #b3261e; --line: #8884; --mark: #ffd54f66; }
body { margin: 0; font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 62rem; margin: 0 auto; padding: 1.5rem 1rem 4rem; }
h1 { margin: .2em 0; font-size: 1.7rem; overflow-wrap: anywhere; color: var(--own); }
h2 { font-size: 1.2rem; overflow-wrap: anywhere; }
h3 { font: inherit; font-weight: 600; margin: .3em 0; }
.request, footer, .relation { opacity: .75; }
.message { font-size: 1.15rem; white-space: pre-wrap; overflow-wrap: anywhere; }
details, section { margin: .5rem 0; border-left: 4px solid var(--line); padding-left: .75rem; }
.own { border-left-color: var(--own); }
.other summary { opacity: .75; }
summary { cursor: pointer; overflow-wrap: anywhere; }
pre { overflow-x: auto; margin: .4rem 0; font: 14px/1.45 ui-monospace, monospace; }
pre mark { display: inline-block; min-width: 100%; }
mark { background: var(--mark); color: inherit; }
.number { display: inline-block; min-width: 3em; text-align: right; opacity: .6; user-select: none; }
table { border-collapse: collapse; font-size: 14px; }
th { text-align: left; vertical-align: top; padding: .1rem 1rem .1rem 0; font-weight: 600; }
td { overflow-wrap: anywhere; }
footer { margin-top: 2rem; font-size: 14px; }
@media (prefers-color-scheme: dark) { :root { --own: #ff8a80; --mark: #ffd54f33; } }
"""
