"""The Terraform engines of a machine."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.infra.terraform.conftest import SYSTEM_PROGRAMS

from penstock.infra.terraform import embedded_engine, find_engine, system_engine
from penstock.infra.terraform.errors import EngineMissingError, EngineTooOldError


def write_program(path: Path, answer: str) -> str:
    path.write_text(f"#!/bin/sh\necho '{answer}'\n")
    path.chmod(0o755)
    return str(path)


def test_the_embedded_engine_is_the_default() -> None:
    assert find_engine() == embedded_engine()
    assert find_engine().command[1:] == ("-m", "penstock.infra.terraform.embedded")


def test_a_system_program_is_found_by_name_or_path(tmp_path: Path) -> None:
    path = write_program(tmp_path / "tofu", '{"terraform_version": "1.6.0"}')
    engine = find_engine(path)
    assert (engine.name, engine.command, engine.version) == ("tofu", (path,), "1.6.0")


def test_a_program_older_than_1_6_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EngineTooOldError, match=r"1\.5\.7.*1\.6 or later"):
        system_engine(write_program(tmp_path / "terraform", '{"terraform_version": "1.5.7"}'))


@pytest.mark.parametrize("answer", ["", "Terraform v1.9", "[]", "{}"])
def test_a_program_without_a_terraform_version_is_refused(tmp_path: Path, answer: str) -> None:
    with pytest.raises(EngineMissingError, match="does not answer"):
        system_engine(write_program(tmp_path / "terraform", answer))


@pytest.mark.parametrize("program", SYSTEM_PROGRAMS)
def test_an_installed_program_is_supported(program: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not on the PATH; with it, every test that takes `engine` runs by it, too")
    assert system_engine(program).name == program


def test_a_missing_program_is_named() -> None:
    with pytest.raises(EngineMissingError, match="no-such-terraform"):
        system_engine("no-such-terraform")
