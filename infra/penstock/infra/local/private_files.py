"""Files that only their owner may read, and secrets that are made on the spot."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

SECRET_BYTES = 24


def write_private_file(path: Path, content: str | bytes) -> None:
    """Write a file whole or not at all; nobody but its owner can read it at any moment."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    data = content.encode() if isinstance(content, str) else content
    with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(data)
    temporary.replace(path)


def read_or_create_secret(path: Path) -> str:
    """The secret in a file; it is made, at random, when there is none."""
    if not path.exists():
        write_private_file(path, secrets.token_urlsafe(SECRET_BYTES))
    return path.read_text("utf-8")
