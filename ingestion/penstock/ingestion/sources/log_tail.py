"""The source `log`: a growing log file with rotation."""

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
from penstock.ingestion.sources.line_batches import make_json_batch
from penstock.ingestion.sources.log_rotation import find_next_inode, open_rotated_file
from penstock.ingestion.sources.record_files import BoundedLine, read_bounded_lines
from penstock.ingestion.sources.source import EMPTY_BATCH, RecordSource, ReplayableSource
from penstock.ingestion.sources.source_kind import SourceContext, SourceKind, SourceOption

_LOGGER = logging.getLogger(__name__)
# A file can be missing for a moment during a rotation. This is the number of lookups before that is an error.
_MAX_LOOKUPS = 100
LOG_OPTIONS = (SourceOption("path", "A file or a folder.", is_required=True),)
MakeLogBatch = Callable[[Sequence[bytes], Any], SourceBatch]


class LogTailSource(ReplayableSource, SourceKind):
    """Log file with JSON lines, followed through rotations.

    A line counts once its line ending is written. A position identifies the file by its inode and fingerprint.
    After a rotation by renaming, the source reads the rest of the old file, the files after it, and then the new
    file. This also works if the rotation happened while the source was stopped, if the files are still in the
    folder. A missing numbered file is an error. After a truncation the source starts at the beginning; lines that
    were written and truncated between two polls are lost.
    """

    kind = "log"
    options = LOG_OPTIONS
    location = "path"

    def __init__(self, path: Path, make_batch: MakeLogBatch, description: str = "") -> None:
        self.description = description or f"log {path}"
        self._path = path
        self._make_batch = make_batch

    @classmethod
    def open(cls, context: SourceContext) -> RecordSource:
        """Return a source of the log at the path."""
        return cls(context.resolve_path(), make_json_batch)

    def read(self, position: Any | None) -> Iterator[SourceBatch]:
        """Yield batches from a position on, or from the beginning of the current log."""
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
        """Yield the lines of a file as it grows; return the next inode after a rotation or truncation."""
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
        """Return the inode that follows a rotated file; None if it is not rotated, or if nothing follows yet."""
        for attempt in count(1):
            try:
                return None if self._is_current_log(file) else find_next_inode(self._path, file)
            except SourceError:
                if attempt == _MAX_LOOKUPS:
                    raise
            yield EMPTY_BATCH
        raise AssertionError("unreachable: the lookups are unlimited")

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
            # Renamed, but the new file does not exist yet: continue with the old one.
            return True

    def _reopen_position(self, position: Any) -> tuple[BinaryIO, int, FileFingerprint | None]:
        inode, offset, fingerprint = position["inode"], position["place"], position.get("head")
        file = open_rotated_file(self._path, inode, fingerprint, offset)
        if file is not None:
            return file, offset, fingerprint
        if self._path.exists() and self._path.stat().st_ino == inode and self._path.stat().st_size < offset:
            _LOGGER.warning(
                "Log truncated while the source was stopped; unread lines are lost (path=%s)", self._path
            )
            return self._path.open("rb"), 0, None
        raise self._missing_file_error(inode)

    def _missing_file_error(self, inode: int) -> SourceError:
        return SourceError(
            f"{self._path} was rotated, but the file that was being read (inode {inode}) is no longer in "
            f"{self._path.parent}. Restore it, or use another producer name to start with the existing files."
        )


def _is_truncated(file: BinaryIO, offset: int, fingerprint: FileFingerprint | None) -> bool:
    if os.fstat(file.fileno()).st_size < offset:
        return True
    return fingerprint is not None and not matches_fingerprint(file, fingerprint)


def _read_whole_lines(file: BinaryIO) -> list[BoundedLine]:
    ended_lines = takewhile(lambda line: line.text.endswith(b"\n"), read_bounded_lines(file.readline))
    return next(cut_batches(ended_lines, lambda line: len(line.text)), [])
