"""Append-only file of ledger entries, each with its length and checksum.

A kill or a power cut can tear what was not synced: one entry at the end, or several acknowledgements that were
written together. It is removed when the file is opened for writing. Any other damage raises LedgerError and is
never skipped: the entries behind it show that it was synced.
"""

import os
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec

from penstock.ingestion.errors import LedgerError
from penstock.ingestion.ledger.entries import Acknowledgement, DeliveryIntent, LedgerEntry, ProducerSession

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
    position = intended_until = 0
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size  # what a running producer appends from now on is not read
        while frame := _read_frame(file, size - position):
            entry = _decode_frame(frame)
            if entry is None:
                file.seek(position + 1)
                _raise_if_damaged(path, position, file.read(size - position - 1), intended_until)
                return
            intended_until = max(intended_until, _find_intended_end(entry))
            position += len(frame)
            yield entry, position


def _read_frame(file: BinaryIO, max_bytes: int) -> bytes:
    header = file.read(min(_FRAME_HEADER.size, max_bytes))
    return header + file.read(min(_read_length(header), max_bytes - len(header)))


def _read_length(header: bytes) -> int:
    return int.from_bytes(header[:4], "little")


def _decode_frame(frame: bytes) -> LedgerEntry | None:
    """Return the entry of a frame; None if the frame is torn or damaged."""
    if len(frame) <= _FRAME_HEADER.size:
        return None
    length, checksum = _FRAME_HEADER.unpack_from(frame)
    payload = frame[_FRAME_HEADER.size :]
    return _DECODER.decode(payload) if len(payload) == length and zlib.crc32(payload) == checksum else None


def _raise_if_damaged(path: Path, position: int, rest: bytes, intended_until: int) -> None:
    """Raise LedgerError if an entry in the rest of a file can only be there if all before it was synced.

    Each entry is synced before the next one is written, except for acknowledgements that are written together. An
    acknowledgement of records that no earlier intent announces follows the intent that is damaged.
    """
    for entry in _find_entries(rest):
        if (
            not isinstance(entry, Acknowledgement)
            or entry.first_sequence + entry.record_count > intended_until
        ):
            raise LedgerError(
                f"{path} is damaged at byte {position}: an entry before the last one has a wrong checksum. "
                "Restore the file, or start a new ledger with another producer name."
            )


def _find_entries(content: bytes) -> Iterator[LedgerEntry]:
    """Yield the whole entries in bytes that start anywhere in a file."""
    for start in range(len(content) - _FRAME_HEADER.size):
        end = start + _FRAME_HEADER.size + _read_length(content[start : start + 4])
        if end <= len(content) and (entry := _decode_frame(content[start:end])) is not None:
            yield entry


def _find_intended_end(entry: LedgerEntry) -> int:
    """Return the sequence up to which records are announced, as far as this entry says."""
    match entry:
        case ProducerSession():
            intent = entry.last_intent
            announced = 0 if intent is None else intent.first_sequence + intent.record_count
            return max(entry.acknowledged_until, announced)
        case DeliveryIntent():
            return entry.first_sequence + entry.record_count
        case _:
            return 0
