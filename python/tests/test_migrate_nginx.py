"""The language of nginx.conf, and what is made of single directives of it."""

from __future__ import annotations

import os
import random
import re
import subprocess
from pathlib import Path

import pytest
from conftest import MAITRED, PATIENCE, environment_for
from maitred._migrate.nginx_parse import BadConfiguration, Directive, parse, parse_file
from maitred._migrate.nginx_paths import from_regex
from migrating import FOLDER, NGINX, migrated

#: Rounds of the search for texts that break the parser.
ROUNDS = 200_000 if os.environ.get("MAITRED_LONG") else 4_000


def shown(directives: list[Directive]) -> list[object]:
    return [(d.name, d.args, d.line) if d.block is None else (d.name, d.args, d.line, shown(d.block)) for d in directives]


def test_words_quotes_comments_and_blocks() -> None:
    text = """
# a comment; with { marks }
a "b c" 'd"e' f#g \\"h;   # another
server { b "x;{}"; location ~ "^/\\.(a|b){2}$" { } }
c ${host}x$y "a\\"b" a\\ b;
"""
    assert shown(parse(text)) == [
        ("a", ["b c", 'd"e', "f#g", '"h'], 3),
        ("server", [], 4, [("b", ["x;{}"], 4), ("location", ["~", "^/\\.(a|b){2}$"], 4, [])]),
        ("c", ["${host}x$y", 'a"b', "a\\ b"], 5),
    ]


@pytest.mark.parametrize(
    "text, line, what",
    [
        ("a;\nserver {\n b;\n", 2, "the file ends before the '}'"),
        ("a;\n}\n", 2, "'}' closes nothing"),
        ("a\nb", 1, "the file ends within 'a'"),
        ("a {\n b\n}", 3 - 1, "is not ended by ';'"),
        ("\n;", 2, "has no directive before it"),
        ('\na "b\n', 2, "the file ends within quotes"),
        ('a "b"c;', 1, "directly behind a closing quote"),
        ("a {" * 100, 1, "blocks inside one another"),
        ("x_by_lua_block {\n {", 1, "the file ends before the '}'"),
    ],
)
def test_faults_name_the_line(text: str, line: int, what: str) -> None:
    with pytest.raises(BadConfiguration) as caught:
        parse(text, "site.conf")
    assert what in str(caught.value)
    assert (caught.value.file, caught.value.line) == ("site.conf", line)


def test_includes_stand_in_their_places_and_missing_ones_are_named(tmp_path: Path) -> None:
    (tmp_path / "conf.d").mkdir()
    (tmp_path / "conf.d" / "b.conf").write_text("b;")
    (tmp_path / "conf.d" / "a.conf").write_text("a;\n\naa;")
    main = tmp_path / "nginx.conf"
    main.write_text("x;\ninclude conf.d/*.conf;\nhttp { include none.conf; include none/*.conf; }\n")
    parsed = parse_file(main)
    assert [directive.name for directive in parsed.directives] == ["x", "a", "aa", "b", "http"]
    assert parsed.directives[2].line == 3 and parsed.directives[2].file.endswith("a.conf")
    assert [directive.arg for directive in parsed.missing] == ["none.conf"]
    main.write_text("include nginx.conf;")
    with pytest.raises(BadConfiguration, match="includes itself"):
        parse_file(main)


def test_no_text_breaks_the_parser() -> None:
    """Whatever the text is: a list, or the one error with a file and a line."""
    source = random.Random(7)
    seeds = [path.read_text() for path in FOLDER.rglob("*.conf")]
    marks = ["{", "}", ";", '"', "'", "\\", "#", "$", "${", "\n", " ", "\0", "\ufeff", "é", "_by_lua_block {", "include x;", "\r", "a"]
    for _ in range(ROUNDS):
        text = source.choice(seeds)
        begin = source.randrange(len(text))
        text = text[begin : begin + source.randrange(300)]
        for _ in range(source.randrange(8)):
            at = source.randrange(len(text) + 1)
            text = text[:at] + source.choice(marks) + text[at + source.randrange(3) :]
        try:
            directives = parse(text, "fuzz.conf")
        except BadConfiguration as bad:
            assert bad.file == "fuzz.conf" and 1 <= bad.line <= text.count("\n") + 1
        else:
            assert all(isinstance(directive.name, str) for directive in directives)


def test_no_text_breaks_the_translation(tmp_path: Path) -> None:
    """The same for everything behind the parser: a result, or one line."""
    from maitred._migrate import nginx
    from maitred._tools import Mistake

    source = random.Random(11)
    texts = [path.read_text() for path in FOLDER.rglob("*.conf")]
    pieces = [line for text in texts for line in text.splitlines() if line.strip().endswith(";")]
    file = tmp_path / "nginx.conf"
    for _ in range(ROUNDS // 20):
        text = source.choice(texts).splitlines()
        for _ in range(source.randrange(1, 6)):
            at = source.randrange(len(text))
            piece = source.choice(pieces)
            words = piece.strip(" ;").split()
            text[at : at + source.randrange(2)] = [f"{' '.join(words[: source.randrange(1, len(words) + 1)])};"]
        file.write_text("\n".join(text))
        try:
            nginx.translate(file, ["a:b"]).toml()
        except Mistake:
            pass


@pytest.mark.skipif(not NGINX, reason="needs nginx")
@pytest.mark.parametrize("text", ['a "b"c;', "events {", "}", ";", 'a "b', "a b", 'events { } http { server { listen "127.0.0.1:1"; } }', "events { } http { } # x"])
def test_nginx_has_the_same_opinion_of_the_language(tmp_path: Path, text: str) -> None:
    file = tmp_path / "nginx.conf"
    file.write_text(f"pid {tmp_path}/pid;\n{text}\n")
    assert NGINX
    done = subprocess.run([NGINX, "-t", "-c", file, "-e", "stderr"], capture_output=True, text=True)
    try:
        parse(file.read_text())
        fault = ""
    except BadConfiguration as bad:
        fault = str(bad)
    of_language = any(part in done.stderr for part in ("unexpected", "terminated"))
    assert bool(fault) == of_language, (done.stderr, fault)


@pytest.mark.parametrize(
    "regex, patterns",
    [
        (r"\.(?:jpe?g|png)$", ["*.jpg", "*.jpeg", "*.png"]),
        (r"^/old/(.*)$", ["/old/*"]),
        (r"^/user/([^/]+)/export$", ["/user/*/export"]),
        (r"^/(css|js)/", ["/css/*", "/js/*"]),
        (r"^/a/?$", ["/a"]),
        (r"^/v[12]/", None),
        (r"^/a/(.*)/b/(.*)$", None),
        (r"(?i)x", None),
        ("^(" + "a?" * 40 + ")$", None),
    ],
)
def test_expressions_become_patterns_or_nothing(regex: str, patterns: list[str] | None) -> None:
    found = from_regex(regex)
    assert (found.patterns if found else None) == patterns


def site(folder: Path, body: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    (folder / "files").mkdir(exist_ok=True)
    (folder / "files" / "index.html").write_text("index")
    (folder / "nginx.conf").write_text(f"server {{\nlisten 127.0.0.1:8000;\nroot {folder}/files;\n{body}\n}}\n")
    return migrated(folder, "nginx.conf", *arguments)


@pytest.mark.parametrize(
    "body, said",
    [
        ("location /x/ { proxy_pass http://127.0.0.1:9; }", "maitred is no proxy yet: it runs the application behind 127.0.0.1:9 itself"),
        ("location ~ \\.php$ { fastcgi_pass 127.0.0.1:9; }", "FastCGI is not spoken"),
        ("location ~ \\.php(?:$|/) { fastcgi_pass 127.0.0.1:9; }", "FastCGI is not spoken"),
        ("location / { try_files $uri $uri.html /index.html; }", "$uri.html is not looked for"),
        ("location / { try_files $uri /app.php?$args; }", "/app.php for every path that is no file is no page of"),
        ("location /a/ { try_files $uri /index.html; }", "/index.html for every path that is no file is no page of"),
        ("location / { if ($arg_x) { return 403; } }", "filters do not know this condition, and nobody is let in"),
        ("location / { if (-f $request_filename) { break; } }", "conditions are not taken over"),
        ("location /x/ { auth_request /auth; }", "no other server is asked who may come in"),
        ("location /x/ { proxy_cache all; proxy_pass http://a; }", "nothing is cached"),
        ("sub_filter a b;", "bodies are not changed"),
        ("location ~ ^/v[12]/ { expires 1h; }", "this expression is no pattern"),
        ("location /x/ { auth_jwt x; }", "tokens are not checked, and nobody is let in"),
        ("location /x/ { auth_pam x; }", "this way to ask who it is does not exist here"),
        ("location /x/ { secure_link $arg_md5; }", "signed links are not checked, and nobody is let in"),
        ("location /x/ { limit_except GET { auth_basic x; } }", "these methods asked for a password"),
        ("location ~ ^/a(?=b)|(c)(?R)? { deny all; }", "no pattern says which paths these are"),
        ("location = /x { return 410; }", "no filter answers with 410"),
        ("location /x/ { limit_req zone=a; }", "client-rate and client-connections are for all paths"),
        ("add_header X-Time $msec;", "the value has a variable in it"),
        ("include nowhere.conf;", "nowhere.conf is not there"),
        ("my_module on;", "my_module is not translated"),
        ("satisfy any;", "a request has to meet all conditions"),
        ("index home.html;", "the file of a folder is index.html"),
        ("auth_basic x; auth_basic_user_file p;", "nobody is let in until there are others"),
    ],
)
def test_what_is_not_taken_over_is_named_with_its_line(tmp_path: Path, body: str, said: str) -> None:
    done = site(tmp_path, body)
    assert done.returncode == 3, done.stdout + done.stderr
    note = next((line for line in done.stdout.splitlines() if said in line), "")
    assert "nginx.conf:4: " in note, done.stdout


@pytest.mark.parametrize(
    "body, wanted",
    [
        ("location / { try_files $uri $uri/ /index.html; }", ["/=F,fallback=index.html"]),
        ("try_files $uri /index.html?$args;", ["/=F,fallback=index.html"]),
        ("location / { try_files $uri $uri/ /index.html =404; }", ["/=F,fallback=index.html"]),
        ("location /app/ { alias FOLDER/files/app/; try_files $uri /app/page.html =404; }", ["/=F", "/app=F/app,fallback=page.html"]),
        ("location /app/ { try_files $uri /app/sub/page.html; }", ["/=F", "/app=F/app,fallback=sub/page.html"]),
        ("location /app/ { alias FOLDER/files/app/; try_files $uri /app/page.html; }", ["/=F", "/app=F/app,fallback=page.html"]),
        # What is no file below /app is 404 again.
        ("location / { try_files $uri /index.html; }\nlocation /app/ { expires 1d; }", ["/=F,fallback=index.html", "/app=F/app"]),
        ("location / { try_files $uri /index.html; }\nlocation /app/ { try_files $uri =404; }", ["/=F,fallback=index.html", "/app=F/app"]),
    ],
)
def test_a_page_for_paths_without_a_file_becomes_a_fallback(tmp_path: Path, body: str, wanted: list[str]) -> None:
    for page in ("app/page.html", "app/sub/page.html"):
        (tmp_path / "files" / page).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "files" / page).write_text("page")
    done = site(tmp_path, body.replace("FOLDER", str(tmp_path)))
    assert done.returncode == 0, done.stdout
    made = re.findall(r'"(/\w*=[^"]*)"', done.stdout.partition("# Good to know")[0])
    assert made == [pair.replace("=F", f"={tmp_path}/files", 1) for pair in wanted], done.stdout
    assert "gets /" in done.stdout and "only where a page is asked for" in done.stdout


@pytest.mark.parametrize(
    "body, is_said",
    [
        ("location ~ ^/static/(css|js)/ { expires 1y; }", True),
        ("location ~ ^/static/(css|js)/ { try_files $uri =404; }", True),
        ("location ~ ^/static/(css|js)/ { deny all; }", False),
    ],
)
def test_a_page_that_nginx_did_not_send_for_an_expression_is_told(tmp_path: Path, body: str, is_said: bool) -> None:
    done = site(tmp_path, f"location / {{ try_files $uri /index.html; }}\n{body}")
    assert done.returncode == 0, done.stdout
    assert ("a path that is no file gets index.html there as around it" in done.stdout) == is_said, done.stdout


PASS = "proxy_pass http://127.0.0.1:9;"
NOBODY = 'access = ["deny all"]'


@pytest.mark.parametrize(
    "body, wanted",
    [
        (f"location = /health {{ rewrite /.+ /login?next=/ break; {PASS} }}", ['path = "/health"', 'rewrite = "/login?next=/"']),
        (f"location /a {{ rewrite ^ /b break; {PASS} }}", ['path = "/a*"', 'rewrite = "/b"']),
        (f"location /a/ {{ rewrite ^/a/(.*)$ /b/$1 break; {PASS} }}", ['path = "/a/*"', 'rewrite = "/b/*"']),
    ],
)
def test_a_rewrite_in_a_location_is_for_its_paths(tmp_path: Path, body: str, wanted: list[str]) -> None:
    done = site(tmp_path, f"location / {{ {PASS} }}\n{body}", "--application", "web:app")
    assert done.returncode == 0 and wanted in filters(done), done.stdout


@pytest.mark.parametrize("body", ["location /a/ { rewrite ^(.*)$ /b$1 break; PASS }", "location ~ \\.html$ { rewrite ^/a/(.*)$ /b/$1 break; PASS }"])
def test_a_rewrite_that_would_be_for_other_paths_is_named(tmp_path: Path, body: str) -> None:
    done = site(tmp_path, f"location / {{ {PASS} }}\n{body.replace('PASS', PASS)}", "--application", "web:app")
    assert done.returncode == 3 and "nginx.conf:5: rewrite" in done.stdout and not re.search("^rewrite = ", done.stdout, re.MULTILINE), done.stdout


def test_an_application_is_served_where_a_rewrite_is_not_known(tmp_path: Path) -> None:
    for body in (f"location / {{ rewrite ^(.+)/$ $1 permanent; {PASS} }}", f"location / {{ rewrite ^(.+)/$ $1 permanent; try_files $uri @app; }}\nlocation @app {{ {PASS} }}"):
        done = site(tmp_path, body, "--application", "web:app")
        assert done.returncode == 3 and 'application = "web:app"' in done.stdout and "this is no rewrite that filters know" in done.stdout, done.stdout


def test_an_expression_for_the_application_of_the_site_changes_nothing(tmp_path: Path) -> None:
    body = f"location / {{ {PASS} }}\nlocation ~ ^/api/[1-9]\\d*/ {{ proxy_set_header Host $host; {PASS} }}"
    done = site(tmp_path, body, "--application", "web:app")
    assert done.returncode == 0 and NOBODY not in done.stdout, done.stdout
    # Of another one nothing is let in.
    other = site(tmp_path, body.replace("9; }\nlocation ~", "8; }\nlocation ~"), "--application", "127.0.0.1:8=web:app")
    assert other.returncode == 3 and NOBODY in other.stdout, other.stdout


def test_two_conditions_on_one_field_refuse_what_either_refuses(tmp_path: Path) -> None:
    agents = "if ($http_user_agent ~ (Spider)) { return 444; }\nif ($http_user_agent ~ (Cloud|Crawl)) { return 403; }"
    done = site(tmp_path, f"{agents}\nlocation / {{ {PASS} }}", "--application", "web:app")
    assert done.returncode == 0, done.stdout
    assert [found for found in filters(done) if NOBODY in found] == [[f'header = "User-Agent: *{word}*"', NOBODY] for word in ("Spider", "Cloud", "Crawl")]


def test_conditions_that_are_known_alone_and_not_together_are_named(tmp_path: Path) -> None:
    done = site(tmp_path, f"location / {{ limit_except POST {{ deny all; }} if ($request_method !~ ^(PUT)$) {{ return 405; }} {PASS} }}", "--application", "web:app")
    assert done.returncode == 3 and "filters do not know this condition together with the other ones, and nobody is let in" in done.stdout, done.stdout


@pytest.mark.parametrize("test", ["!-f", "!-e"])
def test_an_application_where_there_is_no_file(tmp_path: Path, test: str) -> None:
    done = site(tmp_path, f"location / {{ if ({test} $request_filename) {{ {PASS} break; }} }}", "--application", "web:app")
    assert done.returncode == 3 and 'application = "web:app"' in done.stdout and "static = " not in done.stdout.partition("# To be")[0], done.stdout
    assert f"files in {tmp_path}/files came before the application" in done.stdout and "conditions are not taken over" not in done.stdout, done.stdout


def test_a_redirect_that_is_for_other_locations_as_well_is_named(tmp_path: Path) -> None:
    done = site(tmp_path, f"location / {{ return 301 https://a.example$request_uri; }}\nlocation /api/ {{ {PASS} }}", "--application", "web:app")
    assert done.returncode == 3 and "is for /api/ here as well" in done.stdout, done.stdout


def test_tls_is_one_of_an_address(tmp_path: Path) -> None:
    done = servers(tmp_path, SECURE.format(names="a.example") + "server { listen 443; server_name www.a.example; return 301 https://a.example$request_uri; }")
    assert 'listen = ["https://:443"]' in done.stdout, done.stdout
    assert ['header = "Host: www.a.example"', 'path = "/*"', 'redirect = "https://a.example/*"', "status = 301"] in [[line for line in found if not line.startswith("scheme")] for found in filters(done)], done.stdout


@pytest.mark.parametrize("rewrite", ["^ https://a.example$request_uri? permanent", "^(.*)$ https://a.example$1 permanent", "^/(.*) https://a.example/$1 permanent", "^/?(.*)$ https://a.example/$1 permanent"])
def test_a_rewrite_of_everything_is_a_redirect_of_a_server(tmp_path: Path, rewrite: str) -> None:
    done = servers(tmp_path, f"server {{ listen 80; server_name a.example www.a.example; rewrite {rewrite}; }}\n" + SECURE.format(names="a.example"))
    assert done.returncode == 0, done.stdout
    assert filters(done) == [['scheme = "http"', 'path = "/*"', 'redirect = "https://a.example/*"', "status = 301"]], done.stdout


def test_files_whose_names_begin_with_a_dot_are_told(tmp_path: Path) -> None:
    assert "files and folders whose names begin with a dot are 404" in site(tmp_path, "").stdout


def test_a_fallback_that_is_not_there_is_named(tmp_path: Path) -> None:
    done = site(tmp_path, "location / { try_files $uri /none.html; }")
    assert done.returncode == 3 and f"{tmp_path}/files/none.html is not there, and maitred needs it at the start" in done.stdout
    # A long path has a line of its own.
    comments = [line.removeprefix("#").strip() for line in done.stdout.splitlines() if line.startswith("#")]
    assert f'"/={tmp_path}/files,fallback=none.html"' in "".join(comments).partition("static = [")[2], done.stdout


def test_passwords_of_the_whole_site_do_not_reach_another_location(tmp_path: Path) -> None:
    done = site(tmp_path, "location / { auth_basic x; auth_basic_user_file p; }\nlocation /open/ { }")
    text = done.stdout
    assert 'access = ["deny all"]' in text
    assert text.index('path = "/open/*"') < text.index('access = ["allow all"]')


def test_one_application_is_not_taken_for_two_upstreams(tmp_path: Path) -> None:
    body = "location /api/ { proxy_pass http://127.0.0.1:9/; }\nlocation / { proxy_pass http://unix:/run/web.sock; }"
    done = site(tmp_path, body, "--application", "web:app")
    assert done.returncode == 3 and "--application 127.0.0.1:9=MODULE:ATTR" in done.stdout
    assert 'application = "web:app"' in done.stdout and "mount" not in done.stdout.partition("# To be")[0]


def test_an_application_of_its_own_for_each_upstream(tmp_path: Path) -> None:
    body = "location /api/ { proxy_pass http://127.0.0.1:9/; }\nlocation / { proxy_pass http://unix:/run/web.sock; }"
    named = ["--application", "127.0.0.1:9=api:app", "--application", "unix:/run/web.sock=web:app"]
    done = site(tmp_path, body, *named)
    assert done.returncode == 0, done.stdout
    assert 'application = "web:app"' in done.stdout and 'mount = ["/api=api:app"]' in done.stdout


@pytest.mark.parametrize(
    "body",
    [
        "location = /shipping { return 200 yes; }",
        "location /a/ { try_files $uri @none; }",
        "location @app { my_module on; }",
    ],
)
def test_what_looks_like_something_known_is_not_taken_for_it(tmp_path: Path, body: str) -> None:
    done = site(tmp_path, body)
    assert done.returncode == 3 and "health-path" not in done.stdout


@pytest.mark.parametrize(
    "size, wanted",
    [
        ("4 32k", ["max-head = 131072", "max-field = 32768"]),
        ("8 64k", ["max-head = 262144", "max-field = 65536", "a request's head has 256 KiB at most"]),
        ("2 1k", ["max-head and max-field make it less"]),
    ],
)
def test_large_heads_are_taken_over(tmp_path: Path, size: str, wanted: list[str]) -> None:
    done = site(tmp_path, f"large_client_header_buffers {size};\nlocation / {{ {PASS} }}", "--application", "web:app")
    assert done.returncode == 0, done.stdout
    for part in wanted:
        assert part in done.stdout, done.stdout


def test_what_stands_outside_of_servers_counts_in_them(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("index")
    (tmp_path / "404.html").write_text("gone")
    (tmp_path / "nginx.conf").write_text(
        f"events {{ }}\nhttp {{\nroot {tmp_path};\nautoindex on;\nerror_page 404 /404.html;\nadd_header X-A b always;\n"
        "map $http_upgrade $connection_upgrade { default upgrade; '' close; }\n"
        "server { listen 127.0.0.1:8000; location /b/ { add_header X-B c always; } }\n}\n"
    )
    done = migrated(tmp_path, "nginx.conf")
    assert done.returncode == 0, done.stdout
    for line in (f'static = ["/={tmp_path}"]', "listing = true", f'error-page = ["404={tmp_path}/404.html"]', 'add-response = ["X-A: b"]', 'remove-response = ["X-A"]'):
        assert line in done.stdout, done.stdout


@pytest.mark.parametrize(
    "body, said",
    [
        ("location /static { alias FOLDER/files/; }", "nginx's /static was for /static-old and /static.html as well; here it is for /static and what is below it"),
        ("location /admin/ { deny all; }", "nginx's /admin/ was not for /admin; here it is for both"),
        ("location /slow/ { proxy_read_timeout 300s; }", 'the time of one path was not taken over; a pool of its own has one: [pool.slow] match = ["/slow/*"], request-timeout = 300'),
        ("location /slow/ { proxy_connect_timeout 5s; }", "no other server is connected to"),
        ("location /slow/ { access_log off; }", "its requests are in the access log"),
        ("charset utf-8;", "files of text have charset=utf-8"),
        ("server_name shop.example;", 'to refuse other names, write its lines behind [host."shop.example"]'),
    ],
)
def test_what_is_a_little_different_is_told(tmp_path: Path, body: str, said: str) -> None:
    done = site(tmp_path, body.replace("FOLDER", str(tmp_path)))
    assert done.returncode == 0, done.stdout
    assert said in done.stdout


@pytest.mark.parametrize("path", ["/", "/admin", "= /admin"])
def test_nothing_is_said_of_slashes_where_paths_are_the_same(tmp_path: Path, path: str) -> None:
    done = site(tmp_path, f"location {path} {{ deny all; }}")
    assert "nginx's /" not in done.stdout, done.stdout


def test_a_time_of_one_path_is_none_for_all(tmp_path: Path) -> None:
    done = site(tmp_path, "location / { proxy_read_timeout 60s; }\nlocation /slow/ { proxy_read_timeout 300s; }")
    assert done.returncode == 3
    assert "request-timeout = 60 is for this path as well" in done.stdout
    toml = done.stdout.partition("# To be")[0]
    # The pool that is proposed is one that the server takes.
    (tmp_path / "maitred.toml").write_text(f'{toml}\n[pool.slow]\nmatch = ["/slow/*"]\nrequest-timeout = 300\n')
    checked = subprocess.run([MAITRED, "check"], cwd=tmp_path, env=environment_for({}), capture_output=True, text=True, timeout=PATIENCE)
    assert checked.returncode == 0, checked.stderr
    assert re.search(r"request-timeout += 60\b", checked.stdout) and re.search(r"request-timeout += 300\b", checked.stdout)


def test_a_time_of_a_location_with_a_name_is_that_of_no_path(tmp_path: Path) -> None:
    done = site(tmp_path, f"location / {{ {PASS} }}\nlocation @app {{ proxy_pass http://127.0.0.1:9; proxy_read_timeout 90s; }}", "--application", "web:app")
    assert 'match = ["/PATH/*"], request-timeout = 90' in done.stdout and "@app*" not in done.stdout, done.stdout


@pytest.mark.parametrize("charset", ["koi8-r", "iso-8859-1"])
def test_another_charset_needs_a_decision(tmp_path: Path, charset: str) -> None:
    done = site(tmp_path, f"charset {charset};")
    assert done.returncode == 3 and "files of text have charset=utf-8; convert them" in done.stdout


def test_a_page_of_errors_that_is_not_there_is_named_and_not_in_force(tmp_path: Path) -> None:
    done = site(tmp_path, "error_page 502 503 /sorry.html;")
    assert done.returncode == 3
    page = f"{tmp_path}/files/sorry.html"
    assert f"nginx.conf:4: error_page 502 503 /sorry.html: {page} is not there" in done.stdout
    assert re.search(r"^# error-page = \[", done.stdout, re.MULTILINE) and not re.search(r"^error-page", done.stdout, re.MULTILINE)
    (tmp_path / "files/sorry.html").write_text("sorry")
    done = site(tmp_path, "error_page 502 503 /sorry.html;")
    assert done.returncode == 0 and re.search(r"^error-page = \[", done.stdout, re.MULTILINE), done.stdout


def test_fields_follow_the_rules_of_nginx(tmp_path: Path) -> None:
    done = site(tmp_path, "add_header X-A a always;\nexpires 1h;\nlocation /b/ { add_header X-A b; expires off; }")
    assert done.returncode == 3 and "the Cache-Control of nginx.conf:5 is sent here as well" in done.stdout
    lines = [line.partition("  # ")[0] for line in done.stdout.partition("# To be")[0].splitlines()]
    # At /b/ errors have no X-A: the one outside is replaced as a whole.
    at = lines.index('remove-response = ["X-A"]')
    assert lines[at - 1] == 'path = "/b/*"' and lines[at + 3 : at + 6] == [
        'path = "/b/*"',
        'set-response = ["X-A: b"]',
        'response-status = "200, 201, 204, 206, 301-304, 307, 308"',
    ]


def test_one_address_of_both_families_becomes_two(tmp_path: Path) -> None:
    done = servers(tmp_path, "server { listen [::]:80 ipv6only=off; root FOLDER/files; }")
    assert 'listen = ["[::]:80", ":80"]' in done.stdout, done.stdout
    done = servers(tmp_path, "server { listen 80; listen [::]:80; root FOLDER/files; }")
    assert 'listen = [":80", "[::]:80"]' in done.stdout, done.stdout


PLAIN_TO = "server {{ listen 80; server_name {names}; return 301 https://www.shop.example$request_uri; }}\n"
SECURE = "server {{ listen 443 ssl; server_name {names}; root FOLDER/files; ssl_certificate a; ssl_certificate_key b; }}\n"


def servers(folder: Path, text: str) -> subprocess.CompletedProcess[str]:
    (folder / "files").mkdir(exist_ok=True)
    (folder / "nginx.conf").write_text(text.replace("FOLDER", str(folder)))
    return migrated(folder, "nginx.conf")


def filters(done: subprocess.CompletedProcess[str]) -> list[list[str]]:
    text = re.sub(r"  # .*", "", re.split(r"# To be|# Good to", done.stdout)[0])
    return [table.strip().splitlines() for table in re.split(r"\[\[.*?filter\]\]", text)[1:]]


def test_a_redirect_to_a_fixed_host_is_for_all_that_comes_without_tls(tmp_path: Path) -> None:
    wanted = ['scheme = "http"', 'path = "/*"', 'redirect = "https://www.shop.example/*"', "status = 301"]
    for names in ("shop.example www.shop.example", "_"):
        done = servers(tmp_path, PLAIN_TO.format(names=names) + SECURE.format(names="www.shop.example"))
        assert done.returncode == 0, done.stdout
        assert filters(done) == [wanted] and "redirect=https" not in done.stdout


def test_a_redirect_to_a_fixed_host_leaves_other_names_alone(tmp_path: Path) -> None:
    other = "server { listen 8080; server_name blog.example; root FOLDER/files; }\n"
    text = PLAIN_TO.format(names="www.shop.example") + SECURE.format(names="www.shop.example")
    done = servers(tmp_path, text + other)
    assert done.returncode == 0, done.stdout
    assert filters(done)[0][:2] == ['header = "Host: www.shop.example"', 'scheme = "http"']
    nameless = servers(tmp_path, PLAIN_TO.format(names="_") + SECURE.format(names="www.shop.example") + other)
    assert nameless.returncode == 3 and "which names lead there is not known" in nameless.stdout


def test_the_first_name_of_a_server_is_a_fixed_host(tmp_path: Path) -> None:
    text = PLAIN_TO.format(names="a.example b.example").replace("www.shop.example", "$server_name")
    done = servers(tmp_path, text + SECURE.format(names="a.example b.example"))
    assert 'redirect = "https://a.example/*"' in done.stdout
    kept = servers(tmp_path, text.replace("$server_name", "$host") + SECURE.format(names="a.example b.example"))
    assert filters(kept) == [] and ":80,redirect=https" in kept.stdout


def test_each_server_asks_its_clients_for_certificates_as_it_did(tmp_path: Path) -> None:
    from maitred._migrate import nginx

    def asked(*servers: str) -> dict[str, dict[str, object]]:
        """The keys about certificates of clients, by host."""
        blocks = "".join(f"server {{ listen 443 ssl; ssl_certificate a.pem; ssl_certificate_key a.key; root /srv; {own} }}\n" for own in servers)
        (tmp_path / "nginx.conf").write_text(f"events {{}}\nhttp {{\n{blocks}}}\n")
        result = nginx.translate(tmp_path / "nginx.conf", [])
        tables = {"": result.lines} | {name: host.lines for name, host in result.hosts.items()}
        return {name: {line.key: line.value for line in lines if line.key.startswith("tls-client-")} for name, lines in tables.items()}

    on = "ssl_verify_client on; ssl_client_certificate {}.pem;"
    shop, staff = "server_name shop.example;", f"server_name staff.example; {on.format('staff')}"
    required = {"tls-client-auth": "required", "tls-client-ca": "staff.pem"}
    assert asked(shop, staff) == {"": {}, "shop.example": {}, "staff.example": required}
    assert asked(shop, staff, on.format("all") + "ssl_crl all.crl;") == {
        "": {"tls-client-auth": "required", "tls-client-ca": "all.pem", "tls-client-crl": "all.crl"},
        "shop.example": {"tls-client-auth": "none"},
        "staff.example": required,
    }
    both = asked(staff, staff.replace("staff.example", "other.example"))
    assert both == {"": required, "staff.example": {}, "other.example": {}}
