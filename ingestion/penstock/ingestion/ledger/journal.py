"""An append-only file of entries, each with its length and checksum.

A kill or a power cut can leave a torn entry at the end: it is cut off when the file is opened to write. Damage
anywhere else is refused, never skipped.
"""

import os
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from penstock.ingestion.errors import LedgerError
from penstock.ingestion.ledger.entries import Entry

_FRAME = struct.Struct("<II")
_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(Entry)


class Journal:
    """Appends entries to a file; what `sync` returned from survives a power cut."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self.size = os.fstat(self._file).st_size

    def append(self, *entries: Entry) -> None:
        """Write entries in one call; they survive the end of this process from here on."""
        data = memoryview(b"".join(_framed(entry) for entry in entries))
        while data:
            written = os.write(self._file, data)
            self.size += written
            data = data[written:]

    def sync(self) -> None:
        """Bring everything written to the disk."""
        os.fdatasync(self._file)

    def close(self) -> None:
        """Sync and close."""
        self.sync()
        os.close(self._file)


def read_entries(path: Path) -> Iterator[Entry]:
    """Yield a file's entries up to its end, or up to a torn last one."""
    for entry, _ in _entries_with_ends(path):
        yield entry


def cut_torn_end(path: Path) -> None:
    """Move a torn last entry aside, into `<path>.torn`, so that appending continues after the last whole one."""
    good = max((end for _, end in _entries_with_ends(path)), default=0)
    if good < path.stat().st_size:
        with path.open("rb") as file:
            file.seek(good)
            path.with_name(path.name + ".torn").write_bytes(file.read())
        os.truncate(path, good)


def _framed(entry: Entry) -> bytes:
    payload = _ENCODER.encode(entry)
    return _FRAME.pack(len(payload), zlib.crc32(payload)) + payload


def _entries_with_ends(path: Path) -> Iterator[tuple[Entry, int]]:
    place = 0
    with path.open("rb") as file:
        while len(head := file.read(_FRAME.size)) == _FRAME.size:
            length, checksum = _FRAME.unpack(head)
            payload = file.read(length)
            if length == 0 or len(payload) < length:
                return
            if zlib.crc32(payload) != checksum:
                _refuse_damage(path, place, file.read(1))
                return
            place += _FRAME.size + length
            yield _DECODER.decode(payload), place


def _refuse_damage(path: Path, place: int, following: bytes) -> None:
    if following:
        raise LedgerError(
            f"{path} is damaged at byte {place}: the checksum of an entry is wrong and more follows; "
            "restore the file, or begin a new ledger under another producer name"
        )
