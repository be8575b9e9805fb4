"""A log file that grows, and is rotated, such as a web server's access log."""

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from penstock.ingestion.errors import SourceError
from penstock.ingestion.producer.batch import Batch
from penstock.ingestion.sources.files import BATCH, Line, bounded_lines
from penstock.ingestion.sources.source import NOTHING, Repeatable

MakeBatch = Callable[[Sequence[bytes], Any], Batch]


class GrowingLog(Repeatable):
    """Follows a log for ever, line by line; a line counts when its end is there.

    A position names the file by its inode. When the log is rotated by renaming, the rest of the old file is read
    before the new one is begun, also when the rotation happened while nobody was reading, as long as the old file
    is still in the folder. When it is cut to nothing in place, reading begins again at its start; lines that were
    written and cut between two looks are lost, as with any reader.
    """

    def __init__(self, path: Path, make_batch: MakeBatch, description: str = "") -> None:
        self.description = description or f"log {path}"
        self._path = path
        self._make_batch = make_batch

    def read(self, position: Any | None) -> Iterator[Batch]:
        """Yield batches from a position on, or from the beginning of the log as it is now."""
        while position is None and not self._path.exists():
            yield NOTHING
        inode, place = (position["inode"], position["place"]) if position else (0, 0)
        path = self._find(inode) if position else self._path
        while True:
            with path.open("rb") as file:
                yield from self._follow(file, place)
            path, place = self._path, 0

    def _follow(self, file: BinaryIO, place: int) -> Iterator[Batch]:
        """Yield what is in the file, and go on until another one has its name, or it was cut."""
        inode = os.fstat(file.fileno()).st_ino
        while True:
            moved = self._moved(inode)
            file.seek(place)
            lines = _whole_lines(file)
            if lines:
                position = {"inode": inode, "place": place}
                yield self._make_batch([line.stripped for line in lines], position)
                place += sum(line.length for line in lines)
            elif moved or os.fstat(file.fileno()).st_size < place:
                return
            else:
                yield NOTHING

    def _moved(self, inode: int) -> bool:
        try:
            return self._path.stat().st_ino != inode
        except FileNotFoundError:
            # Renamed, and the new one is not there yet: go on with the old.
            return False

    def _find(self, inode: int) -> Path:
        for candidate in (self._path, *sorted(self._path.parent.iterdir())):
            if candidate.exists() and candidate.stat().st_ino == inode:
                return candidate
        raise SourceError(
            f"{self._path} was rotated, and the file that was being read (inode {inode}) is no longer in "
            f"{self._path.parent}; bring it back, or use another producer name to begin with what is there"
        )


def _whole_lines(file: BinaryIO) -> list[Line]:
    lines: list[Line] = []
    for line in bounded_lines(file.readline):
        if not line.text.endswith(b"\n"):
            break
        lines.append(line)
        if len(lines) == BATCH:
            break
    return lines
