"""The files in which people publish how a server is started: each is read, and what is not understood of it is said."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from migrating import migrated


def lines(done: subprocess.CompletedProcess[str]) -> list[str]:
    return [line.partition("  # ")[0] for line in done.stdout.partition("# To be")[0].splitlines()]


DOCKERFILE = """\
FROM python:3.12 AS build
CMD ["gunicorn", "old:app"]
FROM python:3.12-slim
ENV PORT=8080 \\
    STAGE="one two"
WORKDIR /app
# CMD uvicorn no:app
CMD exec gunicorn --bind :$PORT --workers 2 \\
    --threads 8 main:app
"""

COMPOSE = """\
services:
  db: { image: postgres }
  web:
    build: .
    command: sh -c "python manage.py migrate && gunicorn shop.wsgi:application --bind 0.0.0.0:8000 -w 3"
    environment:
      - DEBUG=0   # no
      - SECRET=${SECRET}
      NAME: &anchor x
  api:
    entrypoint:
      - uvicorn
      - "api:app"
"""

SUPERVISORD = """\
[supervisord]
nodaemon=true
[program:web]
command=/srv/venv/bin/gunicorn shop.wsgi
    -b 127.0.0.1:8001 --workers 2 ; it goes on
environment=A="b,c",C=d
user=www-data
[program:worker]
command=celery worker
"""

SHELL = """\
#!/bin/sh
set -e
export STAGE=production
NAME="shop"
python manage.py collectstatic --noinput
exec daphne -b 0.0.0.0 -p 8001 ${NAME}.asgi:application "$@"
"""


@pytest.mark.parametrize(
    "name, text, wanted, said",
    [
        ("Dockerfile", DOCKERFILE, ['application = "main:app"', 'listen = [":8080"]', "workers = 2", "max-threads = 8"], ["it was started in /app", "STAGE"]),
        (
            "Dockerfile", 'FROM x\nENTRYPOINT ["tini", "--"]\nCMD ["uvicorn", "a:b", "--port", "80"]\n',
            ['application = "a:b"', 'listen = ["127.0.0.1:80"]'], [],
        ),
        ("Dockerfile", 'FROM x\nENTRYPOINT ["gunicorn"]\nCMD ["-w", "3", "a:b"]\n', ["workers = 3", 'application = "a:b"'], []),
        ("Dockerfile", "FROM x\nENTRYPOINT [gunicorn, a:b]\nCMD uvicorn a:b\n", ['application = "a:b"'], ["Dockerfile:2: ENTRYPOINT is no list of JSON"]),
        (
            "compose.yaml", COMPOSE, ['application = "shop.wsgi:application"', 'listen = ["0.0.0.0:8000"]', "workers = 3"],
            ["'python manage.py migrate' ran beside the server", "compose.yaml:9: this variable is not read", "compose.yaml:11: another server is started there"],
        ),
        ("compose.yml", "services:\n  a:\n    command: *other\n  b:\n    command: [granian, '--interface', wsgi, \"a:b\"]\n", ['interface = "wsgi"'], ["compose.yml:3: anchors, tags and maps"]),
        ("compose.yml", "services:\n  a:\n    command: >\n      gunicorn a:b\n      -w 4\n", ["workers = 4"], []),
        ("web.conf", SUPERVISORD, ['application = "shop.wsgi:application"', 'listen = ["127.0.0.1:8001"]', "workers = 2"], ["it ran as www-data", "A, C"]),
        ("start.sh", SHELL, ['application = "shop.asgi:application"', 'listen = ["0.0.0.0:8001"]'], ["STAGE"]),
        ("run.sh", "waitress-serve --listen=*:8080 --threads=6 --call shop:create_app &\n", ["factory = true", "max-threads = 6", 'listen = [":8080"]'], []),
        (
            "web.service", "[Service]\nExecStart=/srv/v/bin/python -m daphne -u /run/a.sock a.asgi:application\n",
            ['listen = ["unix:/run/a.sock,mode=666"]', 'application = "a.asgi:application"'], [],
        ),
        ("Procfile", "web: waitress-serve --port=$PORT shop:app\n", ['application = "shop:app"', "max-threads = 4"], ["the port is $PORT"]),
    ],
)  # fmt: skip
def test_the_command_is_found(tmp_path: Path, name: str, text: str, wanted: list[str], said: list[str]) -> None:
    (tmp_path / name).write_text(text)
    done = migrated(tmp_path, name)
    assert done.returncode in (0, 3), done.stdout + done.stderr
    for line in wanted:
        assert line in lines(done), done.stdout
    for part in said:
        assert part in done.stdout, done.stdout


UWSGI = """\
[uwsgi]
project = shop
base = /srv
chdir = %(base)/%(project)
module = %(project).wsgi:application
master = true
processes = 5
threads = 2
socket = %(base)/%(project)/%(project).sock
chmod-socket = 664
vacuum = true
harakiri = 60
static-map = /static=/srv/static
static-skip-ext = .sql
route = ^/private/ break:403 Forbidden
route = ^/staff basicauth:Staff,ann:secret
route-run = log:x
env = KEY=secret
cron = 0 0 -1 -1 -1 echo
frobnicate = 1
"""


def test_uwsgi(tmp_path: Path) -> None:
    (tmp_path / "uwsgi.ini").write_text(UWSGI)
    done = migrated(tmp_path, "uwsgi.ini")
    assert done.returncode == 3, done.stderr
    for line in (
        'application = "shop.wsgi:application"', 'listen = ["unix:/srv/shop/shop.sock,mode=664"]', "workers = 5", "max-threads = 2", "preload = true",
        "request-timeout = 60", 'static = ["/static=/srv/static"]', 'chdir = "/srv/shop"',
    ):  # fmt: skip
        assert line in lines(done), done.stdout
    for path in ("*.sql", "/private/*", "/staff*"):
        at = lines(done).index(f'path = "{path}"')
        assert lines(done)[at + 1] == 'access = ["deny all"]', done.stdout
    for part in ("the socket spoke the protocol uwsgi", "frobnicate is not translated", "maitred starts nothing beside its workers", "nobody is let in until that is decided"):
        assert part in done.stdout, done.stdout
    assert "secret" not in done.stdout
    again = migrated(tmp_path, "uwsgi --ini uwsgi.ini --http :9090 --lazy-apps")
    assert "preload = true" not in lines(again) and '":9090"' in again.stdout, again.stdout


@pytest.mark.parametrize(
    "name, text, said",
    [
        ("Dockerfile", 'FROM x\nCMD ["node", "a.js"]\n', "Dockerfile starts no server that is known"),
        ("compose.yaml", "services:\n  db:\n    image: postgres\n", "compose.yaml starts no server that is known"),
        ("site.yaml", "a: b\n", "is none of the files that are read"),
        ("start.sh", "#!/bin/sh\necho gunicorn\n", "start.sh starts no server that is known"),
    ],
)
def test_a_file_without_a_server_is_an_error_and_no_guess(tmp_path: Path, name: str, text: str, said: str) -> None:
    (tmp_path / name).write_text(text)
    done = migrated(tmp_path, name)
    assert done.returncode == 2 and said in done.stderr and done.stderr.count("\n") == 1, done.stdout + done.stderr


def test_nginx_and_a_published_file_become_one(tmp_path: Path) -> None:
    (tmp_path / "nginx.conf").write_text("server { listen 80; location / { proxy_pass http://127.0.0.1:8000; } }\n")
    (tmp_path / "Dockerfile").write_text('FROM x\nCMD ["gunicorn", "-b", "0.0.0.0:8000", "-w", "2", "shop:app"]\n')
    done = migrated(tmp_path, "nginx.conf", "Dockerfile")
    assert 'application = "shop:app"' in lines(done) and "workers = 2" in lines(done) and 'listen = [":80"]' in lines(done), done.stdout + done.stderr
