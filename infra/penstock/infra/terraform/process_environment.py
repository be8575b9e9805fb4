"""The environment variables that Terraform runs with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from penstock.infra.terraform.provider_mirrors import render_cli_configuration

_CLI_CONFIG_VARIABLE = "TF_CLI_CONFIG_FILE"
_USER_CLI_CONFIG = ".terraformrc"
# Each of these would change what our arguments mean.
_DROPPED_PREFIXES = (
    "TF_CLI_ARGS",
    "TF_DATA_DIR",
    "TF_WORKSPACE",
    "TF_INPUT",
    "TF_LOG",
    "TF_LOG_PATH",
    "TF_VAR_",
)


def build_terraform_environment(
    environment: Mapping[str, str], work_directory: Path, data_directory: Path, mirrors: Sequence[Path]
) -> dict[str, str]:
    """What was given, less what would change the meaning of our arguments, plus what we need.

    A CLI configuration of the user's own is kept; without one, the mirrors that were found are written
    into one of ours.
    """
    variables = {name: value for name, value in environment.items() if not name.startswith(_DROPPED_PREFIXES)}
    variables |= {
        "TF_DATA_DIR": str(data_directory),
        "TF_IN_AUTOMATION": "1",
        "TF_INPUT": "0",
        "CHECKPOINT_DISABLE": "1",
    }
    if _has_user_configuration(environment):
        return variables
    variables.pop(_CLI_CONFIG_VARIABLE, None)
    if mirrors:
        path = work_directory / "terraform.rc"
        path.write_text(render_cli_configuration(mirrors))
        variables[_CLI_CONFIG_VARIABLE] = str(path)
    return variables


def _has_user_configuration(environment: Mapping[str, str]) -> bool:
    config_path = environment.get(_CLI_CONFIG_VARIABLE)
    if config_path:
        return Path(config_path).is_file()
    return "HOME" in environment and (Path(environment["HOME"]) / _USER_CLI_CONFIG).is_file()
