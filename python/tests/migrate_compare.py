"""Asks nginx and maitred with the result of its migration the same requests, and lists where they differ.

    .venv/bin/python python/tests/migrate_compare.py FILE...

Each file is a configuration of nginx. Its addresses, folders, certificates and servers behind are replaced by ones of this machine, in
both. Needs nginx. The exit code is 1 if something is open or taken that nginx refuses, or something differs that the result does not name. Leaves
out fields and bodies of answers.
"""

from __future__ import annotations

import re
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote

sys.path.insert(0, str(Path(__file__).parent))
from migrating import NGINX, free_ports, maitred, running  # noqa: E402

APPLICATION = """\
def app(environ, start_response):
    body = environ["wsgi.input"].read(64 * 1024 * 1024)
    start_response("200 OK", [("Content-Type", "text/plain"), ("X-Told", "application")])
    return [b"application %d" % len(body)]
"""
#: Of every served folder.
FILES = (
    "index.html", "a.txt", "a.css", "a.js", "a.png", "a.jpg", "a.php", "index.php", "dump.sql", "DUMP.SQL", "old.bak", "a.log", "a.conf", "a.ini",
    "a.yml", "a.sh", "a.inc", "a.txt~", ".env", ".htaccess", ".git/config", ".well-known/acme-challenge/token", "robots.txt", "favicon.ico",
    "wp-config.php", "readme.html", "LICENSE", "sub/index.html", "sub/dump.sql", "sub/a.php", "sub/deep/er/a.sql", "uploads/a.php", "uploads/x/a.php",
    "admin/index.html", "private/a.txt", "config/a.txt", "data/a.txt", "files/a.php", "media/a.jpg", "static/a.css", "images/a.png", "404.html", "50x.html", "500.html",
)  # fmt: skip
#: Requests, at least.
_LEAST = 210
_SIZES = (200_000, 1_200_000, 3_000_000, 12_000_000)
#: What each of the two says in its own way, and documents.
_ALIKE = {frozenset((301, 308)), frozenset((302, 307)), frozenset((302, 308)), frozenset((502, 403)), frozenset((405, 501))}


@dataclass(frozen=True)
class Request:
    path: str
    method: str = "GET"
    host: str = ""
    size: int = 0
    port: int = 0
    is_tls: bool = False
    fields: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        more = "".join(f" {name}: {value}" for name, value in self.fields)
        return f"{self.method} {'https' if self.is_tls else 'http'}://{self.host}{self.path}" + (f" with {self.size} bytes" if self.size else "") + more


@dataclass
class Compared:
    """What was found of one configuration."""

    opened: list[str] = field(default_factory=list)
    limits: list[str] = field(default_factory=list)
    stricter: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    #: Those of them all that no sentence of the result is about.
    unnamed: list[str] = field(default_factory=list)
    asked: int = 0
    config: str = ""
    result: str = ""
    failed: str = ""


def compare(text: str, folder: Path) -> Compared:
    """Lays out the configuration in the folder, starts both servers in turn, and compares their answers."""
    found = Compared()
    with _behind() as behind:
        laid = _Laid(text, folder, behind)
        if fault := laid.settle():
            found.failed = f"nginx does not take it: {fault}"
            return found
        done = maitred(folder, "migrate", "nginx.conf", "--application", "told:app", "--output", "maitred.toml", "--force")
        file = folder / "maitred.toml"
        found.result = file.read_text() if file.is_file() else ""
        if done.returncode not in (0, 3):
            found.failed = f"migrate: {done.stderr or done.stdout}"
            return found
        if not re.search(r"(?m)^(application|mount|static) = ", found.result):
            found.failed = "the result serves nothing yet"
            return found
        checked = maitred(folder, "check")
        if checked.returncode != 0:
            found.failed = f"the result does not start: {checked.stderr}"
            return found
        requests, found.config = laid.requests(), laid.text
        found.asked = len(requests)
        assert NGINX
        command = [NGINX, "-p", folder, "-c", folder / "real.conf", "-e", "stderr", "-g", "daemon off;"]
        with running(command, folder, laid.ports, {}):
            before = [ask(request) for request in requests]
        listens = "".join(re.findall(r"(?m)^listen = .*?\]", found.result, re.DOTALL))
        listened = [port for port in laid.ports if f":{port}" in listens]
        command = [shutil.which("maitred", path=str(Path(sys.executable).parent)) or "maitred"]
        with running(command, folder, listened, {}):
            after = [ask(request) if request.port in listened else 403 for request in requests]
    for request, one, two in zip(requests, before, after):
        _sort(found, request, one, two)
    return found


def _sort(found: Compared, request: Request, nginx: int, own: int) -> None:
    if nginx == own or frozenset((nginx, own)) in _ALIKE or (nginx >= 400 or not nginx) and (own >= 400 or not own):
        return
    if own == 400 and re.search(r"/\.{0,2}(/|$)|//|%2f|%2e|%00|#|\\|%5c", request.path, re.IGNORECASE):
        return  # docs/operations/threads.md: paths with two readings
    if nginx == 400 and re.search(r"/\.\.(/|$)|%00", request.path):
        return  # The application gets a path that no rule is asked about.
    if nginx == 413 and 300 <= own < 400:
        return  # It leads to a path that takes no more.
    line = f"{request}: nginx {nginx or 'closes'}, maitred {own or 'closes'}"
    if not _is_named(found.result, found.config, request, nginx, own):
        found.unnamed.append(line)
    if 413 in (nginx, own) and {nginx, own} - {413} <= {200, 204, 301, 302, 307, 308, 404, 405}:
        found.limits.append(line)
    elif nginx in (502, 504) and not re.search(r"\.\w+($|/)", request.path):
        # A server behind that cannot run here refuses nothing.
        found.others.append(line)
    elif nginx == 405 or 300 <= own < 400 and nginx >= 400:
        found.others.append(line)
    elif own < 400 and own and (nginx >= 400 or not nginx):
        is_absent = (nginx == 404 or nginx == 403 and _gets_page(found.result, request.path)) and line not in found.unnamed and not _is_refused(found.config, request.path)
        (found.others if is_absent else found.opened).append(line)
    elif own >= 400 and (nginx < 400) and nginx:
        found.stricter.append(line)
    else:
        found.others.append(line)


def _is_named(result: str, config: str, request: Request, nginx: int, own: int) -> bool:
    """Whether a sentence of the result is about this difference."""
    path = unquote(request.path.partition("?")[0])
    plain = re.sub("/{2,}", "/", path)

    def says(text: str) -> bool:
        return re.search(text, result) is not None

    def below(text: str) -> bool:
        """A sentence about paths that begin as this one, with the path in the place of the group."""
        return any(plain.startswith(start) for start in re.findall(text, result))

    return any((
        own == 421 and says(r"gets 421|serves nothing yet|is no name of a host"),
        own == 404 and "/." in path and says("begin with a dot"),
        own == 404 and "." in path.rpartition("/")[2] and says("only where a page is asked for"),
        own == 404 and nginx == 200 and "/." not in path and says("only where a page is asked for") and "." in path,
        nginx == 405 and says(r"came before the application|405"),
        300 <= own < 400 and (below(r"is a redirect to (\S+?)/;") or plain == "/"),
        300 <= nginx < 400 and below(r"nginx answered (\S+) with a redirect"),
        below(r"nginx's (\S+) was for \1-old"),
        below(r"nginx's \S+ was not for (\S+);"),
        300 <= nginx < 400 and request.host == "unknown.example" and says("nginx led names that no server has there"),
        own in (429, 503) and says("client-rate"),
        nginx == 200 and own == 404 and request.method not in ("GET", "HEAD") and below(r"body of (/\S*) .*only GET and HEAD are answered"),
        below(r"(/\S+) is sent with errors, and not to who asks"),
        300 <= nginx < 400 and says("the target has variables|this is no rewrite|cannot lead to https as a whole"),
        300 <= nginx < 400 and says(r"if \(\$(http_)?host .*: conditions are not taken over"),
        300 <= own < 400 and below(r"the redirect of .* is for (/\S*) here as well"),
        own == 404 and says("is no application"),
        own == 404 and nginx == 200 and says("is not looked for"),
        200 < nginx < 300 and says(f"no filter answers with {nginx}"),
        plain.endswith("/") and says("the file of a folder is index.html"),
        own == 403 and says(r"nobody is let in|\(else files would be sent\)|which is some more paths|here nobody does|others are refused") and not _unsaid(result),
        nginx in (502, 504) and says("FastCGI is not spoken|no proxy yet"),
        any(_meets(_whole(regex, config), plain) for regex in re.findall(r"location ~\*? (\S+): (?:this expression is no pattern|files are served by their folder)", result)),
        any(_meets(regex, plain) for regex in re.findall(r"rewrite (\S+) .*: this is no rewrite", result)),
        own == 200 and _gets_page(result, plain),
        below(r"location (?:= |\^~ )?(/\S*): .* is in no folder that is served"),
        below(r"static = \[\"(/\S*)=.*\n# - .*maitred needs it at the start"),
        says(r"maitred needs it at the start") and below(r"# static = \[\"(/[^=]*)="),
    ))  # fmt: skip


def _gets_page(result: str, path: str) -> bool:
    """Whether the result says that the page of a folder is sent where this path is no file."""
    return any(_meets(regex, path) for regex in re.findall(r"location ~\*? (\S+): a path that is no file gets", result))


def _is_refused(config: str, path: str) -> bool:
    """Whether an expression of a location that refuses fits."""
    blocks = re.findall(r"location\s+~\*?\s+(\S+)\s*\{([^}]*)", config)
    return any(_meets(regex, unquote(path)) for regex, block in blocks if re.search(r"\b(deny|internal|return\s+[45]|auth_\w+)\b", block))


def _unsaid(result: str) -> list[str]:
    """Filters that refuse, of which neither the directive nor a sentence says why."""
    said = set(re.findall(r"nginx\.conf:\d+", "".join(re.findall(r"(?m)^# - .*?: ", result))))
    refusing = re.findall(r'(?m)^access = \["deny all"\]  # (.*)$', result)
    own = r"nginx\.conf:\d+: (?:deny|internal|return|limit_except|if|auth_\w+)\b|also in nginx|else files would be sent"
    return [line for line in refusing if not re.search(own, line) and not said & set(re.findall(r"nginx\.conf:\d+", line))]


def _whole(regex: str, config: str) -> str:
    """The expression of which a sentence shows the beginning."""
    begun = regex.removesuffix("...")
    known = re.findall(r"location\s+~\*?\s+(\S+)", config) if begun != regex else []
    return next((one for one in known if one.startswith(begun)), begun)


def _meets(regex: str, path: str) -> bool:
    try:
        return re.search(regex, path, re.IGNORECASE) is not None
    except re.error:
        return False


def ask(request: Request) -> int:
    """The status; 0 for a connection that is closed without one."""
    body = b"x" * request.size
    lines = [f"{request.method} {request.path} HTTP/1.1", f"Host: {request.host}", "Connection: close"]
    lines += [f"{name}: {value}" for name, value in request.fields]
    if body:
        lines.append(f"Content-Length: {len(body)}")
    try:
        plain = socket.create_connection(("127.0.0.1", request.port), 10)
        peer = plain
        if request.is_tls:
            context = ssl._create_unverified_context()
            peer = context.wrap_socket(plain, server_hostname=request.host.partition(":")[0])
    except OSError:
        return 0
    with peer:
        sender = threading.Thread(target=_send, args=(peer, ("\r\n".join(lines) + "\r\n\r\n").encode() + body), daemon=True)
        # Two threads may not use one session of TLS.
        (sender.run if request.is_tls else sender.start)()
        got = b""
        try:
            while b"\r\n" not in got and (more := peer.recv(4096)):
                got += more
        except OSError:
            pass
    if sender.is_alive():
        sender.join(10)
    match = re.match(rb"HTTP/1\.[01] (\d{3})", got)
    return int(match[1]) if match else 0


def _send(peer: socket.socket, data: bytes) -> None:
    try:
        peer.sendall(data)
    except OSError:
        pass


@contextmanager
def _behind() -> Iterator[int]:
    """The server behind nginx: it answers everything."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(b"ok")

        def log_message(self, format: str, *args: object) -> None:
            pass

    for method in ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "PROPFIND", "TRACE"):
        setattr(Handler, f"do_{method}", Handler.answer)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


class _Laid:
    """A configuration of somebody else, changed so that it runs here."""

    def __init__(self, text: str, folder: Path, behind: int) -> None:
        self._folder = folder
        self._behind = behind
        self._roots: list[str] = []
        (folder / "told.py").write_text(APPLICATION)
        (folder / "htpasswd").write_text("ann:$apr1$x$y\n")
        for name in ("mime.types", "fastcgi_params", "uwsgi_params", "proxy_params"):
            if (file := Path("/etc/nginx") / name).is_file():
                (folder / name).write_bytes(file.read_bytes())
        command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30", "-subj", "/CN=shop.example"]
        subprocess.run([*command, "-keyout", folder / "key.pem", "-out", folder / "cert.pem"], check=True, capture_output=True)
        self.text = self._here(text)
        self._lay_files()

    def _here(self, text: str) -> str:
        text = re.sub(r"(?m)^(\s*)#.*$", r"\1#", text)
        ports: dict[str, int] = {}

        def listen(match: re.Match[str]) -> str:
            words = match[1].split()
            address, rest = words[0], [word for word in words[1:] if not re.match(r"backlog|fastopen|ipv6only|reuseport|deferred|quic|http2|so_keepalive", word)]
            if address.startswith(("[", "unix:")):
                return ""
            port = address.rpartition(":")[2]
            port = port if port.isdigit() else "80"
            if port not in ports:
                ports[port] = free_ports(1)[0]
            return f"listen 127.0.0.1:{ports[port]} {' '.join(rest)};"

        text = re.sub(r"\blisten\s+([^;]+);", listen, _with_addresses(text))
        for name, value in (
            ("ssl_certificate", "cert.pem"), ("ssl_certificate_key", "key.pem"), ("ssl_trusted_certificate", "cert.pem"),
            ("ssl_client_certificate", "cert.pem"), ("auth_basic_user_file", "htpasswd"),
        ):  # fmt: skip
            text = re.sub(rf"(?m)([\s;{{]{name})\s+[^;]+;", rf"\1 {self._folder}/{value};", text)
        text = re.sub(r"(?m)^\s*(ssl_dhparam|ssl_stapling\w*|resolver\w*|pid|user|daemon|load_module|error_log|access_log|ssl_session_\w+|proxy_cache_path|ssl_ecdh_curve)\s[^;]*;", "", text)
        text = re.sub(r"\b(proxy_pass|uwsgi_pass|grpc_pass)\s+(?:[\w$]+://)?[^/;\s:]+(?::[\w$]+|:/[^;:]+:?)?(/[^;]*)?;", lambda m: f"proxy_pass http://127.0.0.1:{self._behind}{(m[2] or '')};", text)
        text = re.sub(r"\bupstream\s+([^\s{]+)\s*\{[^}]*\}", rf"upstream \1 {{ server 127.0.0.1:{self._behind}; }}", text)
        text = re.sub(r"\bfastcgi_pass\s+[^;]+;", "fastcgi_pass 127.0.0.1:1;", text)
        text = re.sub(r"\b(root|alias)\s+([^;]+);", self._root, text)
        self.ports = list(ports.values())
        return text

    def _root(self, match: re.Match[str]) -> str:
        path = match[2].strip().strip("\"'")
        if "$" in path:
            path = re.sub(r"\$\w+", "v", path)
        place = f"{self._folder}/files/{path.strip('/')}"
        self._roots.append(place)
        return f"{match[1]} {place}{'/' if path.endswith('/') else ''};"

    def _lay_files(self) -> None:
        for root in self._roots:
            base = Path(root)
            if base.suffix in (".html", ".txt", ".ico", ".png", ".xml", ".json", ".gif", ".jpg"):
                base.parent.mkdir(parents=True, exist_ok=True)
                if not base.exists():
                    base.write_text("file")
                continue
            for name in FILES:
                file = base / name
                if file.parent.is_file() or base.is_file():
                    continue
                file.parent.mkdir(parents=True, exist_ok=True)
                if not file.exists():
                    file.write_text(name)
            for path in [*self._locations(), *re.findall(r"try_files\s[^;]*?\s(/[\w./-]+\.html?)[?;]", self.text)]:
                self._lay(base, path)

    def _lay(self, base: Path, path: str) -> None:
        """A file, or a folder with one, where a location has its own."""
        file = base / path.strip("/") if re.search(r"\.\w+$", path) else base / path.strip("/") / "a.txt"
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            if not file.exists():
                file.write_text(path)
        except OSError:
            pass  # A path too long, or below a file.

    def settle(self) -> str:
        """Takes out what this nginx does not know, or has no files for. Empty, or why it does not run."""
        if not re.search(r"(?m)^\s*http\s*\{", self.text):
            text = self.text if re.search(r"\bserver\s*\{", self.text) else f"server {{ listen 127.0.0.1:{free_ports(1)[0]};\n{self.text}\n}}"
            self.text = f"events {{ }}\nhttp {{\n{text}\n}}\n"
        elif "events" not in self.text:
            self.text = f"events {{ }}\n{self.text}"
        if not self.ports:
            self.ports = free_ports(1)
            self.text = re.sub(r"\bserver\s*\{", f"server {{ listen 127.0.0.1:{self.ports[0]};", self.text)
        fault = ""
        for _ in range(60):
            (self._folder / "nginx.conf").write_text(self.text)
            logs = f"access_log off; client_body_temp_path {self._folder}/body; proxy_temp_path {self._folder}/proxy; fastcgi_temp_path {self._folder}/fcgi; uwsgi_temp_path {self._folder}/uwsgi; scgi_temp_path {self._folder}/scgi;"
            self.text = re.sub(r"(?m)^(\s*http\s*\{)(?! ssl_certificate )", rf"\1 ssl_certificate {self._folder}/cert.pem; ssl_certificate_key {self._folder}/key.pem;", self.text, count=1)
            (self._folder / "nginx.conf").write_text(self.text)
            real = re.sub(r"(?m)^(\s*http\s*\{)", rf"\1 {logs}", self.text, count=1)
            (self._folder / "real.conf").write_text(f"user root; pid {self._folder}/nginx.pid; worker_processes 1;" + re.sub(r"(?m)^\s*worker_processes[^;]*;", "", real))
            assert NGINX
            done = subprocess.run([NGINX, "-t", "-p", self._folder, "-c", self._folder / "real.conf", "-e", "stderr"], capture_output=True, text=True)
            if done.returncode == 0:
                return ""
            fault = next((line for line in done.stderr.splitlines() if "[emerg]" in line), done.stderr)
            match = re.search(r"real\.conf:(\d+)", fault)
            if match is None:
                name = re.search(r'unknown "(\w+)" variable|"(\w+)" zone|zero size shared memory zone "(\w+)"|host not found in upstream "([^"]+)"', fault)
                word = next((group for group in name.groups() if group), "") if name else ""
                lines = self.text.splitlines()
                kept = [line for line in lines if not word or word not in line or "{" in line]
                if not word or kept == lines:
                    return fault
                self.text = "\n".join(kept)
                continue
            lines = self.text.splitlines()
            at = int(match[1]) - 1
            if at >= len(lines):
                return fault
            if "{" in lines[at] and "}" not in lines[at]:
                return fault
            lines[at] = ""
            self.text = "\n".join(lines)
        return fault

    def requests(self) -> list[Request]:
        names = [name for found in re.findall(r"\bserver_name\s+([^;]+);", self.text) for name in found.split() if re.fullmatch(r"[\w.-]+", name) and name not in ("_", "localhost")]
        hosts = list(dict.fromkeys(names))[:3] or ["shop.example"]
        tls = {int(port) for port in re.findall(r"listen 127\.0\.0\.1:(\d+) [^;]*\bssl\b", self.text)}
        if re.search(r"\bssl\s+on;", self.text):
            tls = set(self.ports)
        port = next((port for port in self.ports if port in tls), self.ports[0])
        requests = [Request(path, host=hosts[0], port=port) for path in self._paths()]
        chosen = [request.path for request in requests if "%" not in request.path][:12]
        for path in dict.fromkeys(["/", *chosen]):
            for method in ("HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PROPFIND"):
                requests.append(Request(path, method, hosts[0], 0, port))
        for path in list(dict.fromkeys(["/", *self._locations()]))[:8]:
            requests += [Request(path, "POST", hosts[0], size, port) for size in _SIZES]
        for other in dict.fromkeys([*hosts[1:], "unknown.example"]):
            requests += [Request(path, host=other, port=port) for path in ("/", *chosen[:4])]
        for other_port in self.ports:
            if other_port != port:
                requests += [Request(path, host=hosts[0], port=other_port, is_tls=other_port in tls) for path in ("/", *chosen[:6])]
        agents = (("User-Agent", ""), ("User-Agent", "badbot wget"), ("Referer", "http://elsewhere.example/"))
        requests += [Request(path, host=hosts[0], port=port, fields=(agent,)) for agent in agents for path in ("/", *chosen[:3])]
        # Of a small configuration the same files in a folder, and by HEAD.
        further = [Request(f"/sub/{name}", method, hosts[0], 0, port) for method in ("GET", "HEAD") for name in FILES]
        requests += further[: max(0, _LEAST - len(dict.fromkeys(requests)))]
        whole = [Request(r.path, r.method, r.host, r.size, r.port, r.port in tls, r.fields) for r in requests]
        return list(dict.fromkeys(whole))

    def _locations(self) -> list[str]:
        """Paths that the locations are for."""
        paths = []
        for words in re.findall(r"\blocation\s+([^{]+)\{", self.text):
            *modifier, path = words.split() or [""]
            path = path.strip("\"'")
            if path.startswith("@"):
                continue
            if modifier[-1:] in (["~"], ["~*"]):
                path = _example(path)
            elif path.startswith("=") or path.startswith("~"):
                path = path.lstrip("=~*")
            paths.append(path if path.startswith("/") else f"/{path}")
        return list(dict.fromkeys(paths))

    def _paths(self) -> list[str]:
        found = ["/", *(f"/{name}" for name in FILES), "/none", "/none/", "/a.txt?x=1", "/.", "/..", "/../a.txt", "/sub/../dump.sql", "/sub/./dump.sql"]
        found += ["/%64ump.sql", "/dump%2esql", "/%2egit/config", "/.%67it/config", "/%2Egit%2fconfig", "//dump.sql", "/sub//dump.sql", "/dump.sql%00", "/dump.sql/", "/sub%2fdump.sql", "/a%20b"]
        for path in self._locations()[:25]:
            below = path.rstrip("/")
            encoded = below[:1] + "".join(f"%{ord(letter):02x}" for letter in below[1:2]) + below[2:]
            found += [path, below or "/", f"{below}/", f"{below}/a.txt", f"{below}/dump.sql", f"{below}/a.php", f"{below}/x/y.jpg", f"{below}/.git/config", f"{path}x"]
            found += [f"{encoded}/a.txt", f"/sub/..{below}/a.txt", f"/{below}/a.txt", f"{below}/../a.txt", f"{below.upper()}/a.txt"]
        return [path.replace(" ", "%20") for path in dict.fromkeys(found)]


def _with_addresses(text: str) -> str:
    """The configuration with nginx's default address in each server that names none."""
    for begin in reversed(list(re.finditer(r"(?m)^\s*server\s*\{", text))):
        depth, end = 1, begin.end()
        while depth and end < len(text):
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        if not re.search(r"\blisten\s", text[begin.end() : end]):
            text = f"{text[: begin.end()]} listen 80; {text[begin.end() :]}"
    return text


def _example(regex: str) -> str:
    """A text that an expression fits, in most cases."""
    text = re.sub(r"\(\?[!=<][^)]*\)", "", regex)
    while match := re.search(r"\((?:\?:)?([^()]*)\)[?*+]?", text):
        text = text.replace(match[0], match[1].split("|")[0], 1)
    text = re.sub(r"\[\^?[^\]]*\][+*?]?(\{[\d,]+\})?", "a1", text)
    text = re.sub(r"\\[dw][+*]?|\\[sS][+*]?", "1", text).split("|")[0]
    text = re.sub(r"\.[*+]\??", "a", text)
    return re.sub(r"[\^$\\?*+]", "", text) or "/"


def main(files: list[str]) -> int:
    bad = 0
    for name in files:
        with tempfile.TemporaryDirectory(prefix="compare-") as place:
            found = compare(Path(name).read_text(errors="replace"), Path(place))
            print(f"== {name}: {found.asked} requests" + (f", {found.failed}" if found.failed else ""))
            for title, lines in (("OPEN", found.opened), ("LIMIT", found.limits), ("UNNAMED", found.unnamed), ("stricter", found.stricter), ("other", found.others)):
                for line in lines:
                    print(f"  {title}: {line}")
            bad += bool(found.opened or found.limits or found.unnamed or found.failed.startswith(("migrate", "the result")))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
