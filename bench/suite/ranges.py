"""Ranges and conditions of RFC 9110 §13 and §14: where other servers answer otherwise than the table of our tests."""

from __future__ import annotations

import email.utils
import json
import os
import re
import shutil
import socket
import time
from pathlib import Path
from typing import Any

from benchlib import machine, rounds, servers
from benchlib.report import Report

TITLE = "Ranges and conditions (RFC 9110 §13, §14) beside nginx"
TABLE = machine.REPOSITORY / "crates/maitred-server/tests/suite/ranges"
#: Long ago, so that the file has settled.
MODIFIED = 1_600_000_000


def run(options: rounds.Options, folder: Path, report: Report) -> None:
    contenders, skipped = rounds.present(options, [servers.maitred(1), servers.NGINX])
    root = folder / "root"
    root.mkdir()
    for name in ("digits.txt", "empty.txt"):
        shutil.copy(TABLE / name, root / name)
        os.utime(root / name, (MODIFIED, MODIFIED))
    cases = json.loads((TABLE / "cases.json").read_text())
    with rounds.all_running(contenders, root, folder) as running:
        for server in running:
            settle(server)
        said = {server.name: [answered(server, case, first(server)) for case in cases] for server in running}
    report.text(f"The {len(cases)} requests of `crates/maitred-server/tests/suite/ranges/cases.json`, for a file of 100 bytes and an empty one. Each "
                "says what RFC 9110 asks for, or which of several answers it allows was chosen here; so an answer that differs need not be "
                "wrong.", *skipped)
    rows = []
    for server, answers in said.items():
        differing = [(case, answer) for case, answer in zip(cases, answers, strict=True) if answer]
        rows.append([server, str(len(cases) - len(differing)), str(len(differing))])
    report.table(["server", "as the table says", "otherwise"], rows)
    for server, answers in said.items():
        differing = [[case["name"], f"§{case['section']}", request_of(case), expected(case), answer]
                     for case, answer in zip(cases, answers, strict=True) if answer]
        if differing:
            report.text(f"## {server}")
            report.table(["case", "section", "request", "the table", "the answer"], differing)


Answer = tuple[int, dict[str, list[str]], bytes]


def ask(server: servers.Server, method: str, path: str, fields: list[list[str]]) -> Answer:
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields)
    with socket.create_connection(("127.0.0.1", server.port), 10) as peer:
        peer.sendall(f"{method} {path} HTTP/1.1\r\nHost: t\r\nConnection: close\r\n{lines}\r\n".encode())
        received = b""
        while part := peer.recv(65536):
            received += part
    head, _, body = received.partition(b"\r\n\r\n")
    first_line, *rest = head.decode().split("\r\n")
    found: dict[str, list[str]] = {}
    for line in rest:
        name, _, value = line.partition(": ")
        found.setdefault(name.lower(), []).append(value)
    return int(first_line.split()[1]), found, body


def first(server: servers.Server) -> dict[str, str]:
    _, fields, _ = ask(server, "GET", "/digits.txt", [])
    modified = fields["last-modified"][0]
    seconds = email.utils.parsedate_to_datetime(modified).timestamp()
    moved = {name: email.utils.formatdate(seconds + by, usegmt=True) for name, by in (("earlier", -86400), ("later", 86400))}
    return {"etag": fields["etag"][0], "modified": modified, **moved}


def settle(server: servers.Server) -> None:
    """A file that has just been written has a weak tag for two seconds."""
    until = time.monotonic() + 20
    while time.monotonic() < until:
        _, fields, _ = ask(server, "GET", "/digits.txt", [])
        if fields["etag"][0].startswith('"') and "last-modified" in fields:
            return
        time.sleep(0.1)
    raise RuntimeError(f"{server.name}: the file does not settle")


def fill(text: str, known: dict[str, str]) -> str:
    return re.sub(r"\{(\w+)\}", lambda found: known[found[1]], text)


def answered(server: servers.Server, case: dict[str, Any], known: dict[str, str]) -> str:
    """What is otherwise; empty where nothing is."""
    fields = [[name, fill(value, known)] for name, value in case["fields"]]
    status, found, body = ask(server, case.get("method", "GET"), case.get("path", "/digits.txt"), fields)
    if status != case["status"]:
        ranges = found.get("content-range", [""])[0]
        return f"{status} {ranges}".strip()
    wrong = []
    for name, value in case.get("has", {}).items():
        if found.get(name.lower()) != [fill(value, known)]:
            wrong.append(f"{name}: {', '.join(found.get(name.lower(), ['none']))}")
    wrong += [f"has {name}" for name in case.get("lacks", []) if name.lower() in found]
    whole = (TABLE / "digits.txt").read_bytes()
    content = case["body"]
    if isinstance(content, list):
        if (got := parts(found, body)) != [(f"bytes {range_}/100", cut(whole, range_)) for range_ in content]:
            wrong.append(f"the parts {', '.join(name for name, _ in got) or 'are none'}")
    elif content in ("whole", "none", ""):
        if body != (whole if content == "whole" else b""):
            wrong.append(f"{len(body)} bytes")
    elif content != "any" and body != cut(whole, content):
        wrong.append(f"{len(body)} other bytes")
    return "; ".join(wrong)


def cut(whole: bytes, text: str) -> bytes:
    start, _, end = text.partition("-")
    return whole[int(start): int(end) + 1]


def parts(fields: dict[str, list[str]], body: bytes) -> list[tuple[str, bytes]]:
    boundary = fields.get("content-type", [""])[0].partition("boundary=")[2]
    if not boundary:
        return []
    found = []
    for part in (b"\r\n" + body.removeprefix(b"\r\n")).split(f"\r\n--{boundary}".encode())[1:-1]:
        head, _, content = part.partition(b"\r\n\r\n")
        ranges = [line[15:] for line in head.decode().split("\r\n") if line.lower().startswith("content-range: ")]
        found.append((ranges[0] if ranges else "", content))
    return found


def request_of(case: dict[str, Any]) -> str:
    fields = "; ".join(f"{name}: {value}" for name, value in case["fields"])
    if len(fields) > 80:
        fields = fields[:77] + "..."
    return " ".join(part for part in (case.get("method", ""), case.get("path", ""), f"`{fields}`") if part)


def expected(case: dict[str, Any]) -> str:
    return f"{case['status']} {case.get('has', {}).get('Content-Range', '')}".strip()
