"""The source `text`."""

import os
from collections.abc import Iterator
from pathlib import Path

from penstock.ingestion.sources.batching import cut_batches
from penstock.ingestion.sources.line_batches import parse_text_line
from penstock.ingestion.sources.record_files import (
    FILE_OPTIONS,
    FileBatch,
    MakePosition,
    count_line_bytes,
    open_at,
    open_files,
    read_bounded_lines,
)
from penstock.ingestion.sources.row_reader import RowReader
from penstock.ingestion.sources.source import RecordSource
from penstock.ingestion.sources.source_kind import SourceContext, SourceKind


class TextFileSource(SourceKind):
    """Text files; each line is a record of the `lines` contract."""

    kind = "text"
    options = FILE_OPTIONS
    location = "path"

    @classmethod
    def open(cls, context: SourceContext) -> RecordSource:
        """Return a source of the files at the path."""
        return open_files(context, TextFileReader(context.row_reader))


class TextFileReader:
    """Reads lines of text. Their event time is the modification time of their file.

    A restart therefore returns the same records, byte for byte. Offsets count bytes.
    """

    def __init__(self, row_reader: RowReader) -> None:
        self._row_reader = row_reader

    def __call__(self, path: Path, offset: int, make_position: MakePosition) -> Iterator[FileBatch]:
        """Yield the lines of a file from an offset on. An empty line is a record, too."""
        with open_at(path, offset) as file:
            changed_ms = os.fstat(file.fileno()).st_mtime_ns // 1_000_000
            for lines in cut_batches(read_bounded_lines(file.readline), count_line_bytes):
                texts = [line.stripped for line in lines]
                start, offset = offset, offset + sum(line.total_bytes for line in lines)
                rows = [parse_text_line(text, changed_ms) for text in texts]
                yield FileBatch(self._row_reader.make_batch(rows, texts, make_position(start)), offset)
