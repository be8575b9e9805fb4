"""Append-only file of ledger entries, each with its length and checksum.

A kill or a power failure can leave a torn entry at the end, which is removed when the file is opened for writing.
Any other damage raises LedgerError and is never skipped.
"""

import os
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from penstock.ingestion.errors import LedgerError
from penstock.ingestion.ledger.entries import LedgerEntry

_FRAME_HEADER = struct.Struct("<II")
_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(LedgerEntry)


class DeliveryJournal:
    """Appends entries to a file. Entries survive a power failure once `sync` returns."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self.size_bytes = os.fstat(self._file).st_size

    def append(self, *entries: LedgerEntry) -> None:
        """Write entries in one call. They survive the end of this process once the call returns."""
        data = memoryview(b"".join(_frame_entry(entry) for entry in entries))
        while data:
            written = os.write(self._file, data)
            self.size_bytes += written
            data = data[written:]

    def sync(self) -> None:
        """Sync all written entries to disk."""
        os.fdatasync(self._file)

    def close(self) -> None:
        """Sync and close the file."""
        self.sync()
        os.close(self._file)


def read_entries(path: Path) -> Iterator[LedgerEntry]:
    """Yield the entries of a file; stop at a torn last entry."""
    for entry, _ in _read_entries_with_ends(path):
        yield entry


def truncate_torn_entry(path: Path) -> None:
    """Move a torn last entry to `<path>.torn`, so that appending continues after the last complete entry."""
    valid_bytes = max((end for _, end in _read_entries_with_ends(path)), default=0)
    if valid_bytes < path.stat().st_size:
        with path.open("rb") as file:
            file.seek(valid_bytes)
            path.with_name(path.name + ".torn").write_bytes(file.read())
        os.truncate(path, valid_bytes)


def _frame_entry(entry: LedgerEntry) -> bytes:
    payload = _ENCODER.encode(entry)
    return _FRAME_HEADER.pack(len(payload), zlib.crc32(payload)) + payload


def _read_entries_with_ends(path: Path) -> Iterator[tuple[LedgerEntry, int]]:
    position = 0
    with path.open("rb") as file:
        while len(header := file.read(_FRAME_HEADER.size)) == _FRAME_HEADER.size:
            length, checksum = _FRAME_HEADER.unpack(header)
            payload = file.read(length)
            if length == 0 or len(payload) < length:
                return
            if zlib.crc32(payload) != checksum:
                _raise_if_damaged(path, position, file.read(1))
                return
            position += _FRAME_HEADER.size + length
            yield _DECODER.decode(payload), position


def _raise_if_damaged(path: Path, position: int, next_byte: bytes) -> None:
    if next_byte:
        raise LedgerError(
            f"{path} is damaged at byte {position}: an entry before the last one has a wrong checksum. "
            "Restore the file, or start a new ledger with another producer name."
        )
