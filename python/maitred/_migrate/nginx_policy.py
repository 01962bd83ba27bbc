"""Who may ask for the paths of one block of nginx.conf: its rules, what protects it otherwise, and its conditions.

Promises: what protects and cannot be taken over lets nobody in, and is said once. Leaves out which paths a block is for (nginx_access).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from maitred._migrate import nginx_cover
from maitred._migrate.nginx_parse import Directive
from maitred._migrate.result import Line, Result

if TYPE_CHECKING:
    from maitred._migrate.nginx_site import Scope

Rules = tuple[str, ...]
OPEN: Rules = ()
NOBODY: Rules = ("deny all",)

#: Directives that let nobody in by themselves, or ask somebody; and what is said of each.
_ASKED = ("no other server is asked who may come in, and nobody is let in", "let the application decide, or use basic-auth, and take the filter out")
_PROTECTS = {
    "auth_request": _ASKED,
    "auth_jwt": ("tokens are not checked, and nobody is let in", "check them in the application, and take the filter out"),
    "secure_link": ("signed links are not checked, and nobody is let in", "check them in the application, which sends the file by sendfile, and take the filter out"),
    "access_by_lua": ("no program of nginx is run, and nobody is let in", "decide in the application, and take the filter out"),
    "js_access": ("no program of nginx is run, and nobody is let in", "decide in the application, and take the filter out"),
    "auth_": ("this way to ask who it is does not exist here, and nobody is let in", "let the application decide, or use basic-auth, and take the filter out"),
}
#: How the names of such directives begin, and of those that belong to them.
PROTECTING = tuple(_PROTECTS)
#: Beside a directive that protects, these say how.
_HOW = frozenset((
    "auth_basic_user_file", "auth_request_set", "secure_link_md5", "secure_link_secret", "auth_delay", "auth_jwt_key_file",
    "auth_jwt_key_request", "auth_jwt_key_cache", "auth_jwt_leeway", "auth_jwt_type", "auth_jwt_require", "auth_jwt_header_set", "auth_jwt_claim_set",
))  # fmt: skip


@dataclass(frozen=True)
class Case:
    """For requests that meet these conditions, besides those of the path."""

    conditions: tuple[tuple[str, str], ...]
    rules: Rules


@dataclass(frozen=True)
class Policy:
    #: The first has no conditions.
    cases: tuple[Case, ...]
    origin: str = field(default="", compare=False)
    offers: tuple[Line, ...] = field(default=(), compare=False)

    @property
    def is_open(self) -> bool:
        return all(case.rules == OPEN for case in self.cases)

    @property
    def is_closed(self) -> bool:
        return all(case.rules == NOBODY for case in self.cases)

    @property
    def rules(self) -> Rules:
        return self.cases[0].rules

    def closed(self, origin: str) -> Policy:
        return Policy((Case((), NOBODY),), origin or self.origin)


def of_scope(result: Result, scope: Scope, gates: list[Gate]) -> Policy:
    """The policy of a block, with what it inherits; ``gates`` are the conditions that hold there."""
    rules, origin = _rules(result, scope)
    policy = Policy((Case((), rules),), origin)
    for directive in scope.own("limit_except"):
        policy = _methods(result, policy, directive)
    for gate in gates:
        before, policy = policy, gate.restrict(policy)
        if policy.is_closed and not before.is_closed and gate.kind != "nobody":
            _say_nobody(result, gate.origin, "this condition together with the other ones")
    realm = scope.one("auth_basic")
    if realm and realm.arg != "off":
        policy = _passwords(result, policy, realm, scope.one("auth_basic_user_file"))
    for directive in _protecting(scope):
        what, instead = next(text for name, text in _PROTECTS.items() if directive.name.startswith(name))
        result.decide(directive.origin, what, instead)
        policy = policy.closed(directive.origin)
    for directive in scope.own("internal"):
        result.tell(directive.origin, "only nginx itself came in there, and here nobody does", "nothing has to be done: sendfile and error-page meet no filter")
        policy = policy.closed(directive.origin)
    return policy


def _rules(result: Result, scope: Scope) -> tuple[Rules, str]:
    block: Scope | None = scope
    while block and not block.own("allow", "deny"):
        block = block.outer
    words: list[str] = []
    places: list[str] = []
    for directive in block.own("allow", "deny") if block else []:
        if directive.arg == "unix:":
            result.decide(directive.origin, "who comes by a Unix socket is in no network", "leave the line out")
            if directive.name == "deny":
                words.append("deny all")
                places.append(directive.origin)
            continue
        words.append(f"{directive.name} {directive.arg}")
        places.append(directive.origin)
    kept: list[str] = []
    for word in words:
        if word not in kept:
            kept.append(word)
        if word.endswith(" all"):
            break
    return (OPEN if kept[:1] == ["allow all"] else tuple(kept)), ", ".join(places)


def _protecting(scope: Scope) -> list[Directive]:
    found: dict[str, Directive | None] = {}
    block: Scope | None = scope
    while block:
        for directive in block.directives:
            name = directive.name
            if name in _HOW or name == "auth_basic" or not name.startswith(tuple(_PROTECTS)) or name in found:
                continue
            found[name] = None if directive.arg == "off" else directive
        block = block.outer
    return [directive for directive in found.values() if directive]


def _passwords(result: Result, policy: Policy, realm: Directive, file: Directive | None) -> Policy:
    result.decide(
        (file or realm).origin, "the passwords of nginx have hashes that are not taken; nobody is let in until there are others",
        "give each user a password: maitred passwd users.txt NAME; then take the lines basic-auth and realm in, and access out",
    )  # fmt: skip
    offers = [Line("basic-auth", "users.txt", (file or realm).origin, True), Line("realm", realm.arg, realm.origin, True)]
    if policy.rules not in (OPEN, NOBODY):
        offers.insert(0, Line("access", list(policy.rules), f"{policy.origin} (then)", True))
    return replace(policy.closed(f"{realm.origin} (until there are passwords)"), offers=tuple(offers))


def _methods(result: Result, policy: Policy, directive: Directive) -> Policy:
    """``limit_except GET { ... }``: what is in it is for all other methods."""
    from maitred._migrate.nginx_site import Scope

    inner = Scope(directive.block or [])
    others, _ = _rules(result, inner)
    if inner.own("auth_basic") or _protecting(inner):
        result.decide(directive.origin, "these methods asked for a password, and nobody is let in with them", "give the filter basic-auth in the place of access")
        others = NOBODY
    names = [name.upper() for name in directive.args]
    if "GET" in names and "HEAD" not in names:
        names.append("HEAD")
    return Policy((Case((), others), *(Case((("method", name),), policy.rules) for name in names)), directive.origin)


@dataclass(frozen=True)
class Gate:
    """A condition on who comes in, made of ``if ... { return 403; }``."""

    origin: str
    #: ``only``: one of these values is needed; ``never``: none of them may be; ``first``: rules before all others; ``nobody``.
    kind: str
    key: str = ""
    values: tuple[str, ...] = ()

    def restrict(self, policy: Policy) -> Policy:
        origin = f"{policy.origin}, {self.origin}" if policy.origin else self.origin
        if self.kind == "first":
            cases = tuple(self._first(case) for case in policy.cases)
        elif self.kind == "only":
            cases = (Case((), NOBODY), *(made for case in policy.cases for value in self.values if (made := self._with(case, value))))
        elif self.kind == "never":
            entered = [case for case in policy.cases if case.rules != NOBODY]
            denied = [self._with(Case(case.conditions, NOBODY), value) for case in entered for value in self.values]
            cases = (*policy.cases, *(made for made in denied if made))
            clash = any(name == self.key for case in entered for name, _ in case.conditions)
            if clash and self.key != "method":
                return policy.closed(origin)
        else:
            return policy.closed(origin)
        if all(case.rules == NOBODY for case in cases):
            return policy.closed(origin)
        return Policy(tuple({case.conditions: case for case in cases}.values()), origin, policy.offers)

    def _with(self, case: Case, value: str) -> Case | None:
        known = dict(case.conditions)
        if self.key in known:
            return case if known[self.key] == value else None
        return Case((*case.conditions, (self.key, value)), case.rules)

    def _first(self, case: Case) -> Case:
        if case.rules == NOBODY:
            return case
        if any(text.startswith("allow") for text in self.values):
            return replace(case, rules=self.values if case.rules == OPEN else NOBODY)
        return replace(case, rules=(*self.values, *case.rules))


#: Variables of nginx that stand for a field of the request.
_PATHS = ("request_uri", "uri", "document_uri", "request_filename")
_SCHEME = {("scheme", "=", "http"): "http", ("scheme", "!=", "https"): "http", ("scheme", "=", "https"): "https", ("scheme", "!=", "http"): "https",
           ("https", "=", ""): "http", ("https", "!=", "on"): "http", ("https", "=", "on"): "https"}  # fmt: skip


@dataclass
class Refusals:
    """What the conditions of a block refuse."""

    gates: list[Gate] = field(default_factory=list)
    #: Patterns of paths that are refused, with their places.
    paths: list[tuple[str, nginx_cover.Cover]] = field(default_factory=list)


def conditions(result: Result, scope: Scope, http: Scope, is_server: bool = True) -> Refusals:
    """Those with an answer that refuses; of others it says that they are not taken over."""
    found = Refusals()
    for directive in scope.own("if"):
        if is_server and host_names(directive):
            continue  # the names of the host: nginx
        inner = directive.block or []
        code = next((part.arg for part in inner if part.name == "return"), "")
        text = " ".join(directive.args).strip()
        text = text.removeprefix("(").removesuffix(")").strip()
        guards = "$invalid_referer" in text or "$secure_link" in text
        refuses = len(code) == 3 and code[0] in "45"
        if re.match(r"!-[ef]\s", text) and any(part.name in ("proxy_pass", "uwsgi_pass") for part in inner):
            continue  # nginx_site
        if not (refuses or guards) or re.match(r"!?-[fdex]\b", text):
            result.decide(directive.origin, "conditions are not taken over", "a filter has conditions: host, path, method, header, client")
            continue
        path = _path_of(text)
        if path is not None:
            found.paths.append((directive.origin, path))
            if path == nginx_cover.EVERYTHING:
                _say_nobody(result, directive.origin)
            elif path.wider:
                result.tell(directive.origin, f"refused is {', '.join(path.patterns[:8])}, which is some more paths", "look whether that matters")
            continue
        gate = _gate(directive.origin, text, http)
        if gate is None:
            _say_nobody(result, directive.origin)
            gate = Gate(directive.origin, "nobody")
        elif gate.key == "scheme":
            result.tell(directive.origin, "refused with 403", "redirect=https of a listener leads to https")
        found.gates.append(gate)
    return found


def host_names(directive: Directive) -> list[str] | None:
    """The names of ``if ($host !~ ^(a|b)$) { return 444; }``, with which others get nothing; none of another condition."""
    parts = _split(" ".join(directive.args).strip().removeprefix("(").removesuffix(")").strip())
    code = next((part.arg for part in directive.block or [] if part.name == "return"), "")
    if parts is None or parts[0] not in ("host", "http_host") or not parts[1].startswith("!") or not re.fullmatch("[45]..", code):
        return None
    return _words(parts[1], parts[2].replace("\\.", ".")) or None


def _say_nobody(result: Result, origin: str, what: str = "this condition") -> None:
    result.decide(
        origin, f"filters do not know {what}, and nobody is let in until that is decided",
        "write filters for it (host, path, method, header, client), or let the application decide; then take the filter with access = [\"deny all\"] out",
    )  # fmt: skip


def _split(text: str) -> tuple[str, str, str] | None:
    match = re.fullmatch(r"\$\{?(\w+)\}?\s*(?:(!?~\*?|!?=)\s*(.*))?", text, re.DOTALL)
    return (match[1], match[2] or "", (match[3] or "").strip("\"'")) if match else None


def _path_of(text: str) -> nginx_cover.Cover | None:
    parts = _split(text)
    if parts is None or parts[0] not in _PATHS:
        return None
    name, operator, value = parts
    if operator == "=":
        return nginx_cover.Cover((value,), False) if value.startswith("/") and not re.search(r"[*%?#\\]", value) else nginx_cover.EVERYTHING
    if operator in ("~", "~*"):
        cover = nginx_cover.of_regex(value, operator == "~*")
        if name == "request_filename":
            return nginx_cover.Cover(tuple(part if part.lstrip("~").startswith("*") else "*" for part in cover.patterns), True)
        # The query is not looked at: what was meant for it alone is refused with any.
        return nginx_cover.EVERYTHING if name == "request_uri" and re.search(r"\\\?|=", value) else cover
    return nginx_cover.EVERYTHING


def _gate(origin: str, text: str, http: Scope) -> Gate | None:
    parts = _split(text)
    if parts is None:
        return None
    name, operator, value = parts
    negated = operator.startswith("!")
    if name == "request_method":
        words = _words(operator, value)
        return Gate(origin, "only" if negated else "never", "method", tuple(word.upper() for word in words)) if words and operator else None
    if name in ("host", "http_host", "server_name"):
        words = _words(operator, value.replace("\\.", ".")) if not negated else []
        return Gate(origin, "never", "header", tuple(f"Host: {word}{port}" for word in words for port in ("", ":*"))) if words and operator else None
    if scheme := _SCHEME.get((name, operator, value)):
        return Gate(origin, "never", "scheme", (scheme,))
    if name == "ssl_client_verify" and operator == "!=" and value == "SUCCESS":
        return Gate(origin, "only", "client-certificate", ("*",))
    if name == "remote_addr" and operator in ("=", "!="):
        return Gate(origin, "first", "", (f"allow {value}", "deny all") if negated else (f"deny {value}",))
    if name.startswith("http_") and operator in ("=", "~") and value:
        return _field(origin, name.removeprefix("http_"), operator, value)
    return _geo(origin, name, operator, value, http)


def _words(operator: str, value: str) -> list[str]:
    """The words of ``^(GET|HEAD)$``."""
    if "~" in operator:
        value = re.sub(r"^\^|\$$", "", value)
        value = re.sub(r"^\((?:\?:)?([^()]*)\)$", r"\1", value)
        optional = re.fullmatch(r"\(?(?:\?:)?(www\.)\)?\?([\w.-]+)", value)
        if optional:
            return [optional[2], optional[1] + optional[2]]
    words = value.split("|")
    return words if all(re.fullmatch(r"[\w.-]+", word) for word in words) else []


def _field(origin: str, name: str, operator: str, value: str) -> Gate | None:
    field_name = "-".join(part.capitalize() for part in name.split("_"))
    if operator == "=":
        return Gate(origin, "never", "header", (f"{field_name}: {value}",)) if "*" not in value else None
    words = re.sub(r"^\((.*)\)$", r"\1", value).split("|")
    if not all(re.fullmatch(r"[\w /.-]+", word) for word in words) or len(words) > 40:
        return None
    return Gate(origin, "never", "header", tuple(f"{field_name}: *{word.strip()}*" for word in words))


def _geo(origin: str, name: str, operator: str, value: str, http: Scope) -> Gate | None:
    """``geo $blocked { default 0; 10.0.0.0/8 1; }``: the longest network decides."""
    block = next((found for found in http.own("geo") if found.args == [f"${name}"]), None)
    if block is None or operator not in ("", "=", "!="):
        return None

    def refuses(given: str) -> bool:
        return given not in ("", "0") if not operator else (given == value) == (operator == "=")

    default, networks = "", []
    for entry in block.block or []:
        if entry.name == "default":
            default = entry.arg
        elif re.fullmatch(r"[0-9a-fA-F.:]+(/\d+)?", entry.name):
            bits = int(entry.name.partition("/")[2] or 128)
            networks.append((bits, f"{'deny' if refuses(entry.arg) else 'allow'} {entry.name}"))
        else:
            return None
    ordered = [text for _, text in sorted(networks, key=lambda network: -network[0])]
    if refuses(default):
        return Gate(origin, "first", "", (*ordered, "deny all"))
    return Gate(origin, "first", "", tuple(ordered)) if ordered else None
