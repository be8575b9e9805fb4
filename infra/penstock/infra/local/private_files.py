"""Files that only their owner can read, and secrets that are generated."""

from __future__ import annotations

import secrets
from pathlib import Path

from penstock.core.files import atomic_path

SECRET_BYTES = 24


def write_private_file(path: Path, content: str | bytes) -> None:
    """Write a file atomically; only its owner can read it at any time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    data = content.encode() if isinstance(content, str) else content
    with atomic_path(path) as partial:
        partial.touch(0o600)
        partial.write_bytes(data)


def read_or_create_secret(path: Path) -> str:
    """Return the secret in a file; generate it if the file does not exist."""
    if not path.exists():
        write_private_file(path, secrets.token_urlsafe(SECRET_BYTES))
    return path.read_text("utf-8")
