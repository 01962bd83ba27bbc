"""Which certificate a client sees by the name that it asks for: the table of the documentation, with thirty names."""

from __future__ import annotations

import json
import ssl
from pathlib import Path

import pytest
from certificates import Authority, Pair, authority, connected, needs_openssl
from conftest import Serve

__all__ = ["authority"]

pytestmark = needs_openssl

#: The certificates, with the names in them; the first is the one for nobody's names. Those of the hosts stand in their tables.
CERTIFICATES = {
    "default": ["localhost", "127.0.0.1"],
    "mail": ["mail.example", "imap.example", "*.mail.example"],
    "deep": ["*.a.shop.example", "www.example"],
    "later": ["mail.example", "late.example"],
    "shop": ["of-the-shop.example"],
    "blog": ["blog.example", "*.blog.example"],
    "wild": ["*.example"],
}
HOSTS = {"shop": ("shop.example", "*.shop.example"), "blog": ("blog.example", "diary.example")}
#: None: a client that names nobody.
TABLE = [
    ("localhost", "default"),
    ("LOCALHOST", "default"),
    (None, "default"),
    ("mail.example", "mail"),
    ("MAIL.Example", "mail"),
    ("imap.example", "mail"),
    ("smtp.mail.example", "mail"),
    ("pop.mail.example", "mail"),
    ("a.pop.mail.example", "default"),
    ("late.example", "later"),
    ("www.example", "deep"),
    # By the host's table, whatever the certificate has; the names in that do not count.
    ("shop.example", "shop"),
    ("Shop.Example", "shop"),
    ("www.shop.example", "shop"),
    ("a.shop.example", "shop"),
    ("x.a.shop.example", "deep"),
    ("y.x.a.shop.example", "default"),
    ("x.b.shop.example", "default"),
    ("of-the-shop.example", "wild"),
    ("diary.example", "blog"),
    ("blog.example", "blog"),
    ("x.blog.example", "default"),
    ("x.y.blog.example", "default"),
    # By the wildcard, which is for one label and not for the name behind it.
    ("other.example", "wild"),
    ("OTHER.EXAMPLE", "wild"),
    ("xn--bcher-kva.example", "wild"),
    ("a.b.example", "default"),
    ("example", "default"),
    ("shop.example.org", "default"),
    ("notshop.test", "default"),
]


@pytest.fixture(scope="module")
def pairs(authority: Authority) -> dict[str, Pair]:
    return {name: authority.issue(*names) for name, names in CERTIFICATES.items()}


def seen(port: int, authority: Authority, name: str | None, version: ssl.TLSVersion) -> str:
    """The serial of the certificate that a client sees."""
    context = authority.client()
    context.check_hostname = False
    context.minimum_version = context.maximum_version = version
    with connected(port, context, name) as peer:
        return str((peer.getpeercert() or {})["serialNumber"])


def configure(folder: Path, pairs: dict[str, Pair], more: str = "") -> None:
    own = [pair for name, pair in pairs.items() if name not in HOSTS]
    lines = [
        'application = "app.py"',
        f"tls-cert = {json.dumps([str(pair.certificate) for pair in own])}",
        f"tls-key = {json.dumps([str(pair.key) for pair in own])}",
        more,
    ]
    for name, (first, second) in HOSTS.items():
        lines += [f'[host."{first}"]', f'names = "{second}"', 'application = "app.py"']
        lines += [f'tls-cert = "{pairs[name].certificate}"', f'tls-key = "{pairs[name].key}"']
    (folder / "maitred.toml").write_text("\n".join(lines))
    (folder / "app.py").write_text("def app(environ, start_response):\n    start_response('204 No Content', [])\n    return []\n")


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_thirty_names_have_the_certificates_of_the_table(
    version: ssl.TLSVersion, serve: Serve, tmp_path: Path, authority: Authority, pairs: dict[str, Pair]
) -> None:
    assert len(TABLE) == 30
    configure(tmp_path, pairs)
    server = serve()
    names = {pair.serial: name for name, pair in pairs.items()}
    shown = [(name, names[seen(server.port, authority, name, version)]) for name, _ in TABLE]
    assert shown == TABLE


def test_where_unknown_names_are_refused_those_of_the_table_are_not(
    serve: Serve, tmp_path: Path, authority: Authority, pairs: dict[str, Pair]
) -> None:
    configure(tmp_path, pairs, 'tls-unknown-name = "refuse"')
    server = serve()
    own = {name.lower() for name in CERTIFICATES["default"]} | {None}
    for name, which in TABLE:
        if which == "default" and (name and name.lower()) not in own:
            with pytest.raises(ssl.SSLError, match="(?i)unrecognized"):
                seen(server.port, authority, name, ssl.TLSVersion.TLSv1_3)
        else:
            assert seen(server.port, authority, name, ssl.TLSVersion.TLSv1_3) == pairs[which].serial, name
