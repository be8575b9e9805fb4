"""Fingerprints of files, to detect that a file was replaced."""

import zlib
from pathlib import Path
from typing import BinaryIO

from penstock.ingestion.errors import SourceError

MAX_FINGERPRINT_BYTES = 4_096

# The number of bytes, and their CRC-32.
FileFingerprint = list[int]


def fingerprint_file(file: BinaryIO, max_bytes: int = MAX_FINGERPRINT_BYTES) -> FileFingerprint:
    """Return the fingerprint of the first bytes of a file; the file position does not change."""
    offset = file.tell()
    file.seek(0)
    first_bytes = file.read(min(max_bytes, MAX_FINGERPRINT_BYTES))
    file.seek(offset)
    return [len(first_bytes), zlib.crc32(first_bytes)]


def matches_fingerprint(file: BinaryIO, fingerprint: FileFingerprint) -> bool:
    """Return whether a file starts with the bytes of a fingerprint. The file may have grown."""
    return fingerprint_file(file, fingerprint[0]) == fingerprint


def check_fingerprint(path: Path, expected: FileFingerprint | None = None) -> FileFingerprint:
    """Return the fingerprint of a file; raise SourceError if it differs from the expected one."""
    with path.open("rb") as file:
        if expected is None:
            return fingerprint_file(file)
        if not matches_fingerprint(file, expected):
            raise SourceError(
                f"{path} is not the file that was read before: its first {expected[0]} bytes differ. "
                "Restore that file, or use another producer name to read this one from its beginning."
            )
        return expected
