"""How a release is compiled: for old systems, by zig, and so that the same commit gives the same bytes in any folder.

Promises: everything that differs between two machines and would reach the output is set here. Leaves out: which files a release has
(scripts/dist).
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / ".build"
VENV = BUILD / "wheel-venv"
REQUIREMENTS = ROOT / "packaging" / "requirements.txt"
#: One folder for all: what does not know Python is compiled once for all versions of it.
TARGET_FOLDER = BUILD / "wheel-target"

#: The oldest C library that is supported: that of Debian 10, RHEL 8 and Amazon Linux 2023.
GLIBC = "2.28"
COMPATIBILITY = "manylinux_2_28"
TARGETS = {"x86_64": "x86_64-unknown-linux-gnu", "aarch64": "aarch64-unknown-linux-gnu"}
#: How Debian calls them.
DEBIAN = {"x86_64": "amd64", "aarch64": "arm64"}


class Failed(Exception):
    """What went wrong, in one line."""


def say(text: str) -> None:
    print(text, flush=True)


def run(*command: str | Path, environment: dict[str, str] | None = None, folder: Path = ROOT) -> None:
    say("+ " + " ".join(map(str, command)))
    done = subprocess.run(list(map(str, command)), cwd=folder, env=environment)
    if done.returncode != 0:
        raise Failed(f"{Path(command[0]).name} ended with exit code {done.returncode}")


def output(*command: str | Path, folder: Path = ROOT) -> str:
    return subprocess.run(list(map(str, command)), cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


def version() -> str:
    """That of the workspace."""
    for line in (ROOT / "Cargo.toml").read_text().splitlines():
        if line.startswith("version = "):
            return line.split('"')[1]
    raise Failed("Cargo.toml has no version")


def epoch() -> int:
    """The time that all files get: that of the commit, or SOURCE_DATE_EPOCH where there is no repository."""
    if given := os.environ.get("SOURCE_DATE_EPOCH"):
        return int(given)
    return int(output("git", "log", "-1", "--format=%ct"))


def commit() -> str:
    """The commit, with `+` behind it if the tree differs from it."""
    changed = output("git", "status", "--porcelain", "--untracked-files=no")
    return output("git", "rev-parse", "HEAD") + ("+" if changed else "")


def tools() -> Path:
    """The folder with maturin and zig, in an environment of their own."""
    stamp = VENV / "requirements.txt"
    wanted = REQUIREMENTS.read_text()
    if not stamp.exists() or stamp.read_text() != wanted:
        run(sys.executable, "-m", "venv", "--clear", VENV)
        run(VENV / "bin" / "python", "-m", "pip", "install", "--quiet", "--requirement", REQUIREMENTS)
        stamp.write_text(wanted)
    return VENV / "bin"


def compiler() -> str:
    """The version of the Rust compiler, such as 1.95.0."""
    return output("rustc", "--version").split()[1]


def profile() -> Path:
    """Where scripts/profile keeps the profile for this compiler: another one calls the functions by other names."""
    return ROOT / "packaging" / "profiles" / f"x86_64-rust-{compiler()}.profdata"


def flags(target: str) -> list[str]:
    """The compiler's flags for the profile; none, and a line that says so, if no profile fits."""
    if target != TARGETS["x86_64"]:
        say(f"{target}: there is no profile for this processor; the server takes a few percent more processor time")
        return []
    known = profile()
    if not known.exists():
        say(f"there is no {known.relative_to(ROOT)}: the server takes a few percent more processor time; scripts/profile makes it")
        return []
    return [f"-Cprofile-use={known}"]


def environment(target: str, rustc: Sequence[str] = ()) -> dict[str, str]:
    """For compilers, with these flags for rustc: no path of this machine in the output, and no time but that of the commit."""
    cargo_home = Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo"))
    folders = {ROOT: "/maitred", cargo_home: "/cargo", TARGET_FOLDER: "/target"}
    # The last one that fits is taken: the longest.
    order = sorted(folders.items(), key=lambda folder: len(str(folder[0])))
    rust = " ".join([*(f"--remap-path-prefix={path}={name}" for path, name in order), *rustc])
    c = " ".join(f"-ffile-prefix-map={path}={name}" for path, name in order)
    # Flags of whoever calls this would be in the output.
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("CARGO_PROFILE_", "RUSTFLAGS", "CARGO_ENCODED"))}
    # What the figures of a server name as its commit.
    known = {"MAITRED_COMMIT": commit()} if (ROOT / ".git").exists() else {}
    return ours | known | {
        "CARGO_TARGET_DIR": str(TARGET_FOLDER),
        "CARGO_INCREMENTAL": "0",
        "CFLAGS": c,
        "LC_ALL": "C",
        # zig compiles its own run-time library with the folder in which it stands, by this name, and keeps it.
        "PWD": "/proc/self/cwd",
        "ZIG_GLOBAL_CACHE_DIR": str(BUILD / "zig-cache"),
        "PATH": f"{VENV / 'bin'}:{os.environ['PATH']}",
        "RUSTFLAGS": rust,
        "SOURCE_DATE_EPOCH": str(epoch()),
        "TZ": "UTC",
        "VIRTUAL_ENV": str(VENV),
    }


def interpreters(wanted: list[str]) -> dict[str, str]:
    """The interpreters of these versions, such as 3.11; without any, all that there are from 3.10 on."""
    versions = script("versions")
    found = {versions.version(path).rpartition(".")[0]: path for path in versions.found()}
    missing = [short for short in wanted if short not in found]
    if missing or not found:
        raise Failed(f"no Python {missing[0] if missing else '3.10 or newer'} here; there are: {', '.join(found) or 'none'}")
    return {short: path for short, path in found.items() if not wanted or short in wanted}


def script(name: str) -> ModuleType:
    """A program of scripts/ as a module."""
    loader = importlib.machinery.SourceFileLoader(name, str(ROOT / "scripts" / name))
    spec = importlib.util.spec_from_loader(name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    # Where dataclasses look.
    sys.modules[name] = module
    loader.exec_module(module)
    return module


def wheels(out: Path, wanted: list[str], machine: str = "x86_64") -> list[Path]:
    """A wheel for each Python. Those for another machine need no interpreter of it: `wanted` names versions."""
    import repack  # It uses this module.

    target = TARGETS[machine]
    zig = ["--zig", "--compatibility", COMPATIBILITY]
    raw = compiled(BUILD / "wheels", wanted, machine, zig, environment(target, flags(target)))
    out.mkdir(parents=True, exist_ok=True)
    made = []
    for path in raw:
        repack.wheel(path, BUILD / "debug" / machine)
        made.append(path.replace(out / path.name))
    return made


def compiled(out: Path, wanted: list[str], machine: str, words: list[str], environment: dict[str, str]) -> list[Path]:
    """The same as maturin makes them with these words, in a folder that is emptied."""
    bin = tools()
    native = machine == os.uname().machine
    pythons = list(interpreters(wanted).values()) if native else [f"python{short}" for short in wanted or ["3.11"]]
    shutil.rmtree(out, ignore_errors=True)
    run(
        bin / "maturin", "build", "--release", "--locked", "--target", TARGETS[machine], *words, "--out", out, *jobs(),
        *(word for python in pythons for word in ("--interpreter", python)), environment=environment,
    )  # fmt: skip
    return sorted(out.glob("*.whl"))


def sdist(out: Path) -> Path:
    """The sources, with a lock file: `pip install` compiles them, for which it needs a Rust toolchain."""
    run(tools() / "maturin", "sdist", "--out", out, environment=environment(TARGETS["x86_64"]))
    return out / f"maitred-{version()}.tar.gz"


def binary(machine: str = "x86_64") -> Path:
    """The command without Python, with line tables: the program as it was linked."""
    bin = tools()
    target = TARGETS[machine]
    # What is linked into a program alone is compiled otherwise, and would take the place of what wheels are made of.
    folder = BUILD / "binary-target"
    run(
        bin / "cargo-zigbuild", "zigbuild", "--release", "--locked", "--package", "maitred-cli", "--target", f"{target}.{GLIBC}",
        *jobs(), environment=environment(target, flags(target)) | {"CARGO_TARGET_DIR": str(folder)},
    )  # fmt: skip
    return folder / target / "release" / "maitred"


def jobs() -> list[str]:
    """How many compilers run at once, if JOBS says."""
    count = os.environ.get("JOBS")
    return ["--jobs", count] if count else []
