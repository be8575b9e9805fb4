"""The environment `aws` with the real provider, against an AWS on this machine."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.infra.terraform.aws.cloud import REGION, Cloud, cloud
from tests.infra.terraform.checkouts import copy_environments

from penstock.infra.terraform import TerraformTimeouts, TerraformWorkspace, embedded_engine, find_mirrors
from penstock.infra.terraform.provider_mirrors import has_provider

PROVIDER = ("hashicorp/aws", "5.100.0")
STATE_BUCKET = "penstock-states"

# Buckets are parts of the path here: a name below 127.0.0.1 does not resolve.
OVERRIDE = 'provider "aws" {\n  s3_use_path_style = true\n}\n'

VARIABLES = {"image_tag": "1", "max_retries": 3, "protected": False, "region": REGION}


@pytest.fixture(scope="session")
def mirrors() -> tuple[Path, ...]:
    found = find_mirrors()
    if not any(has_provider(mirror, *PROVIDER) for mirror in found):
        pytest.skip("the provider {} {} is in no filesystem mirror of this machine".format(*PROVIDER))
    return found


@pytest.fixture(scope="session")
def aws() -> Iterator[tuple[Cloud, str]]:
    with cloud() as running:
        yield running


@pytest.fixture(scope="session")
def surroundings(aws: tuple[Cloud, str]) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    return kept | {
        "AWS_ENDPOINT_URL": aws[1],
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": REGION,
        "AWS_EC2_METADATA_DISABLED": "true",
    }


@pytest.fixture(scope="session")
def infra(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the HCL, so that nothing is written into the checkout."""
    return copy_environments(tmp_path_factory.mktemp("aws"))


@pytest.fixture(scope="session")
def environment(
    infra: Path, mirrors: tuple[Path, ...], surroundings: dict[str, str], aws: tuple[Cloud, str]
) -> Callable[..., TerraformWorkspace]:
    """The environment with other values of variables; its state is in a bucket, and locked there."""
    import boto3

    s3 = boto3.client(
        "s3", endpoint_url=aws[1], region_name=REGION, aws_access_key_id="test", aws_secret_access_key="test"
    )
    s3.create_bucket(Bucket=STATE_BUCKET, CreateBucketConfiguration={"LocationConstraint": REGION})
    directory = infra / "environments" / "aws"
    (directory / "here_override.tf").write_text(OVERRIDE)
    backend = {
        "bucket": STATE_BUCKET,
        "key": "penstock.tfstate",
        "region": REGION,
        "use_lockfile": "true",
        "use_path_style": "true",
    }

    def with_variables(**variables: object) -> TerraformWorkspace:
        return TerraformWorkspace(
            directory,
            infra / "work",
            embedded_engine(),
            variables=VARIABLES | variables,
            backend_options=backend,
            environment=surroundings,
            mirrors=mirrors,
            timeouts=TerraformTimeouts(apply_timeout_s=600, grace_s=30),
        )

    return with_variables
