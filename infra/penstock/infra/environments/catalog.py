"""Which environments there are, and how each is opened."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from penstock.infra.environments.environment import Environment
from penstock.infra.environments.errors import UnknownEnvironmentError
from penstock.infra.terraform import Limits, Workspace, find_engine, find_mirrors
from penstock.infra.terraform.engines import EMBEDDED

BACKEND_FILE = "backend.hcl"
HERE = ("local", "docker")
"""Environments on this machine: their state is in the home, like all that they make."""


@dataclass(frozen=True)
class Catalog:
    """The environments of a checkout: `root` holds infra/environments, `home` what running makes.

    `engine` is `embedded`, `terraform`, `tofu` or a path; `mirrors` are folders of providers to look in first.
    """

    root: Path
    home: Path
    engine: str = EMBEDDED
    mirrors: tuple[Path, ...] = ()
    limits: Limits = field(default_factory=Limits)

    @property
    def directory(self) -> Path:
        """Where the environments' folders are."""
        return self.root / "infra" / "environments"

    def names(self) -> Sequence[str]:
        """The environments' names, in order."""
        return sorted(path.parent.name for path in self.directory.glob("*/outputs.tf"))

    def open(self, name: str, variables: Mapping[str, object] | None = None) -> Environment:
        """Open one; `variables` win over the defaults and over a terraform.tfvars in its folder."""
        if name not in self.names():
            raise UnknownEnvironmentError(
                f"There is no environment {name!r} in {self.directory}. "
                f"There are: {', '.join(self.names()) or 'none'}."
            )
        return Environment(name, self._workspace(self.directory / name, dict(variables or {})))

    def _workspace(self, directory: Path, variables: dict[str, object]) -> Workspace:
        backend_file = directory / BACKEND_FILE
        backend: dict[str, str] = {}
        if directory.name in HERE and self.home != self.root / ".penstock":
            # Only what differs is handed over, so that Terraform by hand sees the same as we do.
            backend = {"path": str(self.home / "environments" / directory.name / "terraform.tfstate")}
            variables = {**({"home": str(self.home)} if directory.name == "local" else {}), **variables}
        return Workspace(
            directory=directory,
            work=self.home / "environments" / directory.name / "terraform",
            engine=find_engine(self.engine),
            variables=variables,
            backend=backend,
            backend_file=backend_file if backend_file.is_file() else None,
            environment=with_this_python(os.environ),
            mirrors=find_mirrors(self.mirrors),
            limits=self.limits,
        )


def with_this_python(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment with our Python first, as in an activated one: programs that Terraform starts need it."""
    path = environment.get("PATH", os.defpath)
    return {**environment, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{path}"}
