"""The files of a program's log: the rotated ones and the current one."""

from collections.abc import Iterator
from pathlib import Path


def read_log_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a log, those of rotated files first."""
    numbered = sorted(
        path.parent.glob(f"{path.name}.[0-9]*"), key=lambda file: -int(file.suffix.removeprefix("."))
    )
    for file in (*numbered, path):
        yield from file.read_text("utf-8", "replace").splitlines()


def tail_log(path: Path) -> Iterator[str | None]:
    """Yield new lines, and None while there are none. After a rotation, continue with the new file."""
    file = path.open("r", encoding="utf-8", errors="replace")
    file.seek(0, 2)
    while True:
        if line := file.readline():
            yield line.rstrip("\n")
        elif path.exists() and path.stat().st_size < file.tell():
            file.close()
            file = path.open("r", encoding="utf-8", errors="replace")
        else:
            yield None
