"""The environment `aws` with the real provider and a simulated AWS."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.infra.environments.aws.simulated_aws import REGION, SimulatedAws, run_simulated_aws
from tests.infra.environments.environment_copies import copy_environments

from penstock.infra.terraform import TerraformTimeouts, TerraformWorkspace, embedded_engine, find_mirrors
from penstock.infra.terraform.provider_mirrors import has_provider

PROVIDER = ("hashicorp/aws", "5.100.0")
STATE_BUCKET = "penstock-states"

# The bucket is part of the path, because a name below 127.0.0.1 does not resolve.
OVERRIDE = 'provider "aws" {\n  s3_use_path_style = true\n}\n'

VARIABLES = {"image_tag": "1", "max_retries": 3, "protected": False, "region": REGION}


@pytest.fixture(scope="session")
def mirrors() -> tuple[Path, ...]:
    directories = find_mirrors()
    if not any(has_provider(mirror, *PROVIDER) for mirror in directories):
        pytest.skip("the provider {} {} is in no filesystem mirror of this machine".format(*PROVIDER))
    return directories


@pytest.fixture(scope="session")
def aws() -> Iterator[tuple[SimulatedAws, str]]:
    with run_simulated_aws() as running:
        yield running


@pytest.fixture(scope="session")
def process_environment(aws: tuple[SimulatedAws, str]) -> dict[str, str]:
    variables = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    return variables | {
        "AWS_ENDPOINT_URL": aws[1],
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": REGION,
        "AWS_EC2_METADATA_DISABLED": "true",
    }


@pytest.fixture(scope="session")
def infra_copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the HCL."""
    return copy_environments(tmp_path_factory.mktemp("aws"))


@pytest.fixture(scope="session")
def environment(
    infra_copy: Path,
    mirrors: tuple[Path, ...],
    process_environment: dict[str, str],
    aws: tuple[SimulatedAws, str],
) -> Callable[..., TerraformWorkspace]:
    """Open the environment with the given variables; its state and lock are in a bucket."""
    import boto3

    s3 = boto3.client(
        "s3", endpoint_url=aws[1], region_name=REGION, aws_access_key_id="test", aws_secret_access_key="test"
    )
    s3.create_bucket(Bucket=STATE_BUCKET, CreateBucketConfiguration={"LocationConstraint": REGION})
    directory = infra_copy / "environments" / "aws"
    (directory / "test_override.tf").write_text(OVERRIDE)
    backend = {
        "bucket": STATE_BUCKET,
        "key": "penstock.tfstate",
        "region": REGION,
        "use_lockfile": "true",
        "use_path_style": "true",
    }

    def open_workspace(**variables: object) -> TerraformWorkspace:
        return TerraformWorkspace(
            directory,
            infra_copy / "work",
            embedded_engine(),
            variables=VARIABLES | variables,
            backend_options=backend,
            environment=process_environment,
            mirrors=mirrors,
            timeouts=TerraformTimeouts(apply_timeout_s=600, grace_s=30),
        )

    return open_workspace
