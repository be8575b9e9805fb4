"""The environments of a checkout, and how each is opened."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from penstock.core.names import explain_unknown_name
from penstock.infra.environments.environment import Environment
from penstock.infra.environments.errors import BackendMissingError, UnknownEnvironmentError
from penstock.infra.terraform import TerraformTimeouts, TerraformWorkspace, find_engine, find_mirrors
from penstock.infra.terraform.engines import EMBEDDED_ENGINE

BACKEND_FILE_NAME = "backend.hcl"
S3_BACKEND_BLOCK = 'backend "s3" {}'
LOCAL_ENVIRONMENTS = ("local", "docker")
"""Environments on this machine: their state is in the home, like all that they make."""
STATE_FILE_NAME = "terraform.tfstate"
LOCK_TIMEOUT_S = 30
"""How long to wait for the state lock; a drift check holds it for seconds."""


@dataclass(frozen=True)
class EnvironmentCatalog:
    """The environments of a checkout: `root` holds infra/environments, `home` what running makes.

    `engine` is `embedded`, `terraform`, `tofu` or a path; `mirrors` are folders of providers to look in first.
    """

    root: Path
    home: Path
    engine: str = EMBEDDED_ENGINE
    mirrors: tuple[Path, ...] = ()
    timeouts: TerraformTimeouts = field(
        default_factory=lambda: TerraformTimeouts(lock_timeout_s=LOCK_TIMEOUT_S)
    )

    @property
    def directory(self) -> Path:
        """Folder of the environments."""
        return self.root / "infra" / "environments"

    def names(self) -> Sequence[str]:
        """Return the names of the environments, sorted."""
        return sorted(path.parent.name for path in self.directory.glob("*/outputs.tf"))

    def provisioned_names(self) -> Sequence[str]:
        """The environments that may have something to look at, by their files alone: Terraform is not asked.

        Of those that keep their state here, which have anything in it; of others, which know where theirs is.
        """
        return [name for name in self.names() if self._is_provisioned(name)]

    def _is_provisioned(self, name: str) -> bool:
        state_files = (
            self.directory / name / STATE_FILE_NAME,
            self.home / "environments" / name / STATE_FILE_NAME,
        )
        return (self.directory / name / BACKEND_FILE_NAME).is_file() or any(map(_has_resources, state_files))

    def open(self, name: str, variables: Mapping[str, object] | None = None) -> Environment:
        """Open one; `variables` win over the defaults and over a terraform.tfvars in its folder."""
        if name not in self.names():
            raise UnknownEnvironmentError(
                explain_unknown_name("environment", name, self.names(), "penstock env list")
            )
        return Environment(name, self._build_workspace(self.directory / name, dict(variables or {})))

    def _build_workspace(self, directory: Path, variables: dict[str, object]) -> TerraformWorkspace:
        backend_file = directory / BACKEND_FILE_NAME
        if not backend_file.is_file() and _has_s3_backend(directory):
            raise BackendMissingError(
                f"{directory.name} keeps its state in a bucket, and there is no {backend_file} that says in which. "
                f"Write bucket, key, region and use_lockfile into it, as {self.directory / 'README.md'} shows."
            )
        backend: dict[str, str] = {}
        if directory.name in LOCAL_ENVIRONMENTS and self.home != self.root / ".penstock":
            # Only differing values are passed, so that Terraform run by hand shows the same plan.
            backend = {"path": str(self.home / "environments" / directory.name / STATE_FILE_NAME)}
            variables = {**({"home": str(self.home)} if directory.name == "local" else {}), **variables}
        return TerraformWorkspace(
            directory=directory,
            work_directory=self.home / "environments" / directory.name / "terraform",
            engine=find_engine(self.engine),
            variables=variables,
            backend_options=backend,
            backend_file=backend_file if backend_file.is_file() else None,
            environment=prepend_python_to_path(os.environ),
            mirrors=find_mirrors(self.mirrors),
            timeouts=self.timeouts,
        )


def _has_s3_backend(directory: Path) -> bool:
    return any(S3_BACKEND_BLOCK in path.read_text("utf-8") for path in directory.glob("*.tf"))


def _has_resources(state: Path) -> bool:
    try:
        return bool(json.loads(state.read_text("utf-8"))["resources"])
    except FileNotFoundError:
        return False
    except (ValueError, KeyError):
        return True  # let Terraform report the problem


def prepend_python_to_path(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment with this Python first on PATH, for programs that Terraform starts."""
    path = environment.get("PATH", os.defpath)
    return {**environment, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{path}"}
