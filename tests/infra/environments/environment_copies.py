"""Copies of the shipped environments, so that tests write nothing into the checkout."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from penstock.infra.environments.catalog import prepend_python_to_path
from penstock.infra.ports import find_free_ports
from penstock.infra.terraform import TerraformTimeouts, TerraformWorkspace, embedded_engine

INFRA = Path(__file__).resolve().parents[3] / "infra"
PORT_COUNT = 60


def copy_environments(root: Path) -> Path:
    """Copy modules and environments without local files of the user; return their folder."""
    ignored = shutil.ignore_patterns(".terraform*", "*.tfvars")
    for part in ("modules", "environments"):
        shutil.copytree(INFRA / part, root / "infra" / part, ignore=ignored)
    return root / "infra"


def find_first_port() -> int:
    """Find the first of the consecutive free ports that the environment `local` needs."""
    return find_free_ports(PORT_COUNT, consecutive=True)[0]


def open_local_environment(
    root: Path, jars: Path, first_port: int, **variables: object
) -> TerraformWorkspace:
    """Open the copy of the environment `local` below a root."""
    return TerraformWorkspace(
        root / "infra" / "environments" / "local",
        root / "work",
        embedded_engine(),
        variables={"jars": str(jars), "first_port": first_port} | variables,
        environment=prepend_python_to_path(os.environ),
        timeouts=TerraformTimeouts(apply_timeout_s=300, grace_s=30),
    )
