"""The Debian package: the program without Python, its documents, nothing else.

Promises: it depends on what is written here, not on what the building machine has. Leaves out: the Python package (a wheel, in a virtual
environment) and units, which `maitred install-service` writes for each application.
"""

from __future__ import annotations

import gzip
import os
import shutil
import time
from pathlib import Path

from builds import BUILD, DEBIAN, GLIBC, ROOT, environment, epoch, run, TARGETS, version

CONTROL = """\
Package: maitred
Version: {version}-1
Architecture: {architecture}
Maintainer: {maintainer}
Installed-Size: {size}
Depends: libc6 (>= {glibc})
Section: httpd
Priority: optional
Homepage: {homepage}
Description: HTTP server for static files, with WebSocket, HTTP/2 and TLS
 maitred serves static folders: conditional and range requests, precompressed
 files, compression, filters, limits, and several sites. Applications in Python
 (WSGI, ASGI) are run by the Python package of the same name.
"""

COPYRIGHT = """\
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: maitred
Source: {homepage}

Files: *
Copyright: the authors of maitred
License: Apache-2.0 or MIT
 Both texts stand beside this file. Of what others have written, the bill of
 materials of the release (CycloneDX) has names, versions and licences.
"""

HOMEPAGE = "https://github.com/maitred/maitred"
MAINTAINER = "maitred <maitred@localhost>"


def package(out: Path, program: Path, machine: str) -> Path:
    """Writes maitred_VERSION-1_ARCHITECTURE.deb."""
    root = BUILD / "debian"
    shutil.rmtree(root, ignore_errors=True)
    documents = root / "usr/share/doc/maitred"
    documents.mkdir(parents=True)
    (root / "usr/bin").mkdir()
    shutil.copy(program, root / "usr/bin/maitred")
    facts = {"version": version(), "architecture": DEBIAN[machine], "maintainer": MAINTAINER, "homepage": HOMEPAGE, "glibc": GLIBC}
    (documents / "copyright").write_text(COPYRIGHT.format(**facts))
    for name in ("LICENSE-APACHE", "LICENSE-MIT", "README.md"):
        shutil.copy(ROOT / name, documents / name)
    for source in (ROOT / "docs" / "operations").glob("*.md"):
        shutil.copy(source, documents / source.name)
    _packed(documents / "changelog.gz", (ROOT / "CHANGELOG.md").read_bytes())
    changes = f"maitred ({version()}-1) unstable; urgency=medium\n\n  * See changelog.gz.\n\n -- {MAINTAINER}  {time.strftime('%a, %d %b %Y %H:%M:%S +0000', time.gmtime(epoch()))}\n"
    _packed(documents / "changelog.Debian.gz", changes.encode())
    size = sum(path.stat().st_size for path in root.rglob("*") if path.is_file()) // 1024 + 1
    (root / "DEBIAN").mkdir()
    (root / "DEBIAN/control").write_text(CONTROL.format(size=size, **facts))
    for path in [root, *root.rglob("*")]:
        path.chmod(0o755 if path.is_dir() or path.parent.name == "bin" else 0o644)
        os.utime(path, (epoch(), epoch()))
    made = out / f"maitred_{version()}-1_{DEBIAN[machine]}.deb"
    # It takes the time of the archive's members from SOURCE_DATE_EPOCH. One thread: several divide the data by the number of processors.
    run("dpkg-deb", "--root-owner-group", "--build", "-Zxz", "--threads-max=1", root, made, environment=environment(TARGETS[machine]))
    return made


def _packed(path: Path, content: bytes) -> None:
    path.write_bytes(gzip.compress(content, 9, mtime=0))
