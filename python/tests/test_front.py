"""Behind real proxies: what Django and FastAPI know of the client, its scheme and its host, without a setting of their own."""

from __future__ import annotations

import ast
import http.client
import json
import re
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import PATIENCE, Serve, Server

DJANGO = """
import django
from django.conf import settings
from django.http import HttpResponseRedirect, JsonResponse
from django.urls import path

settings.configure(ALLOWED_HOSTS=["shop.example", "inner"], SECRET_KEY="test", ROOT_URLCONF=__name__, USE_X_FORWARDED_HOST=False)
django.setup()

def seen(request):
    answer = JsonResponse({
        "client": request.META["REMOTE_ADDR"], "scheme": request.scheme, "host": request.get_host(),
        "port": request.get_port(), "url": request.build_absolute_uri("/a?b=c"), "process": "maitred.process" in request.META,
    })
    answer.set_cookie("id", "1", secure=request.is_secure())
    return answer

def away(request):
    return HttpResponseRedirect(request.build_absolute_uri("/seen"))

urlpatterns = [path("seen", seen), path("away", away)]

from django.core.wsgi import get_wsgi_application
app = get_wsgi_application()
"""

FASTAPI = """
from fastapi import FastAPI, Request, Response
from fastapi.responses import RedirectResponse

app = FastAPI()

@app.get("/seen", name="seen")
async def seen(request: Request, response: Response):
    url = request.url
    response.set_cookie("id", "1", secure=url.scheme == "https")
    return {
        "client": request.client.host if request.client else "", "scheme": url.scheme, "host": request.headers["host"],
        "port": str(url.port or (443 if url.scheme == "https" else 80)), "url": str(request.base_url) + "a?b=c",
        "process": "maitred.process" in request.scope["extensions"],
    }

@app.get("/away")
async def away(request: Request):
    return RedirectResponse(request.url_for("seen"), 302)
"""

SOURCES = {"Django": DJANGO, "FastAPI": FASTAPI}


@pytest.fixture(params=SOURCES)
def site(request: pytest.FixtureRequest, serve: Serve, serve_asgi: Serve) -> Callable[..., Server]:
    """Starts one of the sites."""
    source = SOURCES[request.param]
    start = serve_asgi if request.param == "FastAPI" else serve
    return lambda *arguments: start(*arguments, source=source)


Run = Callable[[list[str], int], None]


def free_port() -> int:
    """For proxies, which cannot take any."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@pytest.fixture
def run() -> Iterator[Run]:
    """Starts a proxy and waits until it listens."""
    proxies: list[subprocess.Popen[bytes]] = []

    def start(command: list[str], port: int) -> None:
        proxy = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        proxies.append(proxy)
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                return socket.create_connection(("127.0.0.1", port), timeout=PATIENCE).close()
            except OSError:
                assert proxy.poll() is None and time.monotonic() < deadline, proxy.stdout and proxy.stdout.read()
                time.sleep(0.01)

    yield start
    for proxy in proxies:
        proxy.terminate()
        proxy.wait()
        assert proxy.stdout
        proxy.stdout.close()


def nginx(folder: Path, upstream: str, port: int, *directives: str) -> list[str]:
    text = f"""
daemon off; master_process off; pid {folder}/pid; error_log stderr;
events {{}}
http {{
    access_log off;
    {" ".join(f"{kind}_temp_path {folder}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))}
    server {{
        listen 127.0.0.1:{port};
        location / {{ proxy_pass http://{upstream}; proxy_http_version 1.1; {" ".join(directives)} }}
    }}
}}
"""
    (folder / "nginx.conf").write_text(text)
    found = shutil.which("nginx", path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin")
    assert found
    return [found, "-c", str(folder / "nginx.conf"), "-e", "stderr"]


def haproxy(folder: Path, bind: str, backend: str, *lines: str) -> list[str]:
    text = f"""
global
    maxconn 50
defaults
    mode http
    timeout connect 5s
    timeout client 20s
    timeout server 20s
listen front
    bind {bind}
    {chr(10).join("    " + line for line in lines)}
    server one {backend}
"""
    (folder / "haproxy.cfg").write_text(text)
    found = shutil.which("haproxy", path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin")
    assert found
    return [found, "-db", "-f", str(folder / "haproxy.cfg")]


Got = tuple[int, dict[str, str], bytes]


def get(connection: http.client.HTTPConnection, path: str, **fields: str) -> Got:
    headers = {"Host": "shop.example", **{name.replace("_", "-"): value for name, value in fields.items()}}
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()


#: What a client invents; nginx and haproxy put their own behind it or in its place.
SPOOFED = {"X_Forwarded_For": "6.6.6.6", "Forwarded": "for=6.6.6.6;host=evil.example", "X_Forwarded_Host": "evil.example"}


def check(connection: http.client.HTTPConnection, scheme: str, *ports: str, **more: Any) -> None:
    """``ports``: what the application may take for the one that was asked for."""
    for _ in range(2):
        status, fields, body = get(connection, "/seen", **SPOOFED)
        assert status == 200, body
        seen = json.loads(body)
        assert seen.pop("port") in ports
        url = f"{scheme}://shop.example/a?b=c"
        expected = {"client": "127.0.0.1", "scheme": scheme, "host": "shop.example", "url": url, "process": False}
        assert seen == expected | more
        assert ("secure" in fields["set-cookie"].lower()) == (scheme == "https")
    status, fields, _ = get(connection, "/away")
    assert (status, fields["location"]) == (302, f"{scheme}://shop.example/seen")


NGINX = (
    "proxy_set_header Host $host;",
    "proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;",
    "proxy_set_header X-Forwarded-Proto https;",
)


def connect(port: int) -> http.client.HTTPConnection:
    return http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)


def test_behind_nginx_by_tcp(site: Callable[..., Server], run: Run, tmp_path: Path) -> None:
    server = site("--trusted-proxies", "127.0.0.1/32,10.0.0.0/8", "--access-log", str(tmp_path / "a.log"))
    port = free_port()
    fields = (NGINX[0], "proxy_set_header X-Forwarded-For 192.0.2.7;", NGINX[2])
    run(nginx(tmp_path, f"127.0.0.1:{server.port}", port, *fields), port)
    check(connect(port), "https", "443", client="192.0.2.7")
    assert server.stop() == 0
    assert re.match(r"192\.0\.2\.7 - - ", (tmp_path / "a.log").read_text()), "logs have the client"


def test_behind_nginx_by_a_unix_socket(site: Callable[..., Server], run: Run, tmp_path: Path) -> None:
    path = tmp_path / "s"
    site("--listen", "127.0.0.1:0", "--listen", f"unix:{path},mode=666", "--trusted-proxies", "unix")
    port = free_port()
    run(nginx(tmp_path, f"unix:{path}:", port, *NGINX), port)
    check(connect(port), "https", "443", process=True)


def test_behind_haproxy_by_tcp(site: Callable[..., Server], run: Run, tmp_path: Path) -> None:
    server = site("--trusted-proxies", "127.0.0.0/8")
    port = free_port()
    lines = ("http-request set-header X-Forwarded-For 192.0.2.9", "http-request set-header X-Forwarded-Proto https")
    run(haproxy(tmp_path, f"127.0.0.1:{port}", f"127.0.0.1:{server.port}", *lines), port)
    check(connect(port), "https", "443", client="192.0.2.9")


def test_behind_haproxy_with_tls_by_a_unix_socket_and_the_proxy_protocol(
    site: Callable[..., Server], run: Run, tmp_path: Path
) -> None:
    path, certificate = tmp_path / "s", tmp_path / "front.pem"
    making = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=shop.example"]
    subprocess.run([*making, "-keyout", certificate, "-out", tmp_path / "c"], check=True, capture_output=True)
    certificate.write_bytes(certificate.read_bytes() + (tmp_path / "c").read_bytes())
    listen = f"unix:{path},mode=666,proxy-protocol=on"
    site("--listen", "127.0.0.1:0", "--listen", listen, "--trusted-proxies", "unix")
    port = free_port()
    run(haproxy(tmp_path, f"127.0.0.1:{port} ssl crt {certificate}", f"unix@{path} send-proxy-v2-ssl"), port)
    trusting = ssl._create_unverified_context()
    connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=PATIENCE, context=trusting)
    # By the header it is the port of the proxy, by Host the usual one.
    check(connection, "https", str(port), "443", process=True)


def test_who_is_not_trusted_is_the_client(site: Callable[..., Server]) -> None:
    server = site()
    check(server.connect(), "http", str(server.port), "80")


@pytest.mark.parametrize(
    ("believed", "field", "bad"),
    [("forwarded", "Forwarded", "for=192.0.2.1:80"), ("x-forwarded-for", "X_Forwarded_For", "me"), ("x-forwarded-proto", "X_Forwarded_Proto", "h2")],
)
def test_a_trusted_proxy_that_writes_nonsense_is_told_of_once(
    site: Callable[..., Server], believed: str, field: str, bad: str
) -> None:
    server = site("--trusted-proxies", "127.0.0.1", "--forwarded-fields", believed)
    connection = server.connect()
    for _ in range(3):
        assert json.loads(get(connection, "/seen", **{field: bad})[2])["client"] == "127.0.0.1", "what it says does not count"
    get(connection, "/seen", **{field: "unknown" if field == "X_Forwarded_For" else "for=unknown" if believed == "forwarded" else "https"})
    connection.close()
    assert server.stop() == 0
    line = f"127.0.0.1, a trusted proxy, sent a {believed} that cannot be read"
    assert len([said for said in server.said.splitlines() if line in said and "times more" not in said]) == 1
    assert "2 times more in the last" in server.said


def test_what_a_proxy_says_by_the_proxy_protocol_reaches_the_application(serve: Serve, serve_asgi: Serve) -> None:
    def value(kind: int, content: bytes) -> bytes:
        return bytes([kind]) + len(content).to_bytes(2, "big") + content

    def header(verify: int) -> bytes:
        tls = bytes([7]) + verify.to_bytes(4, "big") + value(0x21, b"TLSv1.3") + value(0x22, "Zoë".encode()) + value(0x23, b"TLS_AES_256_GCM_SHA384")
        values = value(1, b"h2") + value(2, b"shop.example") + value(5, b"\0id\xff") + value(0x20, tls)
        addresses = bytes([192, 0, 2, 7, 192, 0, 2, 8]) + (4000).to_bytes(2, "big") + (443).to_bytes(2, "big")
        return b"\r\n\r\n\0\r\nQUIT\n\x21\x11" + len(addresses + values).to_bytes(2, "big") + addresses + values

    wsgi = "def app(environ, start_response):\n    start_response('200 OK', [('Content-Type', 'text/plain')])\n    return [repr(environ.get('maitred.proxy')).encode()]\n"
    asgi = """
async def app(scope, receive, send):
    await send({"type": "http.response.start", "status": 200})
    await send({"type": "http.response.body", "body": repr(scope["extensions"].get("maitred.proxy")).encode()})
"""
    local = b"\r\n\r\n\0\r\nQUIT\n\x20\x00\0\0"
    for start, source in ((serve, wsgi), (serve_asgi, asgi)):
        server = start("--listen", "127.0.0.1:0,proxy-protocol=on", "--trusted-proxies", "127.0.0.1", source=source)

        def asked(sent: bytes, port: int = server.port) -> Any:
            with socket.create_connection(("127.0.0.1", port), PATIENCE) as peer:
                peer.sendall(sent + b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
                received = b"".join(iter(lambda: peer.recv(65536), b""))
            return ast.literal_eval(re.sub(rb"^.*?\r\n\r\n(?:[0-9a-f]+\r\n)?", b"", received, flags=re.DOTALL).split(b"\r\n")[0].decode())

        said = {"sni": "shop.example", "alpn": "h2", "version": "TLSv1.3", "cipher": "TLS_AES_256_GCM_SHA384", "certificate_name": "Zoë", "unique_id": b"\0id\xff"}
        assert asked(header(0)) == said
        del said["certificate_name"]
        assert asked(header(1)) == said, "a name that nobody has verified is none"
        assert asked(local) is None
