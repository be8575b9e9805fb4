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

from penstock.ingestion.errors import InvalidRecordError, SourceError
from penstock.ingestion.producer.batch import SourceBatch
from penstock.ingestion.sources.batching import MAX_BATCH_BYTES, MAX_BATCH_RECORDS, cut_batches
from penstock.ingestion.sources.file_fingerprint import FileFingerprint, check_fingerprint
from penstock.ingestion.sources.file_order import FileOrder
from penstock.ingestion.sources.line_batches import parse_text_line
from penstock.ingestion.sources.row_reader import RawRow, RowReader
from penstock.ingestion.sources.source import EMPTY_BATCH, ReplayableSource

# A longer line is no record. Its beginning goes to the dead letters, where topics take this much.
MAX_LINE_BYTES = 16_777_216


class FileBatch(NamedTuple):
    """Records of one file, and where the next ones begin in it."""

    batch: SourceBatch
    end_offset: int


# (file, place in it, what to note of a place) -> pieces; a place is whatever the format counts in
MakePosition = Callable[[int], Any]
FileReader = Callable[[Path, int, MakePosition], Iterator[FileBatch]]


class RecordFileSource(ReplayableSource):
    """Reads file after file. With `follow` it goes on for ever, and new files of the folder are taken up.

    A position is the number of a file, a place in it, and how the file begins: another one in its place is refused.
    After the last batch of a file of a folder comes the next file, so what was read to its end may be removed.
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
                f"{path} cannot be read from {offset} on: {error}; bring it back, or use another producer name"
            ) from error


def _make_position(number: int, fingerprint: FileFingerprint, offset: int) -> Any:
    return {"file": number, "place": offset, "head": fingerprint}


def read_json_lines(path: Path, offset: int, make_position: MakePosition) -> Iterator[FileBatch]:
    """Read lines as they are; a place counts bytes."""
    with open_at(path, offset) as file:
        for lines in cut_batches(read_bounded_lines(file.readline), _count_line_bytes):
            start, offset = offset, offset + sum(line.total_bytes for line in lines)
            values = [line.stripped for line in lines if line.stripped]
            if values:
                yield FileBatch(SourceBatch(values, make_position(start)), offset)


class TextFileReader:
    """Reads lines of text, which say no time of their own: it is that of their file, when it was last changed.

    So the same lines come again after a restart, byte for byte. A place counts bytes.
    """

    def __init__(self, row_reader: RowReader) -> None:
        self._row_reader = row_reader

    def __call__(self, path: Path, offset: int, make_position: MakePosition) -> Iterator[FileBatch]:
        """Read a file from a place on; an empty line is a record, too."""
        with open_at(path, offset) as file:
            changed_ms = os.fstat(file.fileno()).st_mtime_ns // 1_000_000
            for lines in cut_batches(read_bounded_lines(file.readline), _count_line_bytes):
                texts = [line.stripped for line in lines]
                start, offset = offset, offset + sum(line.total_bytes for line in lines)
                rows = [parse_text_line(text, changed_ms) for text in texts]
                yield FileBatch(self._row_reader.make_batch(rows, texts, make_position(start)), offset)


@contextmanager
def open_at(path: Path, offset: int) -> Iterator[BinaryIO]:
    """Open a file at a byte of it, which has to be there still."""
    with path.open("rb") as file:
        size_bytes = os.fstat(file.fileno()).st_size
        if offset > size_bytes:
            raise SourceError(
                f"{path} is shorter than it was: it has {size_bytes} bytes, and {offset} were read; "
                "bring its data back, or use another producer name"
            )
        file.seek(offset)
        yield file


class BoundedLine(NamedTuple):
    """A line with its end, cut where it is longer than any record; `length` counts it whole."""

    text: bytes
    total_bytes: int

    @property
    def stripped(self) -> bytes:
        """The line without its end."""
        return self.text.rstrip(b"\r\n")


def read_bounded_lines(readline: Callable[[int], bytes]) -> Iterator[BoundedLine]:
    """Yield lines, also empty ones, and at last one that has no end yet."""
    while text := readline(MAX_LINE_BYTES):
        total_bytes, rest = len(text), text
        while len(rest) == MAX_LINE_BYTES and not rest.endswith(b"\n"):
            rest = readline(MAX_LINE_BYTES)
            total_bytes += len(rest)
        is_ended = rest.endswith(b"\n") and not text.endswith(b"\n")
        yield BoundedLine(text + b"\n" if is_ended else text, total_bytes)


def _count_line_bytes(line: BoundedLine) -> int:
    return len(line.text)


class CsvFileReader:
    """Reads CSV whose first row names the fields; a place counts bytes, and a quoted value may hold lines."""

    def __init__(self, row_reader: RowReader) -> None:
        self._row_reader = row_reader

    def __call__(self, path: Path, offset: int, make_position: MakePosition) -> Iterator[FileBatch]:
        """Read a file from a place on."""
        with open_at(path, offset) as file:
            file.seek(0)
            names = next(csv.reader([file.readline().decode("utf-8-sig", "replace")]), [])
            start = file.seek(max(offset, file.tell()))
            for rows_with_bytes in cut_batches(
                _read_csv_rows(file.readline, names), lambda row_with_bytes: len(row_with_bytes[1])
            ):
                rows, originals = zip(*rows_with_bytes, strict=True)
                yield FileBatch(
                    self._row_reader.make_batch(rows, originals, make_position(start)), file.tell()
                )
                start = file.tell()


def _read_csv_rows(
    readline: Callable[[int], bytes], names: list[str]
) -> Iterator[tuple[RawRow | InvalidRecordError, bytes]]:
    raw_lines: list[bytes] = []

    def decode_lines() -> Iterator[str]:
        for line in read_bounded_lines(readline):
            raw_lines.append(line.text)
            # Bytes that are no UTF-8 are kept through the reader, and judged afterwards.
            yield line.text.decode("utf-8", "surrogateescape")

    # The library's own limit of 128 KB is below what contracts allow; it knows only one for the whole process.
    csv.field_size_limit(MAX_LINE_BYTES)
    reader = csv.reader(decode_lines(), strict=True)
    while True:
        raw_lines.clear()
        try:
            values = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield InvalidRecordError("malformed", str(error)), b"".join(raw_lines)
            continue
        if values:
            yield _to_row(names, values), b"".join(raw_lines)


def _to_row(names: list[str], values: list[str]) -> RawRow | InvalidRecordError:
    if len(values) != len(names):
        return InvalidRecordError(
            "malformed", f"{len(values)} values, and the file names {len(names)} fields"
        )
    for name, value in zip(names, values, strict=True):
        if not _is_utf8(value):
            return InvalidRecordError("invalid utf-8", f"in field '{name}'")
    return dict(zip(names, values, strict=True))


def _is_utf8(value: str) -> bool:
    if value.isascii():
        return True
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


class ParquetFileReader:
    """Reads Parquet; a place counts rows. A broken row is kept as JSON, for want of bytes of its own."""

    def __init__(self, row_reader: RowReader) -> None:
        self._row_reader = row_reader

    def __call__(self, path: Path, offset: int, make_position: MakePosition) -> Iterator[FileBatch]:
        """Read a file from a row on."""
        with pq.ParquetFile(path) as file:
            next_row = 0
            for table in file.iter_batches(batch_size=_rows_per_batch(file)):
                rows = table.to_pylist()[max(0, offset - next_row) :]
                start = next_row + table.num_rows - len(rows)
                next_row += table.num_rows
                if rows:
                    originals = [msgspec.json.encode(row, enc_hook=str) for row in rows]
                    yield FileBatch(
                        self._row_reader.make_batch(rows, originals, make_position(start)), next_row
                    )


def _rows_per_batch(file: pq.ParquetFile) -> int:
    groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
    size_bytes = sum(int(group.total_byte_size) for group in groups)
    row_count: int = file.metadata.num_rows
    return max(1, min(MAX_BATCH_RECORDS, MAX_BATCH_BYTES * row_count // max(size_bytes, 1)))
