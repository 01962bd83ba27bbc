"""What is done to a file after it was compiled: debug information goes beside it, paths of this machine go away, archives are in order.

Promises: the same contents give the same bytes.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import os
import subprocess
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

from builds import ROOT, epoch, output

#: Times in a zip file are even seconds, without a zone.
ZIP_MODE = 0o100644 << 16


def objcopy(*arguments: str, folder: Path) -> None:
    """That of the Rust toolchain: it knows all processors, and its version is fixed with the compiler's."""
    program = Path(output("rustc", "--print", "target-libdir")).parent / "bin" / "rust-objcopy"
    # It looks for LLVM beside itself; some toolchains have that library in their first folder only.
    libraries = [str(Path(output("rustc", "--print", "sysroot")) / "lib"), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])]
    subprocess.run([program, *arguments], cwd=folder, check=True, env=os.environ | {"LD_LIBRARY_PATH": ":".join(libraries)})


def split_debug(program: Path) -> Path:
    """Moves line tables into FILE.debug, which backtraces, gdb and perf look for; names of functions stay (decision 0035)."""
    debug = program.with_name(f"{program.name}.debug")
    objcopy("--only-keep-debug", program.name, debug.name, folder=program.parent)
    objcopy("--strip-debug", program.name, folder=program.parent)
    # By a name without folders: they would be in the file.
    objcopy(f"--add-gnu-debuglink={debug.name}", program.name, folder=program.parent)
    return debug


def wheel(path: Path, debug: Path) -> None:
    """Writes a wheel anew, without line tables and paths; the line tables go into the folder `debug`."""
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    record = next(name for name in files if name.endswith(".dist-info/RECORD"))
    del files[record]
    for name in list(files):
        if name.endswith(".so"):
            with tempfile.TemporaryDirectory() as folder:
                program = Path(folder) / Path(name).name
                program.write_bytes(files[name])
                kept = split_debug(program)
                debug.mkdir(parents=True, exist_ok=True)
                (debug / kept.name).write_bytes(kept.read_bytes())
                files[name] = program.read_bytes()
        elif name.endswith(".cyclonedx.json"):
            files[name] = bill(files[name])
    files[record] = _record(files, record)
    path.write_bytes(_zip(files))


def bill(text: bytes) -> bytes:
    """A bill of materials (CycloneDX) without the folder in which it was made, in a fixed order."""
    value = json.loads(text.decode().replace(f"file://{ROOT}", "file:///maitred"))
    value["components"].sort(key=lambda component: component["bom-ref"])
    value["dependencies"].sort(key=lambda dependency: dependency["ref"])
    return json.dumps(value, indent=1, sort_keys=True).encode() + b"\n"


def _record(files: dict[str, bytes], own: str) -> bytes:
    """The table of a wheel's files (binary distribution format, "Signed wheel files")."""
    lines = []
    for name, content in sorted(files.items()):
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(content)}\n")
    return ("".join(lines) + f"{own},,\n").encode()


def _zip(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, content in sorted(files.items(), key=lambda file: (".dist-info/" in file[0], file[0])):
            entry = zipfile.ZipInfo(name, time.gmtime(epoch())[:6])
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = ZIP_MODE | (0o111 << 16 if name.endswith(".so") else 0)
            entry.create_system = 3
            archive.writestr(entry, content, compresslevel=9)
    return out.getvalue()


def tar(path: Path, top: str, files: dict[str, Path], mode: Callable[[str], int] = lambda name: 0o644) -> None:
    """A .tar.gz of these files below the folder `top`, in order, owned by root, with the commit's time."""
    with path.open("wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as packed, tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, source in sorted(files.items()):
            entry = tarfile.TarInfo(f"{top}/{name}")
            entry.size, entry.mtime, entry.mode = os.stat(source).st_size, epoch(), mode(name)
            entry.uname = entry.gname = "root"
            with source.open("rb") as content:
                archive.addfile(entry, content)
