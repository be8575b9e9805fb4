"""Paths in messages: short, and such that a terminal can open them."""

from pathlib import Path


def display_path(path: Path, line: int | None = None) -> str:
    """Return a path relative to the current folder if it is below it, with a line: `catalog/orders.yaml:12`."""
    folder = Path.cwd()
    shown = path.relative_to(folder) if path.is_relative_to(folder) else path
    return f"{shown}" if line is None else f"{shown}:{line}"
