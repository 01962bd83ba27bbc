"""What nginx protects refuses everybody where it cannot be taken over, and no more is open than there was."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from conftest import MAITRED, PATIENCE, environment_for
from maitred._migrate.nginx_cover import EVERYTHING, of_regex, within
from migrating import migrated

NOBODY = 'access = ["deny all"]'


def filters(folder: Path, text: str) -> tuple[list[list[str]], str]:
    """The filters of the result, and all of its text."""
    (folder / "files").mkdir(exist_ok=True)
    (folder / "nginx.conf").write_text(text.replace("FOLDER", str(folder / "files")))
    done = migrated(folder, "nginx.conf", "--application", "shop:app")
    assert done.returncode in (0, 3), done.stderr
    active = re.split(r"# To be|# Good to", done.stdout)[0]
    # A long list stands on several lines.
    active = re.sub(r"(?<== )\[(?:  # [^\n]*)?\n(.*?),?\n\]", lambda list_of: f"[{re.sub(chr(10) + ' *', ' ', list_of[1].strip())}]", active, flags=re.DOTALL)
    tables = re.split(r"\[\[.*?filter\]\]|\[host[^\]]*\]\n", active)[1:]
    return [[re.sub(r"  # .*", "", line) for line in table.strip().splitlines() if not line.startswith("#")] for table in tables], done.stdout


def of_server(folder: Path, body: str) -> tuple[list[list[str]], str]:
    return filters(folder, f"server {{\nlisten 80;\nserver_name shop.example;\nroot FOLDER;\n{body}\n}}\n")


@pytest.mark.parametrize(
    "body, paths",
    [
        (r"location ~* \.(sql|bak)$ { deny all; }", '["~*.sql", "~*.bak"]'),
        (r"location ~ /\. { deny all; }", '"*/.*"'),
        (r"location ~ ^/v[12]/ { return 404; }", '["/v1/*", "/v2/*"]'),
        (r"location ^~ /.git { return 404; }", '"/.git*"'),
        (r"location = /x { return 410; }", '"/x"'),
        ("location /private/ { internal; }", '"/private/*"'),
        ("location /media/ { auth_request /auth; }", '"/media/*"'),
        ("location /media/ { auth_jwt closed; }", '"/media/*"'),
        ("location /media/ { secure_link $arg_md5; }", '"/media/*"'),
        ("location /media/ { if ($invalid_referer) { return 403; } }", '"/media/*"'),
        ('location /media/ { if ($secure_link = "") { return 403; } }', '"/media/*"'),
        ("location /media/ { if ($blocked) { return 403; } }", '"/media/*"'),
        ("location /media/ { auth_basic x; auth_basic_user_file y; }", '"/media/*"'),
        ("location /media/ { try_files $uri @in; }\nlocation @in { deny all; }", '"/media/*"'),
        (r"location ~ \.php$ { fastcgi_pass 127.0.0.1:9000; }", '"*.php"'),
        (r"location / { if ($request_uri ~* \.sql) { return 403; } }", '"~*.sql*"'),
    ],
)
def test_a_path_that_nobody_got_refuses_everybody(tmp_path: Path, body: str, paths: str) -> None:
    found, _ = of_server(tmp_path, body)
    assert [f"path = {paths}", NOBODY] in found, found


@pytest.mark.parametrize(
    "body",
    [
        'if ($http_user_agent ~* "bot|wget") { return 403; }',
        "if ($invalid_referer) { return 403; }",
        "set $closed 1;\nif ($closed = 1) { return 403; }",
        "auth_request /auth;",
        r"location ~ (?=x) { deny all; }",
    ],
)
def test_a_condition_that_filters_do_not_know_refuses_everybody_and_is_said_once(tmp_path: Path, body: str) -> None:
    found, text = of_server(tmp_path, f"{body}\nlocation /a/ {{ }}\nlocation /b/ {{ }}")
    assert [NOBODY] in found or ['path = "*"', NOBODY] in found, found
    assert not any('access = ["allow all"]' in table for table in found)
    said = [line for line in text.splitlines() if line.startswith("# - ") and ("nobody is let in" in line)]
    assert len(said) == 1, text


def test_conditions_that_filters_know_are_taken_over(tmp_path: Path) -> None:
    text = "geo $blocked { default 0; 192.0.2.0/24 1; 10.0.0.0/8 0; }\nserver { listen 80; root FOLDER; if ($blocked) { return 403; } location /a/ { deny 198.51.100.1; } }"
    found, _ = filters(tmp_path, text)
    assert ['access = ["deny 192.0.2.0/24", "allow 10.0.0.0/8"]'] in found or ['access = ["deny 192.0.2.0/24"]'] in found, found
    found, _ = of_server(tmp_path, "if ($request_method !~ ^(GET|HEAD)$) { return 405; }\nlocation /a/ { allow 10.0.0.0/8; deny all; }")
    for lines in (
        [NOBODY], ['method = "GET"', 'access = ["allow all"]'], ['path = "/a/*"', NOBODY],
        ['path = "/a/*"', 'method = "HEAD"', 'access = ["allow 10.0.0.0/8", "deny all"]'],
    ):  # fmt: skip
        assert lines in found, found
    found, _ = of_server(tmp_path, "location /a/ { limit_except GET { deny all; } }")
    assert ['path = "/a/*"', NOBODY] in found and ['path = "/a/*"', 'method = "HEAD"', 'access = ["allow all"]'] in found, found
    found, text = of_server(tmp_path, "if ($host !~ ^(shop.example|a.example)$) { return 444; }\nlocation / { proxy_pass http://127.0.0.1:8001; }")
    assert '[host."shop.example"]' in text and [NOBODY] not in found


def test_an_expression_comes_before_a_prefix_that_lets_in(tmp_path: Path) -> None:
    found, _ = of_server(tmp_path, "deny all;\nlocation /open/ { allow all; }\nlocation ~ \\.sql$ { }")
    inside = [table for table in found if any('"/open/*.sql"' in line for line in table)]
    assert len(inside) == 1 and inside[0][1] == NOBODY and '"/open/*/*/*/*/*/*/*"' in inside[0][0], found


def test_what_comes_before_an_expression_stays_open(tmp_path: Path) -> None:
    found, _ = of_server(tmp_path, "location ^~ /.well-known/ { }\nlocation = /.ok { }\nlocation ~ /\\. { deny all; }")
    for path in ("/.well-known/*", "/.ok"):
        assert any(f'"{path}"' in table[0] and table[1] == 'access = ["allow all"]' for table in found), found
    found, _ = of_server(tmp_path, "location ~ /\\.(?!well-known) { deny all; }")
    assert ['path = "/.well-known/*"', 'access = ["allow all"]'] in found, found
    assert any('"/.well-known/.*"' in table[0] and table[1] == NOBODY for table in found), found


def test_pictures_in_a_location_are_refused_there_alone(tmp_path: Path) -> None:
    found, _ = of_server(tmp_path, "location /private/ { deny all; location ~* \\.(png|jpg)$ { expires 1h; } }\nlocation /hot/ { location ~ \\.png$ { deny all; } }")
    refused = [line for table in found if NOBODY in table for line in table if line.startswith("path")]
    assert any('"/hot/*.png"' in line for line in refused) and any('"/private/*"' in line for line in refused), found
    assert not any('"*.png"' in line or '"~*.png"' in line for line in refused), found


def test_a_rewrite_to_what_is_protected_refuses(tmp_path: Path) -> None:
    found, _ = of_server(tmp_path, "rewrite ^/old/(.*)$ /staff/$1 last;\nlocation /staff/ { deny all; }")
    assert ['path = "/old/*"', 'rewrite = "/staff/*"', NOBODY] in found, found


def test_a_listing_of_one_location_is_none_for_all(tmp_path: Path) -> None:
    (tmp_path / "files/a").mkdir(parents=True)
    _, text = of_server(tmp_path, "location /a/ { alias FOLDER/a/; autoindex on; }")
    assert re.search(r"^# listing = true", text, re.MULTILINE) and not re.search(r"^listing", text, re.MULTILINE), text
    _, text = of_server(tmp_path, "autoindex on;\nlocation /a/ { alias FOLDER/a/; }")
    assert re.search(r"^listing = true", text, re.MULTILINE), text


def test_a_limit_of_bodies_of_one_location_stays_there(tmp_path: Path) -> None:
    body = "location / { proxy_pass http://127.0.0.1:8001; client_max_body_size 20m; }\nlocation /a/ { proxy_pass http://127.0.0.1:8001; }"
    found, text = of_server(tmp_path, body)
    assert re.search(r'^max-body = "20m"', text, re.MULTILINE), text
    assert ['path = "/a/*"', 'max-body = "1m"'] in found, found


def test_a_result_that_does_not_start_is_not_printed(tmp_path: Path) -> None:
    body = "proxy_set_header Content-Length '';\nkeepalive_timeout 9999d;\nclient_max_body_size 1x;\nlocation /a/ { deny nowhere; }\nlocation /b/ { allow nowhere; }"
    found, text = of_server(tmp_path, body)
    assert ['path = "/a/*"', NOBODY] in found and ['path = "/b/*"', NOBODY] in found and not any("remove-request" in str(table) for table in found), text
    for key in ("keep-alive", "max-body"):
        assert re.search(f"^# {key} = ", text, re.MULTILINE) and f"the check refuses {key}: " in text, text
    (tmp_path / "maitred.toml").write_text(text)
    (tmp_path / "shop.py").write_text("def app(environ, start_response): ...\n")
    checked = subprocess.run([MAITRED, "check"], cwd=tmp_path, env=environment_for({}), capture_output=True, text=True, timeout=PATIENCE)
    assert checked.returncode == 0, checked.stderr


def test_what_this_machine_does_not_have_is_named(tmp_path: Path) -> None:
    _, text = of_server(tmp_path, "location /a/ { alias /nowhere/a/; }")
    assert "/nowhere/a is not there, and maitred needs it at the start" in text and re.search(r"^# static = ", text, re.MULTILINE), text
    _, text = filters(tmp_path, "server { listen 443 ssl; root /nowhere; ssl_certificate /none/a; ssl_certificate_key /none/b; }")
    assert 'static = ["/=/nowhere"]' in text and "/none/a is not here, so that was not checked" in text, text


def test_servers_that_not_everybody_could_ask(tmp_path: Path) -> None:
    public = "server { listen 80 default_server; root FOLDER; location = /x { allow all; } }\n"
    found, _ = filters(tmp_path, public + "server { listen 80; server_name bad.example; return 403; }")
    assert ['header = "Host: bad.example"', NOBODY] in found, found
    found, _ = filters(tmp_path, public + "server { listen 127.0.0.1:81; server_name in.example; root FOLDER; }")
    assert ['access = ["allow 127.0.0.0/8", "allow ::1", "deny all"]'] in found, found
    found, _ = filters(tmp_path, public + "server { listen 10.0.0.1:81; server_name in.example; root FOLDER; }")
    assert [NOBODY] in found, found
    found, _ = filters(tmp_path, "server { listen 80; return 444; }\nserver { listen 80; root FOLDER; }")
    assert [NOBODY] in found, found
    _, text = filters(tmp_path, public + "server { listen 8081; return 403; }")
    assert 'listen = [":80"]' in text, text


@pytest.mark.parametrize(
    "step, wanted",
    [
        ({"match": {"uri": "/a/*"}, "action": {"return": 404}}, [['path = "/a/*"', NOBODY]]),
        ({"match": {"uri": "/a/*/b.sql"}, "action": {"return": 403}}, [['path = "*/a/*/b.sql"', NOBODY]]),
        ({"match": {"uri": "/a/*", "source": "!10.0.0.0/8"}, "action": {"return": 403}}, [['path = "/a/*"', 'access = ["allow 10.0.0.0/8", "deny all"]']]),
        ({"match": {"uri": "/a/*", "cookies": {"a": "b"}}, "action": {"return": 403}}, [['path = "/a/*"', NOBODY]]),
        ({"match": {"uri": "!/a/*"}, "action": {"return": 403}}, [[NOBODY]]),
        ({"match": {"uri": "~^/v[12]/"}, "action": {"return": 403}}, [['path = "/v1/*"', NOBODY], ['path = "/v2/*"', NOBODY]]),
        ({"match": {"method": ["PUT", "DELETE"]}, "action": {"return": 405}}, [['method = "PUT"', NOBODY], ['method = "DELETE"', NOBODY]]),
    ],
)
def test_what_unit_refuses_is_refused(tmp_path: Path, step: dict[str, object], wanted: list[list[str]]) -> None:
    config = {"listeners": {"*:80": {"pass": "routes"}}, "routes": [step, {"action": {"pass": "applications/a"}}], "applications": {"a": {"type": "python", "module": "a"}}}
    (tmp_path / "unit.json").write_text(json.dumps(config))
    done = migrated(tmp_path, "unit.json")
    active = re.split(r"# To be|# Good to", done.stdout)[0]
    tables = [[re.sub(r"  # .*", "", line) for line in table.strip().splitlines()] for table in active.split("[[filter]]")[1:]]
    for table in wanted:
        assert table in tables, done.stdout + done.stderr


def test_a_share_of_some_types_is_not_served_whole(tmp_path: Path) -> None:
    config = {"listeners": {"*:80": {"pass": "routes"}}, "routes": [{"action": {"share": "/srv$uri", "types": ["image/*"]}}]}
    (tmp_path / "unit.json").write_text(json.dumps(config))
    done = migrated(tmp_path, "unit.json")
    assert done.returncode == 3 and not re.search("^static", done.stdout, re.MULTILINE), done.stdout


@pytest.mark.parametrize(
    "fallback, wanted, said",
    [
        ({"share": "/srv/www/index.html"}, "/=/srv/www,fallback=index.html", "gets index.html only where a page is asked for"),
        ({"share": "/srv/other/index.html"}, "/=/srv/www", "a file that is not there is 404, without a fallback"),
        ({"share": "/srv/www/index.php"}, "/=/srv/www", "a file that is not there is 404, without a fallback"),
        ({"return": 301, "location": "/"}, "/=/srv/www", "a file that is not there is 404, without a fallback"),
        ({"return": 404}, "/=/srv/www", ""),
    ],
)
def test_a_share_of_unit_for_what_is_no_file(tmp_path: Path, fallback: dict[str, object], wanted: str, said: str) -> None:
    config = {"listeners": {"*:80": {"pass": "routes"}}, "routes": [{"action": {"share": "/srv/www$uri", "fallback": fallback}}]}
    (tmp_path / "unit.json").write_text(json.dumps(config))
    done = migrated(tmp_path, "unit.json")
    assert f'static = ["{wanted}"]' in done.stdout and said in done.stdout, done.stdout + done.stderr


def test_patterns_are_for_all_paths_of_an_expression() -> None:
    """Each path that an expression fits has a pattern that fits it, too."""
    paths = [f"{folder}/{name}{end}" for folder in ("", "/a", "/a/b", "/admin", "/up/x", "/.git") for name in ("x", "a", ".env", "dump", "v1", "B") for end in ("", ".sql", ".SQL", ".php", "/", "/a.png", "~", "#b#")]
    for regex in (
        r"\.(sql|bak)$", r"/\.", r"^/v[0-9]+/", r"^/admin/.*\.php$", r"^/(a|up)/[^/]+\.sql$", r"(\.sql|~)$", r"^/a(/|$)", r"/(x|dump)[^/]*\.(?:php|sql)$",
        r"^/[a-z]+/b/", r"\w+\.png$", r"^.+\.php", r"(?i)\.SQL$", r"/\.(?!env)", r"a{1,2}", r"[^a]$", r"(",
        r"(?:#.*#|\.(?:bak|conf|in[ci]|sql|sw[op])|~)$",
    ):  # fmt: skip
        for any_case in (False, True):
            cover = of_regex(regex, any_case)
            try:
                meant = re.compile(regex, re.IGNORECASE if any_case else 0)
            except re.error:
                assert cover == EVERYTHING
                continue
            for path in paths:
                if meant.search(path):
                    assert any(fits(pattern, path) for pattern in cover.patterns), (regex, path, cover)
                    for prefix in ("/", "/a", "/a/", "/admin/"):
                        if path.startswith(prefix):
                            below = within(prefix, cover.patterns, True)
                            assert any(fits(pattern, path) for pattern in below), (regex, path, prefix, below)


def test_the_expression_for_backup_files_is_one_of_patterns() -> None:
    cover = of_regex(r"(?:#.*#|\.(?:bak|in[ci])|~)$", True)
    assert cover.patterns == ("*%23*%23", "~*.bak", "~*.inc", "~*.ini", "*~"), cover


def fits(pattern: str, path: str) -> bool:
    """As docs/operations/threads.md says it."""
    pattern = pattern.replace("%23", "#")
    if pattern.startswith("~"):
        pattern, path = pattern[1:].lower(), path.lower()
    if pattern.startswith("*"):
        return re.fullmatch(".*".join(re.escape(part) for part in pattern.split("*")), path) is not None
    text = "[^/]*".join(re.escape(part) for part in pattern.split("*"))
    if pattern.endswith("*"):
        text = text.removesuffix("[^/]*") + ".*"
    return re.fullmatch(text, path) is not None or pattern.endswith("/*") and path == pattern[:-2]
