"""The source `csv`."""

import csv
from collections.abc import Callable, Iterator
from pathlib import Path

from penstock.ingestion.contracts.invalid_reasons import make_invalid_record
from penstock.ingestion.errors import InvalidRecordError
from penstock.ingestion.sources.batching import cut_batches
from penstock.ingestion.sources.record_files import (
    FILE_OPTIONS,
    MAX_LINE_BYTES,
    FileBatch,
    MakePosition,
    open_at,
    open_files,
    read_bounded_lines,
)
from penstock.ingestion.sources.row_reader import RawRow, RowReader
from penstock.ingestion.sources.source import RecordSource
from penstock.ingestion.sources.source_kind import SourceContext, SourceKind


class CsvSource(SourceKind):
    """CSV files; the first row names the fields."""

    kind = "csv"
    options = FILE_OPTIONS
    location = "path"

    @classmethod
    def open(cls, context: SourceContext) -> RecordSource:
        """Return a source of the files at the path."""
        return open_files(context, CsvFileReader(context.row_reader))


class CsvFileReader:
    """Reads CSV with a header row. A quoted value can contain line breaks. Offsets count bytes."""

    def __init__(self, row_reader: RowReader) -> None:
        self._row_reader = row_reader

    def __call__(self, path: Path, offset: int, make_position: MakePosition) -> Iterator[FileBatch]:
        """Yield the rows of a file from an offset on."""
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
            # Bytes that are not UTF-8 pass through the reader, and are refused afterwards.
            yield line.text.decode("utf-8", "surrogateescape")

    # The default limit of 128 KB is below what contracts allow. The limit is global for the process.
    csv.field_size_limit(MAX_LINE_BYTES)
    reader = csv.reader(decode_lines(), strict=True)
    while True:
        raw_lines.clear()
        try:
            values = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield make_invalid_record("malformed", str(error)), b"".join(raw_lines)
            continue
        if values:
            yield _to_row(names, values), b"".join(raw_lines)


def _to_row(names: list[str], values: list[str]) -> RawRow | InvalidRecordError:
    if len(values) != len(names):
        return make_invalid_record(
            "malformed", f"{len(values)} values, but the header names {len(names)} fields"
        )
    for name, value in zip(names, values, strict=True):
        if not _is_utf8(value):
            return make_invalid_record("invalid_utf8", "the text is not UTF-8", name)
    return dict(zip(names, values, strict=True))


def _is_utf8(value: str) -> bool:
    if value.isascii():
        return True
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
