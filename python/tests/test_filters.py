"""Filters before Python applications: who is asked for a password, and what applications see of it."""

from __future__ import annotations

import ast
import http.client
import json
import ssl
import subprocess
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from conftest import MAITRED, PATIENCE, Serve, Server

FILTERS = """
[[filter]]
path = "/in/*"
basic-auth = "users.txt"

[[filter]]
path = "/in/open/*"
basic-auth = "off"

[[filter]]
path = "/r/*"
rewrite = "/to/*"

[[filter]]
path = "/five/*"
rewrite = "/abcd/*"
set-request = "X-Kind: filtered"
set-response = ["X-Kind: filtered"]
"""

WSGI = """
import http.client
import json
import ssl

def app(environ, start_response):
    shown = {key: value for key, value in environ.items() if isinstance(value, str)}
    start_response("200 OK", [("Content-Type", "application/json")])
    return [json.dumps(shown).encode()]
"""

ASGI = """
async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        while True:
            message = await receive()
            await send({"type": message["type"] + ".complete"})
            if message["type"] == "lifespan.shutdown":
                return
    await send({"type": "http.response.start", "status": 200, "headers": []})
    body = repr({key: scope[key] for key in ("path", "raw_path", "extensions", "headers")}).encode()
    await send({"type": "http.response.body", "body": body})
"""


def authorization(user: str, password: str) -> str:
    return "Basic " + b64encode(f"{user}:{password}".encode()).decode()


ANN = authorization("ann", "open sesame")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for user, password in [("ann", "open sesame"), ("zoë", "pässword")]:
        subprocess.run(
            [MAITRED, "passwd", "users.txt", user],
            cwd=tmp_path,
            input=f"{password}\n",
            text=True,
            check=True,
            timeout=PATIENCE,
        )
    (tmp_path / "maitred.toml").write_text(FILTERS)
    return tmp_path


def environ(server: Server, path: str, **headers: str) -> dict[str, str]:
    reply = server.fetch(path, **headers)
    assert reply.status == 200, reply.body
    found: dict[str, str] = json.loads(reply.body)
    return found


def test_a_wsgi_application_is_told_who_it_is(folder: Path, serve: Serve) -> None:
    server = serve(source=WSGI)
    refused = server.fetch("/in/a")
    assert (refused.status, refused.headers["WWW-Authenticate"]) == (401, 'Basic realm="Restricted", charset="UTF-8"')
    assert server.fetch("/in/a", Authorization=authorization("ann", "wrong")).status == 401
    seen = environ(server, "/in/a", Authorization=ANN)
    assert (seen["REMOTE_USER"], seen["AUTH_TYPE"]) == ("ann", "Basic")
    # Bytes of the wire, one character each (PEP 3333).
    seen = environ(server, "/in/a", Authorization=authorization("zoë", "pässword"))
    assert seen["REMOTE_USER"].encode("latin-1").decode() == "zoë"
    for path in ("/in/open/a", "/else"):
        seen = environ(server, path, Authorization=ANN, Remote_User="ann")
        assert {"REMOTE_USER", "AUTH_TYPE"}.isdisjoint(seen)


def test_a_wsgi_application_sees_the_rewritten_path_and_the_target_as_it_was_sent(folder: Path, serve: Serve) -> None:
    server = serve(source=WSGI)
    for sent, path in [("/r/a%20b", "/to/a b"), ("/five/x", "/abcd/x"), ("/to/x", "/to/x")]:
        seen = environ(server, sent + "?q=1")
        assert (seen["PATH_INFO"], seen["QUERY_STRING"], seen["REQUEST_URI"]) == (path, "q=1", sent + "?q=1")
        # Without a query, where path and target may be as long as each other.
        seen = environ(server, sent)
        assert (seen["PATH_INFO"], seen["REQUEST_URI"]) == (path, sent)
    reply = server.fetch("/five/x")
    assert (json.loads(reply.body)["HTTP_X_KIND"], reply.headers["X-Kind"]) == ("filtered", "filtered")


def test_an_asgi_application_is_told_the_same(folder: Path, serve_asgi: Serve) -> None:
    server = serve_asgi(source=ASGI)
    assert server.fetch("/in/a").status == 401

    def scope(path: str, **headers: str) -> dict[str, Any]:
        reply = server.fetch(path, **headers)
        assert reply.status == 200, reply.body
        found: dict[str, Any] = ast.literal_eval(reply.body.decode())
        return found

    seen = scope("/in/a", Authorization=ANN)
    assert seen["extensions"]["maitred.user"] == {"name": "ann", "auth_type": "Basic"}
    seen = scope("/in/a", Authorization=authorization("zoë", "pässword"))
    assert seen["extensions"]["maitred.user"] == {"name": "zoë", "auth_type": "Basic"}
    assert "maitred.user" not in scope("/in/open/a", Authorization=ANN)["extensions"]
    seen = scope("/r/a%20b")
    assert (seen["path"], seen["raw_path"]) == ("/to/a b", b"/to/a%20b")


def test_a_password_is_checked_while_every_thread_is_in_the_application(folder: Path, serve: Serve) -> None:
    source = """
import threading
opened = threading.Event()
entered = threading.Semaphore(0)

def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    if environ["PATH_INFO"] == "/hold":
        print("held", file=environ["wsgi.errors"], flush=True)
        opened.wait(30)
    elif environ["PATH_INFO"] == "/open":
        opened.set()
    return [environ.get("REMOTE_USER", "-").encode()]
"""
    server = serve("--max-threads", "1", "--pool", "doors,path=/open", source=source)
    held = server.connect()
    held.request("GET", "/hold")
    server.wait_for("held")
    # Nobody is let in, so that no thread is needed for the answers.
    assert server.fetch("/in/a", Authorization=authorization("ann", "wrong")).status == 401
    assert server.fetch("/in/a").status == 401
    waiting = server.connect()
    waiting.request("GET", "/in/a", headers={"Authorization": ANN})
    assert server.fetch("/open").status == 200
    assert held.getresponse().read() == b"-"
    assert waiting.getresponse().read() == b"ann"


def test_the_scheme_and_the_status_are_conditions(serve: Serve, tmp_path: Path) -> None:
    made = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30", "-subj", "/CN=a"]
    made += ["-keyout", tmp_path / "key.pem", "-out", tmp_path / "cert.pem"]
    subprocess.run(made, check=True, capture_output=True)
    (tmp_path / "files").mkdir()
    (tmp_path / "files/a.txt").write_text("a")
    (tmp_path / "maitred.toml").write_text(
        '[[filter]]\nscheme = "http"\npath = "/*"\nredirect = "https://www.shop.example/*"\nstatus = 301\n'
        '[[filter]]\nset-response = ["Cache-Control: max-age=60"]\nresponse-status = "200, 206, 304"\n'
    )
    addresses = ["--listen", "http://127.0.0.1:0", "--listen", "https://127.0.0.1:0", "--tls-cert", "cert.pem", "--tls-key", "key.pem"]
    server = serve("files", *addresses)
    moved = server.fetch("/a.txt?b=c")
    assert (moved.status, moved.headers["Location"]) == (301, "https://www.shop.example/a.txt?b=c")
    assert "Cache-Control" not in moved.headers
    port = int(server.wait_for(r"https://127.0.0.1:(\d+)")[1])
    for path, status, age in (("/a.txt", 200, "max-age=60"), ("/none", 404, None)):
        connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=PATIENCE, context=ssl._create_unverified_context())
        connection.request("GET", path)
        answer = connection.getresponse()
        assert (answer.status, answer.headers["Cache-Control"]) == (status, age)
        connection.close()
