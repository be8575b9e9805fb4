"""A log file that grows, and is rotated, such as a web server's access log."""

import logging
import os
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import replace
from itertools import count, takewhile
from pathlib import Path
from typing import Any, BinaryIO

from penstock.ingestion.errors import SourceError
from penstock.ingestion.producer.batch import Batch
from penstock.ingestion.sources.cutting import in_batches
from penstock.ingestion.sources.files import Line, bounded_lines
from penstock.ingestion.sources.heads import HEAD_BYTES, Head, begins_with, head_of
from penstock.ingestion.sources.rotation import following, opened
from penstock.ingestion.sources.source import NOTHING, Repeatable

_LOG = logging.getLogger(__name__)
# In the middle of a rotation a file may be missing for a moment: so often it is looked for.
_LOOKS = 100
MakeBatch = Callable[[Sequence[bytes], Any], Batch]


class GrowingLog(Repeatable):
    """Follows a log for ever, line by line; a line counts when its end is there.

    A position names the file by its inode and by how it begins. When the log is rotated by renaming, the rest of
    the old file is read, then the files that came after it, then the new one; also when that happened while nobody
    was reading, as long as they are still in the folder. One that is missing is an error where they are numbered.
    When the log is cut to nothing in place, reading begins again at its start; lines that were written and cut
    between two looks are lost, as with any reader.
    """

    def __init__(self, path: Path, make_batch: MakeBatch, description: str = "") -> None:
        self.description = description or f"log {path}"
        self._path = path
        self._make_batch = make_batch

    def read(self, position: Any | None) -> Iterator[Batch]:
        """Yield batches from a position on, or from the beginning of the log as it is now."""
        while position is None and not self._path.exists():
            yield NOTHING
        file: BinaryIO
        if position is None:
            file, place, head = self._path.open("rb"), 0, None
        else:
            file, place, head = self._found(position)
        while True:
            with file:
                following = yield from self._read_on(file, place, head)
            file = yield from self._next(following)
            place, head = 0, None

    def _read_on(self, file: BinaryIO, place: int, head: Head | None) -> Generator[Batch, None, int]:
        """Yield what is in a file and is added to it; return what to read once it was rotated away or cut."""
        inode = os.fstat(file.fileno()).st_ino
        while True:
            after = yield from self._after(file)
            if _is_cut(file, place, head):
                return inode if after is None else after
            file.seek(place)
            lines = _whole_lines(file)
            if lines:
                begin, place = place, place + sum(line.length for line in lines)
                if head is None or head[0] < HEAD_BYTES:
                    head = head_of(file, place)
                where = {"inode": inode, "head": head}
                batch = self._make_batch([line.stripped for line in lines], {**where, "place": begin})
                yield replace(batch, after={**where, "place": place})
            elif after is not None:
                return after
            else:
                yield NOTHING

    def _after(self, file: BinaryIO) -> Generator[Batch, None, int | None]:
        """Return what comes after a file that was rotated away; None while it was not, or nothing does yet."""
        for look in count(1):
            try:
                return None if self._is_log(file) else following(self._path, file)
            except SourceError:
                if look == _LOOKS:
                    raise
            yield NOTHING
        raise AssertionError("it was looked for without an end")

    def _next(self, inode: int) -> Generator[Batch, None, BinaryIO]:
        for _ in range(_LOOKS):
            file = opened(self._path, inode, None)
            if file is not None:
                return file
            yield NOTHING
        raise self._gone(inode)

    def _is_log(self, file: BinaryIO) -> bool:
        try:
            return self._path.stat().st_ino == os.fstat(file.fileno()).st_ino
        except FileNotFoundError:
            # Renamed, and the new one is not there yet: go on with the old.
            return True

    def _found(self, position: Any) -> tuple[BinaryIO, int, Head | None]:
        inode, place, head = position["inode"], position["place"], position.get("head")
        file = opened(self._path, inode, head, place)
        if file is not None:
            return file, place, head
        if self._path.exists() and self._path.stat().st_ino == inode and self._path.stat().st_size < place:
            _LOG.warning("%s was cut while nobody read it; what was not read by then is gone", self._path)
            return self._path.open("rb"), 0, None
        raise self._gone(inode)

    def _gone(self, inode: int) -> SourceError:
        return SourceError(
            f"{self._path} was rotated, and the file that was being read (inode {inode}) is no longer in "
            f"{self._path.parent}; bring it back, or use another producer name to begin with what is there"
        )


def _is_cut(file: BinaryIO, place: int, head: Head | None) -> bool:
    if os.fstat(file.fileno()).st_size < place:
        return True
    return head is not None and not begins_with(file, head)


def _whole_lines(file: BinaryIO) -> list[Line]:
    whole = takewhile(lambda line: line.text.endswith(b"\n"), bounded_lines(file.readline))
    return next(in_batches(whole, lambda line: len(line.text)), [])
