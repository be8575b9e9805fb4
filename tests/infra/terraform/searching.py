"""Searching files for values that must not be in them."""

from __future__ import annotations

import errno
import os
from collections.abc import Collection, Iterable
from pathlib import Path


def holding(files: Iterable[Path], values: Collection[bytes]) -> list[Path]:
    """The files in which any of the values stands; each is read once."""
    return [path for path in files if _holds(written(path), values)]


def written(path: Path) -> bytes:
    """What was ever written into a file, less the holes between: a broker's indexes are gigabytes of nothing."""
    parts = []
    try:
        with path.open("rb", buffering=0) as file:
            place, end = 0, os.fstat(file.fileno()).st_size
            while place < end:
                begin = os.lseek(file.fileno(), place, os.SEEK_DATA)
                place = os.lseek(file.fileno(), begin, os.SEEK_HOLE)
                file.seek(begin)
                parts.append(file.read(place - begin))
    except FileNotFoundError:
        return b""  # A file that was replaced meanwhile is among the others under its new name.
    except OSError as error:
        if error.errno != errno.ENXIO:  # nothing but a hole up to the end
            raise
    return b"\0".join(parts)


def _holds(content: bytes, values: Collection[bytes]) -> bool:
    return any(value in content for value in values)
