"""maitred migrate, part by part: what is read of gunicorn.conf.py and command lines, and what is never taken over silently."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from conftest import MAITRED, environment_for
from migrating import migrated


def conf(folder: Path, text: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    (folder / "gunicorn.conf.py").write_text(text)
    return migrated(folder, "gunicorn.conf.py", *arguments)


def lines(done: subprocess.CompletedProcess[str]) -> list[str]:
    """The lines that are in force, without what is said behind them."""
    return [line.partition("  # ")[0] for line in done.stdout.splitlines() if line and not line.startswith("#")]


def open_points(done: subprocess.CompletedProcess[str]) -> str:
    text = done.stdout.replace("# ", "")
    return text.partition("To be decided")[2].partition("Good to know")[0]


def test_computed_values_are_named_and_known_when_the_file_is_run(tmp_path: Path) -> None:
    text = "import os\nwsgi_app = 'app:app'\nthreads = len(os.listdir('.')) * 2\nbind = os.environ['WHERE']\n"
    done = conf(tmp_path, text)
    assert done.returncode == 3
    assert "gunicorn.conf.py:3: threads = len(os.listdir('.')) * 2: the value is computed" in open_points(done)
    assert "gunicorn.conf.py:4: bind = os.environ['WHERE']" in open_points(done)
    (tmp_path / "gunicorn.conf.py").write_text(text.replace("os.environ['WHERE']", "'127.0.0.1:9'"))
    ran = migrated(tmp_path, "gunicorn.conf.py", "--run")
    assert ran.returncode == 0, ran.stdout
    assert "max-threads = 2" in lines(ran) and 'listen = ["127.0.0.1:9"]' in lines(ran)


def test_the_file_is_not_run_unless_asked(tmp_path: Path) -> None:
    text = "wsgi_app = 'app:app'\nopen('ran', 'w').close()\n"
    assert conf(tmp_path, text).returncode == 0
    assert not (tmp_path / "ran").exists()
    assert conf(tmp_path, text, "--run").returncode == 0
    assert (tmp_path / "ran").exists()


def test_settings_that_are_made_only_sometimes_are_named(tmp_path: Path) -> None:
    done = conf(tmp_path, "wsgi_app = 'a:b'\nworkers = 2\nif 1:\n    workers = 9\n")
    assert done.returncode == 3
    assert "gunicorn.conf.py:4: if 1: workers = 9: the value is computed" in open_points(done)
    assert not any(line.startswith("workers") for line in lines(done))


@pytest.mark.parametrize(
    "setting, said",
    [
        ("worker_class = 'gevent'", "there are no gevent workers"),
        ("worker_class = 'eventlet'", "there are no eventlet workers"),
        ("worker_class = 'my.Worker'", "the worker class my.Worker is not known"),
        ("forwarded_allow_ips = '*'", "everybody was believed"),
        ("logconfig = 'logging.ini'", "the files of Python's logging are not read"),
        ("daemon = True", "it does not go into the background"),
        ("statsd_host = 'localhost:8125'", "nothing is sent to StatsD"),
        ("raw_env = ['A=b']", "A: variables of the application"),
        ("secure_scheme_headers = {'X-SSL': 'on'}", "X-Forwarded-Proto counts"),
        ("wsgi_app = 'app:make(1)'", "make is called with arguments"),
        ("def pre_request(worker, request): pass", "it ran around each request"),
        ("post_fork = print", "it ran in each new worker"),
        ("pythonpath = 'a,b'", "app-dir is one folder"),
    ],
)
def test_what_matters_is_never_left_out_silently(tmp_path: Path, setting: str, said: str) -> None:
    done = conf(tmp_path, f"wsgi_app = 'app:app'\n{setting}\n")
    assert done.returncode == 3
    assert said in open_points(done)
    assert "a decision" in done.stderr


@pytest.mark.parametrize(
    "command",
    [
        "uvicorn a:b --ssl-keyfile-password hunter2",
        "granian --interface asgi a:b --ssl-keyfile-password hunter2",
        "gunicorn -e SCRIPT_NAME=/x -e KEY=hunter2 a:b",
        "KEY=hunter2 uvicorn a:b",
    ],
)
def test_secrets_are_not_shown(tmp_path: Path, command: str) -> None:
    done = migrated(tmp_path, command)
    assert done.returncode == 3
    assert "hunter2" not in done.stdout + done.stderr


def test_a_heartbeat_is_no_limit_of_requests(tmp_path: Path) -> None:
    done = conf(tmp_path, "wsgi_app = 'app:app'\ntimeout = 45\nworkers = 3\n")
    assert done.returncode == 0
    assert "worker-timeout = 45" in lines(done)
    assert not any(line.startswith("request-timeout") for line in lines(done))
    assert "timeout is a heartbeat" in done.stdout


@pytest.mark.parametrize(
    "command, wanted",
    [
        ("gunicorn app", ['application = "app:application"', "max-threads = 1", 'trusted-proxies = ["127.0.0.1", "::1"]']),
        ("exec gunicorn app:app.wsgi -b :9000", ['application = "app:app.wsgi"', 'listen = [":9000"]']),
        ("env X=1 /v/bin/python3.11 -m gunicorn -b unix:/run/a.sock -m 007 a:b", ['listen = ["unix:/run/a.sock,mode=660"]']),
        ("gunicorn -b fd://3 a:b", ['listen = ["systemd"]']),
        ("gunicorn -k gthread --threads=8 'a:make()'", ['application = "a:make"', "factory = true", "max-threads = 8"]),
        ("poetry run gunicorn -w4 a:b", ["workers = 4"]),
        ("gunicorn --proxy-protocol --proxy-allow-from 10.0.0.1 a:b", ['listen = ["127.0.0.1:8000,proxy-protocol=on"]']),
        ("WEB_CONCURRENCY=3 uvicorn app:app", ["workers = 3", 'access-log = "-"']),
        ("python -m uvicorn app:app --uds /run/a.sock", ['listen = ["unix:/run/a.sock,mode=666"]']),
        ("uvicorn app:app --host ::1 --port 80 --no-access-log", ['listen = ["[::1]:80"]']),
        ("granian --interface asginl a:b", ['interface = "asgi"', 'lifespan = "off"']),
        ("granian --interface wsgi a:b --workers-lifetime 1h30m --workers-max-rss 512", ["worker-lifetime = 5400", 'worker-memory = "512m"']),
        ("hypercorn -b 0.0.0.0:8080 -w 2 a:b --keep-alive 9", ['listen = ["0.0.0.0:8080"]', "workers = 2", "keep-alive = 9"]),
        ("/bin/sh -c 'exec gunicorn -w 3 a:b'", ["workers = 3"]),
        ("gunicorn -b '[::]:8000' a:b", ['listen = ["[::]:8000", "0.0.0.0:8000"]']),
        ("gunicorn -b '[::]:8000' -b :8000 a:b", ['listen = ["[::]:8000", "0.0.0.0:8000"]']),
        ("granian --host :: --interface wsgi a:b", ['listen = ["[::]:8000", "0.0.0.0:8000"]']),
        ("gunicorn -b unix:/run/a.sock -m 007 a:b", ['listen = ["unix:/run/a.sock,mode=660"]']),
        ("gunicorn --access-logformat '%(D)s' a:b", ['access-log-format = "$total"']),
        ("hypercorn --server-name shop.example a:b", ['access = ["deny all"]', 'header = "Host: shop.example"', 'access = ["allow all"]']),
        ("gunicorn --graceful-timeout 0 a:b", ["drain-timeout = 0.001"]),
        ("gunicorn --limit-request-field_size 32768 a:b", ["max-field = 32768"]),
        ("gunicorn --limit-request-field_size 0 a:b", ["max-head = 262144", "max-field = 262144"]),
        ("uvicorn --h11-max-incomplete-event-size 131072 a:b", ["max-head = 131072", "max-field = 131072"]),
        ("waitress-serve --max-request-header-size=32768 a:b", ["max-field = 32768"]),
        ("uwsgi --http :9090 --module a:b --buffer-size 32768", ["max-field = 32768"]),
        ("gunicorn --protocol uwsgi --uwsgi-allow-from '*' --http2-cleartext on a:b", ['application = "a:b"']),
        ("UVICORN_ACCESS_LOG=false uvicorn app:app --timeout-keep-alive 0", ["keep-alive = 0.001"]),
        ("ExecStart=/srv/v/bin/uvicorn app:app", ['application = "app:app"']),
        ("web: PORT=5000 gunicorn -b 0.0.0.0:$PORT app", ['listen = ["0.0.0.0:5000"]']),
    ],
)
def test_command_lines(tmp_path: Path, command: str, wanted: list[str]) -> None:
    done = migrated(tmp_path, command)
    assert done.returncode in (0, 3), done.stderr
    for line in wanted:
        assert line in lines(done), done.stdout


def test_what_a_shell_has_to_complete_stays_on_a_command_line(tmp_path: Path) -> None:
    done = migrated(tmp_path, "web: gunicorn -w 2 -b 0.0.0.0:$PORT app")
    assert done.returncode == 3 and "maitred --listen 0.0.0.0:$PORT" in open_points(done)
    command = migrated(tmp_path, "web: gunicorn -w 2 -b 0.0.0.0:$PORT app", "--command")
    assert command.returncode == 0
    assert command.stdout.startswith("maitred app:application --trusted-proxies 127.0.0.1 ")
    assert command.stdout.endswith(" --listen 0.0.0.0:$PORT\n")


def test_a_value_that_a_condition_replaces_is_computed_and_nothing_vanishes(tmp_path: Path) -> None:
    (tmp_path / "gunicorn.conf.py").write_text(
        "import os\nworkers = os.environ.get('X', None)\nif workers is None:\n    workers = 3\n"
        "helper = 'x'\nproc_name = helper\ntread = 3\numask = 0o027\nreuse_port = True\nprotocol = 'uwsgi'\nwsgi_app = 'a:b'\n"
    )
    done = migrated(tmp_path, "gunicorn.conf.py")
    assert done.returncode == 3 and not done.stderr.startswith("Traceback"), done.stderr
    for said in ("the value is computed", "the protocol uwsgi is not spoken", "tread is no setting of gunicorn", "have the umask of whoever starts it", "one process listens"):
        assert said in done.stdout, done.stdout
    assert "helper is no setting" not in done.stdout


def test_options_of_the_command_win_over_the_file(tmp_path: Path) -> None:
    (tmp_path / "my.py").write_text("workers = 2\nthreads = 3\nbind = ':1'\nwsgi_app = 'a:b'\n")
    done = migrated(tmp_path, "GUNICORN_CMD_ARGS='--threads 5' gunicorn -c my.py -w 4 -b :2 -b :3")
    assert done.returncode == 0, done.stdout
    assert {"workers = 4", "max-threads = 5", 'listen = [":2", ":3"]', 'application = "a:b"'} <= set(lines(done))


def test_variables_go_to_a_file_that_only_its_owner_reads(tmp_path: Path) -> None:
    done = migrated(tmp_path, "gunicorn -e 'KEY=it'\"'\"'s a $secret' -e PLAIN=x app", "--output", "m.toml")
    assert done.returncode == 0, done.stdout + done.stderr
    file = tmp_path / "m.env"
    assert file.stat().st_mode & 0o777 == 0o600
    (tmp_path / "app.py").write_text(
        "import os, sys\nprint(repr(os.environ['KEY']), os.environ['PLAIN'], file=sys.stderr)\nsys.exit(7)\n"
    )
    ran = subprocess.run([MAITRED, "--config", "m.toml"], cwd=tmp_path, env=environment_for({}), capture_output=True, text=True)
    assert "\"it's a $secret\" x" in ran.stderr, ran.stderr
    again = migrated(tmp_path, "gunicorn app", "--output", "m.toml")
    assert again.returncode == 2 and "is there already" in again.stderr


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["nothing.conf"], "nothing.conf is not there"),
        (["apachectl -k start"], "is neither a file nor a command line of gunicorn, uvicorn, granian, hypercorn, daphne, waitress-serve, uwsgi"),
        (["gunicorn --worker 3 app"], "--worker is not known; did you mean --workers?"),
        (["gunicorn -b"], "-b has no value"),
        (["gunicorn 'app"], "the command line cannot be read"),
        ([], "see maitred migrate --help"),
    ],
)
def test_errors_are_one_line_with_the_way_on(tmp_path: Path, arguments: list[str], said: str) -> None:
    done = migrated(tmp_path, *arguments)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1 and said in done.stderr, done.stderr


def test_help_names_the_exit_codes(tmp_path: Path) -> None:
    done = migrated(tmp_path, "--help")
    assert done.returncode == 0
    assert "3, something needs a decision" in done.stdout
