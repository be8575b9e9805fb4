"""Measures environments: applies and destroys `local`, and plans `aws` against a simulated AWS.

`aws` is skipped with a message if no filesystem mirror has its provider. `python -m
tests.benchmarks.bench_environments`.
"""

import argparse
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


def time_action(action: Callable[[], object]) -> float:
    """Return the seconds that an action takes."""
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def measure_local() -> Iterator[tuple[str, float, str]]:
    """Apply, plan and destroy `local`; yield the name, the seconds and the limit of each step."""
    with copied_environments() as root:
        workspace = open_local_environment(root, INFRA.parent / ".penstock" / "jars", find_first_port())
        try:
            yield "local: apply from nothing", time_action(lambda: workspace.apply(workspace.plan())), "60 s"
            yield "local: plan without changes", time_action(workspace.plan), ""
        finally:
            seconds = time_action(lambda: workspace.apply(workspace.plan(destroy=True)))
        yield "local: destroy", seconds, "20 s"


def measure_aws() -> Iterator[tuple[str, float, str]]:
    """Plan `aws`, which was never applied; yield the same as `measure_local`."""
    mirrors = find_mirrors()
    if not any(has_provider(mirror, *PROVIDER) for mirror in mirrors):
        sys.stderr.write("aws skipped: no filesystem mirror has the provider {} {}\n".format(*PROVIDER))
        return
    with copied_environments() as root, run_simulated_aws() as (_, address):
        directory = root / "infra" / "environments" / "aws"
        (directory / "here_override.tf").write_text(
            'terraform {\n  backend "local" {}\n}\nprovider "aws" {\n  s3_use_path_style = true\n}\n'
        )
        aws_variables = {
            "AWS_ENDPOINT_URL": address,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_REGION": REGION,
            "AWS_EC2_METADATA_DISABLED": "true",
        }
        other_variables = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        workspace = TerraformWorkspace(
            directory,
            root / "work",
            embedded_engine(),
            variables=VARIABLES,
            environment=other_variables | aws_variables,
            mirrors=mirrors,
            timeouts=TerraformTimeouts(apply_timeout_s=300, grace_s=30),
        )
        yield "aws: prepare", time_action(workspace.prepare), ""
        yield "aws: plan from nothing", time_action(workspace.plan), "15 s"


def main() -> None:
    """Run every measurement, and print its result."""
    console = Console()
    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # the simulated AWS logs each request
    for measure in (measure_local, measure_aws):
        for name, seconds, limit in measure():
            console.print(f"{name:<32} {seconds:6.1f} s  {f'(limit {limit})' if limit else ''}")


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    main()
