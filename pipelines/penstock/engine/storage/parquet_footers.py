"""A checksum of the footer of a Parquet file: schema, row counts and statistics. The format has one for pages only.

The checksum is between the last page and the footer, where readers skip it: a footer names the places of its pages.
Files without it, as release 0.1.0 and other programs wrote them, are read as they are.
"""

import os
import zlib
from functools import lru_cache
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

_PARQUET_MARK = b"PAR1"
_END_BYTES = 8
"""The length of the footer, and the mark of the format."""
_CHECKSUM_MARK = b"PSCK"
_CHECKSUM_BYTES = 8
MAX_CACHED_FILES = 20_000


def insert_footer_checksum(file: Path) -> None:
    """Insert the checksum into a new file."""
    with file.open("r+b") as content:
        size = content.seek(0, os.SEEK_END)
        start = _find_footer(content.fileno(), size)
        footer = os.pread(content.fileno(), size - start, start)
        content.seek(start)
        content.write(_format_checksum(footer) + footer)


def read_checked_columns(file: Path) -> frozenset[str]:
    """Return the columns of a file whose footer has a valid checksum; none without a checksum, or without a file.

    Raises OSError if the checksum is wrong. A file that was verified is not read again while it is unchanged.
    """
    try:
        status = file.stat()
    except FileNotFoundError:
        return frozenset()
    return _read_checked_columns(file, status.st_size, status.st_mtime_ns)


@lru_cache(MAX_CACHED_FILES)
def _read_checked_columns(file: Path, size: int, _modified_ns: int) -> frozenset[str]:
    with file.open("rb") as content:
        start = _find_footer(content.fileno(), size)
        if start < _CHECKSUM_BYTES:
            return frozenset()
        tail = os.pread(content.fileno(), size - start + _CHECKSUM_BYTES, start - _CHECKSUM_BYTES)
    checksum, footer = tail[:_CHECKSUM_BYTES], tail[_CHECKSUM_BYTES:]
    if not checksum.startswith(_CHECKSUM_MARK):
        return frozenset()
    if checksum != _format_checksum(footer):
        raise OSError(f"{file}: the checksum of its footer is wrong")
    return frozenset(pq.read_schema(pa.BufferReader(_PARQUET_MARK + footer)).names)


def _find_footer(descriptor: int, size: int) -> int:
    end = os.pread(descriptor, _END_BYTES, max(0, size - _END_BYTES))
    return size - _END_BYTES - int.from_bytes(end[:4], "little")


def _format_checksum(footer: bytes) -> bytes:
    return _CHECKSUM_MARK + zlib.crc32(footer).to_bytes(4, "little")
