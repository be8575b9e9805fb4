"""A stamp of what a folder was initialized for, to skip repeated initialization."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

_STAMP_FILE_NAME = "prepared"
_SOURCE_PATTERNS = ("*.tf", "*.tofu", "*.tf.json", ".terraform.lock.hcl")


def compute_stamp(directory: Path, data_directory: Path, options: Sequence[str]) -> str:
    """Return a digest of everything that `terraform init` depends on."""
    digest = hashlib.sha256("\0".join(options).encode())
    for folder in _source_directories(directory, data_directory):
        for path in sorted(file for pattern in _SOURCE_PATTERNS for file in folder.glob(pattern)):
            digest.update(f"{path}\0".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()


def is_stamp_current(data_directory: Path, expected: str) -> bool:
    """Whether the last preparation was made from the same."""
    path = data_directory / _STAMP_FILE_NAME
    return path.is_file() and path.read_text() == expected


def write_stamp(data_directory: Path, digest: str) -> None:
    """Write the stamp of an initialized folder."""
    data_directory.mkdir(parents=True, exist_ok=True)
    (data_directory / _STAMP_FILE_NAME).write_text(digest)


def _source_directories(directory: Path, data_directory: Path) -> Iterator[Path]:
    yield directory
    modules = data_directory / "modules" / "modules.json"
    if modules.is_file():
        for module in json.loads(modules.read_text())["Modules"]:
            if module["Dir"] != ".":
                yield (directory / module["Dir"]).resolve()
