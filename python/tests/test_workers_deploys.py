"""A new configuration, a new application and a new program under running workers; and those that do not work, after which all is as before."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import PATIENCE, open_files
from crews import APP, PROGRAM, Crew, Start, crew, until

__all__ = ["crew"]

FILE = """
application = "app.py"
max-threads = 4
"""


def release(folder: Path, source: str) -> None:
    (folder / "app.py").write_text(source)


def second(source: str = APP) -> str:
    return source.replace('"first"', '"second"')


@contextlib.contextmanager
def asked_without_end(server: Crew) -> Iterator[None]:
    """New connections one after the other meanwhile, each of which is answered."""
    done = threading.Event()
    answers: list[str] = []

    def ask() -> None:
        while not done.is_set():
            try:
                answers.append(server.answer()[0])
            except (OSError, AssertionError) as error:
                answers.append(repr(error))

    client = threading.Thread(target=ask)
    client.start()
    try:
        until("some are answered", lambda: len(answers) > 5)
        yield
        count = len(answers)
        until("some more are answered", lambda: len(answers) > count + 5)
    finally:
        done.set()
        client.join(PATIENCE)
    assert set(answers) <= {"first", "second"}, answers


def test_a_new_release_takes_the_place_of_each_worker(crew: Start, tmp_path: Path) -> None:
    server = crew()
    before = server.serving(2)
    release(tmp_path, second())
    with asked_without_end(server):
        start = server.tell(signal.SIGHUP)
        server.wait_for("info SIGHUP: the configuration has been read again; the workers are replaced one by one", start)
        until("both are replaced", lambda: len(server.workers()) == 2 and not server.workers() & before)
    assert server.serving(2, "second") == server.workers()
    assert " error " not in server.said and " warn " not in server.said
    server.ends()


def test_a_worker_serves_until_its_successor_is_ready(crew: Start, tmp_path: Path) -> None:
    server = crew()
    before = server.serving(2)
    (tmp_path / "hold").touch()
    start = server.tell(signal.SIGHUP)
    server.wait_for("imports in", start)
    assert server.serving(2) == before
    phases = sorted(row["phase"] for row in server.ask("status")["workers"])
    assert phases == ["serving", "serving", "starting"], "one at a time"
    (tmp_path / "hold").unlink()
    until("both are replaced", lambda: len(server.workers()) == 2 and not server.workers() & before)


@pytest.mark.parametrize(
    "source, why",
    [
        ("import no_such_module\n", "No module named 'no_such_module'"),
        ("def app(\n", "SyntaxError"),
        ("import os\nos._exit(9)\n", "ended with exit code 9 before it was ready"),
    ],
)
def test_a_release_that_cannot_be_imported_changes_nothing(crew: Start, tmp_path: Path, source: str, why: str) -> None:
    server = crew()
    before = server.serving(2)
    release(tmp_path, source)
    start = server.tell(signal.SIGHUP)
    line = server.wait_for(r"error the successor of worker 1 .*", start)[0]
    assert why in line and line.endswith("; the workers that are not replaced yet serve on")
    assert server.serving(2) == before == server.workers()
    assert server.said.count("the successor of worker") == 1, "one attempt"
    release(tmp_path, second())
    start = server.tell(signal.SIGHUP)
    until("both are replaced", lambda: len(server.workers()) == 2 and not server.workers() & before)
    assert server.serving(2, "second") == server.workers()
    server.ends()


def test_a_second_deploy_gives_up_what_the_first_one_still_imports(crew: Start, tmp_path: Path) -> None:
    """One that would never end."""
    server = crew()
    before = server.serving(2)
    release(tmp_path, "import os, time\nprint('hangs', flush=True)\nwhile True: time.sleep(0.01)\n")
    start = server.tell(signal.SIGHUP)
    server.wait_for("hangs", start)
    release(tmp_path, second())
    start = server.tell(signal.SIGHUP)
    server.wait_for("info the successor of worker 1 is given up: a newer one starts", start)
    until("both are replaced", lambda: len(server.workers()) == 2 and not server.workers() & before)
    assert server.serving(2, "second") == server.workers()
    server.wait_for("info all workers are replaced", start)
    assert " error " not in server.said
    server.ends()


@pytest.mark.parametrize("asked", ["signal", "ctl"])
def test_logs_are_opened_anew_by_a_worker_that_still_imports(crew: Start, tmp_path: Path, asked: str) -> None:
    server = crew("--access-log", "access")
    before = server.serving(2)
    (tmp_path / "hold").touch()
    start = server.tell(signal.SIGHUP)
    starts = int(server.wait_for(r"imports in (\d+)", start)[1])
    (tmp_path / "access").rename(tmp_path / "access.1")
    if asked == "signal":
        server.process.send_signal(signal.SIGUSR1)
        server.wait_for("SIGUSR1: the log files are opened anew, also by the workers", start)
    else:
        server.change("reopen")
    (tmp_path / "hold").unlink()
    # The old one and its successor.
    line = r"\[1\] SIGUSR1: the log files are opened anew" if asked == "signal" else r"\[1\] control: the log files were opened anew"
    server.wait_for(rf"(?s)(?:{line}.*){{2}}", start)
    server.wait_for("info all workers are replaced", start)
    assert starts in server.serving(2) and not server.workers() & before
    until("each writes to the new file", lambda: (tmp_path / "access").read_text().count("\n") > 15)
    assert not [pid for pid in server.workers() if str(tmp_path / "access.1") in open_files(pid).values()]
    server.ends()


def test_a_release_that_is_broken_half_way_leaves_the_second_worker(crew: Start, tmp_path: Path) -> None:
    """One that only the first worker can load."""
    server = crew()
    before = server.serving(2)
    release(tmp_path, "import os\nos.mkdir('once')\n" + second())
    start = server.tell(signal.SIGHUP)
    line = server.wait_for(r"error the successor of worker 2 .*", start)[0]
    assert "FileExistsError" in line and line.endswith("; the worker serves on")
    until("one is replaced", lambda: len(server.workers()) == 2)
    assert len(server.workers() & before) == 1
    assert {server.answer()[0] for _ in range(20)} == {"first", "second"}
    server.ends()


def test_a_configuration_with_an_error_changes_nothing(crew: Start, tmp_path: Path) -> None:
    (tmp_path / "maitred.toml").write_text(FILE)
    server = crew()
    before = server.serving(2)
    for text, place in ((FILE.replace("= 4", "= four"), "maitred.toml:3: "), (FILE + "[pool\n", "maitred.toml:4: ")):
        (tmp_path / "maitred.toml").write_text(text)
        start = server.tell(signal.SIGHUP)
        line = server.wait_for(r"error SIGHUP: the configuration is not valid, nothing has changed and no worker is replaced: .*", start)
        assert place in line[0], line[0]
    assert server.serving(2) == before == server.workers()
    assert server.ask("settings", worker=1)["settings"] == server.ask("settings", worker=2)["settings"]
    (tmp_path / "maitred.toml").write_text(FILE.replace("= 4", "= 5"))
    server.tell(signal.SIGHUP)
    until("both are replaced", lambda: len(server.workers()) == 2 and not server.workers() & before)
    server.serving(2)
    assert setting(server, "pool.default.max-threads") == ["5", "5"]
    server.ends()


def setting(server: Crew, name: str) -> list[str]:
    """Its value in both workers."""
    rows = [server.ask("settings", worker=number)["settings"] for number in (1, 2)]
    return [str(next(row["value"] for row in found if row["name"] == name)) for found in rows]


def test_a_configuration_asks_for_other_numbers_of_workers(crew: Start, tmp_path: Path) -> None:
    """With a socket for each worker there are sockets for some more, and no others until a restart."""

    def become(count: int) -> str:
        (tmp_path / "maitred.toml").write_text(FILE + f'workers = {count}\naccept = "reuseport"\n')
        return server.wait_for(r"SIGHUP: (?:there are \d+ workers at most|workers \d+ -> \d+).*", server.tell(signal.SIGHUP))[0]

    (tmp_path / "maitred.toml").write_text(FILE + 'workers = 2\naccept = "reuseport"\n')
    server = crew(workers=None)
    before = server.serving(2)
    assert become(3) == "SIGHUP: workers 2 -> 3"
    until("three have been started", lambda: len(server.workers()) == 3 and not server.workers() & before)
    before = server.serving(3)
    assert become(1000) == "SIGHUP: there are 10 workers at most until a restart (accept = reuseport)"
    until("they are replaced", lambda: len(server.workers()) == 3 and not server.workers() & before)
    server.serving(3)
    assert server.ask("status")["workers_wanted"] == 3
    server.ends()


def test_one_that_hangs_at_its_start_is_given_up(crew: Start, tmp_path: Path) -> None:
    (tmp_path / "maitred.toml").write_text(FILE)
    server = crew()
    before = server.serving(2)
    (tmp_path / "hold").touch()
    (tmp_path / "maitred.toml").write_text(FILE + "start-timeout = 0.5\n")
    start = server.tell(signal.SIGHUP)
    server.wait_for(
        r"error the successor of worker 1 was not ready within 0.5 s \(start-timeout\) and was killed; "
        "the workers that are not replaced yet serve on", start,
    )  # fmt: skip
    assert server.serving(2) == before == server.workers()
    # The same of a new program: by the limit of the one that runs, or by its own, which is the same.
    start = server.tell(signal.SIGUSR2)
    server.wait_for(
        r"error SIGUSR2: the new program (?:was not ready within 0.5 s \(start-timeout\) and is ended|ended with exit code 1 "
        r"before it was ready); this one serves on", start,
    )  # fmt: skip
    until("the new program has ended with its workers", lambda: server.processes() == before | {server.process.pid})
    assert server.serving(2) == before
    (tmp_path / "hold").unlink()
    server.ends()


def test_a_new_program_takes_over(crew: Start, tmp_path: Path) -> None:
    server = crew("--listen", f"unix:{tmp_path}/app.sock", "--listen", "127.0.0.1:0")
    before = server.serving(2)
    peers = server.stay(2)
    release(tmp_path, second())
    bells = eventfds(server.process.pid)
    with asked_without_end(server):
        start = server.tell(signal.SIGUSR2)
        server.wait_for(r"info SIGUSR2: a new program starts as process \d+; this one serves until it is ready", start)
        server.wait_for(r"info process \d+ is ready and serves: this one drains and ends", start)
        assert server.leader != server.process.pid
        assert bells & eventfds(server.leader), "a worker that has been woken and ends calls those of the new program"
        assert server.serving(2, "second") == server.workers()
        assert before <= server.processes(), "their requests are not ended"
        (tmp_path / "go").touch()
        assert all(peer.getresponse().read().startswith(b"first ") for peer in peers)
        assert server.process.wait(PATIENCE) == 0
    assert server.processes() == server.workers() | {server.leader}
    assert (tmp_path / "app.sock").is_socket()
    until("it is asked", lambda: (tmp_path / "ctl.sock").exists())
    status = server.ask("status")
    assert status["pid"] == server.leader
    assert {row["pid"] for row in status["workers"]} == server.workers()
    # And so does the next one.
    between = server.leader
    start = server.tell(signal.SIGUSR2)
    server.wait_for(r"info process \d+ is ready and serves: this one drains and ends", start)
    until("the one between has ended", lambda: between not in server.processes())
    server.serving(2, "second")
    assert " error " not in server.said and " warn " not in server.said
    server.ends()
    assert not (tmp_path / "app.sock").exists() and not (tmp_path / "ctl.sock").exists()


def eventfds(pid: int) -> set[str]:
    """Their numbers, which are the same in all processes that share one (proc(5))."""
    found = set()
    for place in Path(f"/proc/{pid}/fdinfo").iterdir():
        with contextlib.suppress(FileNotFoundError):  # It has been closed since.
            found |= {line for line in place.read_text().splitlines() if line.startswith("eventfd-id:")}
    return found


@pytest.mark.parametrize(
    "program, code, cause",
    [
        ("import no_such_module\n", 1, "ModuleNotFoundError"),
        ("def main(\n", 1, "SyntaxError"),
        ("import os\nos.abort()\n", "signal 6", ""),
    ],
)
def test_a_new_program_that_does_not_run_changes_nothing(
    crew: Start, tmp_path: Path, program: str, code: int | str, cause: str
) -> None:
    (tmp_path / "serve.py").write_text(PROGRAM)
    server = crew(program="serve.py")
    before = server.serving(2)
    (tmp_path / "serve.py").write_text(program)
    how = f"ended with exit code {code}" if isinstance(code, int) else f"was killed by {code}"
    refuses(server, how)
    assert cause in server.said
    assert server.serving(2) == before == server.workers()
    (tmp_path / "serve.py").write_text(PROGRAM)
    start = server.tell(signal.SIGUSR2)
    server.wait_for(r"info process \d+ is ready and serves: this one drains and ends", start)
    assert server.serving(2).isdisjoint(before)
    server.ends()


def refuses(server: Crew, how: str) -> None:
    start = server.tell(signal.SIGUSR2)
    server.wait_for(f"error SIGUSR2: the new program {how} before it was ready; this one serves on", start)


def test_a_new_program_with_what_is_broken_changes_nothing(crew: Start, tmp_path: Path) -> None:
    """An application that cannot be imported, and a configuration with an error."""
    (tmp_path / "maitred.toml").write_text(FILE)
    server = crew()
    before = server.serving(2)
    release(tmp_path, "import no_such_module\n")
    with asked_without_end(server):
        refuses(server, "ended with exit code 2")
    assert re.search("No module named 'no_such_module'.*; no worker could start, so the server ends", server.said)
    release(tmp_path, second())
    (tmp_path / "maitred.toml").write_text(FILE.replace("= 4", "= four"))
    start = len(server.said)
    refuses(server, "ended with exit code 2")
    assert re.search("maitred: .*maitred.toml:3: ", server.said[start:]), server.said[start:]
    assert server.serving(2) == before == server.workers()
    assert server.processes() == before | {server.process.pid}
    server.ends()


def test_a_stop_during_a_replacement_is_no_failure(crew: Start, tmp_path: Path) -> None:
    server = crew()
    (tmp_path / "hold").touch()
    start = server.tell(signal.SIGHUP)
    server.wait_for("imports in", start)
    server.ends()
    assert "asked to end" not in server.said


def test_a_stop_during_an_upgrade_ends_both_programs(crew: Start, tmp_path: Path) -> None:
    server = crew()
    (tmp_path / "hold").touch()
    start = server.tell(signal.SIGUSR2)
    server.wait_for("imports in", start)
    server.ends()


def test_the_killed_predecessor_of_a_program_that_starts_leaves_nothing_or_one_that_serves(crew: Start, tmp_path: Path) -> None:
    server = crew()
    (tmp_path / "hold").touch()
    start = server.tell(signal.SIGUSR2)
    started = int(server.wait_for(r"a new program starts as process (\d+)", start)[1])
    server.wait_for("imports in", start)
    os.kill(server.process.pid, signal.SIGKILL)
    server.process.wait(PATIENCE)
    (tmp_path / "hold").unlink()
    server.wait_for("info all workers are ready", start)
    until("the workers of the one before have ended", lambda: len(server.processes()) == 3)
    assert server.answer()[0] == "first"
    os.kill(started, signal.SIGTERM)
    until("no process is left", lambda: not server.processes())
