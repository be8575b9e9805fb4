"""Paths in messages: short, and such that a terminal can open them."""

from pathlib import Path


def display_path(path: Path, line: int | None = None, column: int | None = None) -> str:
    """Return a path relative to the current folder if it is below it, with line and column: `orders.sql:12:5`."""
    folder = Path.cwd()
    shown = path.relative_to(folder) if path.is_relative_to(folder) else path
    return ":".join(str(part) for part in (shown, line, column if line else None) if part)
