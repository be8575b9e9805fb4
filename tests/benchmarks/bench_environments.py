"""Measures environments: `local` applied and destroyed, `aws` planned with a simulated AWS.

`python -m tests.benchmarks.bench_environments`, best with nothing else running. What the provider for AWS needs is
skipped by name where it is missing.
"""

import logging
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from tests.infra.environments.aws.conftest import PROVIDER, VARIABLES
from tests.infra.environments.aws.simulated_aws import REGION, run_simulated_aws
from tests.infra.environments.environment_copies import (
    INFRA,
    copy_environments,
    find_first_port,
    open_local_environment,
)

from penstock.infra.terraform import TerraformTimeouts, TerraformWorkspace, embedded_engine, find_mirrors
from penstock.infra.terraform.provider_mirrors import has_provider


@contextmanager
def copied_environments() -> Iterator[Path]:
    """Copy the HCL to a scratch folder."""
    with tempfile.TemporaryDirectory() as scratch:
        copy_environments(Path(scratch))
        yield Path(scratch)


def time_action(what: Callable[[], object]) -> float:
    """Return the seconds of an action."""
    began = time.perf_counter()
    what()
    return time.perf_counter() - began


def measure_local() -> Iterator[tuple[str, float, str]]:
    """Apply, plan and destroy."""
    with copied_environments() as root:
        workspace = open_local_environment(root, INFRA.parent / ".penstock" / "jars", find_first_port())
        try:
            yield "local: apply from nothing", time_action(lambda: workspace.apply(workspace.plan())), "60 s"
            yield "local: plan without changes", time_action(workspace.plan), ""
        finally:
            taken = time_action(lambda: workspace.apply(workspace.plan(destroy=True)))
        yield "local: destroy", taken, "20 s"


def measure_aws() -> Iterator[tuple[str, float, str]]:
    """Plan an environment that was never applied."""
    mirrors = find_mirrors()
    if not any(has_provider(mirror, *PROVIDER) for mirror in mirrors):
        sys.stderr.write("aws: the provider {} {} is in no filesystem mirror here\n".format(*PROVIDER))
        return
    with copied_environments() as root, run_simulated_aws() as (_, address):
        directory = root / "infra" / "environments" / "aws"
        (directory / "here_override.tf").write_text(
            'terraform {\n  backend "local" {}\n}\nprovider "aws" {\n  s3_use_path_style = true\n}\n'
        )
        told = {
            "AWS_ENDPOINT_URL": address,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_REGION": REGION,
            "AWS_EC2_METADATA_DISABLED": "true",
        }
        kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        workspace = TerraformWorkspace(
            directory,
            root / "work",
            embedded_engine(),
            variables=VARIABLES,
            environment=kept | told,
            mirrors=mirrors,
            timeouts=TerraformTimeouts(apply_timeout_s=300, grace_s=30),
        )
        yield "aws: made ready", time_action(workspace.prepare), ""
        yield "aws: plan from nothing", time_action(workspace.plan), "15 s"


def main() -> None:
    """Measure, and print each figure."""
    console = Console()
    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # the stand-in tells each request
    for measured in (measure_local, measure_aws):
        for what, taken, limit in measured():
            console.print(f"{what:<32} {taken:6.1f} s  {f'(limit {limit})' if limit else ''}")


if __name__ == "__main__":
    main()
