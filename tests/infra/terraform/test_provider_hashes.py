"""Providers run only if their package is the released one."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.infra.terraform.conftest import MakeWorkspace

from penstock.infra.terraform import find_mirrors
from penstock.infra.terraform.engines import TerraformEngine
from penstock.infra.terraform.errors import ProviderHashError
from penstock.infra.terraform.provider_hashes import (
    RELEASED_HASHES,
    LockedProvider,
    check_provider_hashes,
    parse_lock_file,
)
from penstock.infra.terraform.provider_mirrors import has_provider, platform_name

AWS = ("hashicorp/aws", "5.100.0")
RELEASED = min(RELEASED_HASHES[AWS])
LOCK_FILE = """# A comment.
provider "example.test/{name}" {{
  version     = "{version}"
  constraints = "{version}"
  hashes = [
    "{hash}",
    "zh:054b8dd49f0549c9a7cc27d159e45327b7b65cf404da5e5a20da154b90b8a644",
  ]
}}
"""


def write_lock(folder: Path, name: str, version: str, package_hash: str) -> Path:
    lock_file = folder / ".terraform.lock.hcl"
    lock_file.write_text(LOCK_FILE.format(name=name, version=version, hash=package_hash))
    return lock_file


def test_the_released_package_is_accepted(tmp_path: Path) -> None:
    lock_file = write_lock(tmp_path, *AWS, RELEASED)
    assert list(parse_lock_file(lock_file.read_text())) == [LockedProvider(*AWS, frozenset({RELEASED}))]
    check_provider_hashes(tmp_path)
    assert lock_file.exists()


def test_a_folder_without_providers_is_accepted(tmp_path: Path) -> None:
    check_provider_hashes(tmp_path)


@pytest.mark.parametrize(
    ("name", "version", "package_hash", "message"),
    [
        (*AWS, "h1:AAAA=", "is no known package (found h1:AAAA=). Replace it in the mirror"),
        (*AWS, "none", "is no known package (found no hash of an installed package)"),
        ("hashicorp/aws", "5.99.0", RELEASED, "5.99.0 has no known hash (found h1:"),
        ("acme/anvil", "1.2.3", "h1:BBBB=", "add it to provider_hashes.py"),
    ],
)
def test_another_package_is_refused(
    tmp_path: Path, name: str, version: str, package_hash: str, message: str
) -> None:
    lock_file = write_lock(tmp_path, name, version, package_hash)
    with pytest.raises(ProviderHashError) as caught:
        check_provider_hashes(tmp_path)
    assert message in str(caught.value)
    assert not lock_file.exists()


def test_a_replaced_provider_of_a_mirror_does_not_run(
    workspace: MakeWorkspace, engine: TerraformEngine, tmp_path: Path
) -> None:
    """The plan is refused before the provider starts, and goes on as soon as the mirror has no such provider."""
    ran = tmp_path / "ran"
    package = tmp_path / "mirror/example.test/acme/anvil/1.2.3" / platform_name()
    package.mkdir(parents=True)
    program = package / "terraform-provider-anvil_v1.2.3"
    program.write_text(f"#!/bin/sh\ntouch {ran}\n")
    program.chmod(0o755)
    required = 'anvil = { source = "example.test/acme/anvil", version = "1.2.3" }'
    hcl = f"terraform {{\n required_providers {{\n{required}\n}}\n}}\n"
    replaced = workspace(hcl, engine, mirrors=(tmp_path / "mirror",))
    for _ in range(2):
        with pytest.raises(ProviderHashError, match=r"acme/anvil 1\.2\.3 has no known hash"):
            replaced.plan()
    assert not ran.exists()


def test_the_provider_of_this_machine_is_the_released_one(workspace: MakeWorkspace) -> None:
    if not any(has_provider(mirror, *AWS) for mirror in find_mirrors()):
        pytest.skip("the provider {} {} is in no filesystem mirror of this machine".format(*AWS))
    required = f'aws = {{ source = "{AWS[0]}", version = "{AWS[1]}" }}'
    workspace(f"terraform {{\n required_providers {{\n{required}\n}}\n}}\n").prepare()
