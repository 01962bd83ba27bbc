"""Which filters with ``access`` a server of nginx.conf needs, so that nobody gets what nginx refused.

nginx asks one location: the exact one; else the longest prefix if it has ``^~``; else the first expression that fits; else
the longest prefix. Filters decide by the most specific pattern. Where the two differ, a filter more says what nginx says;
where it cannot, it refuses more than nginx did, never less. Leaves out what one block says (nginx_policy).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from maitred._migrate import nginx_cover, nginx_policy
from maitred._migrate.nginx_policy import NOBODY, Case, Gate, Policy
from maitred._migrate.result import Host, Result, Table

if TYPE_CHECKING:
    from maitred._migrate.nginx_site import Location, Scope


@dataclass
class _Entry:
    """Patterns with the policy that nginx has for them."""

    patterns: tuple[str, ...]
    policy: Policy
    origin: str
    #: Greater wins in nginx: conditions of the server, exact, ``^~``, expressions, the earliest first.
    rank: tuple[int, int]
    #: Of a prefix, its text; of an expression none.
    prefix: str = ""
    written: bool = False
    #: An expression with the policy of the location that it stands in, which says it already.
    is_outer: bool = False
    #: Of an expression in a location: that, and the patterns as if it stood outside.
    inside: str = ""
    anywhere: tuple[str, ...] = ()
    #: What an expression leaves out.
    left_out_by: _Entry | None = None


class Access:
    """Collects the blocks of one server, and writes its filters."""

    def __init__(self, result: Result, table: Host, server: Scope, http: Scope, gates: list[Gate]) -> None:
        self._result = result
        self._table = table
        self._server = server
        self._http = http
        found = nginx_policy.conditions(result, server, http)
        self._gates = [*gates, *found.gates]
        self._base = nginx_policy.of_scope(result, server, self._gates)
        self._main: Location | None = None
        self._said: dict[str, Policy] = {}
        self._named: dict[str, Scope] = {}
        self._entries = [_Entry(cover.patterns, self._base.closed(origin), origin, (9, 0)) for origin, cover in found.paths]

    def put(self, main: Location | None, locations: list[Location], named: dict[str, Scope], untaken: dict[int, str]) -> None:
        """Writes the filters; ``untaken`` are the places of locations whose server behind is not taken over."""
        self._named = named
        self._main = main
        if main is not None:
            self._base = self._policy(main, "")
        for number, location in enumerate(locations):
            if location is not main:
                self._add(number, location, untaken.get(id(location.directive), ""))
        self._inherit()
        self._look_at_rewrites()
        self._say(self._base, ("",) if not self._base.is_open else ())
        for entry in self._entries:
            self._clashes(entry)
        for entry in self._entries:
            if entry.written:
                self._say(entry.policy, entry.patterns)
        for patterns, policy in self._crossed():
            self._say(policy, patterns)
        self._write()

    # What each location is for.

    def _policy(self, location: Location, untaken: str) -> Policy:
        found = nginx_policy.conditions(self._result, location.scope, self._http, is_server=False)
        gates = [*self._gates, *found.gates]
        for origin, cover in found.paths:
            if location.modifier in ("", "^~") and location.path != "/":
                patterns = nginx_cover.within(location.path, cover.patterns, True)
            else:
                patterns = cover.patterns
            self._entries.append(_Entry(patterns, self._base.closed(origin), origin, (9, 0)))
        policy = nginx_policy.of_scope(self._result, location.scope, gates)
        if untaken:
            policy = policy.closed(untaken)
        for directive in location.scope.own("return"):
            if directive.arg.isdigit() and len(directive.arg) == 3 and directive.arg[0] in "45":
                policy = self._refused(policy, directive.origin, directive.arg)
        # Behind try_files the named location is asked as well.
        for directive in location.scope.own("try_files"):
            for word in directive.args[-1:]:
                inner = self._named.get(word)
                behind = nginx_policy.of_scope(self._result, inner, self._gates) if inner else None
                if behind and not behind.is_open and behind != policy:
                    policy = behind if policy.is_open else policy.closed(behind.origin)
        return policy

    def _refused(self, policy: Policy, origin: str, code: str) -> Policy:
        if code in ("403", "404", "444"):
            if code != "403":
                self._result.tell(origin, "refused with 403", "nothing has to be done")
        else:
            self._result.decide(origin, f"no filter answers with {code}", "the answer is 403; let the application answer if that matters")
        return policy.closed(origin)

    def _add(self, number: int, location: Location, untaken: str) -> None:
        policy = self._policy(location, untaken)
        origin, path = location.directive.origin, location.path
        if location.modifier in ("", "=", "^~") and "*" in _literal(path) and policy.is_open:
            return
        if location.modifier == "=":
            self._entries.append(_Entry((_literal(path),), policy, origin, (8, 0), path))
        elif location.modifier in ("", "^~"):
            rank = (7, len(path)) if location.modifier else (1, len(path))
            self._entries.append(_Entry((f"{_literal(path)}*".replace("**", "*"),), policy, origin, rank, path))
        else:
            self._add_expression(number, location, policy)

    def _add_expression(self, number: int, location: Location, policy: Policy) -> None:
        origin = location.directive.origin
        cover = nginx_cover.of_regex(location.path, location.modifier == "~*")
        outer = location.outer
        rank = (5, -number)
        same, inside = False, ""
        anywhere: tuple[str, ...] = ()
        if outer is not None:
            # One in a location comes before those beside that location.
            rank = (6, -number)
            same = policy == self._of(outer)
            if outer.modifier in ("", "^~", "=") and outer.path != "/":
                inside, anywhere = outer.path, cover.patterns
                cover = nginx_cover.Cover(nginx_cover.within(outer.path, cover.patterns, not policy.is_open), True, cover.excepted)
        if policy.is_open and cover.wider:
            return
        if not policy.is_open and cover.wider and policy != self._base and cover == nginx_cover.EVERYTHING:
            self._result.decide(
                origin, "no pattern says which paths these are, and nobody is let in anywhere until that is decided",
                "write filters for the paths that are meant (docs/operations/filters.md), and take the one with path = \"*\" out",
            )  # fmt: skip
        elif not policy.is_open and cover.wider and policy != self._base and not same:
            self._result.tell(origin, f"the rules are for {_shown(cover.patterns)}, which is some more paths", "look whether that matters")
        entry = _Entry(cover.patterns, policy, origin, rank, "", False, same, inside, anywhere)
        self._entries.append(entry)
        for pattern in cover.excepted if not policy.is_open else ():
            excepted = _Entry((pattern,), self._base, origin, (1, len(pattern)), pattern.removesuffix("*"), written=True, left_out_by=entry)
            self._entries.append(excepted)

    def _of(self, location: Location) -> Policy:
        """The policy of a location that is an entry already, or the base."""
        if self._main is not None and location.directive is self._main.directive:
            return self._base
        return next((entry.policy for entry in self._entries if entry.origin == location.directive.origin), self._base)

    # Which of them have to be written.

    def _inherit(self) -> None:
        """Marks those for which something less specific would decide otherwise."""
        for entry in self._entries:
            others = [other for other in self._entries if other.policy != entry.policy]
            if entry.prefix:
                # An exact one and ^~ come before expressions, which would decide here.
                entry.written |= entry.policy != self._above(entry) or entry.rank[0] in (7, 8) and any(
                    not other.prefix and self._meet(entry, other) for other in others
                )  # fmt: skip
            elif entry.policy.is_open:
                entry.written = not self._base.is_open or any(other.rank < entry.rank and not other.policy.is_open for other in others)
            else:
                entry.written = not entry.is_outer and (entry.policy != self._base or bool(others))

    def _above(self, entry: _Entry) -> Policy:
        """What decides for it as long as it is not written: the longest prefix around it, or the base."""
        around = [other for other in self._entries if other is not entry and other.rank[0] in (1, 7) and other.prefix and entry.prefix.startswith(other.prefix)]
        return max(around, key=lambda other: len(other.prefix)).policy if around else self._base

    def _meet(self, entry: _Entry, other: _Entry) -> bool:
        if entry.rank[0] == 8:
            return any(_fits(pattern, entry.prefix) for pattern in other.patterns)
        return bool(nginx_cover.within(entry.prefix, other.patterns, True))

    # Where a filter that is more specific would let in what nginx refuses.

    def _clashes(self, entry: _Entry) -> None:
        """Refuses the whole of an entry of which an expression that comes before it refuses everything."""
        for other in self._entries:
            if other.rank > entry.rank and entry.prefix and entry.rank[0] == 1 and entry.written and _restricts(other, entry) and not other.prefix:
                if f"{entry.prefix}*" in _below(entry, other):
                    entry.policy = entry.policy.closed(f"{entry.origin}, {other.origin}")

    def _crossed(self) -> Iterable[tuple[tuple[str, ...], Policy]]:
        written = [entry for entry in self._entries if entry.written]
        for weak in written:
            for strong in [entry for entry in self._entries if entry.written or entry.is_outer]:
                if strong.rank <= weak.rank or weak.prefix and strong.prefix or strong.rank[0] == 8 or not _restricts(strong, weak):
                    continue
                patterns = _crossing(weak, strong)
                if patterns:
                    yield patterns, strong.policy.closed(f"{strong.origin}, also in {weak.origin}")

    def _look_at_rewrites(self) -> None:
        """What a rewrite leads to meets no filter, so that it is refused where its target is."""
        for table in self._table.filters:
            rewrite, path = table.find("rewrite"), table.find("path")
            if rewrite is None or table.find("access"):
                continue
            target = str(rewrite.value).partition("?")[0].partition("*")[0]
            meant = [entry for entry in self._entries if not entry.policy.is_open and (entry.prefix and target.startswith(entry.prefix) or any(_fits(pattern, str(rewrite.value)) for pattern in entry.patterns))]
            if meant and path is not None:
                table.put("access", list(NOBODY), f"{meant[0].origin}: it leads there")
                self._result.decide(rewrite.origin, f"it leads to what {meant[0].origin} protects, and nobody is let in", "write the access of that filter here, too")

    # Writing.

    def _say(self, policy: Policy, patterns: tuple[str, ...]) -> None:
        """The policy of a pattern; a later one takes the place of an earlier one."""
        for pattern in patterns:
            self._said.pop(pattern, None)
            self._said[pattern] = policy

    def _write(self) -> None:
        """Patterns of one policy and one origin share a filter."""
        shared: dict[tuple[object, ...], tuple[Policy, list[str]]] = {}
        for pattern, policy in self._said.items():
            shared.setdefault((policy.cases, policy.origin, pattern == ""), (policy, []))[1].append(pattern)
        for policy, patterns in shared.values():
            for case in policy.cases:
                self._append(self._table_of(policy, case, patterns))

    def _table_of(self, policy: Policy, case: Case, patterns: list[str]) -> Table:
        made = Table()
        if patterns != [""]:
            made.put("path", patterns[0] if len(patterns) == 1 else patterns, "")
        for key, value in case.conditions:
            made.put(key, value, "")
        for line in policy.offers if not case.conditions else ():
            made.offer(line.key, line.value, line.origin)
        made.put("access", list(case.rules) or ["allow all"], policy.origin or "the rules around it are not for this location")
        return made

    def _append(self, made: Table) -> None:
        """Two servers of one name share a table: the stricter one holds."""
        conditions = [(line.key, line.value) for line in made.lines if line.key in _CONDITIONS]
        for other in self._table.filters:
            access = other.find("access")
            same = [(line.key, line.value) for line in other.lines if line.key in _CONDITIONS] == conditions
            if access and same and access.value != (line.value if (line := made.find("access")) else None):
                other.put("access", list(NOBODY), f"{access.origin}, {line.origin if line else ''}")
                return
        self._table.filters.append(made)


_CONDITIONS = ("host", "path", "method", "header", "client", "client-certificate", "scheme")


def _shown(patterns: tuple[str, ...]) -> str:
    return ", ".join(patterns[:4]) + (f" and {len(patterns) - 4} more" if len(patterns) > 4 else "")


def _restricts(strong: _Entry, weak: _Entry) -> bool:
    return not strong.policy.is_open and strong.policy != weak.policy


def _below(weak: _Entry, strong: _Entry, prefix: str = "") -> tuple[str, ...]:
    """Patterns for the paths of an expression below a prefix."""
    prefix = prefix or weak.prefix
    patterns = strong.anywhere if strong.inside and prefix.startswith(strong.inside) else strong.patterns
    return nginx_cover.within(prefix, patterns, True, len(prefix) - 1 if weak.left_out_by is strong else 0)


def _crossing(weak: _Entry, strong: _Entry) -> tuple[str, ...]:
    """Patterns for the paths of both that are more specific than those of ``weak``."""
    if strong.prefix:
        return tuple(pattern for pattern in weak.patterns if pattern.lstrip("~").startswith(strong.prefix))
    if weak.rank[0] == 8:
        return tuple(weak.patterns) if any(_fits(pattern, weak.prefix) for pattern in strong.patterns) else ()
    found: list[str] = []
    for pattern in weak.patterns:
        text = pattern.lstrip("~")
        if not text.startswith("*"):
            found += [one for one in _below(weak, strong, text.partition("*")[0]) if one not in strong.patterns]
            continue
        for other in strong.patterns:
            mark = "~" if "~" in (pattern[0], other[0]) else ""
            one, two = text, other.lstrip("~")
            if not two.startswith("*"):
                continue
            if one.endswith("*"):
                found.append(f"{mark}{one}{two[1:]}")
            if two.endswith("*"):
                found.append(f"{mark}{two}{one[1:]}")
            if one.endswith(two[1:]):
                found.append(pattern)
    return tuple(dict.fromkeys(found))


def _literal(path: str) -> str:
    """A path as a pattern: what no pattern has becomes a star."""
    return re.sub(r"[*%?#\\]+", "*", re.sub("/{2,}", "/", path))


def _fits(pattern: str, path: str) -> bool:
    flags = re.IGNORECASE if pattern.startswith("~") else 0
    return re.fullmatch(".*".join(re.escape(part) for part in pattern.lstrip("~").split("*")), path, flags | re.DOTALL) is not None
