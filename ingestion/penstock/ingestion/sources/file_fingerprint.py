"""Telling whether a file is the one that was read before: by how it begins."""

import zlib
from pathlib import Path
from typing import BinaryIO

from penstock.ingestion.errors import SourceError

MAX_FINGERPRINT_BYTES = 4_096

# How many bytes, and their checksum.
FileFingerprint = list[int]


def fingerprint_file(file: BinaryIO, max_bytes: int = MAX_FINGERPRINT_BYTES) -> FileFingerprint:
    """Return what tells a file by its first bytes, so many at most; the file is left where it was."""
    offset = file.tell()
    file.seek(0)
    first_bytes = file.read(min(max_bytes, MAX_FINGERPRINT_BYTES))
    file.seek(offset)
    return [len(first_bytes), zlib.crc32(first_bytes)]


def matches_fingerprint(file: BinaryIO, fingerprint: FileFingerprint) -> bool:
    """Say whether a file begins with the bytes of a head; it may have become longer."""
    return fingerprint_file(file, fingerprint[0]) == fingerprint


def check_fingerprint(path: Path, expected: FileFingerprint | None = None) -> FileFingerprint:
    """Return how a file begins; one that no longer begins as it is known to is refused."""
    with path.open("rb") as file:
        if expected is None:
            return fingerprint_file(file)
        if not matches_fingerprint(file, expected):
            raise SourceError(
                f"{path} is another file than the one that was read before: its first {expected[0]} bytes differ; "
                "bring that one back, or use another producer name to read this one from its beginning"
            )
        return expected
