"""Our environments in a folder of a test's own, so that nothing is written into the checkout."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from penstock.infra.environments.catalog import prepend_python_to_path
from penstock.infra.ports import find_free_ports
from penstock.infra.terraform import TerraformTimeouts, TerraformWorkspace, embedded_engine

INFRA = Path(__file__).resolve().parents[3] / "infra"
PORTS = 60


def copy_environments(root: Path) -> Path:
    """Copy modules and environments below a root, without what a person has beside them; return their folder."""
    leave = shutil.ignore_patterns(".terraform*", "*.tfvars")
    for part in ("modules", "environments"):
        shutil.copytree(INFRA / part, root / "infra" / part, ignore=leave)
    return root / "infra"


def block_of_ports() -> int:
    """The first of sixty ports that nobody has, which the environment `local` takes."""
    return find_free_ports(PORTS, consecutive=True)[0]


def local_environment(root: Path, jars: Path, first_port: int, **variables: object) -> TerraformWorkspace:
    """The environment `local` of a root that has a copy."""
    return TerraformWorkspace(
        root / "infra" / "environments" / "local",
        root / "work",
        embedded_engine(),
        variables={"jars": str(jars), "first_port": first_port} | variables,
        environment=prepend_python_to_path(os.environ),
        timeouts=TerraformTimeouts(apply_timeout_s=300, grace_s=30),
    )
