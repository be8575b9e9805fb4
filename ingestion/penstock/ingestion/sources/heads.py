"""Telling whether a file is the one that was read before: by how it begins."""

import zlib
from pathlib import Path
from typing import BinaryIO

from penstock.ingestion.errors import SourceError

HEAD_BYTES = 4_096

# How many bytes, and their checksum.
Head = list[int]


def head_of(file: BinaryIO, size: int = HEAD_BYTES) -> Head:
    """Return what tells a file by its first bytes, so many at most; the file is left where it was."""
    place = file.tell()
    file.seek(0)
    first = file.read(min(size, HEAD_BYTES))
    file.seek(place)
    return [len(first), zlib.crc32(first)]


def begins_with(file: BinaryIO, head: Head) -> bool:
    """Say whether a file begins with the bytes of a head; it may have become longer."""
    return head_of(file, head[0]) == head


def head_of_path(path: Path, known: Head | None = None) -> Head:
    """Return how a file begins; one that no longer begins as it is known to is refused."""
    with path.open("rb") as file:
        if known is None:
            return head_of(file)
        if not begins_with(file, known):
            raise SourceError(
                f"{path} is another file than the one that was read before: its first {known[0]} bytes differ; "
                "bring that one back, or use another producer name to read this one from its beginning"
            )
        return known
