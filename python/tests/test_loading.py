"""Where an application is found and what surrounds it: the options of loading, with the real command."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import MAITRED, PATIENCE, Serve

# Answers with what the query asks for: an expression over `environ` and what the module knows.
SHOW = """
import os, sys
from urllib.parse import unquote

def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain; charset=utf-8")])
    return [str(eval(unquote(environ["QUERY_STRING"]))).encode()]
"""


def failed(folder: Path, *arguments: str, **environment: str) -> str:
    """The error line of a command that does not start."""
    done = subprocess.run(
        [MAITRED, *arguments, "--listen", "127.0.0.1:0"],
        cwd=folder,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert (done.returncode, done.stdout) == (2, "")
    return done.stderr.splitlines()[-1]


@pytest.mark.parametrize("options", [[], ["--workers", "2"]])
def test_who_connects_while_the_application_is_imported_waits(tmp_path: Path, options: list[str]) -> None:
    os.mkfifo(tmp_path / "go")
    (tmp_path / "app.py").write_text('open("go").read()\n' + SHOW)
    command = [MAITRED, "app.py", "--listen", f"unix:{tmp_path}/web.sock", *options]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        assert any("importing app.py" in line for line in process.stderr)
        with socket.socket(socket.AF_UNIX) as peer:
            peer.settimeout(PATIENCE)
            peer.connect(str(tmp_path / "web.sock"))
            peer.sendall(b"GET /?1+1 HTTP/1.0\r\n\r\n")
            (tmp_path / "go").write_text("")
            answer = b"".join(iter(lambda: peer.recv(65536), b""))
        assert (answer[:15], answer[-1:]) == (b"HTTP/1.1 200 OK", b"2")
    finally:
        # Behind a killed supervisor workers drain, and hold standard error.
        process.terminate()
        process.communicate(timeout=PATIENCE)


def test_a_factory_is_called_once(serve: Serve) -> None:
    source = SHOW + "calls = []\ndef create_app(): calls.append(1); return app\ndef other(setting=2): return app\n"
    server = serve("--factory", source=source)
    assert server.fetch("/?len(calls)").body == b"1"
    assert server.fetch("/?len(calls)").body == b"1"
    assert "serving WSGI app.py:create_app()" in server.said
    server = serve("app:other", "--factory")
    assert server.fetch("/?len(calls)").body == b"0"
    assert "serving WSGI app:other()" in server.said


def test_the_application_is_found_in_app_dir(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "site_s.py").write_text(SHOW)
    # A folder of that name would be served if the module were not looked for first.
    (tmp_path / "site_s").mkdir()
    server = serve("site_s:app", "--app-dir", "src")
    assert server.fetch("/?os.getcwd()").body.decode() == str(tmp_path)
    assert server.fetch("/?sys.path[0]").body.decode() == str(tmp_path / "src")
    server = serve("site_s", "--app-dir", "src")
    assert server.fetch("/?1").body == b"1"


def test_chdir_comes_before_everything_but_the_configuration(serve: Serve, tmp_path: Path) -> None:
    below = tmp_path / "below"
    (below / "files").mkdir(parents=True)
    (below / "files" / "a.txt").write_text("text")
    (below / "settings.env").write_text("SETTING=below")
    (below / "site_c.py").write_text(SHOW)
    (tmp_path / "maitred.toml").write_text('chdir = "below"\nstatic = "/files=files"\nenv-file = "settings.env"\n')
    server = serve("site_c")
    assert server.fetch("/?os.getcwd()").body.decode() == str(below)
    assert server.fetch("/?os.environ['SETTING']").body == b"below"
    assert server.fetch("/files/a.txt").body == b"text"


def test_variables_of_the_env_file_are_there_during_the_import(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "settings.env").write_text(
        "# for the tests\nexport FIRST=one\nSECOND='two words' # comment\nTHIRD=\"a\\nb\"\nGIVEN=file\n"
    )
    source = "import os\nFIRST = os.environ['FIRST']\n" + SHOW
    server = serve("--env-file", "settings.env", source=source, GIVEN="environment")
    assert server.fetch("/?FIRST").body == b"one"
    assert server.fetch("/?os.environ['SECOND']").body == b"two words"
    assert server.fetch("/?os.environ['THIRD']").body == b"a\nb"
    assert server.fetch("/?os.environ['GIVEN']").body == b"environment"
    assert server.fetch("/?os.popen('echo%20$FIRST').read()").body == b"one\n", "children have them too"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--env-file", "none.env"], "maitred: --env-file: none.env cannot be read: "),
        (["--env-file", "bad.env"], "maitred: bad.env:2: there is no '='; write NAME=value"),
        (["--chdir", "nowhere"], "maitred: --chdir: there is no folder nowhere; "),
        (["--app-dir", "nowhere"], "maitred: --app-dir: there is no folder nowhere; "),
        (["--root-path", "site"], "maitred: --root-path: 'site' does not start with '/'; "),
        (["app:refuses", "--factory"], "maitred: app:refuses: app:refuses() failed: ValueError: not today; "),
        (["app:wrong", "--factory"], "maitred: app:wrong: app:wrong() returned int, which is not callable; "),
        (["app:app", "--factory"], "maitred: app:app: app:app cannot be called without arguments: "),
        (["app:wrong"], "maitred: app:wrong: app:wrong can be called neither with (environ, start_response) nor with"),
        (["app", "--factory"], "maitred: app: app has neither create_app nor make_app; name one: "),
    ],
)
def test_errors_are_one_line_that_says_where(tmp_path: Path, arguments: list[str], expected: str) -> None:
    (tmp_path / "bad.env").write_text("A=1\nB\n")
    (tmp_path / "app.py").write_text(SHOW + "def refuses(): raise ValueError('not today')\ndef wrong(): return 7\n")
    if arguments[0].startswith("--"):
        arguments = ["app", *arguments]
    assert failed(tmp_path, *arguments).startswith(expected)


def test_a_root_path_is_taken_off_what_is_below_it_and_put_back_elsewhere(serve: Serve) -> None:
    server = serve("--root-path", "/si\u00f8/a/", source=SHOW)
    pair = "environ['SCRIPT_NAME'],environ['PATH_INFO'].encode('latin-1').decode()"
    for path, expected in [
        ("/si%C3%B8/a/page", ("/siø/a".encode().decode("latin-1"), "/page")),
        ("/si%C3%B8/a/", ("/siø/a".encode().decode("latin-1"), "/")),
        ("/si%C3%B8/a", ("/siø/a".encode().decode("latin-1"), "")),
        ("/si%C3%B8/ab", ("/siø/a".encode().decode("latin-1"), "/siø/ab")),
        ("/other", ("/siø/a".encode().decode("latin-1"), "/other")),
    ]:
        assert server.fetch(f"{path}?{pair}").body.decode() == str(expected), path
    asked = "/si%C3%B8/a/page?environ['REQUEST_URI']"
    assert server.fetch(asked).body.decode() == asked, "what was asked for stays"


def test_check_looks_whether_the_application_is_there_and_imports_nothing(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "wsgi.py").write_text("raise SystemExit('imported')")
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "__init__.py").write_text("raise SystemExit('imported')")
    (tmp_path / "shop" / "web.py").write_text("raise SystemExit('imported')")

    def check(*arguments: str) -> tuple[int, str]:
        done = subprocess.run(
            [MAITRED, "check", *arguments], cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE
        )
        return done.returncode, (done.stderr.splitlines() or [""])[-1]

    for arguments in [["shop.web:app"], ["shop:app"], ["site/wsgi.py"], ["wsgi:app", "--app-dir", "site"], ["json:app"], ["sys:app"]]:
        assert check(*arguments) == (0, ""), arguments
    for arguments, hint in [
        (["wsgi:app"], "site/wsgi.py is there: add --app-dir site"),
        (["shop.wab:app"], "no module named 'shop.wab'"),
        (["site/wsgj.py"], "did you mean site/wsgi.py?"),
    ]:
        code, said = check(*arguments)
        assert code == 2 and hint in said, (arguments, said)


def test_a_fault_in_the_views_of_django_is_found_at_the_start(serve: Serve, tmp_path: Path) -> None:
    """Django imports them at the first request only: with a deploy, that would be a user's."""
    source = """
import django
from django.conf import settings
from django.core.wsgi import get_wsgi_application
settings.configure(ROOT_URLCONF="urls_of_it", ALLOWED_HOSTS=["*"], SECRET_KEY="x")
app = get_wsgi_application()
"""
    (tmp_path / "urls_of_it.py").write_text("from django.urls import include, path\nurlpatterns = [path('a/', include('urls_of_a'))]\n")
    good = "from django.http import HttpResponse\nfrom django.urls import path\nurlpatterns = [path('', lambda request: HttpResponse('a'))]\n"
    (tmp_path / "urls_of_a.py").write_text(good)
    server = serve("--workers", "2", source=source, PYTHONDONTWRITEBYTECODE="1")
    server.wait_for("all workers are ready")
    assert server.fetch("/a/").body == b"a"
    (tmp_path / "urls_of_a.py").write_text(good + "def broken(:\n")
    start = len(server.said)
    server.process.send_signal(signal.SIGHUP)
    server.wait_for(r"importing the URLs of Django \(urls_of_it\) failed: .*SyntaxError[\s\S]*serve on", start)
    assert server.fetch("/a/").body == b"a"
    (tmp_path / "urls_of_a.py").write_text(good.replace("'a')", "'b')"))
    start = len(server.said)
    server.process.send_signal(signal.SIGHUP)
    server.wait_for("info all workers are replaced", start)
    assert server.fetch("/a/").body == b"b"


def environment_at(folder: Path, *modules: str) -> Path:
    """What is looked at of a virtual environment."""
    packages = folder / "lib" / "python3.13" / "site-packages"
    for module in modules:
        (packages / module).mkdir(parents=True)
    folder.mkdir(exist_ok=True)
    (folder / "pyvenv.cfg").write_text("home = /usr/bin\n")
    return folder


def test_another_virtual_environment_is_named_where_a_module_is_missing(tmp_path: Path) -> None:
    (tmp_path / "site_v.py").write_text("import absent_library.part\n")
    (tmp_path / "site_f.py").write_text("def create_app():\n    import absent_library\n")
    runs = f"maitred runs in {sys.prefix}, but "
    active = environment_at(tmp_path / "active")
    python = active / "bin" / "python"
    todo = f"install maitred there, {python} -m pip install maitred, and start it as {python} -m maitred"
    for arguments in (["site_v"], ["site_v.py:app"], ["site_f", "--factory"]):
        line = failed(tmp_path, *arguments, VIRTUAL_ENV=str(active))
        assert "No module named 'absent_library'" in line and line.endswith(f"{runs}VIRTUAL_ENV is {active}: {todo}")
    environment_at(active, "absent_library", "maitred")
    line = failed(tmp_path, "site_v", VIRTUAL_ENV=str(active))
    assert line.endswith(f"{runs}VIRTUAL_ENV is {active}, which has absent_library: start maitred as {python} -m maitred")
    line = failed(tmp_path, "absent_library:app", VIRTUAL_ENV=str(active))
    assert line.endswith(f"VIRTUAL_ENV is {active}, which has absent_library: start maitred as {python} -m maitred")
    assert failed(tmp_path, "site_v", VIRTUAL_ENV=sys.prefix).endswith("see the traceback above"), "the same one"
    own = environment_at(tmp_path / ".venv")
    assert failed(tmp_path, "site_v", VIRTUAL_ENV="").endswith("see the traceback above"), "it has no such module"
    environment_at(own, "absent_library")
    line = failed(tmp_path, "site_v", VIRTUAL_ENV="")
    assert f"the application's environment may be {own}, which has absent_library: install maitred there" in line
