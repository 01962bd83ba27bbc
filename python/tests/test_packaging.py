"""What packages are made from: the image's file says what its guide says, and archives are the same whenever they are made."""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from conftest import MAITRED, PATIENCE, environment_for

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "packaging"))

import builds  # noqa: E402
import containerfile  # noqa: E402
import repack  # noqa: E402


@pytest.fixture
def image() -> containerfile.Stage:
    return containerfile.parse(ROOT / "Containerfile", {})[-1]


def test_the_image_is_as_its_guide_says(image: containerfile.Stage) -> None:
    user = image.last("USER").partition(":")[0]
    assert user.isdigit() and user != "0"
    assert image.command()[0] == "maitred"
    guide = (ROOT / "docs/guides/container.md").read_text()
    assert f"HEALTHCHECK {image.last('HEALTHCHECK')}" in guide and f"`USER {image.last('USER')}`" in guide
    for name in ("PORT", "MAITRED_HEALTH_PATH"):
        assert f"`{name}={image.environment[name]}`" in guide
    assert f'"--socket", "{image.environment["MAITRED_CONTROL"]}"' in guide


def test_the_command_takes_what_the_image_gives_it(image: containerfile.Stage) -> None:
    ours = {name: value for name, value in image.environment.items() if name.startswith("MAITRED_") or name == "PORT"}
    checked = [MAITRED, "check", *image.command()[1:]]
    ended = subprocess.run(checked, cwd=ROOT / "examples/demo", env=environment_for(ours), capture_output=True, text=True, timeout=PATIENCE)
    assert ended.returncode == 0, ended.stderr
    # Nothing listens there in a namespace of its own; a mistake would be 2.
    health = [MAITRED, *image.health()[1:]]
    health[health.index("--url") + 1] = "http://127.0.0.1:1/healthz"
    assert subprocess.run(health, capture_output=True, timeout=PATIENCE).returncode == 1


def test_what_is_not_understood_of_the_format_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "Containerfile"
    file.write_text("# a comment\nARG A=1\nFROM debian:x AS one\nARG A\nENV B=${A} \\\n    C=2\nRUN echo $A\nCMD [\"a\"]\n")
    stage = containerfile.parse(file, {"A": "7"})[0]
    assert (stage.base, stage.name, stage.environment) == ("debian:x", "one", {"B": "7", "C": "2"})
    assert (stage.last("RUN"), stage.command()) == ("echo $A", ["a"])
    for wrong in ("ADD a b", "CMD a b"):
        file.write_text(f"FROM debian:x\n{wrong}\n")
        with pytest.raises(containerfile.Unknown):
            containerfile.parse(file, {})[0].command()


def test_archives_are_the_same_whenever_they_are_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000001")
    record = "maitred-1.dist-info/RECORD"
    bill = {"components": [{"bom-ref": f"file://{ROOT}/b"}, {"bom-ref": "a"}], "dependencies": [{"ref": "b"}, {"ref": "a"}]}
    members = {"maitred/__init__.py": b"x", "maitred-1.dist-info/sboms/a.cyclonedx.json": json.dumps(bill).encode(), record: b""}
    made = []
    for number, order in enumerate([list(members), list(members)[::-1]]):
        path = tmp_path / f"{number}.whl"
        with zipfile.ZipFile(path, "w") as archive:
            for name in order:
                archive.writestr(name, members[name])
        repack.wheel(path, tmp_path / "debug")
        made.append(path.read_bytes())
        repack.tar(tmp_path / f"{number}.tar.gz", "top", {"b": ROOT / "LICENSE-MIT", "a": ROOT / "Makefile"})
    assert made[0] == made[1]
    assert (tmp_path / "0.tar.gz").read_bytes() == (tmp_path / "1.tar.gz").read_bytes()
    with zipfile.ZipFile(tmp_path / "0.whl") as archive:
        # sha256 of "x" in the form of the format.
        assert b"maitred/__init__.py,sha256=LXEWQrcmsEQBYnyp-6wy9chTD7GQPMTbAiWHF5IaSIE,1\n" in archive.read(record)
        assert str(ROOT) not in archive.read("maitred-1.dist-info/sboms/a.cyclonedx.json").decode()
    with tarfile.open(tmp_path / "0.tar.gz") as archive:
        assert [(entry.name, entry.mtime, entry.uname) for entry in archive] == [("top/a", 1700000001, "root"), ("top/b", 1700000001, "root")]


def test_a_release_is_compiled_with_the_profile_of_its_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(builds, "ROOT", tmp_path)
    monkeypatch.setattr(builds, "compiler", lambda: "1.2.3")
    profile = tmp_path / "packaging/profiles/x86_64-rust-1.2.3.profdata"
    here, other = builds.TARGETS["x86_64"], builds.TARGETS["aarch64"]
    assert builds.flags(here) == [], "there is none for this compiler"
    assert f"there is no {profile.relative_to(tmp_path)}" in capsys.readouterr().out
    profile.parent.mkdir(parents=True)
    profile.touch()
    assert builds.flags(here) == [f"-Cprofile-use={profile}"] and capsys.readouterr().out == ""
    assert builds.flags(other) == [] and "no profile for this processor" in capsys.readouterr().out
    monkeypatch.setattr(builds, "epoch", lambda: 0)
    assert f"-Cprofile-use={profile}" in builds.environment(here, builds.flags(here))["RUSTFLAGS"].split()


def test_the_profiles_are_files_of_the_compiler() -> None:
    profiles = list((ROOT / "packaging/profiles").glob("*"))
    # An indexed profile begins so; what counts instead of what was counted would be taken for nothing.
    assert profiles and all(each.read_bytes()[:8] == b"\xfflprofi\x81" for each in profiles)
