"""Options of every day: what platforms set, paths that are not logged, ids for clients, programs in the browser, large heads."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from conftest import MAITRED, PATIENCE, Serve, environment_for
from crews import until

APP = """
def app(environ, start_response):
    fields = [("Content-Type", "text/plain")]
    if environ["PATH_INFO"] == "/own":
        fields.append(("X-Request-ID", "mine"))
    start_response("200 OK", fields)
    return [str(len(environ.get("HTTP_COOKIE", ""))).encode()]
"""


def test_a_platform_says_where_to_listen_and_how_many_serve(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(APP)
    environment = environment_for({"PORT": "8123", "WEB_CONCURRENCY": "2"})
    done = subprocess.run([MAITRED, "check", "app.py"], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=PATIENCE)
    assert re.search(r'^listen += \[?":8123"\]? +# environment variable PORT$', done.stdout, re.MULTILINE), done.stdout
    assert re.search(r"^workers += 2 +# environment variable WEB_CONCURRENCY$", done.stdout, re.MULTILINE), done.stdout
    server = serve(source=APP, PORT="8123", WEB_CONCURRENCY="2")
    server.wait_for("info all workers are ready")
    assert server.ports != [8123], "--listen counts more"
    assert server.fetch("/").status == 200


def test_paths_can_be_left_out_of_the_access_log(serve: Serve, tmp_path: Path) -> None:
    options = ("--access-log", "log", "--access-log-format", "$path", "--health-path", "/healthz")
    server = serve(*options, "--access-log-except", "/healthz", "--access-log-except", "/assets/*", source=APP)
    for path in ("/healthz", "/assets/a.css", "/assets/b/c.js?x", "/a", "/assetsx"):
        server.fetch(path)
    server.fetch("/last")
    until("the last is logged", lambda: "/last" in (tmp_path / "log").read_text())
    assert (tmp_path / "log").read_text().split() == ["/a", "/assetsx", "/last"]


def test_clients_hear_the_id_that_the_logs_have(serve: Serve, tmp_path: Path) -> None:
    server = serve("--access-log", "log", "--access-log-format", "json", "--response-ids", source=APP)
    made = server.fetch("/").headers["X-Request-ID"]
    given = server.fetch("/", X_Request_ID="brought-7").headers["X-Request-ID"]
    own = server.fetch("/own").headers["X-Request-ID"]
    until("all are logged", lambda: (tmp_path / "log").read_text().count("\n") == 3)
    logged = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert {made, given} < {row["id"] for row in logged} and given == "brought-7"
    assert own == "mine"
    server = serve("--access-log", "errors", "--access-log-format", "$status $request_id", "--response-ids", "--static", "/static=.", source=APP)
    gone, large = server.fetch("/static/gone"), server.fetch("/", Cookie="x" * 20_000)
    until("both are logged", lambda: (tmp_path / "errors").read_text().count("\n") == 2)
    expected = [f"{reply.status} {reply.headers['X-Request-ID']}" for reply in (gone, large)]
    # Each event loop writes its lines at a time of its own.
    assert sorted((tmp_path / "errors").read_text().splitlines()) == expected and expected[0].startswith("404"), expected
    assert all(row["db"] == 0 and row["db_statements"] == 0 for row in logged)


@pytest.fixture
def built(tmp_path: Path) -> Path:
    folder = tmp_path / "dist"
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_text("<title>the program</title>")
    (folder / "assets/app.js").write_text("run()")
    (tmp_path / "app.py").write_text(APP)
    return folder


def test_a_program_in_the_browser_has_paths_of_its_own(serve: Serve, built: Path) -> None:
    server = serve("--static", "/=dist,fallback=index.html", "--mount", "/api=app:app")
    page = b"<title>the program</title>"
    for path in ("/", "/users/7", "/users/7/", "/users/7?tab=a"):
        answer = server.fetch(path)
        assert (answer.status, answer.body, answer.headers["Content-Type"]) == (200, page, "text/html; charset=utf-8"), path
    tag = server.fetch("/users/7").headers["ETag"]
    assert server.fetch("/else", If_None_Match=str(tag)).status == 304
    assert server.fetch("/assets/app.js").body == b"run()"
    assert server.fetch("/assets/gone.js").status == 404
    assert server.fetch("/users/john.doe", Accept="text/html,*/*").body == page
    assert server.fetch("/.env", Accept="text/html").status == 404
    assert server.fetch("/users/7", method="POST").status == 405
    assert server.fetch("/api/x").body == b"0"
    command = [str(MAITRED), "ctl", "--port", str(server.port), "--json", "explain", "/users/7"]
    explained = json.loads(subprocess.run(command, capture_output=True, timeout=PATIENCE, check=True).stdout)
    assert explained["status"] == 200 and explained["file"].endswith("/dist/index.html"), explained
    (built / "users").mkdir()
    (built / "users/7").write_text("a file")
    until("the file is seen", lambda: server.fetch("/users/7").body == b"a file")


@pytest.mark.parametrize(("value", "what"), [("none.html", "there is no file /none.html"), ("../secret", "is no file of a folder")])
def test_a_fallback_that_is_not_there_prevents_the_start(serve: Serve, built: Path, value: str, what: str) -> None:
    with pytest.raises(AssertionError, match=re.escape(what)):
        serve("--static", f"/=dist,fallback={value}")


def test_heads_are_as_large_as_the_options_say(serve: Serve) -> None:
    cookie = "a=" + "x" * 32_000
    server = serve(source=APP)
    assert server.fetch("/", Cookie=cookie).status == 431
    server.wait_for(r"431 Request Header Fields Too Large: field too large \(--max-field\)")
    assert server.fetch("/", **{f"X-{number}": "x" * 10_000 for number in range(9)}).status == 431
    server.wait_for(r"431 Request Header Fields Too Large: request head too large \(--max-head\)")
    server = serve("--max-field", "48k", "--max-head", "128k", source=APP)
    assert server.fetch("/", Cookie=cookie).body == b"32002"
    many: dict[str, Any] = {f"X_{number}": "x" * 10_000 for number in range(9)}
    assert server.fetch("/", Cookie=cookie, **many).status == 200
    assert server.fetch("/", Cookie="a=" + "x" * 50_000).status == 431
