"""The search for a Java installation."""

from pathlib import Path

import pytest

from penstock.infra.errors import JavaMissingError
from penstock.infra.java import find_java, read_java_version


def _create_java(home: Path, version: str, release: bool = True) -> Path:
    (home / "bin").mkdir(parents=True)
    program = home / "bin" / "java"
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    program.chmod(0o755)
    if release:
        (home / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n')
    return home


def test_java_home_precedes_path_and_installed_versions(tmp_path: Path) -> None:
    chosen, on_path = _create_java(tmp_path / "a", "17.0.15"), _create_java(tmp_path / "b", "21.0.1")
    _create_java(tmp_path / "jvm" / "java-21", "21.0.2")
    environment = {"JAVA_HOME": str(chosen), "PATH": str(on_path / "bin")}
    java = find_java(environment, tmp_path / "jvm")
    assert (java.home, java.version, java.command) == (chosen, 17, chosen / "bin" / "java")


def test_an_old_version_is_skipped(tmp_path: Path) -> None:
    old = _create_java(tmp_path / "a", "11.0.2")
    new = _create_java(tmp_path / "jvm" / "java-21", "21.0.2")
    assert find_java({"JAVA_HOME": str(old), "PATH": ""}, tmp_path / "jvm").home == new


def test_a_java_without_a_release_file_reports_its_version(tmp_path: Path) -> None:
    assert read_java_version(_create_java(tmp_path / "a", "17.0.15", release=False)) == 17


def test_without_java_the_error_names_the_searched_places_and_the_fix(tmp_path: Path) -> None:
    old = _create_java(tmp_path / "old", "1.8.0_362")
    (tmp_path / "broken" / "bin").mkdir(parents=True)
    environment = {"JAVA_HOME": str(tmp_path / "broken"), "PATH": str(old / "bin")}
    with pytest.raises(JavaMissingError) as raised:
        find_java(environment, tmp_path / "jvm")
    for part in ("JAVA_HOME: not a Java", "PATH: Java 1 ", "apt-get install openjdk-17-jre-headless"):
        assert part in str(raised.value)
