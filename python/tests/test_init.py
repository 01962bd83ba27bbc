"""maitred init: what it finds in the folder of a project, and that the file it writes serves."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from conftest import MAITRED, PATIENCE, Serve, environment_for, needs

FLASK = """
from flask import Flask
app = Flask(__name__)

@app.get("/")
def index():
    return "by Flask"
"""

FLASK_FACTORY = """
from flask import Flask

def create_app(config=None):
    app = Flask(__name__)

    @app.get("/")
    def index():
        return "by a factory"

    return app
"""

FASTAPI = """
from fastapi import FastAPI
from shop.parts import name
api = FastAPI()

@api.get("/")
def index():
    return name
"""

PLAIN = """
def application(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"by WSGI"]
"""

PLAIN_ASGI = """
async def app(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"by ASGI"})
"""


def init(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [MAITRED, "init", *arguments]
    return subprocess.run(command, cwd=folder, env=environment_for({}), capture_output=True, text=True, timeout=PATIENCE)


def check(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([MAITRED, "check"], cwd=folder, env=environment_for({}), capture_output=True, text=True, timeout=PATIENCE)


def put(folder: Path, name: str, text: str) -> None:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def wrote(folder: Path, *arguments: str) -> str:
    """The file that init has written, which the check has accepted."""
    done = init(folder, *arguments)
    assert done.returncode == 0, done.stderr
    assert "next: maitred check; maitred" in done.stdout
    checked = check(folder)
    assert checked.returncode == 0, checked.stderr
    return (folder / "maitred.toml").read_text()


@pytest.mark.parametrize(
    "file, source, line, body",
    [
        ("app.py", FLASK, 'application = "app:app"', b"by Flask"),
        ("web/__init__.py", FLASK_FACTORY, 'application = "web:create_app"', b"by a factory"),
        ("src/shop/main.py", FASTAPI, 'application = "shop.main:api"', b'"by FastAPI"'),
        ("wsgi.py", PLAIN, 'application = "wsgi:application"', b"by WSGI"),
        ("my-site.py", PLAIN_ASGI, 'application = "my-site.py:app"', b"by ASGI"),
    ],
)
def test_an_application_is_found_and_served(
    serve: Serve, tmp_path: Path, file: str, source: str, line: str, body: bytes
) -> None:
    for framework in ("flask", "fastapi"):
        if framework in source:
            needs(framework)
    put(tmp_path, file, source)
    put(tmp_path, "src/shop/parts.py", 'name = "by FastAPI"\n')
    put(tmp_path, "tests/app.py", PLAIN)
    text = wrote(tmp_path)
    assert line in text
    assert ("factory = true" in text) == ("create_app" in source)
    server = serve()
    assert server.fetch("/").body == body


def test_django_is_found_with_its_static_files_without_importing_it(serve: Serve, tmp_path: Path) -> None:
    django = pytest.importorskip("django")
    made = subprocess.run([sys.executable, "-m", "django", "startproject", "site1", tmp_path], capture_output=True, text=True)
    assert made.returncode == 0, (made.stderr, django)
    settings = tmp_path / "site1" / "settings.py"
    text = settings.read_text().replace("ALLOWED_HOSTS = []", 'ALLOWED_HOSTS = ["*"]')
    settings.write_text(text + '\nSTATIC_ROOT = BASE_DIR / "collected"\n')
    told = init(tmp_path)
    assert told.returncode == 0 and "collectstatic" in told.stdout, told.stdout
    assert '# static = ["/static=collected"]' in (tmp_path / "maitred.toml").read_text()
    put(tmp_path, "collected/a.css", "body {}")
    # An import would fail now: only the text is read.
    settings.write_text(text + '\nSTATIC_ROOT = BASE_DIR / "collected"\n' + "import os\nif not os.environ.get('SERVED'): raise RuntimeError\n")
    written = wrote(tmp_path, "--force")
    assert 'application = "site1.wsgi:application"' in written
    assert 'static = ["/static=collected"]' in written
    server = serve(SERVED="yes")
    assert server.fetch("/static/a.css").body == b"body {}"
    assert server.fetch("/admin/").status == 302


@pytest.mark.parametrize(
    "settings, debug, hosts",
    [
        ("DEBUG = True\nALLOWED_HOSTS = []\n", True, True),
        ("DEBUG = False\nALLOWED_HOSTS = []\n", False, True),
        ("DEBUG = True\nALLOWED_HOSTS = ['shop.example']\n", True, False),
        ("DEBUG = False\nALLOWED_HOSTS = []\nALLOWED_HOSTS.append('shop.example')\n", False, False),
        ("import os\nDEBUG = os.environ.get('DEBUG') == '1'\nALLOWED_HOSTS = []\nALLOWED_HOSTS += ['a']\n", False, False),
        ("DEBUG = True\nALLOWED_HOSTS = ['a']\nif 'production':\n    DEBUG = False\n", False, False),
    ],
)
def test_settings_of_django_that_the_public_should_not_meet_are_warned_of(tmp_path: Path, settings: str, debug: bool, hosts: bool) -> None:
    put(tmp_path, "manage.py", 'import os\nos.environ.setdefault("DJANGO_SETTINGS_MODULE", "shop.settings")\n')
    put(tmp_path, "shop/settings.py", settings)
    put(tmp_path, "shop/wsgi.py", "from django.core.wsgi import get_wsgi_application\napplication = get_wsgi_application()\n")
    done = init(tmp_path)
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "maitred.toml").read_text()
    for warned, line in ((debug, "shop/settings.py:1 has DEBUG = True: everybody sees"), (hosts, "shop/settings.py:2 has no names in ALLOWED_HOSTS: with")):
        assert (f"\nwarning: {line}" in done.stdout) == warned, done.stdout
        assert (f"\n# Warning: {line}" in text) == warned, text


def test_offers_are_lines_that_the_server_takes(tmp_path: Path) -> None:
    put(tmp_path, "app.py", PLAIN)
    text = wrote(tmp_path)
    assert "'maitred help all'" in text and "'maitred --help'" not in text
    helped = subprocess.run([MAITRED, "help", "all"], env=environment_for({}), capture_output=True, text=True, timeout=PATIENCE)
    assert helped.returncode == 0
    offers = ['listen = ["https://:443", "http://:80,redirect=https"]', 'pid-file = "maitred.pid"']
    for offer in offers:
        assert f"\n# {offer}\n" in text, text
    text = text.replace('\nlisten = "127.0.0.1:8000"\n', "\n").replace("# tls-cert = ", "tls-cert = ").replace("# tls-key = ", "tls-key = ")
    for offer in offers:
        text = text.replace(f"\n# {offer}\n", f"\n{offer}\n")
    made = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30", "-subj", "/CN=a"]
    made += ["-keyout", tmp_path / "privkey.pem", "-out", tmp_path / "fullchain.pem"]
    subprocess.run(made, check=True, capture_output=True)
    (tmp_path / "maitred.toml").write_text(text)
    checked = check(tmp_path)
    assert checked.returncode == 0, checked.stderr
    assert "http://:80,redirect=https" in checked.stdout and '"maitred.pid"' in checked.stdout


def test_a_static_folder_is_served_without_the_file_itself(serve: Serve, tmp_path: Path) -> None:
    put(tmp_path, "index.html", "<h1>hello</h1>")
    assert 'application = "."' in wrote(tmp_path)
    server = serve()
    assert server.fetch("/").body == b"<h1>hello</h1>"
    assert server.fetch("/maitred.toml").status == 403


def test_the_folder_of_a_built_site_is_found(tmp_path: Path) -> None:
    put(tmp_path, "dist/index.html", "<h1>hello</h1>")
    assert 'application = "dist"' in wrote(tmp_path)


def test_several_applications_are_listed_and_one_is_named(tmp_path: Path) -> None:
    put(tmp_path, "shop/app.py", PLAIN)
    put(tmp_path, "blog/app.py", PLAIN)
    done = init(tmp_path)
    assert done.returncode == 2 and not (tmp_path / "maitred.toml").exists()
    assert "2 applications were found" in done.stderr
    assert "maitred init --application blog.app:application    # WSGI, blog/app.py:2" in done.stderr
    assert 'application = "shop.app:application"' in wrote(tmp_path, "--application", "shop.app:application")


def test_a_file_that_is_there_stays(tmp_path: Path) -> None:
    put(tmp_path, "app.py", PLAIN)
    put(tmp_path, "maitred.toml", "# mine\n")
    done = init(tmp_path)
    assert done.returncode == 2 and "is there already" in done.stderr
    shown = init(tmp_path, "--print")
    assert 'application = "app:application"' in shown.stdout
    assert (tmp_path / "maitred.toml").read_text() == "# mine\n"
    assert init(tmp_path, "--force").returncode == 0
    assert "# mine" not in (tmp_path / "maitred.toml").read_text()


def test_nothing_found_is_one_line_with_the_way_on(tmp_path: Path) -> None:
    done = init(tmp_path)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1 and "maitred init --application MODULE:ATTR" in done.stderr


@pytest.mark.parametrize("source", ["x = (", "\0", "def f(:\n", "é" * 10])
def test_files_that_are_no_python_are_passed_over(tmp_path: Path, source: str) -> None:
    put(tmp_path, "broken.py", source)
    put(tmp_path, "app.py", PLAIN)
    assert 'application = "app:application"' in wrote(tmp_path)


def test_a_django_project_in_a_folder_below_gets_its_app_dir(serve: Serve, tmp_path: Path) -> None:
    needs("django")
    backend = tmp_path / "backend"
    backend.mkdir()
    made = subprocess.run([sys.executable, "-m", "django", "startproject", "site2", backend], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    settings = backend / "site2" / "settings.py"
    settings.write_text(settings.read_text().replace("ALLOWED_HOSTS = []", 'ALLOWED_HOSTS = ["*"]') + '\nSTATIC_ROOT = BASE_DIR / "collected"\n')
    put(tmp_path, "frontend/index.html", "")
    told = init(tmp_path)
    assert told.returncode == 0, told.stderr
    assert "next: python backend/manage.py collectstatic" in told.stdout
    assert "warning: backend/site2/settings.py:" in told.stdout
    text = (tmp_path / "maitred.toml").read_text()
    assert 'application = "site2.wsgi:application"' in text and 'app-dir = "backend"' in text
    assert '# static = ["/static=backend/collected"]' in text
    assert serve().fetch("/admin/").status == 302


def test_applications_beside_a_django_project_are_offered_too(tmp_path: Path) -> None:
    for name in ("one", "two/inner"):
        put(tmp_path, f"{name}/manage.py", 'import os\nos.environ.setdefault("DJANGO_SETTINGS_MODULE", "shop.settings")\n')
        put(tmp_path, f"{name}/shop/settings.py", "")
        put(tmp_path, f"{name}/shop/wsgi.py", "from django.core.wsgi import get_wsgi_application\napplication = get_wsgi_application()\n")
    put(tmp_path, "hello/wsgi.py", PLAIN)
    done = init(tmp_path)
    assert done.returncode == 2
    assert [line.split()[-1] for line in done.stderr.splitlines()[1:]] == ["one/shop/wsgi.py", "two/inner/shop/wsgi.py", "hello/wsgi.py:2"]


DASH = """
class Dash:
    def __init__(self, name):
        def server(environ, start_response):
            start_response("200 OK", [])
            return [b"from Dash"]
        self.server = server
"""


@pytest.mark.parametrize("more", ["", "server = app.server\n"])
def test_dash_is_served_by_its_server(serve: Serve, tmp_path: Path, more: str) -> None:
    put(tmp_path, "dash/__init__.py", DASH)
    put(tmp_path, "board.py", "from dash import Dash\napp = Dash(__name__)\n" + more)
    assert 'application = "board:app.server"' in wrote(tmp_path)
    assert serve().fetch("/").body == b"from Dash"
    for target in ("board", "board:app"):
        server = serve(target)
        assert server.fetch("/").body == b"from Dash"
        server.wait_for("serving WSGI board:app.server")
