"""Finding a Java: which one is taken, and what is said when there is none."""

from pathlib import Path

import pytest

from penstock.infra.errors import JavaMissingError
from penstock.infra.java import find_java, read_java_version


def _java(home: Path, version: str, release: bool = True) -> Path:
    (home / "bin").mkdir(parents=True)
    program = home / "bin" / "java"
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    program.chmod(0o755)
    if release:
        (home / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n')
    return home


def test_java_home_wins_over_path_and_over_what_is_installed(tmp_path: Path) -> None:
    chosen, on_path = _java(tmp_path / "a", "17.0.15"), _java(tmp_path / "b", "21.0.1")
    _java(tmp_path / "jvm" / "java-21", "21.0.2")
    environment = {"JAVA_HOME": str(chosen), "PATH": str(on_path / "bin")}
    found = find_java(environment, tmp_path / "jvm")
    assert (found.home, found.version, found.command) == (chosen, 17, chosen / "bin" / "java")


def test_one_that_is_too_old_is_passed_over(tmp_path: Path) -> None:
    old = _java(tmp_path / "a", "11.0.2")
    new = _java(tmp_path / "jvm" / "java-21", "21.0.2")
    assert find_java({"JAVA_HOME": str(old), "PATH": ""}, tmp_path / "jvm").home == new


def test_a_java_without_a_release_file_is_asked(tmp_path: Path) -> None:
    assert read_java_version(_java(tmp_path / "a", "17.0.15", release=False)) == 17


def test_without_any_the_message_names_every_place_and_the_way_out(tmp_path: Path) -> None:
    old = _java(tmp_path / "old", "1.8.0_362")
    (tmp_path / "broken" / "bin").mkdir(parents=True)
    environment = {"JAVA_HOME": str(tmp_path / "broken"), "PATH": str(old / "bin")}
    with pytest.raises(JavaMissingError) as told:
        find_java(environment, tmp_path / "jvm")
    for part in ("JAVA_HOME: not a Java", "PATH: Java 1 ", "apt-get install openjdk-17-jre-headless"):
        assert part in str(told.value)
