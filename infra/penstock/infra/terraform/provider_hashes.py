"""The hashes of the providers that may run, as Terraform computes them over an installed package (`h1`).

Terraform's own lock file records what the first `init` of a machine finds. So that one would believe any mirror.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from penstock.infra.terraform.errors import ProviderHashError

LOCK_FILE_NAME = ".terraform.lock.hcl"
# Lock files of several public projects agree on these. That of linux_amd64 was also computed from the package.
RELEASED_HASHES: Mapping[tuple[str, str], frozenset[str]] = {
    ("hashicorp/aws", "5.100.0"): frozenset(
        {
            "h1:edXOJWE4ORX8Fm+dpVpICzMZJat4AX0VRCAy/xkcOc0=",  # linux_amd64
            "h1:Ijt7pOlB7Tr7maGQIqtsLFbl7pSMIj06TVdkoSBcYOw=",  # darwin_arm64
            "h1:H3mU/7URhP0uCRGK8jeQRKxx2XFzEqLiOq/L2Bbiaxs=",  # windows_amd64
        }
    ),
}
_PROVIDER_BLOCK = re.compile(r'^provider "[^"/]+/([^"]+)" \{\n(.*?)^\}', re.MULTILINE | re.DOTALL)
_VERSION = re.compile(r'^\s*version\s*=\s*"([^"]+)"', re.MULTILINE)
_FILE = f"{Path(__file__).name} of penstock.infra.terraform"
_HASH = re.compile(r'"(h1:[^"]+)"')


@dataclass(frozen=True)
class LockedProvider:
    """A provider of a lock file. `name` is such as `hashicorp/aws`, without its host."""

    name: str
    version: str
    hashes: frozenset[str]


def check_provider_hashes(directory: Path) -> None:
    """Raise ProviderHashError unless every provider that `init` installed is a known package.

    The lock file is removed then, so that `init` accepts the right package later. No provider has run yet.
    """
    lock_file = directory / LOCK_FILE_NAME
    if not lock_file.is_file():  # the configuration needs no provider
        return
    for provider in parse_lock_file(lock_file.read_text("utf-8")):
        known = RELEASED_HASHES.get((provider.name, provider.version), frozenset())
        if not provider.hashes or not provider.hashes <= known:
            lock_file.unlink()
            raise ProviderHashError(_describe_unknown(provider, is_known_version=bool(known)))


def parse_lock_file(text: str) -> Iterator[LockedProvider]:
    """Yield the providers of a lock file."""
    for name, block in _PROVIDER_BLOCK.findall(text):
        version = _VERSION.search(block)
        yield LockedProvider(name, version[1] if version else "", frozenset(_HASH.findall(block)))


def _describe_unknown(provider: LockedProvider, *, is_known_version: bool) -> str:
    hashes = ", ".join(sorted(provider.hashes)) or "no hash of an installed package"
    if is_known_version:
        return (
            f"provider {provider.name} {provider.version} is no known package (found {hashes}). Replace it in the "
            f"mirror that it comes from; if it is the release for another system, add its hash to {_FILE}"
        )
    return (
        f"provider {provider.name} {provider.version} has no known hash (found {hashes}). "
        f"Compare it with the release, and add it to {_FILE}"
    )
