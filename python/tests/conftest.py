"""Starts the real command for the tests, on a port the system chooses."""

from __future__ import annotations

import contextlib
import functools
import http.client
import importlib.util
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import by_h2
import pytest
import secured

HERE = Path(__file__).resolve().parent
MAITRED = Path(sys.executable).with_name("maitred")
#: No test waits for a time to pass; this only ends a test whose condition never comes true.
PATIENCE = 30.0

#: Behind a source: `app` runs inside the validator, which turns a broken rule of PEP 3333, ours or its own, into a 500.
CHECKED = """
from wsgiref.validate import validator as _validator
app = _validator(app)
"""


#: Which server the tests of sites.py talk to.
SERVER = os.environ.get("MAITRED_TEST_SERVER", "maitred")


def pytest_configure(config: pytest.Config) -> None:
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        # A shell starts what runs in its background so, and the servers would inherit it.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # Where control sockets are: other servers of this user are none of the tests'.
    folder = tempfile.mkdtemp(prefix="maitred-tests-")
    os.environ["XDG_RUNTIME_DIR"] = folder
    config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
    others = not hasattr(config, "workerinput") and bool(getattr(config.option, "numprocesses", None))
    secured.configure(starts_others=others)
    by_h2.configure(starts_others=others)
    config.addinivalue_line("markers", "differs(reason, servers): what these other servers are known to do otherwise")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    secured.exempt(items)
    if by_h2.WANTED:
        secured.skip(items, by_h2.exempt(), by_h2.MARK)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    secured.summary(terminalreporter)
    if by_h2.WANTED:
        secured.tell(terminalreporter, "by HTTP/2", by_h2.MARK)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Where another server is under test that is known to differ, it has to: else the mark is wrong."""
    known = next((mark for mark in item.iter_markers("differs") if SERVER in mark.kwargs["servers"]), None)
    if known is None:
        return (yield)
    try:
        yield
    except Exception:
        pytest.skip(f"{SERVER} differs: {known.kwargs['reason']}")
    pytest.fail(f"{SERVER} does not differ here any more")


def needs(module: str) -> None:
    """Skips a test, or a file while it is collected, where this module is not installed. It is imported by the servers only: each process
    of pytest would need seconds to import all frameworks."""
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"{module} is not installed", allow_module_level=True)


def environment_for(environment: dict[str, str]) -> dict[str, str]:
    """Ours and these. Without PYTHONUNBUFFERED, which has each argument of a ``print`` written by itself: what an application
    prints and the log's lines come through one pipe, and a whole line is one write. Where root runs the tests, root is meant: no
    server warns of it. MAITRED_LONG and MAITRED_TEST_* are of the tests, and no server knows them."""
    others = ("PYTHONUNBUFFERED", "MAITRED_LONG")
    ours = {name: value for name, value in os.environ.items() if name not in others and not name.startswith("MAITRED_TEST_")}
    meant = {"MAITRED_USER": "root"} if os.geteuid() == 0 else {}
    return ours | meant | environment


def open_files(pid: int) -> dict[int, str]:
    """What a process has open, as /proc names it (proc_pid_fd(5)); without those that it closes meanwhile."""
    found = {}
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            found[int(descriptor.name)] = os.readlink(descriptor)
    return found


#: Which server has listened at a port last.
_serving: dict[int, Server] = {}


class Server:
    """A running ``maitred`` and everything it has said."""

    #: Those of the test that it inherits.
    descriptors: tuple[int, ...] = ()

    def __init__(self, arguments: list[str], folder: Path, environment: dict[str, str]) -> None:
        if "--listen" not in arguments:
            arguments = [*arguments, "--listen", "127.0.0.1:0"]
        tls = secured.environment(arguments, environment)
        self.process = subprocess.Popen(
            self.command(arguments),
            cwd=folder,
            env=environment_for(environment) | tls,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            pass_fds=self.descriptors,
        )
        self.said = ""
        self._ended = False
        self._changed = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self._is_secured = bool(tls)
        pairs = zip(arguments, arguments[1:])
        count = sum(name == "--listen" and "unix:" not in value for name, value in pairs)
        self.learn(count)

    def learn(self, count: int = 1, start: int = 0) -> None:
        """Where it listens, in so many lines that it says from position ``start`` on."""
        listener = r"127\.0\.0\.1:([1-9]\d*)"
        lines = self.wait_for(r"(?:https?://%s.*\n){%d}" % (listener, count), start)[0]
        self.ports = [int(port) for port in re.findall(listener, lines)]
        self.port = self.ports[0]
        _serving.update(dict.fromkeys(self.ports, self))
        by_h2.learn([int(port) for port in re.findall(rf"http://{listener}\b.*HTTP/2", lines)], self.ports)
        secured.learn([int(port) for port in re.findall(f"https://{listener}", lines)] if self._is_secured else [], self.ports)

    def command(self, arguments: list[str]) -> list[str | Path]:
        return [MAITRED, *arguments]

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self._changed:
                self.said += line
                self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def wait_for(self, pattern: str, start: int = 0) -> re.Match[str]:
        """Waits until the server has said something that matches, from position ``start`` on."""
        expression = re.compile(pattern)
        with self._changed:
            self._changed.wait_for(lambda: self._ended or expression.search(self.said, start), PATIENCE)
            found = expression.search(self.said, start)
        assert found, f"the server did not say {pattern!r}, but:\n{self.said}"
        return found

    def memory(self, figure: str = "VmRSS") -> int:
        """In bytes: what is resident now, or another figure of proc(5)."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition(f"{figure}:")[2].split()[0]) << 10

    def settled_memory(self) -> int:
        """What is resident now; the most (VmHWM) is counted anew from here: loading the application may have taken more."""
        Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")
        return self.memory("VmHWM")

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)

    def fetch(
        self, path: str, method: str = "GET", body: bytes | Iterator[bytes] | None = None, **headers: str
    ) -> Reply:
        """One request on a connection of its own. An underscore in a header's name is a hyphen."""
        connection = self.connect()
        try:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, body, named)
            return Reply(connection.getresponse())
        finally:
            connection.close()

    def raw(self, request: bytes) -> bytes:
        """Sends bytes and returns everything that comes until the server closes."""
        with socket.create_connection(("127.0.0.1", self.port), PATIENCE) as peer:
            peer.sendall(request)
            received = b""
            while part := peer.recv(65536):
                received += part
            return received

    def ask(self, request: bytes) -> Reply:
        """Sends bytes and reads one response."""
        with socket.create_connection(("127.0.0.1", self.port), PATIENCE) as peer:
            peer.sendall(request)
            response = http.client.HTTPResponse(peer)
            response.begin()
            return Reply(response)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Sends the signal and returns the exit code."""
        self.process.send_signal(number)
        code = self.process.wait(PATIENCE)
        self.read_all()
        return code

    def read_all(self) -> None:
        """All that a server has said that has ended is in ``said`` then."""
        self._reader.join(PATIENCE)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        # The system may give its ports to a listener of which no test knows, such as --admin, which has neither TLS nor HTTP/2.
        ports = [port for port, server in _serving.items() if server is self]
        by_h2.learn([], ports)
        secured.learn([], ports)
        for port in ports:
            del _serving[port]


class Reply:
    """A response read to its end."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status = response.status
        self.reason = response.reason
        self.headers = response.headers
        self.body = response.read()


Serve = Callable[..., Server]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Starts a server for a source text, or for a file or module that is named."""
    servers = []

    def start(*arguments: str, source: str = "", checked: bool = True, **environment: str) -> Server:
        """Whoever says ``checked=False`` says why."""
        if source:
            (tmp_path / "app.py").write_text(source + (CHECKED if checked else ""))
            arguments = ("app.py", *arguments)
        server = Server(list(arguments), tmp_path, environment)
        servers.append(server)
        return server

    yield start
    for server in servers:
        server.kill()


@pytest.fixture(scope="module", params=["asyncio", "uvloop"])
def loop(request: pytest.FixtureRequest) -> str:
    """The event loops an ASGI application may run on; the names are values of ``--loop``."""
    if request.param == "uvloop":
        needs("uvloop")
    return str(request.param)


@pytest.fixture(scope="session")
def apps(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The applications of apps.py."""
    server = Server([str(HERE / "apps.py"), "--max-threads", "8"], tmp_path_factory.mktemp("apps"), {})
    try:
        yield server
        assert server.stop() == 0, server.said
    finally:
        server.kill()


@pytest.fixture
def serve_asgi(serve: Serve) -> Serve:
    """The same for ASGI applications, which the validator of WSGI does not know."""
    return functools.partial(serve, checked=False)


@pytest.fixture(scope="session")
def asgi(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The applications of asgi_apps.py."""
    listen = "127.0.0.1:0,read-ahead=on"  # Long bodies go through files.
    arguments = [str(HERE / "asgi_apps.py"), "--listen", listen, "--body-memory", "64k", "--body-budget", "0"]
    server = Server(arguments, tmp_path_factory.mktemp("asgi"), {})
    try:
        yield server
        assert server.stop() == 0, server.said
    finally:
        server.kill()
