"""A log file that grows, and is rotated, such as a web server's access log."""

import logging
import os
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import replace
from itertools import count, takewhile
from pathlib import Path
from typing import Any, BinaryIO

from penstock.ingestion.errors import SourceError
from penstock.ingestion.producer.batch import SourceBatch
from penstock.ingestion.sources.batching import cut_batches
from penstock.ingestion.sources.file_fingerprint import (
    MAX_FINGERPRINT_BYTES,
    FileFingerprint,
    fingerprint_file,
    matches_fingerprint,
)
from penstock.ingestion.sources.file_source import BoundedLine, read_bounded_lines
from penstock.ingestion.sources.log_rotation import find_next_inode, open_rotated_file
from penstock.ingestion.sources.source import EMPTY_BATCH, ReplayableSource

_LOGGER = logging.getLogger(__name__)
# In the middle of a rotation a file may be missing for a moment: so often it is looked for.
_MAX_LOOKUPS = 100
MakeLogBatch = Callable[[Sequence[bytes], Any], SourceBatch]


class LogTailSource(ReplayableSource):
    """Follows a log for ever, line by line; a line counts when its end is there.

    A position names the file by its inode and by how it begins. When the log is rotated by renaming, the rest of
    the old file is read, then the files that came after it, then the new one; also when that happened while nobody
    was reading, as long as they are still in the folder. One that is missing is an error where they are numbered.
    When the log is cut to nothing in place, reading begins again at its start; lines that were written and cut
    between two looks are lost, as with any reader.
    """

    def __init__(self, path: Path, make_batch: MakeLogBatch, description: str = "") -> None:
        self.description = description or f"log {path}"
        self._path = path
        self._make_batch = make_batch

    def read(self, position: Any | None) -> Iterator[SourceBatch]:
        """Yield batches from a position on, or from the beginning of the log as it is now."""
        while position is None and not self._path.exists():
            yield EMPTY_BATCH
        file: BinaryIO
        if position is None:
            file, offset, fingerprint = self._path.open("rb"), 0, None
        else:
            file, offset, fingerprint = self._reopen_position(position)
        while True:
            with file:
                next_inode = yield from self._read_file(file, offset, fingerprint)
            file = yield from self._open_next_file(next_inode)
            offset, fingerprint = 0, None

    def _read_file(
        self, file: BinaryIO, offset: int, fingerprint: FileFingerprint | None
    ) -> Generator[SourceBatch, None, int]:
        """Yield what is in a file and is added to it; return what to read once it was rotated away or cut."""
        inode = os.fstat(file.fileno()).st_ino
        while True:
            next_inode = yield from self._find_next_inode(file)
            if _is_truncated(file, offset, fingerprint):
                return inode if next_inode is None else next_inode
            file.seek(offset)
            lines = _read_whole_lines(file)
            if lines:
                start, offset = offset, offset + sum(line.total_bytes for line in lines)
                if fingerprint is None or fingerprint[0] < MAX_FINGERPRINT_BYTES:
                    fingerprint = fingerprint_file(file, offset)
                file_position = {"inode": inode, "head": fingerprint}
                batch = self._make_batch([line.stripped for line in lines], {**file_position, "place": start})
                yield replace(batch, position_after={**file_position, "place": offset})
            elif next_inode is not None:
                return next_inode
            else:
                yield EMPTY_BATCH

    def _find_next_inode(self, file: BinaryIO) -> Generator[SourceBatch, None, int | None]:
        """Return what comes after a file that was rotated away; None while it was not, or nothing does yet."""
        for attempt in count(1):
            try:
                return None if self._is_current_log(file) else find_next_inode(self._path, file)
            except SourceError:
                if attempt == _MAX_LOOKUPS:
                    raise
            yield EMPTY_BATCH
        raise AssertionError("it was looked for without an end")

    def _open_next_file(self, inode: int) -> Generator[SourceBatch, None, BinaryIO]:
        for _ in range(_MAX_LOOKUPS):
            file = open_rotated_file(self._path, inode, None)
            if file is not None:
                return file
            yield EMPTY_BATCH
        raise self._missing_file_error(inode)

    def _is_current_log(self, file: BinaryIO) -> bool:
        try:
            return self._path.stat().st_ino == os.fstat(file.fileno()).st_ino
        except FileNotFoundError:
            # Renamed, and the new one is not there yet: go on with the old.
            return True

    def _reopen_position(self, position: Any) -> tuple[BinaryIO, int, FileFingerprint | None]:
        inode, offset, fingerprint = position["inode"], position["place"], position.get("head")
        file = open_rotated_file(self._path, inode, fingerprint, offset)
        if file is not None:
            return file, offset, fingerprint
        if self._path.exists() and self._path.stat().st_ino == inode and self._path.stat().st_size < offset:
            _LOGGER.warning("%s was cut while nobody read it; what was not read by then is gone", self._path)
            return self._path.open("rb"), 0, None
        raise self._missing_file_error(inode)

    def _missing_file_error(self, inode: int) -> SourceError:
        return SourceError(
            f"{self._path} was rotated, and the file that was being read (inode {inode}) is no longer in "
            f"{self._path.parent}; bring it back, or use another producer name to begin with what is there"
        )


def _is_truncated(file: BinaryIO, offset: int, fingerprint: FileFingerprint | None) -> bool:
    if os.fstat(file.fileno()).st_size < offset:
        return True
    return fingerprint is not None and not matches_fingerprint(file, fingerprint)


def _read_whole_lines(file: BinaryIO) -> list[BoundedLine]:
    ended_lines = takewhile(lambda line: line.text.endswith(b"\n"), read_bounded_lines(file.readline))
    return next(cut_batches(ended_lines, lambda line: len(line.text)), [])
