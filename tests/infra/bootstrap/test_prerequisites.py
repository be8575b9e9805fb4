"""Missing programs of a machine, and their installation."""

import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from penstock.infra.bootstrap.prerequisites import (
    MissingPrerequisite,
    find_missing_prerequisites,
    install_prerequisites,
)
from penstock.infra.errors import BootstrapError, JavaMissingError
from penstock.infra.java import find_java


@dataclass
class Machine:
    """A machine whose PATH has only the programs of a test."""

    programs: Path
    call_log: Path

    def add_program(self, name: str, script: str = "") -> None:
        program = self.programs / name
        program.write_text(f'#!/bin/sh\necho "{name} $*" >> {self.call_log}\n{script}\n')
        program.chmod(0o755)

    def read_calls(self) -> list[str]:
        return self.call_log.read_text().splitlines() if self.call_log.exists() else []


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    machine = Machine(tmp_path / "programs", tmp_path / "said")
    machine.programs.mkdir()
    monkeypatch.setenv("PATH", str(machine.programs))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr("penstock.infra.java.SYSTEM_JVM_DIRECTORY", tmp_path / "jvm")
    machine.add_program("env", 'shift; exec "$@"')
    return machine


JAVA = '/bin/mkdir -p {jvm}/bin; echo "JAVA_VERSION=\\"17.0.1\\"" > {jvm}/release; : > {jvm}/bin/java'


def test_missing_git_and_java_are_reported(machine: Machine) -> None:
    assert [missing.problem for missing in find_missing_prerequisites()] == [
        "git is not on PATH",
        "Java 17 or newer is neither in JAVA_HOME nor on PATH",
    ]


def test_missing_packages_are_installed_by_root_with_apt(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    machine.add_program("git")
    machine.add_program("apt-cache", '[ "$2" = openjdk-21-jre-headless ] && echo Package: it')
    machine.add_program(
        "apt-get", f'[ "$1" = update ] || {{ {JAVA.format(jvm=tmp_path / "jvm" / "java-17")}; }}'
    )
    install_prerequisites(find_missing_prerequisites(), None)
    assert [call for call in machine.read_calls() if call.startswith("apt-get")] == [
        "apt-get update -q",
        "apt-get install -q -y --no-install-recommends openjdk-21-jre-headless",
    ]


def test_without_apt_the_message_says_what_to_install(machine: Machine) -> None:
    with pytest.raises(
        BootstrapError, match=r"Java 17 .*\. Install it: apt-get install openjdk-17-jre-headless"
    ):
        install_prerequisites([MissingPrerequisite("Java 17 is missing", ("openjdk-17-jre-headless",))], None)


@pytest.mark.parametrize("answer", [True, False])
def test_a_user_who_is_not_root_is_asked(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, answer: bool
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    machine.add_program("apt-get", "exit 100")
    machine.add_program("sudo", 'exec "$@"')
    questions: list[str] = []

    def ask(question: str) -> bool:
        questions.append(question)
        return answer

    with pytest.raises(
        BootstrapError, match="failed with 100" if answer else "Install it: apt-get install git"
    ):
        install_prerequisites([MissingPrerequisite("git is not on PATH", ("git",))], ask)
    assert questions == ["git is not on PATH. Install it now with sudo apt-get?"]
    assert any(call.startswith("sudo env") for call in machine.read_calls()) is answer


def test_an_installed_package_without_effect_is_an_error(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    machine.add_program("apt-get")
    machine.add_program("apt-cache", "echo Package: it")
    with pytest.raises(BootstrapError, match="git is not on PATH, even after git was installed"):
        install_prerequisites([MissingPrerequisite("git is not on PATH", ("git",))], None)


def test_the_advice_names_the_java_package_of_the_system(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    machine.add_program("git")
    machine.add_program("apt-get")
    machine.add_program("apt-cache", '[ "$2" = openjdk-21-jre-headless ] && echo Package: it')
    with pytest.raises(BootstrapError, match="Install it: apt-get install openjdk-21-jre-headless"):
        install_prerequisites(find_missing_prerequisites(), None)
    with pytest.raises(JavaMissingError, match="apt-get install openjdk-21-jre-headless"):
        find_java()
