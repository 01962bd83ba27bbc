"""maitred migrate of nginx and gunicorn together: one maitred.toml, which is checked and served."""

from __future__ import annotations

import http.client
import os
import re
import socket
import ssl
import subprocess
from pathlib import Path

import pytest
import secured
from conftest import MAITRED, PATIENCE, Serve, environment_for

WSGI = """
def application(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [f"joined {environ['wsgi.url_scheme']} {environ['PATH_INFO']}".encode()]
"""

GUNICORN = """
import multiprocessing

wsgi_app = "wsgi"
bind = "127.0.0.1:8001"
workers = multiprocessing.cpu_count() * 2 + 1
threads = 4
keepalive = 5
max_requests = 5000
raw_env = ["KEY=value"]
forwarded_allow_ips = "127.0.0.1"
"""

NGINX = """
events {}
http {
    access_log off;
    upstream app { server 127.0.0.1:8001; }
    server {
        listen 127.0.0.1:8080;
        client_max_body_size 20m;
        location /static/ { alias FOLDER/old/static/; }
        location / { proxy_pass http://app; }
    }
}
"""


def maitred(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([MAITRED, *arguments], cwd=folder, env=environment_for({}), capture_output=True, text=True, timeout=PATIENCE)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A set-up in the folder old; the module of the application lies in a folder beside its configuration."""
    (tmp_path / "old/shop").mkdir(parents=True)
    (tmp_path / "old/static").mkdir()
    (tmp_path / "old/static/site.css").write_text("body {}")
    (tmp_path / "old/shop/wsgi.py").write_text(WSGI)
    (tmp_path / "old/gunicorn.conf.py").write_text(GUNICORN)
    (tmp_path / "old/nginx.conf").write_text(NGINX.replace("FOLDER", str(tmp_path)))
    return tmp_path


def joined(folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    return maitred(folder, "migrate", "old/nginx.conf", "old/gunicorn.conf.py", "--output", "maitred.toml", *more)


def test_nginx_and_gunicorn_become_one_file_that_serves(folder: Path, serve: Serve) -> None:
    done = joined(folder)
    assert done.returncode == 0, done.stdout + done.stderr
    text = (folder / "maitred.toml").read_text()
    for line in (
        'application = "wsgi:application"',
        'app-dir = "old/shop"',
        'listen = ["127.0.0.1:8080"]',
        'workers = "auto"',
        "max-threads = 4",
        "worker-requests = 5000",
        'max-body = "20m"',
        'env-file = "maitred.env"',
    ):
        assert line in text, text
    checked = maitred(folder, "check")
    assert checked.returncode == 0, checked.stderr
    server = serve()
    assert server.fetch("/static/site.css").body == b"body {}"
    # Nobody on this machine says how the client came any more.
    said = "http" if secured.WANTED else "https"
    assert server.fetch("/cart", X_Forwarded_Proto=said).body == f"joined {secured.SCHEME} /cart".encode()


def test_what_the_two_said_to_each_other_is_left_out_and_told(folder: Path) -> None:
    done = joined(folder)
    keys = {line.partition(" =")[0] for line in (folder / "maitred.toml").read_text().splitlines() if line[:1].islower()}
    assert not keys & {"trusted-proxies", "forwarded-fields", "keep-alive"}
    assert "127.0.0.1 was believed because nginx was there, and it is gone: trusted-proxies is not taken over" in done.stdout
    alone = maitred(folder, "migrate", "old/gunicorn.conf.py")
    assert 'trusted-proxies = ["127.0.0.1"]' in alone.stdout
    assert "127.0.0.1 may say who the client is, as the proxy in front; leave trusted-proxies out when no proxy is in front" in alone.stdout


def test_an_address_that_nginx_does_not_ask_is_named(folder: Path) -> None:
    file = folder / "old/gunicorn.conf.py"
    file.write_text(file.read_text().replace("8001", "8002"))
    done = joined(folder)
    assert done.returncode == 3
    assert "no proxy_pass of nginx leads to 127.0.0.1:8002; name the upstream that is meant: --application UPSTREAM=wsgi:application" in done.stdout
    named = joined(folder, "--application", "app=wsgi:application", "--force")
    assert named.returncode == 0, named.stdout


def test_an_application_of_the_command_line_is_named(folder: Path) -> None:
    file = folder / "old/gunicorn.conf.py"
    file.write_text(file.read_text().replace('wsgi_app = "wsgi"', ""))
    assert "no application is named" in joined(folder).stdout
    done = joined(folder, "--application", "wsgi:application", "--force")
    assert done.returncode == 0, done.stdout
    assert 'app-dir = "old/shop"' in (folder / "maitred.toml").read_text()


def test_a_factory_goes_where_nginx_has_the_application(folder: Path) -> None:
    (folder / "old/shop/wsgi.py").write_text("def make():\n" + WSGI.replace("\n", "\n    ").rstrip() + "\n    return application\n")
    file = folder / "old/gunicorn.conf.py"
    file.write_text(file.read_text().replace('"wsgi"', '"wsgi:make()"'))
    nginx = folder / "old/nginx.conf"
    nginx.write_text(nginx.read_text().replace("location / { proxy_pass http://app; }", "location /api/ { proxy_pass http://app/; }"))
    done = joined(folder)
    assert 'mount = ["/api=wsgi:make,factory=on,app-dir=old/shop"]' in (folder / "maitred.toml").read_text(), done.stdout
    checked = maitred(folder, "check")
    assert checked.returncode == 0, checked.stderr


@pytest.mark.parametrize(
    "sources",
    [["old/gunicorn.conf.py", "gunicorn a:b"], ["old/nginx.conf", "old/nginx.conf"], ["gunicorn", "shop.wsgi"]],
)
def test_other_sources_are_not_joined(folder: Path, sources: list[str]) -> None:
    done = maitred(folder, "migrate", *sources)
    assert done.returncode == 2
    assert "only a file of nginx and the one server behind it become one maitred.toml" in done.stderr


def test_several_folders_with_the_module_need_a_decision(folder: Path) -> None:
    (folder / "old/blog").mkdir()
    (folder / "old/blog/wsgi.py").write_text(WSGI)
    done = joined(folder)
    assert done.returncode == 3
    assert "2 folders have a module wsgi" in done.stdout and "app-dir = DIR" in done.stdout


def test_a_module_that_is_nowhere_is_told(folder: Path) -> None:
    (folder / "old/shop/wsgi.py").rename(folder / "old/shop/other.py")
    assert "the module wsgi was not found" in joined(folder).stdout


def test_paths_are_right_beside_chdir(folder: Path) -> None:
    (folder / "conf").mkdir()
    done = maitred(folder, "migrate", "gunicorn --chdir old/shop -e KEY=value wsgi", "--output", "conf/m.toml")
    assert done.returncode == 0, done.stdout
    checked = maitred(folder, "check", "--config", "conf/m.toml")
    assert checked.returncode == 0, checked.stderr
    assert re.search(rf'env-file += "{folder}/conf/m.env"', checked.stdout), checked.stdout


def test_the_numbers_of_workers_and_threads_are_explained(folder: Path) -> None:
    done = joined(folder)
    there, here = (os.cpu_count() or 1) * 2 + 1, len(os.sched_getaffinity(0))
    assert f"gunicorn ran {there} workers x 4 threads = {there * 4} requests at a time on this machine, and here it is {here} x 4 = {here * 4}: " in done.stdout
    assert "because more processes than processors compute no faster" in done.stdout
    assert f"write workers = {there} for the numbers as they were, or max-threads = {-(-there * 4 // here)}" in done.stdout


@pytest.mark.parametrize(
    "hook, counterpart",
    [
        ("when_ready", "before_start() is the same"),
        ("post_fork", "worker_ready(worker, pid)"),
        ("child_exit", "worker_exit(worker, pid, code)"),
        ("worker_exit", "worker_exit(worker, pid, code)"),
        ("on_exit", "no hook is called then"),
    ],
)
def test_hooks_are_named_with_what_takes_their_place(folder: Path, hook: str, counterpart: str) -> None:
    file = folder / "old/gunicorn.conf.py"
    file.write_text(file.read_text() + f"def {hook}(*_): pass\n")
    done = joined(folder)
    assert done.returncode == 3
    note = next(line for line in done.stdout.splitlines() if f"def {hook}" in line)
    assert counterpart in note
    assert ('# hooks = "hooks.py"' in (folder / "maitred.toml").read_text()) == (hook != "on_exit")


def test_the_line_for_a_trial_works_with_tls_beside_what_runs(tmp_path: Path) -> None:
    """The certificate is read as root reads it; the address of the configuration is taken by what runs."""
    made = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=a"]
    made += ["-addext", "subjectAltName=DNS:localhost", "-keyout", tmp_path / "key.pem", "-out", tmp_path / "cert.pem"]
    subprocess.run(made, check=True, capture_output=True)
    (tmp_path / "files").mkdir()
    (tmp_path / "files/index.html").write_text("by https")
    with socket.create_server(("127.0.0.1", 0)) as running:
        (tmp_path / "nginx.conf").write_text(
            f"server {{ listen 127.0.0.1:{running.getsockname()[1]} ssl; root {tmp_path}/files;\n"
            f"ssl_certificate {tmp_path}/cert.pem; ssl_certificate_key {tmp_path}/key.pem; }}\n"
        )
        done = subprocess.run(
            [MAITRED, "migrate", "nginx.conf", "--output", "site.toml"],
            cwd=tmp_path, env=environment_for({}), capture_output=True, text=True, timeout=PATIENCE,
        )  # fmt: skip
        line = next(line for line in done.stdout.splitlines() if line.startswith("next: "))
        check, _, trial = line.removeprefix("next: ").partition("; beside what runs: ")
        assert check == "maitred check --config site.toml"
        words = trial.replace("9443", "0").removeprefix("sudo ").partition(" --user ")[0].split()
        server = subprocess.Popen([MAITRED, *words[1:]], cwd=tmp_path, env=environment_for({}), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            assert server.stdout
            place = next(found for told in server.stdout if (found := re.search(r"https://127.0.0.1:(\d+)", told)))
            context = ssl.create_default_context(cafile=str(tmp_path / "cert.pem"))
            connection = http.client.HTTPSConnection("localhost", int(place[1]), timeout=PATIENCE, context=context)
            connection.request("GET", "/")
            assert connection.getresponse().read() == b"by https"
            connection.close()
        finally:
            server.terminate()
            server.wait(PATIENCE)
