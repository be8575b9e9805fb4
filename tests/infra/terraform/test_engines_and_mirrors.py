"""Which Terraform runs, and where providers come from."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from penstock.infra.terraform import embedded_engine, find_engine, find_mirrors, system_engine
from penstock.infra.terraform.engines import SYSTEM_PROGRAMS
from penstock.infra.terraform.errors import EngineMissingError, EngineTooOldError
from penstock.infra.terraform.process_environment import build_terraform_environment
from penstock.infra.terraform.provider_mirrors import has_provider, platform_name, render_cli_configuration


def program(path: Path, answer: str) -> str:
    path.write_text(f"#!/bin/sh\necho '{answer}'\n")
    path.chmod(0o755)
    return str(path)


def mirror(root: Path, version: str = "1.2.3") -> Path:
    folder = root / "example.test" / "acme" / "anvil" / version / platform_name()
    folder.mkdir(parents=True)
    (folder / f"terraform-provider-anvil_v{version}").touch()
    return root


def test_the_embedded_engine_is_the_default() -> None:
    assert find_engine() == embedded_engine()
    assert find_engine().command[1:] == ("-m", "penstock.infra.terraform.embedded")


def test_a_program_of_the_system_is_taken_by_name_or_path(tmp_path: Path) -> None:
    path = program(tmp_path / "tofu", '{"terraform_version": "1.6.0"}')
    engine = find_engine(path)
    assert (engine.name, engine.command, engine.version) == ("tofu", (path,), "1.6.0")


def test_a_program_older_than_1_6_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EngineTooOldError, match=r"1\.5\.7.*1\.6 or later"):
        system_engine(program(tmp_path / "terraform", '{"terraform_version": "1.5.7"}'))


@pytest.mark.parametrize("answer", ["", "Terraform v1.9", "[]", "{}"])
def test_a_program_that_is_no_terraform_is_refused(tmp_path: Path, answer: str) -> None:
    with pytest.raises(EngineMissingError, match="does not answer"):
        system_engine(program(tmp_path / "terraform", answer))


@pytest.mark.parametrize("program", SYSTEM_PROGRAMS)
def test_what_this_machine_has_is_new_enough_and_takes_part_in_the_tests_of_engines(program: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not on the PATH; with it, every test that takes `engine` runs by it, too")
    assert system_engine(program).name == program


def test_a_program_that_is_not_there_is_named() -> None:
    with pytest.raises(EngineMissingError, match="no-such-terraform"):
        system_engine("no-such-terraform")


def test_a_mirror_in_the_folder_for_optional_software_is_found(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    found = mirror(tmp_path / "providers")
    assert find_mirrors(optional_directory=tmp_path)[-1] == found
    assert has_provider(found, "acme/anvil", "1.2.3")
    assert not has_provider(found, "acme/anvil", "1.2.4")


def test_a_mirror_of_a_setting_comes_first(tmp_path: Path) -> None:
    named = mirror(tmp_path / "named")
    mirror(tmp_path / "opt" / "providers")
    assert find_mirrors([named, tmp_path / "missing"], optional_directory=tmp_path / "opt")[0] == named


def test_what_a_mirror_holds_is_not_asked_for_elsewhere(tmp_path: Path) -> None:
    text = render_cli_configuration([mirror(tmp_path / "named")])
    assert f'path = "{tmp_path}/named"' in text
    assert 'exclude = ["example.test/acme/anvil"]' in text


def test_a_configuration_of_the_users_own_is_kept(tmp_path: Path) -> None:
    own = tmp_path / "own.tfrc"
    own.touch()
    given = {"TF_CLI_CONFIG_FILE": str(own)}
    made = build_terraform_environment(given, tmp_path, tmp_path / "data", [mirror(tmp_path / "named")])
    assert made["TF_CLI_CONFIG_FILE"] == str(own)


def test_a_configuration_that_is_missing_is_replaced(tmp_path: Path) -> None:
    given = {"TF_CLI_CONFIG_FILE": str(tmp_path / "missing")}
    made = build_terraform_environment(given, tmp_path, tmp_path / "data", [mirror(tmp_path / "named")])
    assert "acme/anvil" in Path(made["TF_CLI_CONFIG_FILE"]).read_text()
    assert "TF_CLI_CONFIG_FILE" not in build_terraform_environment(given, tmp_path, tmp_path / "data", [])


def test_what_would_change_our_arguments_is_not_handed_on(tmp_path: Path) -> None:
    given = {"TF_CLI_ARGS_plan": "-destroy", "TF_VAR_size": "9", "TF_LOG": "TRACE", "AWS_REGION": "eu-west-1"}
    made = build_terraform_environment(given, tmp_path, tmp_path / "data", [])
    assert made["AWS_REGION"] == "eu-west-1"
    assert not {"TF_CLI_ARGS_plan", "TF_VAR_size", "TF_LOG"} & made.keys()
