"""What settings mean here that several servers have: addresses, trust, certificates, logs, the application's name.

Each function takes a setting as it was given and puts what it means into a result. Leaves out which option of which
server it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from maitred._migrate.result import Result, Table
from maitred._migrate.words import Given

_LEVELS = {
    "critical": "error", "error": "error", "warning": "warn", "warn": "warn", "info": "info", "debug": "debug", "trace": "debug",
    "notset": "debug", "notice": "info", "crit": "error", "alert": "error", "emerg": "error",
}  # fmt: skip

#: Atoms of Apache's log formats, as gunicorn, uvicorn's workers and hypercorn have them.
_ATOMS = {
    "h": "$remote_addr", "l": "-", "u": "$remote_user", "t": "[$time_local]", "r": "$request", "s": "$status",
    "b": "$body_bytes_sent", "B": "$body_bytes_sent", "f": "$http_referer", "a": "$http_user_agent", "m": "$request_method",
    "U": "$path", "q": "$args", "H": "$server_protocol", "L": "$total", "T": "$total",
    "D": "$total", "M": "$total",
}  # fmt: skip

COMBINED = '%(h)s %(l)s %(u)s %(t)s "%(r)s" %(s)s %(b)s "%(f)s" "%(a)s"'

Handler = Callable[[Result, Given], None]


def key(name: str, change: Callable[[object], object] = lambda value: value) -> Handler:
    """A setting that a key has under another name."""

    def handle(result: Result, given: Given) -> None:
        value = change(given.value)
        if isinstance(value, (str, int, float, bool)):
            result.put(name, value, given.origin)

    return handle


def nothing(_result: Result, _given: Given) -> None:
    """A setting that needs nothing here, and that nobody misses."""


def decide(what: str, instead: str) -> Handler:
    return lambda result, given: result.decide(given.origin, what, instead)


def tell(what: str, instead: str) -> Handler:
    return lambda result, given: result.tell(given.origin, what, instead)


def number(value: object) -> int | float:
    """A number that may have been written as text."""
    try:
        return int(str(value))
    except ValueError:
        return float(str(value))


def time(value: object) -> int | float:
    """A number of seconds; 0 is the least that there is."""
    return number(value) or 0.001


def truth(value: object) -> bool:
    return str(value).strip().lower() in ("true", "1", "yes", "on")


#: The largest head of a request that can be set, and the default, in bytes; then the same for one field.
_MOST, _HEAD, _FIELD = 256 * 1024, 64 * 1024, 16 * 1024


def head(result: Result, origin: str, field: int | float, whole: int | float = 0) -> None:
    """A server's limits of a request's head; without ``whole`` a field may be as long as a head. A larger limit than usual is taken over."""
    whole = max(field, whole)
    if whole > _HEAD:
        result.put("max-head", int(min(whole, _MOST)), origin)
    if field > _FIELD:
        result.put("max-field", int(min(field, _MOST)), origin)
    if whole > _MOST:
        result.tell(origin, "a request's head has 256 KiB at most", "nothing has to be done, unless clients send larger ones")
    elif field <= _FIELD:
        result.tell(origin, "a request's head has 64 KiB at most, and each field 16", "max-head and max-field make it less")


def HEAD(result: Result, given: Given) -> None:
    """A number of bytes for a whole head; 0 is no limit."""
    head(result, given.origin, number(given.value) or _MOST)


def apply(result: Result, settings: Mapping[str, Given], handlers: Mapping[str, Handler]) -> None:
    """Translates each setting; one whose value cannot be read is left to the user."""
    for name, given in settings.items():
        handler = handlers.get(name)
        if handler is None:
            result.decide(given.origin, f"{name} is not known", "look it up in the documentation of that server")
            continue
        try:
            handler(result, given)
        except (TypeError, ValueError):
            result.decide(given.origin, f"the value of {name} cannot be read", "write a plain value")


def listen(result: Result, address: str, origin: str, parameters: str = "", mode: str = "666") -> None:
    """An address in the form of gunicorn and hypercorn: ``HOST:PORT``, ``unix:PATH`` or ``fd://N``."""
    address = address.strip()
    if address.startswith(("unix:", "fd:")):
        kind, _, rest = address.partition(":")
        if kind == "fd":
            result.add("listen", "systemd" + parameters, f"{origin} (a socket that a service manager passes)")
            return
        path = re.sub(r"^/{2,}", "/", rest)
        result.add("listen", f"unix:{path},mode={mode}{parameters}", origin)
        if mode == "666":
            result.tell(
                origin,
                f"everybody on the machine may connect to {path}, as before",
                "write mode=660,group=NAME to let only the proxy's group in",
                key="listen",
            )
        return
    address = re.sub(r"^tcp://", "", address)
    if address.isdigit():
        address = f":{address}"
    elif not re.search(r":\d+$|:\$", address):
        address = f"{address}:8000"
    port = address.rpartition(":")[2]
    if not port.isdigit():
        result.decide_but_shell(
            origin,
            f"the port is {port}, which the environment says; a file has fixed addresses",
            f"start it with: maitred --listen {address}",
            f"--listen {address}",
        )
        return
    # ``[::]`` of another server takes IPv4 as well, and here IPv6 alone.
    for place in [address, f"0.0.0.0:{port}"] if address.startswith("[::]:") else [address]:
        line = result.find("listen")
        known = [re.sub(r"^https?://", "", text).partition(",")[0] for text in texts(line.value)] if line else []
        same = {place, re.sub(r"^(0\.0\.0\.0)?:", "", place)} & {re.sub(r"^(0\.0\.0\.0)?:", "", text) for text in known}
        if not same:
            result.add("listen", place + parameters, origin if place == address else f"{origin} (IPv4, too)")


def trust(result: Result, given: Given, more: tuple[str, ...] = ()) -> None:
    """Whom a server believes what they say of their clients."""
    text = given.value if isinstance(given.value, str) else ",".join(str(part) for part in _parts(given.value))
    names = [name.strip() for name in text.split(",") if name.strip()]
    if "*" in names:
        result.decide(
            given.origin,
            "everybody was believed, so that every client could claim any address and https",
            'name the proxies: trusted-proxies = ["10.0.0.0/8"]; until then nobody is believed',
            key="trusted-proxies",
        )
        result.offer("trusted-proxies", ["127.0.0.1"], "the address of your proxy")
        names = []
    bad = [name for name in names if not re.fullmatch(r"[0-9a-fA-F.:/]+", name)]
    for name in bad:
        result.decide(given.origin, f"'{name}' is no address", "trusted-proxies takes addresses, networks and unix", key="trusted-proxies")
    names = [name for name in names if name not in bad]
    for name in (*more, *names):
        result.add("trusted-proxies", name, given.origin)
    if line := result.find("trusted-proxies"):
        result.tell(
            given.origin,
            f"{_listed(line.value)} may say who the client is, as the proxy in front",
            "leave trusted-proxies out when no proxy is in front any more",
            key="trusted-proxies",
        )


def _listed(value: object) -> str:
    return ", ".join(texts(value))


def _parts(value: object) -> list[object]:
    return list(value) if isinstance(value, (list, tuple, set)) else [value]


def texts(value: object) -> list[str]:
    """A list of texts, of which one may stand alone."""
    return [str(part) for part in _parts(value)]


def level(result: Result, given: Given) -> None:
    meant = _LEVELS.get(str(given.value).lower())
    if meant is None:
        result.decide(given.origin, f"'{given.value}' is no level", "log-level takes error, warn, info and debug")
    elif meant != "info":
        result.put("log-level", meant, given.origin)


def access_log(result: Result, given: Given) -> None:
    place = str(given.value)
    if place and place != "None":
        result.put("access-log", {"/dev/stdout": "-", "/dev/stderr": "stderr"}.get(place, place), given.origin)
        if result.find("access-log-format") is None:
            result.put("access-log-format", "combined", f"{given.origin} (the form of its lines)")


def error_log(result: Result, given: Given) -> None:
    place = str(given.value)
    if place not in ("-", "", "None", "/dev/stderr"):
        result.put("error-log", "stdout" if place == "/dev/stdout" else place, given.origin)


def access_format(result: Result, given: Given) -> None:
    """A format of Apache's atoms."""
    missing: list[str] = []
    units: list[str] = []

    def field(match: re.Match[str]) -> str:
        atom = match[1]
        if header := re.fullmatch(r"\{([A-Za-z0-9-]+)\}i", atom):
            return "$http_" + header[1].lower().replace("-", "_")
        if atom in ("D", "M"):
            units.append(f"%({atom})s")
        if atom not in _ATOMS:
            missing.append(atom)
        return _ATOMS.get(atom, "-")

    text = str(given.value)
    if " ".join(text.split()) == COMBINED:
        result.put("access-log-format", "combined", given.origin)
        return
    result.put("access-log-format", re.sub(r"%\(([^)]*)\)s", field, text.replace("$", "$$")), given.origin)
    if units:
        result.tell(given.origin, f"{', '.join(units)} was in micro- or milliseconds, and $total is in seconds", "change what reads the log")
    if missing:
        result.decide(
            given.origin, f"the access log has no field for {', '.join(missing)}", "docs/operations/logs.md lists the fields"
        )


def client_certificates(result: Result, given: Given) -> None:
    """``cert_reqs`` of Python's ssl: 0, 1 or 2, or the name."""
    text = str(given.value).rpartition(".")[2].upper()
    meant = {"0": "none", "CERT_NONE": "none", "1": "optional", "CERT_OPTIONAL": "optional", "2": "required"}.get(text, "required")
    if meant != "none":
        result.put("tls-client-auth", meant, given.origin)


CIPHERS = tell("the suites of TLS are fixed: all of them have forward secrecy and AEAD", "docs/operations/tls.md lists them")
RELOAD = tell("reload on change is for development", "there start: maitred dev APPLICATION")
NAME = tell("the name of the process is not changed", "'maitred ctl' finds it by its number or socket")
STATSD = decide("nothing is sent to StatsD", 'metrics-path = "/metrics" has the figures for Prometheus')
LOG_CONFIG = decide(
    "the files of Python's logging are not read",
    'write error-log = "logging", and configure logging in the module of the application (logging.config)',
)
DAEMON = decide("it does not go into the background", "have systemd start it: docs/operations/deploy.md")


def password(result: Result, given: Given) -> None:
    """That of a key, which is shown nowhere."""
    result.decide(given.place, "the password of a key stands in a file here", "write it into one, mode 0600, and name that with tls-key-password")


def target(result: Result, given: Given, default: str = "", table: Table | None = None) -> None:
    """``module:attribute``, or ``module:factory()``."""
    into = result if table is None else table
    text = str(given.value).strip()
    module, colon, attribute = text.partition(":")
    call = re.fullmatch(r"([A-Za-z_][\w.]*)\((.*)\)", attribute)
    if call and call[2].strip():
        result.decide(
            given.origin,
            f"{call[1]} is called with arguments",
            f"write a module of two lines, from {module} import {call[1]}; app = {attribute}, and name that",
        )
        return
    if call:
        into.put("application", f"{module}:{call[1]}", given.origin)
        into.put("factory", True, given.origin)
        return
    into.put("application", text if colon or not default else f"{module}:{default}", given.origin)


def command_line_rest(result: Result, wrappers: list[str], unknown: list[str], beside: list[str]) -> None:
    """What stood in front of the server or beside it, and variables that only a shell knows."""
    for command in beside:
        result.decide("command line", f"'{command}' ran beside the server", "run it by itself, such as with ExecStartPre= of a unit")
    for word in wrappers:
        result.decide("command line", f"'{word}' stood in front of the server", f"write it in front of maitred as well: {word} maitred")
    for name in dict.fromkeys(unknown):
        result.tell("command line", f"${name} is not known here", f"set it in front: {name}=VALUE, or keep it on the command line of maitred")
