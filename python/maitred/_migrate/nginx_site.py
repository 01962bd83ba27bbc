"""One server of nginx.conf: its locations, and what holds for a part of its paths.

What a location does becomes the application, a mount, a static folder or a filter of one table; what it changes of
answers becomes filters. Leaves out which server is for which name (nginx) and how paths are written (nginx_paths).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from maitred._migrate import nginx_cover, nginx_fields, nginx_paths
from maitred._migrate.nginx_access import Access
from maitred._migrate.nginx_parse import Directive
from maitred._migrate.nginx_paths import Found
from maitred._migrate.nginx_policy import Gate
from maitred._migrate.result import FALLBACK, Host, Result, Table

_PASS = ("proxy_pass", "uwsgi_pass")
_OTHER_PASS = {"fastcgi_pass": "FastCGI", "grpc_pass": "gRPC", "scgi_pass": "SCGI", "memcached_pass": "memcached"}
#: A location with nothing else refuses, or changes nothing.
_REFUSING = frozenset(("allow", "deny", "return", "internal", "access_log", "log_not_found", "error_log"))
#: Says nothing beside the application that is behind it.
_OF_PROXY = frozenset(name for name in nginx_fields.NEEDLESS if name.startswith(("proxy_", "uwsgi_"))) - {
    "proxy_hide_header", "proxy_read_timeout", "uwsgi_read_timeout", "proxy_intercept_errors", "uwsgi_intercept_errors",
}  # fmt: skip
_HEALTH = re.compile(r"(?:^|[/_.-])(?:health(?:z|check|-check|_check)?|alive|livez?|readyz?|ready|ping|status|up)/?$")


class Scope:
    """Directives of a block, and of those around it, from which it inherits."""

    def __init__(self, directives: list[Directive], outer: Scope | None = None) -> None:
        self.directives = directives
        self.outer = outer

    @property
    def place(self) -> str:
        return self.directives[0].place if self.directives else ""

    def own(self, *names: str) -> list[Directive]:
        return [directive for directive in self.directives if directive.name in names]

    def all(self, name: str) -> list[Directive]:
        """Those of the innermost block that has any: nginx replaces lists as a whole."""
        return self.own(name) or (self.outer.all(name) if self.outer else [])

    def one(self, name: str) -> Directive | None:
        found = self.all(name)
        return found[-1] if found else None


@dataclass
class Applications:
    """Which application stands behind which upstream, as the user has named them."""

    #: The one for every upstream that is not named.
    any: str = ""
    named: dict[str, str] = field(default_factory=dict)
    #: Servers of upstream blocks by the name of the block.
    upstreams: dict[str, list[str]] = field(default_factory=dict)

    #: The servers of the upstream that :attr:`any` has been taken for: one application is not behind two.
    taken: list[str] = field(default_factory=list)

    def find(self, upstream: str) -> str:
        servers = self.upstreams.get(upstream, [upstream])
        for name in (upstream, *servers):
            if name in self.named:
                return self.named[name]
        if self.any and self.taken in ([], servers):
            self.taken = servers
            return self.any
        return ""


@dataclass
class Location:
    modifier: str
    path: str
    scope: Scope
    directive: Directive
    #: The location that it stands in.
    outer: Location | None = None

    @property
    def found(self) -> Found | None:
        return nginx_paths.of_location(self.modifier, self.path)

    @property
    def patterns(self) -> list[str]:
        """Those of its paths; none is the whole site. In a location they are for what is below that."""
        found = self.found
        patterns = found.patterns if found else []
        outer = self.outer
        while outer and outer.modifier not in ("", "^~"):
            outer = outer.outer
        if outer and outer.path != "/" and self.modifier in ("~", "~*"):
            return list(nginx_cover.within(outer.path, tuple(patterns), False))
        return patterns

    @property
    def url(self) -> str:
        """The path of a mount or a static folder."""
        return self.path.rstrip("/") or "/"


class Site:
    """Translates one server into a table of its own, or into what stands outside of all hosts."""

    def __init__(self, result: Result, table: Host, scope: Scope, applications: Applications, has_tls: bool) -> None:
        self._result = result
        self._table = table
        self._scope = scope
        self._applications = applications
        self._has_tls = has_tls
        self._named = {d.arg: d for d in scope.own("location") if d.arg.startswith("@")}
        self._root_app = ""
        self._rewrites: list[tuple[Location, str]] = []
        self._main: Location | None = None
        #: Locations with files.
        self._folders: list[Location] = []
        #: What answers there is not taken over: the directives of locations, and of what.
        self._untaken: dict[int, str] = {}

    def translate(self, gates: list[Gate]) -> None:
        """Everything; ``gates`` are conditions that come from other servers."""
        locations = list(self._locations(self._scope))
        main = next((part for part in locations if part.path == "/" and part.modifier in ("", "^~")), None)
        self._main = main
        nginx_fields.put(self._result, self._table, self._scope, self._scope.outer, None, self._has_tls)
        self._error_pages(self._scope, self._scope.all("error_page"))
        for directive in self._named.values():
            nginx_fields.unknown(self._result, Scope(directive.block or []))
        for directive in self._scope.own("rewrite"):
            self._rewrite(directive)
        if main is None and not self._scope.own("return"):
            self._serve(Location("", "/", self._scope, Directive("server", [], "", 0)), is_server=True)
        for directive in self._scope.own("return"):
            self._return(directive, Location("", "/", self._scope, directive))
        for location in sorted(locations, key=lambda part: part is not main):
            self._location(location)
        for location, file in self._rewrites:
            self._single_file(location, file)
        self._listings()
        self._bodies(locations)
        self._tell_redirected(locations)
        access = Access(self._result, self._table, self._scope, self._scope.outer or Scope([]), gates)
        named = {name: Scope(directive.block or [], self._scope) for name, directive in self._named.items()}
        access.put(main, locations, named, self._untaken)

    def _listings(self) -> None:
        """One switch is for all folders of the site: it is on only where it was on in all of them."""
        wanted = [(location, location.scope.one("autoindex")) for location in self._folders]
        on = [directive for _, directive in wanted if directive and directive.arg == "on"]
        if on and len(on) == len(wanted):
            self._table.put("listing", True, on[0].origin)
        elif on:
            others = ", ".join(dict.fromkeys(location.url for location, directive in wanted if not directive or directive.arg != "on"))
            self._result.decide(
                on[0].origin, f"listing is for all folders of the site, and {others} had none; so no folder has one",
                "take the line listing in if they may all be listed, or give such files a host of their own",
            )  # fmt: skip
            self._table.offer("listing", True, on[0].origin)

    def body(self) -> Directive | None:
        """How long a body may be where nothing else is said."""
        return (self._main.scope if self._main else self._scope).one("client_max_body_size")

    def _bodies(self, locations: list[Location]) -> None:
        outside = self.body()
        usual = outside.arg.lower() if outside else "1m"
        above: list[tuple[str, str]] = []
        for location in locations:
            if location is self._main:
                continue
            directive = location.scope.one("client_max_body_size")
            size = directive.arg.lower() if directive else "1m"
            around = next((of for path, of in sorted(above, reverse=True) if location.path.startswith(path)), usual)
            if location.modifier in ("", "^~"):
                above.append((location.path, size))
            if size == around or location.scope.own("return"):
                continue
            patterns = location.patterns
            if not patterns:
                cover = nginx_cover.of_regex(location.path, location.modifier == "~*")
                patterns = list(cover.patterns)
                if cover == nginx_cover.EVERYTHING:
                    self._result.decide((directive or location.directive).origin, f"no pattern says for which paths bodies have {size} at most", "write a filter with max-body for them")
                    continue
            table = Table()
            table.put("path", patterns[0] if len(patterns) == 1 else patterns, location.directive.origin)
            table.put("max-body", nginx_fields.bytes_of(size), directive.origin if directive else "nginx's default of client_max_body_size")
            self._table.filters.append(table)

    def _tell_redirected(self, locations: list[Location]) -> None:
        """nginx asks the longest location alone; a filter that redirects is for all that is below."""
        for location in locations:
            around = [
                other for other in locations
                if other is not location and other.modifier in ("", "^~") and location.modifier in ("", "^~", "=") and location.path.startswith(other.path) and _redirects(other)
            ]  # fmt: skip
            if around and not location.scope.own("return"):
                outer = max(around, key=lambda other: len(other.path))
                self._result.decide(
                    location.directive.origin, f"the redirect of {outer.directive.origin} is for {location.path} here as well",
                    "write a filter with redirect for each path that is meant, in the place of that one",
                )  # fmt: skip

    def _locations(self, scope: Scope, outer: Location | None = None) -> Iterator[Location]:
        for directive in scope.own("location"):
            if directive.arg.startswith("@"):
                continue
            modifier, path = directive.args[:2] if len(directive.args) > 1 else ("", directive.arg)
            if len(directive.args) == 1 and directive.arg[:1] in "=~":
                match = re.match(r"(=|~\*?|\^~)(.*)", directive.arg)
                modifier, path = (match[1], match[2]) if match else ("", directive.arg)
            inner = Scope(directive.block or [], scope)
            found = Location(modifier, path, inner, directive, outer)
            yield found
            yield from self._locations(inner, found)

    def _location(self, location: Location) -> None:
        found = location.found
        nginx_fields.unknown(self._result, location.scope)
        if found is None:
            self._no_pattern(location)
            return
        if found.wider:
            patterns = ", ".join(found.patterns)
            self._result.tell(location.directive.origin, f"taken over for {patterns}, which is some more paths", "look whether that matters")
        before = len(self._result.open)
        base = self._main.scope if self._main and self._main is not location else self._scope
        nginx_fields.put(self._result, self._table, location.scope, base, location, self._has_tls)
        for directive in location.scope.own("rewrite"):
            self._rewrite(directive, location)
        returns = location.scope.own("return")
        if returns:
            self._return(returns[0], location)
        elif len(self._result.open) == before or not location.scope.own("rewrite") or location.scope.own(*_PASS) or self._leads_to_application(location):
            self._serve(location)
        self._tell_slash(location)
        self._tell_log(location)
        self._error_pages(location.scope, location.scope.own("error_page"))

    def _tell_log(self, location: Location) -> None:
        """What a location says of the log: there is one for the whole host."""
        outside = self._scope.one("access_log")
        for directive in location.scope.own("access_log"):
            if location is not self._main and (outside is None or directive.args != outside.args):
                what = "its requests are in the access log" if directive.arg == "off" else "there is one access log for all paths of a host"
                self._result.tell(directive.origin, what, "leave them out where the log is read")

    def _tell_slash(self, location: Location) -> None:
        """nginx compares how paths begin; folders, mounts and patterns such as ``/a/*`` go by whole segments."""
        path, url, origin = location.path, location.url, location.directive.origin
        if location.modifier not in ("", "^~") or path == "/":
            return
        if not path.endswith("/"):
            if self._stands_at(url, "static", "mount", "sendfile"):
                self._result.tell(origin, f"nginx's {path} was for {path}-old and {path}.html as well; here it is for {url} and what is below it", "nothing has to be done, unless such paths are there")
        elif location.scope.own("proxy_pass", "uwsgi_pass", "fastcgi_pass", "grpc_pass"):
            self._result.tell(
                origin, f"nginx answered {url} with a redirect to {path}; here the application gets both",
                f'nothing has to be done where it redirects itself, as Django does; else a filter: path = "{url}", redirect = "{path}"',
            )  # fmt: skip
        elif self._stands_at(url, "static"):
            self._result.tell(origin, f"nginx's {path} was not for {url}; here that is a redirect to {path}", f"nothing has to be done, unless {url} is a page of its own")
        elif self._stands_at(url, "mount") or location.scope.own("allow", "deny", "auth_basic", "return", "auth_request", "internal"):
            self._result.tell(origin, f"nginx's {path} was not for {url}; here it is for both", f"nothing has to be done, unless {url} is a page of its own")

    def _stands_at(self, url: str, *keys: str) -> bool:
        lines = [table.find(key) for table in (self._table, self._result) for key in keys]
        pairs = [str(pair) for line in lines if line and isinstance(line.value, (list, tuple)) for pair in line.value]
        return any(pair.startswith(f"{url}=") for pair in pairs)

    def _no_pattern(self, location: Location) -> None:
        """Who may see it is said by patterns that are for more paths (nginx_access); the rest would be wrong for those."""
        passes = location.scope.own(*_PASS, *_OTHER_PASS)
        for directive in location.scope.own(*_OTHER_PASS):
            self._decide_other(directive)
        harmless = _REFUSING
        if passes and self._is_root(passes[-1]):
            # It answers there in any case.
            harmless = _REFUSING | _OF_PROXY
        else:
            self._untake(location, passes)
        if all(directive.name in harmless for directive in location.scope.directives):
            return
        self._result.decide(
            location.directive.origin,
            "this expression is no pattern of paths that filters know",
            "write filters or static folders for the paths that are meant: docs/operations/filters.md",
        )

    def _leads_to_application(self, location: Location) -> bool:
        named = [self._named.get(tries.args[-1]) for tries in location.scope.own("try_files")]
        return any(found and Scope(found.block or []).own(*_PASS) for found in named)

    def _is_root(self, directive: Directive) -> bool:
        """Whether the application of the whole site is behind it, and sees the same paths there."""
        upstream, path = _upstream(re.sub(r"^(http|uwsgi)://", "", directive.arg))
        return directive.name in _PASS and not path and bool(self._root_app) and self._applications.find(upstream) == self._root_app

    def _untake(self, location: Location, passes: list[Directive]) -> None:
        """Something else answered there: files of a folder around it, such as programs, were not sent."""
        if passes and location is not self._main:
            self._untaken[id(location.directive)] = f"{passes[-1].origin} (else files would be sent)"

    # What answers.

    def _serve(self, location: Location, is_server: bool = False) -> None:
        scope = location.scope
        for directive in scope.own(*_OTHER_PASS):
            self._decide_other(directive)
            self._untake(location, [directive])
            return
        if passes := scope.own(*_PASS):
            self._pass(location, passes[-1])
            return
        if passes := _unless_file(scope):
            self._pass(location, passes[-1])
            self._tell_files(location, passes[-1])
            return
        if scope.own("internal") and scope.own("alias", "root"):
            folder = self._folder(location)
            self._table_all("sendfile", f"{location.url}={folder}", location.directive.origin)
            return
        tries = scope.own("try_files")[-1] if scope.own("try_files") else None
        named = tries.args[-1] if tries and tries.args[-1].startswith("@") else ""
        if tries and named:
            self._files_first(location, tries, self._named.get(named))
            return
        folder = self._folder(location)
        fallback = ""
        if tries and "$uri" not in _last(tries):
            fallback = self._fallback(location, tries, folder)
        if not folder or scope.own("rewrite") and not scope.own("root", "alias"):
            return
        if location.modifier in ("~", "~*"):
            if self._root_app and scope.own("root", "alias"):
                self._result.decide(
                    location.directive.origin, "files are served by their folder, not by the form of their names",
                    f"name the folders: static = [\"/URL={folder}/URL\"]",
                )  # fmt: skip
            page = next((page for url, _, page in self._statics() if page and location.path.lstrip("^").startswith(url)), "")
            if page and not named and not scope.own("deny", "internal"):
                self._result.tell_page_for_none(location.directive.origin, page)
            return
        if location.modifier == "=":
            if not self._is_static(location.path):
                self._rewrites.append((location, folder))
            return
        inherits = not scope.own("root", "alias") and not is_server and self._covers(location, fallback)
        if not inherits:
            origin = (tries if fallback and tries else scope.one("root") or location.directive).origin
            self._table.add("static", f"{location.url}={folder}{FALLBACK if fallback else ''}{fallback}", origin)
            self._result.tell("static", "files and folders whose names begin with a dot are 404, but /.well-known", "nothing has to be done, unless such files were meant to be public")
        self._folders.append(location)
        self._index(scope)

    def _decide_other(self, directive: Directive) -> None:
        self._result.decide(directive.origin, f"{_OTHER_PASS[directive.name]} is not spoken", "keep nginx for it, and let it pass the rest to maitred")

    def _covers(self, location: Location, fallback: str) -> bool:
        """Whether a static folder above is the same place for this one, and sends the same where there is no file."""
        folder, around = self._folder(location), ("", "", "")
        for url, of, page in self._statics():
            if len(url) >= len(around[0]) and f"{location.url}/".startswith(f"{url.rstrip('/')}/"):
                around = (url, of, f"{of.rstrip('/')}/{page}" if page else "")
        url, of, page = around
        below = f"{of.rstrip('/')}/{location.url.removeprefix(url).strip('/')}".rstrip("/")
        return bool(url) and below == folder and page == (f"{folder.rstrip('/')}/{fallback}" if fallback else "")

    def _statics(self) -> Iterator[tuple[str, str, str]]:
        """The static folders so far: path, folder, and the file that is sent where there is none."""
        line = self._table.find("static")
        for pair in line.value if line and isinstance(line.value, (list, tuple)) else []:
            url, _, rest = str(pair).partition("=")
            folder, _, fallback = rest.partition(FALLBACK)
            yield url, folder, fallback

    def _is_static(self, path: str) -> bool:
        return any(path.startswith(url.rstrip("/") + "/") for url, _, _ in self._statics())

    def _folder(self, location: Location) -> str:
        """Where the files of a location are."""
        alias = location.scope.own("alias")
        if alias:
            return alias[-1].arg.rstrip("/") or "/"
        root = location.scope.one("root")
        if root is None:
            return ""
        if "$" in root.arg:
            self._result.decide(root.origin, "the folder has a variable in it", "write a host for each folder")
            return ""
        below = location.path.strip("/") if location.modifier not in ("~", "~*") else ""
        return str(PurePosixPath(root.arg) / below)

    def _index(self, scope: Scope) -> None:
        index = scope.one("index")
        if index and "index.html" in index.args and index.arg != "index.html":
            self._result.tell(index.origin, f"the file of a folder is index.html, and {index.arg} came before it", "rename or link it if it is there")
        elif index and "index.html" not in index.args:
            self._result.decide(index.origin, "the file of a folder is index.html", f"rename {index.arg}, or link it")

    def _single_file(self, location: Location, file: str) -> None:
        """A file for a path of its own: another path leads into a static folder."""
        pages = self._table.find("error-page")
        if pages and any(str(page).endswith(f"={file}") for page in (pages.value if isinstance(pages.value, (list, tuple)) else [])):
            self._result.tell(location.directive.origin, f"{location.path} is sent with errors, and not to who asks for it", "nothing has to be done")
            return
        for url, folder, _ in self._statics():
            if file.startswith(folder.rstrip("/") + "/"):
                table = self._filter(location.found, location.directive.origin)
                table.put("rewrite", f"{url.rstrip('/')}/{file[len(folder.rstrip('/')) + 1 :]}", location.directive.origin)
                return
        self._result.decide(
            location.directive.origin, f"{file} is in no folder that is served",
            f"put it into one, and lead {location.path} there by the rewrite of a filter",
        )  # fmt: skip

    def _files_first(self, location: Location, tries: Directive, named: Directive | None) -> None:
        """Files, and the application for what is none."""
        if named is None:
            self._result.decide(tries.origin, "the location that it names is not there", "correct it")
            return
        inner = Scope(named.block or [], self._scope)
        passes = inner.own(*_PASS)
        if not passes:
            self._result.decide(tries.origin, f"{named.arg} is no application", "write filters for what it does")
            return
        self._pass(location, passes[-1])
        self._tell_files(location, tries)

    def _tell_files(self, location: Location, directive: Directive) -> None:
        root = self._folder(Location("", location.path, location.scope, location.directive))
        if root:
            self._result.decide(
                directive.origin, f"files in {root} came before the application, which files do here for whole folders only",
                f"name the folders in it: static = [\"/assets={root}/assets\"]; let the application answer the rest",
            )  # fmt: skip

    def _fallback(self, location: Location, tries: Directive, folder: str) -> str:
        """The file that is sent where there is none; empty if that is said in another way."""
        page = _last(tries).partition("?")[0]
        if tries.args[-1].startswith("="):
            # A file of the same folder, as the ones before it.
            file = f"{folder}{page.removeprefix(location.url) if location.scope.own('alias') else page}"
        else:
            file = self._root_of(page, location.scope) or ""
        others = [name for name in tries.args[: tries.args.index(_last(tries))] if name not in ("$uri", "$uri/", "$uri/index.html")]
        below = file.removeprefix(f"{folder.rstrip('/')}/")
        if re.fullmatch(r"/[\w./-]+\.html?", page) and below != file and not others and location.modifier in ("", "^~"):
            self._result.tell_fallback(tries.origin, page)
            return below
        if others:
            self._result.decide(tries.origin, f"{', '.join(others)} is not looked for", f"rename the files, or link them; where there is none: static = [\"{location.url}={folder}{FALLBACK}FILE\"]")
        else:
            self._result.decide(tries.origin, f"{page} for every path that is no file is no page of {folder or 'a folder'}", f"write static = [\"{location.url}=FOLDER{FALLBACK}FILE\"], or let the application answer")
        return ""

    def _pass(self, location: Location, directive: Directive) -> None:
        target = re.sub(r"^(https?|uwsgi)://", "", directive.arg)
        upstream, path = _upstream(target)
        if directive.arg.startswith("https://") or "$" in upstream:
            self._result.decide(directive.origin, "maitred is no proxy yet", "keep nginx for this location, in front of maitred")
            self._untake(location, [directive])
            return
        application = self._applications.find(upstream)
        if not application:
            self._result.decide(
                directive.origin, f"maitred is no proxy yet: it runs the application behind {upstream} itself",
                f"name the application: maitred migrate ... --application {upstream}=MODULE:ATTR",
            )  # fmt: skip
            if location.path == "/":
                self._table.offer("application", "MODULE:ATTR", directive.origin)
            elif location.modifier in ("~", "~*"):
                self._untake(location, [directive])
            return
        if location.modifier in ("~", "~*", "=") and application != self._root_app:
            self._untake(location, [directive])
            self._result.decide(directive.origin, "an application stands at a prefix", f"mount = [\"/PREFIX={application}\"]")
        elif location.path == "/":
            self._root_app = application
            self._table.put("application", application, directive.origin)
            if path not in ("", "/"):
                self._result.decide(directive.origin, f"{path} was put in front of each path", "write a filter with rewrite, or root-path")
        elif application != self._root_app or path:
            self._table.add("mount", f"{location.url}={application}", directive.origin)
            if path != "/":
                self._result.decide(
                    directive.origin, f"the application saw paths with {location.url}, which is SCRIPT_NAME (WSGI) or root_path (ASGI) now",
                    "take the prefix out of the application's routes",
                )  # fmt: skip

    # What redirects and refuses.

    def _filter(self, found: Found | None, origin: str, pattern: int = 0) -> Table:
        table = Table()
        if found and found.patterns:
            table.put("path", found.patterns[pattern], origin)
        self._table.filters.append(table)
        return table

    def _return(self, directive: Directive, location: Location) -> None:
        code, text = (directive.args + [""])[:2]
        if not code.isdigit():
            code, text = "302", code
        found = location.found or Found([], False, False)
        if code in ("301", "302", "303", "307", "308") and text:
            self._redirect(directive, found, location.path, text, code)
        elif len(code) == 3 and code[0] in "45":
            return  # nginx_access
        elif code in ("200", "204") and location.modifier in ("=", "") and _HEALTH.search(location.path):
            self._result.put("health-path", location.path, directive.origin)
            self._result.tell(directive.origin, f"the body of {location.path} is 'ok', and only GET and HEAD are answered", "while the server ends the status is 503")
        else:
            self._result.decide(directive.origin, f"no filter answers with {code}", "let the application answer, or refuse with 403: access = [\"deny all\"]")

    def _redirect(self, directive: Directive, found: Found, path: str, text: str, code: str) -> None:
        base = "/*" if path == "/" else (found.patterns[0] if found.patterns else "/*")
        target = nginx_paths.replaced(text, Found([base], found.numbered, False), base)
        if target is None:
            self._result.decide(directive.origin, "the target has variables that a filter does not know", "write it with * for what is kept")
            return
        for number in range(max(1, len(found.patterns))):
            table = self._filter(found, directive.origin, number)
            if not found.patterns:
                table.put("path", "/*", directive.origin)
            table.put("redirect", target, directive.origin)
            table.put("status", int(code), directive.origin)

    def _rewrite(self, directive: Directive, location: Location | None = None) -> None:
        regex, text, flag = (directive.args + ["", "", ""])[:3]
        found = nginx_paths.from_regex(regex)
        target = nginx_paths.replaced(text, found) if found else None
        if found and target is not None and location is not None:
            found = nginx_paths.inside(found, location.patterns, "*" in target)
        if found is None or target is None or not (flag in ("permanent", "redirect") or target.startswith("/")):
            self._result.decide(directive.origin, "this is no rewrite that filters know", "write a filter with rewrite or redirect, and * for what is kept")
            return
        for number in range(len(found.patterns)):
            table = self._filter(found, directive.origin, number)
            if flag in ("permanent", "redirect") or target.startswith("http"):
                table.put("redirect", target, directive.origin)
                table.put("status", 301 if flag == "permanent" else 302, directive.origin)
            else:
                table.put("rewrite", target, directive.origin)

    def _error_pages(self, scope: Scope, pages: list[Directive]) -> None:
        for directive in pages:
            *codes, page = directive.args
            changed = [code for code in codes if code.startswith("=")]
            root = self._root_of(page, scope)
            if changed or page.startswith(("@", "http")) or "$" in page or root is None:
                self._result.decide(directive.origin, "only a file is sent, with the same status", "error-page = [\"404=FILE\"]")
                continue
            given = [f"{code}={root}" for code in codes if code.isdigit() and int(code) >= 400]
            if given and not Path(root).is_file():
                self._result.decide(directive.origin, f"{root} is not there, and maitred reads it at the start", "write the file, then take the line error-page in")
                self._table.offer("error-page", given, directive.origin)
                continue
            for pair in given:
                self._table.add("error-page", pair, directive.origin)
        for directive in scope.own("proxy_intercept_errors", "uwsgi_intercept_errors"):
            if directive.arg == "on":
                self._result.decide(directive.origin, "what the application answers itself is sent as it is", "make the pages in the application")

    def _root_of(self, page: str, scope: Scope) -> str | None:
        """The file that a page of errors is."""
        for location in self._locations(self._scope):
            exact = location.modifier == "=" and location.path == page
            below = location.modifier in ("", "^~") and location.path != "/" and page.startswith(location.path)
            if exact or below:
                alias, root = location.scope.own("alias"), location.scope.one("root")
                if alias:
                    return alias[-1].arg if exact else alias[-1].arg.rstrip("/") + "/" + page[len(location.path) :].lstrip("/")
                return f"{root.arg.rstrip('/')}{page}" if root else None
        root = scope.one("root")
        return f"{root.arg.rstrip('/')}{page}" if root else None

    def _table_all(self, key: str, value: str, origin: str) -> None:
        """A key that hosts do not have."""
        self._result.add(key, value, origin)


def _redirects(location: Location) -> bool:
    codes = [directive.arg for directive in location.scope.own("return")]
    return bool(codes) and (codes[0].startswith("3") or not codes[0].isdigit())


def _last(tries: Directive) -> str:
    """What is sent where there is no file; ``$uri`` if that is a status."""
    words = [word for word in tries.args if not word.startswith("=")]
    return words[-1] if words else "$uri"


def _unless_file(scope: Scope) -> list[Directive]:
    """``if (!-f $request_filename) { proxy_pass ...; }``: what answers where there is no file."""
    conditions = [found for found in scope.own("if") if re.fullmatch(r"\(?\s*!-[ef]\s+\"?\$request_filename\"?\s*\)?", " ".join(found.args))]
    return [inner for found in conditions for inner in found.block or [] if inner.name in _PASS]


def _upstream(target: str) -> tuple[str, str]:
    """The name of an upstream, and the path behind it."""
    if target.startswith("unix:"):
        name, colon, path = target[5:].partition(":")
        return f"unix:{name}", path
    name, slash, path = target.partition("/")
    return name, slash + path
