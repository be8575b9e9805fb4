"""Files as sources: JSON lines, text, CSV and Parquet; one file, or a folder that may grow."""

import csv
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import msgspec
import pyarrow.parquet as pq

from penstock.ingestion.errors import BrokenRecordError, SourceError
from penstock.ingestion.producer.batch import Batch
from penstock.ingestion.sources.cutting import BATCH, BATCH_BYTES, in_batches
from penstock.ingestion.sources.folder import FileOrder
from penstock.ingestion.sources.heads import Head, head_of_path
from penstock.ingestion.sources.lines import text_row
from penstock.ingestion.sources.rows import Row, RowReader
from penstock.ingestion.sources.source import NOTHING, Repeatable

# A longer line is no record. Its beginning goes to the dead letters, where topics take this much.
LONGEST_LINE = 16_777_216


class Piece(NamedTuple):
    """Records of one file, and where the next ones begin in it."""

    batch: Batch
    after: int


# (file, place in it, what to note of a place) -> pieces; a place is whatever the format counts in
PositionAt = Callable[[int], Any]
ReadFile = Callable[[Path, int, PositionAt], Iterator[Piece]]


class Files(Repeatable):
    """Reads file after file. With `follow` it goes on for ever, and new files of the folder are taken up.

    A position is the number of a file, a place in it, and how the file begins: another one in its place is refused.
    After the last batch of a file of a folder comes the next file, so what was read to its end may be removed.
    """

    def __init__(
        self, description: str, order: FileOrder, read_file: ReadFile, *, follow: bool = False
    ) -> None:
        self.description = description
        self._order = order
        self._read_file = read_file
        self._follow = follow

    def read(self, position: Any | None) -> Iterator[Batch]:
        """Yield batches from a position on."""
        number, place = (position["file"], position["place"]) if position else (0, 0)
        head = position.get("head") if position else None
        while True:
            path = self._order.file(number)
            if path is None and not self._follow:
                return
            if path is None:
                yield NOTHING
                continue
            yield from self._batches(path, number, place, head)
            number, place, head = number + 1, 0, None

    def _batches(self, path: Path, number: int, place: int, head: Head | None) -> Iterator[Batch]:
        try:
            head = head_of_path(path, head)
            position = partial(_position, number, head)
            held: Piece | None = None
            for piece in self._read_file(path, place, position):
                if held is not None:
                    yield replace(held.batch, after=position(held.after))
                held = piece
            if held is not None:
                following = {"file": number + 1, "place": 0} if self._order.many else position(held.after)
                yield replace(held.batch, after=following)
        except OSError as error:
            raise SourceError(
                f"{path} cannot be read from {place} on: {error}; bring it back, or use another producer name"
            ) from error


def _position(number: int, head: Head, place: int) -> Any:
    return {"file": number, "place": place, "head": head}


def json_lines(path: Path, place: int, position: PositionAt) -> Iterator[Piece]:
    """Read lines as they are; a place counts bytes."""
    with opened_at(path, place) as file:
        for some in in_batches(bounded_lines(file.readline), _weight):
            begin, place = place, place + sum(line.length for line in some)
            values = [line.stripped for line in some if line.stripped]
            if values:
                yield Piece(Batch(values, position(begin)), place)


class TextFiles:
    """Reads lines of text, which say no time of their own: it is that of their file, when it was last changed.

    So the same lines come again after a restart, byte for byte. A place counts bytes.
    """

    def __init__(self, rows: RowReader) -> None:
        self._rows = rows

    def __call__(self, path: Path, place: int, position: PositionAt) -> Iterator[Piece]:
        """Read a file from a place on; an empty line is a record, too."""
        with opened_at(path, place) as file:
            at = os.fstat(file.fileno()).st_mtime_ns // 1_000_000
            for some in in_batches(bounded_lines(file.readline), _weight):
                texts = [line.stripped for line in some]
                begin, place = place, place + sum(line.length for line in some)
                rows = [text_row(text, at) for text in texts]
                yield Piece(self._rows.batch(rows, texts, position(begin)), place)


@contextmanager
def opened_at(path: Path, place: int) -> Iterator[BinaryIO]:
    """Open a file at a byte of it, which has to be there still."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if place > size:
            raise SourceError(
                f"{path} is shorter than it was: it has {size} bytes, and {place} were read; "
                "bring its data back, or use another producer name"
            )
        file.seek(place)
        yield file


class Line(NamedTuple):
    """A line with its end, cut where it is longer than any record; `length` counts it whole."""

    text: bytes
    length: int

    @property
    def stripped(self) -> bytes:
        """The line without its end."""
        return self.text.rstrip(b"\r\n")


def bounded_lines(readline: Callable[[int], bytes]) -> Iterator[Line]:
    """Yield lines, also empty ones, and at last one that has no end yet."""
    while text := readline(LONGEST_LINE):
        length, rest = len(text), text
        while len(rest) == LONGEST_LINE and not rest.endswith(b"\n"):
            rest = readline(LONGEST_LINE)
            length += len(rest)
        ended = rest.endswith(b"\n") and not text.endswith(b"\n")
        yield Line(text + b"\n" if ended else text, length)


def _weight(line: Line) -> int:
    return len(line.text)


class CsvFiles:
    """Reads CSV whose first row names the fields; a place counts bytes, and a quoted value may hold lines."""

    def __init__(self, rows: RowReader) -> None:
        self._rows = rows

    def __call__(self, path: Path, place: int, position: PositionAt) -> Iterator[Piece]:
        """Read a file from a place on."""
        with opened_at(path, place) as file:
            file.seek(0)
            names = next(csv.reader([file.readline().decode("utf-8-sig", "replace")]), [])
            begin = file.seek(max(place, file.tell()))
            for some in in_batches(_csv_rows(file.readline, names), lambda found: len(found[1])):
                rows, originals = zip(*some, strict=True)
                yield Piece(self._rows.batch(rows, originals, position(begin)), file.tell())
                begin = file.tell()


def _csv_rows(
    readline: Callable[[int], bytes], names: list[str]
) -> Iterator[tuple[Row | BrokenRecordError, bytes]]:
    taken: list[bytes] = []

    def texts() -> Iterator[str]:
        for line in bounded_lines(readline):
            taken.append(line.text)
            # Bytes that are no UTF-8 are kept through the reader, and judged afterwards.
            yield line.text.decode("utf-8", "surrogateescape")

    # The library's own limit of 128 KB is below what contracts allow; it knows only one for the whole process.
    csv.field_size_limit(LONGEST_LINE)
    reader = csv.reader(texts(), strict=True)
    while True:
        taken.clear()
        try:
            values = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield BrokenRecordError("malformed", str(error)), b"".join(taken)
            continue
        if values:
            yield _named(names, values), b"".join(taken)


def _named(names: list[str], values: list[str]) -> Row | BrokenRecordError:
    if len(values) != len(names):
        return BrokenRecordError("malformed", f"{len(values)} values, and the file names {len(names)} fields")
    for name, value in zip(names, values, strict=True):
        if not _is_text(value):
            return BrokenRecordError("invalid utf-8", f"in field '{name}'")
    return dict(zip(names, values, strict=True))


def _is_text(value: str) -> bool:
    if value.isascii():
        return True
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


class ParquetFiles:
    """Reads Parquet; a place counts rows. A broken row is kept as JSON, for want of bytes of its own."""

    def __init__(self, rows: RowReader) -> None:
        self._rows = rows

    def __call__(self, path: Path, place: int, position: PositionAt) -> Iterator[Piece]:
        """Read a file from a row on."""
        with pq.ParquetFile(path) as file:
            number = 0
            for table in file.iter_batches(batch_size=_rows_at_once(file)):
                rows = table.to_pylist()[max(0, place - number) :]
                begin = number + table.num_rows - len(rows)
                number += table.num_rows
                if rows:
                    originals = [msgspec.json.encode(row, enc_hook=str) for row in rows]
                    yield Piece(self._rows.batch(rows, originals, position(begin)), number)


def _rows_at_once(file: pq.ParquetFile) -> int:
    groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
    size = sum(int(group.total_byte_size) for group in groups)
    rows: int = file.metadata.num_rows
    return max(1, min(BATCH, BATCH_BYTES * rows // max(size, 1)))
