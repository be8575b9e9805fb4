"""Filesystem mirrors of providers, and the environment of Terraform that names them."""

from __future__ import annotations

from pathlib import Path

from penstock.infra.terraform import find_mirrors
from penstock.infra.terraform.process_environment import build_terraform_environment
from penstock.infra.terraform.provider_mirrors import has_provider, platform_name, render_cli_configuration


def create_mirror(root: Path, version: str = "1.2.3") -> Path:
    folder = root / "example.test" / "acme" / "anvil" / version / platform_name()
    folder.mkdir(parents=True)
    (folder / f"terraform-provider-anvil_v{version}").touch()
    return root


def test_a_mirror_in_the_folder_for_optional_software_is_found(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    mirror = create_mirror(tmp_path / "providers")
    assert find_mirrors(optional_directory=tmp_path)[-1] == mirror
    assert has_provider(mirror, "acme/anvil", "1.2.3")
    assert not has_provider(mirror, "acme/anvil", "1.2.4")


def test_a_configured_mirror_comes_first(tmp_path: Path) -> None:
    configured = create_mirror(tmp_path / "named")
    create_mirror(tmp_path / "opt" / "providers")
    assert (
        find_mirrors([configured, tmp_path / "missing"], optional_directory=tmp_path / "opt")[0] == configured
    )


def test_providers_of_a_mirror_are_not_downloaded(tmp_path: Path) -> None:
    text = render_cli_configuration([create_mirror(tmp_path / "named")])
    assert f'path = "{tmp_path}/named"' in text
    assert 'exclude = ["example.test/acme/anvil"]' in text


def test_the_cli_configuration_of_the_user_is_preserved(tmp_path: Path) -> None:
    user_config = tmp_path / "own.tfrc"
    user_config.touch()
    inherited = {"TF_CLI_CONFIG_FILE": str(user_config)}
    environment = build_terraform_environment(
        inherited, tmp_path, tmp_path / "data", [create_mirror(tmp_path / "named")]
    )
    assert environment["TF_CLI_CONFIG_FILE"] == str(user_config)


def test_a_missing_cli_configuration_is_replaced(tmp_path: Path) -> None:
    inherited = {"TF_CLI_CONFIG_FILE": str(tmp_path / "missing")}
    environment = build_terraform_environment(
        inherited, tmp_path, tmp_path / "data", [create_mirror(tmp_path / "named")]
    )
    assert "acme/anvil" in Path(environment["TF_CLI_CONFIG_FILE"]).read_text()
    assert "TF_CLI_CONFIG_FILE" not in build_terraform_environment(inherited, tmp_path, tmp_path / "data", [])


def test_variables_that_change_arguments_are_not_inherited(tmp_path: Path) -> None:
    inherited = {
        "TF_CLI_ARGS_plan": "-destroy",
        "TF_VAR_size": "9",
        "TF_LOG": "TRACE",
        "AWS_REGION": "eu-west-1",
    }
    environment = build_terraform_environment(inherited, tmp_path, tmp_path / "data", [])
    assert environment["AWS_REGION"] == "eu-west-1"
    assert not {"TF_CLI_ARGS_plan", "TF_VAR_size", "TF_LOG"} & environment.keys()
