"""Record files: reads the files of a path in order, and resumes at an offset."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from penstock.ingestion.errors import SourceError, SourceOptionsError
from penstock.ingestion.producer.batch import SourceBatch
from penstock.ingestion.sources.file_fingerprint import FileFingerprint, check_fingerprint
from penstock.ingestion.sources.file_order import FileOrder
from penstock.ingestion.sources.paced_replay import PACE_OPTIONS, apply_pace, read_pace
from penstock.ingestion.sources.source import EMPTY_BATCH, RecordSource, ReplayableSource
from penstock.ingestion.sources.source_kind import SourceContext, SourceOption

# A longer line is not a record. Its beginning goes to the dead letters, up to the size that their topic allows.
MAX_LINE_BYTES = 16_777_216
_SEARCH_BYTES = 1_048_576
FILE_OPTIONS = (
    SourceOption("path", "A file or a folder.", is_required=True),
    SourceOption("follow", "Wait for new files in the folder.", is_flag=True),
    *PACE_OPTIONS,
)


class FileBatch(NamedTuple):
    """Records of one file, and the offset of the next ones."""

    batch: SourceBatch
    end_offset: int


# (file, offset, function that makes the position of an offset) -> batches. An offset counts bytes or rows.
MakePosition = Callable[[int], Any]
FileReader = Callable[[Path, int, MakePosition], Iterator[FileBatch]]


class RecordFileSource(ReplayableSource):
    """Reads file after file. With `follow`, it waits for new files in the folder without end.

    A position has the number of a file, an offset, and the fingerprint of the file, so a replaced file is refused.
    After the last batch of a file in a folder comes the next file, so a file that was read can be deleted.
    """

    def __init__(
        self, description: str, order: FileOrder, read_file: FileReader, *, follow: bool = False
    ) -> None:
        self.description = description
        self._order = order
        self._read_file = read_file
        self._follow = follow

    def read(self, position: Any | None) -> Iterator[SourceBatch]:
        """Yield batches from a position on."""
        number, offset = (position["file"], position["place"]) if position else (0, 0)
        fingerprint = position.get("head") if position else None
        while True:
            path = self._order.find_file(number)
            if path is None and not self._follow:
                return
            if path is None:
                yield EMPTY_BATCH
                continue
            yield from self._read_file_batches(path, number, offset, fingerprint)
            number, offset, fingerprint = number + 1, 0, None

    def locate_record(self, position: Any, value: bytes) -> str:
        """Return file and line of the first record with these bytes in a batch; only the file if it is not text."""
        path = self._order.find_file(position["file"])
        if path is None:
            return ""
        line = find_line(path, position["place"], value)
        return f"{path}:{line}" if line else str(path)

    def _read_file_batches(
        self, path: Path, number: int, offset: int, fingerprint: FileFingerprint | None
    ) -> Iterator[SourceBatch]:
        try:
            fingerprint = check_fingerprint(path, fingerprint)
            position = partial(_make_position, number, fingerprint)
            pending: FileBatch | None = None
            for file_batch in self._read_file(path, offset, position):
                if pending is not None:
                    yield replace(pending.batch, position_after=position(pending.end_offset))
                pending = file_batch
            if pending is not None:
                next_position = (
                    {"file": number + 1, "place": 0}
                    if self._order.is_folder
                    else position(pending.end_offset)
                )
                yield replace(pending.batch, position_after=next_position)
        except OSError as error:
            raise SourceError(
                f"Cannot read {path} from offset {offset} on: {error}. Restore it, or use another producer name."
            ) from error


def _make_position(number: int, fingerprint: FileFingerprint, offset: int) -> Any:
    return {"file": number, "place": offset, "head": fingerprint}


def open_files(context: SourceContext, read_file: FileReader) -> RecordSource:
    """Return a source of the files at a path, with the pace of the options."""
    pace, path, follow = read_pace(context), context.resolve_path(), bool(context.options.get("follow"))
    if follow and path.is_file():
        raise SourceOptionsError(
            f"{path} is a file; --follow needs a folder. For a file that grows, use the source 'log'."
        )
    order = FileOrder(path, context.index_path if path.is_dir() else None)
    return apply_pace(context, RecordFileSource(f"files {path}", order, read_file, follow=follow), pace)


@contextmanager
def open_at(path: Path, offset: int) -> Iterator[BinaryIO]:
    """Open a file at an offset; raise SourceError if it is shorter."""
    with path.open("rb") as file:
        size_bytes = os.fstat(file.fileno()).st_size
        if offset > size_bytes:
            raise SourceError(
                f"{path} is shorter than before: it has {size_bytes} bytes, but {offset} were read. "
                "Restore its data, or use another producer name."
            )
        file.seek(offset)
        yield file


class BoundedLine(NamedTuple):
    """A line with its line ending, truncated if it is too long for a record; `total_bytes` is its full size."""

    text: bytes
    total_bytes: int

    @property
    def stripped(self) -> bytes:
        """The line without its line ending."""
        return self.text.rstrip(b"\r\n")


def read_bounded_lines(readline: Callable[[int], bytes]) -> Iterator[BoundedLine]:
    """Yield lines, also empty ones; the last line may lack its line ending."""
    while text := readline(MAX_LINE_BYTES):
        total_bytes, rest = len(text), text
        while len(rest) == MAX_LINE_BYTES and not rest.endswith(b"\n"):
            rest = readline(MAX_LINE_BYTES)
            total_bytes += len(rest)
        is_ended = rest.endswith(b"\n") and not text.endswith(b"\n")
        yield BoundedLine(text + b"\n" if is_ended else text, total_bytes)


def find_line(path: Path, offset: int, value: bytes) -> int | None:
    """Return the number of the line on which these bytes start, from 1; the search starts at an offset."""
    with path.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as content:
        start = content.find(value, offset) if value else -1
        if start < 0:
            return None
        chunks = range(0, start, _SEARCH_BYTES)
        return 1 + sum(content[first : min(first + _SEARCH_BYTES, start)].count(b"\n") for first in chunks)


def count_line_bytes(line: BoundedLine) -> int:
    """Return the bytes that a line takes in memory."""
    return len(line.text)
