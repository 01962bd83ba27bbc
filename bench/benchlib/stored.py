"""Documents that are made of stored results: the figures in README.md, and the page of the gates that are not met; and how old
the results are that README.md links to.

`bench/stored` prints the documents for `scripts/generated`, and every run that stores a result writes them anew.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from datetime import date
from pathlib import Path
from typing import Any

from . import figures, machine

RESULTS = machine.REPOSITORY / "bench/results"
README, NOT_MET = Path("README.md"), Path("docs/not-met.md")
#: A run of `bench/run readme` as JSON: see `suite/readme.py`.
RUN = RESULTS / "readme.json"
BEGIN, END = "<!-- bench/run readme writes this: begin -->\n", "<!-- bench/run readme writes this: end -->\n"
OURS, BOTH, ONE = "maitred", "both cores", "one core"
#: The columns of the table of pages: what the name of a contender begins with.
COLUMNS = (("gunicorn or uvicorn", ("gunicorn", "uvicorn")), ("granian", ("granian",)), ("weft", ("weft",)),
           ("peregrine", ("peregrine",)), (OURS, (OURS,)))

#: A claim of README.md stands on a result that is at most so many days old.
MOST_DAYS = 14

#: How a line of `rounds.verdict` ends.
NOT_MET_MARK = ": **not met**"
#: By contender: the figures of every round, by their names.
Rounds = dict[str, dict[str, list[float]]]


def write() -> None:
    """Write both documents where they differ from what is there."""
    for file, text in ((README, readme()), (NOT_MET, not_met())):
        path = machine.REPOSITORY / file
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


def readme() -> str:
    """README.md with the figures of the stored run; as it is without one."""
    text = (machine.REPOSITORY / README).read_text()
    return spliced(text, section(json.loads(RUN.read_text()))) if RUN.exists() else text


def spliced(text: str, between: str) -> str:
    """The text with something else between the two marks."""
    head, begin, rest = text.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{README} has not both marks of `bench/run readme`")
    return f"{head}{begin}{between}{end}{tail}"


def section(run: dict[str, Any]) -> str:
    """What README.md says of a run."""
    lines = [
        f"[Measured](bench/results/readme.md) on {run['date']} on {run['machine']}. First the form that users run: one process, default settings, both cores "
        "shared with the load, 64 connections that are always busy. Beside it the steadier form: the server has one core and the "
        "load the other. Absolute figures vary with the machine, ratios less: run them yourself.", "",
        f"{run['python']}; {run['versions']}.", ""]
    lines += _pages(run["pages"]) + _files(run["files"], run["schedule"], run["memory"])
    return "\n".join(lines) + "\n"


def _pages(pages: list[dict[str, Any]]) -> list[str]:
    heads = ["requests/s", *(name for name, _ in COLUMNS), "maitred / best peer", "… one core", "… its CPU per request"]
    rows = []
    for page in pages:
        both, one = page[BOTH], page[ONE]
        cells = [page["name"]]
        for _, beginnings in COLUMNS:
            name = next((each for each in both if each.startswith(beginnings)), None)
            cells.append(f"{_median(both, name, 'rate'):,.0f}" if name else "–")
        rows.append([*cells, _ratio(both, _best(both), "rate"), _ratio(one, _best(one), "rate"), _ratio(one, _best(one), "cpu")])
    return _table(heads, rows)


def _files(files: list[dict[str, Any]], schedule: dict[str, Rounds], memory: dict[str, list[float]]) -> list[str]:
    nginx, cached = "nginx", "nginx with open_file_cache"
    rows = []
    for file in files:
        both, one = file[BOTH], file[ONE]
        rows.append([f"{file['name']}, requests/s", *(f"{_median(both, name, 'rate'):,.0f}" if name in both else "–"
                                                      for name in (nginx, cached, OURS)), _ratio(one, nginx, "cpu")])
    both, one = schedule[BOTH], schedule[ONE]
    for share in ("p50", "p90"):
        rows.append([f"4,000 requests/s on a schedule, {share} in µs", *(f"{_median(both, name, share):.0f}" if name in both
                                                                       else "–" for name in (nginx, cached, OURS)),
                     _ratio(one, nginx, share)])
    rows.append(["memory for a further idle connection, bytes", *(f"{figures.spread(memory[name]).median:.0f}"
                 if name in memory else "–" for name in (nginx, cached, OURS)), "–"])
    return ["Files, without an application:", "",
            *_table(["", nginx, cached, OURS, "one core: maitred / nginx, CPU or latency"], rows)]


def _table(heads: list[str], rows: list[list[str]]) -> list[str]:
    return ["| " + " | ".join(row) + " |" for row in (heads, ["---", *["--:"] * (len(heads) - 1)], *rows)] + [""]


def _best(of: Rounds) -> str | None:
    """The peer with the highest throughput."""
    return max((name for name in of if not name.startswith(OURS)), key=lambda name: _median(of, name, "rate"), default=None)


def _median(of: Rounds, name: str, what: str) -> float:
    return figures.spread(of[name][what]).median


def _ratio(of: Rounds, peer: str | None, what: str) -> str:
    if OURS not in of or peer not in of:
        return "–"
    return f"{figures.ratios(of[OURS][what], of[peer][what]).median:.2f}"


def not_met() -> str:
    """The page of all gates and goals that the stored results do not meet."""
    parts, count = [], 0
    for result in sorted(RESULTS.glob("*.md")):
        text = result.read_text()
        missed = missed_in(text)
        if not missed:
            continue
        count += len(missed)
        day = measured_on(text)
        title = text.partition("\n")[0].removeprefix("# ")
        parts += [f"## {title}", "", f"[bench/results/{result.name}](../bench/results/{result.name})"
                  f"{f', {day}' if day else ''}", "",
                  *(f"- {line}" for line in gathered(missed)), ""]
    return "\n".join([
        "# What is not met", "",
        f"The {count} gates and goals that the stored results of the benches do not meet, each with its figure and the limit. "
        "`scripts/generated` makes this page of [bench/results](../bench/results); what each bench measures is in "
        "[bench/README.md](../bench/README.md).", "", *parts]).rstrip() + "\n"


#: Of so many lines on, those with the same measure and limit become one.
ALIKE = 3


def gathered(missed: list[str]) -> list[str]:
    """The same gates and goals, those with the same measure and limit in one line."""
    cases: dict[tuple[str, str], list[str]] = {}
    kinds = []
    for line in missed:
        what, _, figure = line.rpartition(": ")
        case, _, measure = what.rpartition(": ")
        value, _, limit = figure.partition(" against ")
        kinds.append((measure, limit))
        cases.setdefault(kinds[-1], []).append(f"{case.removeprefix('Gate, ')} {value}")
    # A dictionary keeps each line once, in order.
    lines = {f"{kind[0]}, against {kind[1]}: {'; '.join(cases[kind])}" if all(kind) and len(cases[kind]) >= ALIKE else line: None
             for line, kind in zip(missed, kinds)}
    return list(lines)


def missed_in(result: str) -> list[str]:
    """Its gates and goals that are not met, with the heading they are under, unless that says only that they are gates."""
    missed, heading = [], ""
    for line in result.splitlines():
        if line.startswith("## "):
            heading = "" if line.startswith("## Gates") else f"{line.removeprefix('## ')}: "
        elif line.startswith("- ") and line.endswith(NOT_MET_MARK):
            missed.append(heading + line.removeprefix("- ").removesuffix(NOT_MET_MARK))
    return missed


def claimed(text: str) -> list[str]:
    """The benches whose results a document links to: a claim of README.md has such a link."""
    return sorted(set(re.findall(r"\]\(bench/results/([\w-]+)\.md\)", text)))


def measured_on(result: str) -> date | None:
    """The day that a result begins with."""
    found = re.search(r"^\d{4}-\d\d-\d\d", result, re.MULTILINE)
    return date.fromisoformat(found.group()) if found else None


def outdated(names: Iterable[str], today: date, results: Path = RESULTS) -> list[str]:
    """A line for each of these results that is missing, has no date, or is too old: what it is and which command renews it."""
    lines = []
    for name in names:
        file = results / f"{name}.md"
        day = measured_on(file.read_text()) if file.exists() else None
        if day is None:
            why = "has no date" if file.exists() else "is missing"
        elif (age := (today - day).days) > MOST_DAYS:
            why = f"is of {day}, {age} days old; the limit is {MOST_DAYS}"
        elif age < 0:
            why = f"is of {day}, and today is {today}"
        else:
            continue
        lines.append(f"bench/results/{name}.md {why}: run bench/run {name}")
    return lines
