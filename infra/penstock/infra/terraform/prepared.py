"""Whether a folder was prepared for what it holds now, so that preparing it again can be left out."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

_STAMP = "prepared"
_CODE = ("*.tf", "*.tofu", "*.tf.json", ".terraform.lock.hcl")


def stamp(directory: Path, data: Path, how: Sequence[str]) -> str:
    """A digest of all that preparing depends on: the code, its modules, and how it is to be done."""
    digest = hashlib.sha256("\0".join(how).encode())
    for folder in _folders(directory, data):
        for path in sorted(file for pattern in _CODE for file in folder.glob(pattern)):
            digest.update(f"{path}\0".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()


def is_current(data: Path, now: str) -> bool:
    """Whether the last preparation was made from the same."""
    path = data / _STAMP
    return path.is_file() and path.read_text() == now


def record(data: Path, now: str) -> None:
    """Remember what was prepared."""
    data.mkdir(parents=True, exist_ok=True)
    (data / _STAMP).write_text(now)


def _folders(directory: Path, data: Path) -> Iterator[Path]:
    yield directory
    modules = data / "modules" / "modules.json"
    if modules.is_file():
        for module in json.loads(modules.read_text())["Modules"]:
            if module["Dir"] != ".":
                yield (directory / module["Dir"]).resolve()
