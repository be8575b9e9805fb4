"""Find files that contain a secret."""

from __future__ import annotations

import errno
import os
from collections.abc import Collection, Iterable
from pathlib import Path


def find_files_with_values(files: Iterable[Path], values: Collection[bytes]) -> list[Path]:
    """List the files that contain any of the values."""
    return [path for path in files if _holds(read_without_holes(path), values)]


def read_without_holes(path: Path) -> bytes:
    """Read the data of a sparse file without its holes: index files of a broker have gigabytes of them."""
    parts = []
    try:
        with path.open("rb", buffering=0) as file:
            position, end = 0, os.fstat(file.fileno()).st_size
            while position < end:
                start = os.lseek(file.fileno(), position, os.SEEK_DATA)
                position = os.lseek(file.fileno(), start, os.SEEK_HOLE)
                file.seek(start)
                parts.append(file.read(position - start))
    except FileNotFoundError:
        return b""  # The file was replaced meanwhile, and its new name is searched, too.
    except OSError as error:
        if error.errno != errno.ENXIO:  # no data up to the end
            raise
    return b"\0".join(parts)


def _holds(content: bytes, values: Collection[bytes]) -> bool:
    return any(value in content for value in values)
