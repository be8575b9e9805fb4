"""The environment variables that Terraform runs with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from penstock.infra.terraform.mirrors import cli_configuration

_CLI_FILE = "TF_CLI_CONFIG_FILE"
_USERS_OWN = ".terraformrc"
# Each of these would change what our arguments mean.
_NOT_HANDED_ON = (
    "TF_CLI_ARGS",
    "TF_DATA_DIR",
    "TF_WORKSPACE",
    "TF_INPUT",
    "TF_LOG",
    "TF_LOG_PATH",
    "TF_VAR_",
)


def surroundings(given: Mapping[str, str], work: Path, data: Path, mirrors: Sequence[Path]) -> dict[str, str]:
    """What was given, less what would change the meaning of our arguments, plus what we need.

    A CLI configuration of the user's own is kept; without one, the mirrors that were found are written
    into one of ours.
    """
    kept = {name: value for name, value in given.items() if not name.startswith(_NOT_HANDED_ON)}
    kept |= {
        "TF_DATA_DIR": str(data),
        "TF_IN_AUTOMATION": "1",
        "TF_INPUT": "0",
        "CHECKPOINT_DISABLE": "1",
    }
    if _has_own_configuration(given):
        return kept
    kept.pop(_CLI_FILE, None)
    if mirrors:
        path = work / "terraform.rc"
        path.write_text(cli_configuration(mirrors))
        kept[_CLI_FILE] = str(path)
    return kept


def _has_own_configuration(given: Mapping[str, str]) -> bool:
    named = given.get(_CLI_FILE)
    if named:
        return Path(named).is_file()
    return "HOME" in given and (Path(given["HOME"]) / _USERS_OWN).is_file()
