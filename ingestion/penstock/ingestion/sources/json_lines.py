"""The source `json-lines`."""

from collections.abc import Iterator
from pathlib import Path

from penstock.ingestion.producer.batch import SourceBatch
from penstock.ingestion.sources.batching import cut_batches
from penstock.ingestion.sources.record_files import (
    FILE_OPTIONS,
    FileBatch,
    MakePosition,
    count_line_bytes,
    open_at,
    open_files,
    read_bounded_lines,
)
from penstock.ingestion.sources.source import RecordSource
from penstock.ingestion.sources.source_kind import SourceContext, SourceKind


class JsonLinesSource(SourceKind):
    """Files with one JSON record a line."""

    kind = "json-lines"
    options = FILE_OPTIONS
    location = "path"

    @classmethod
    def open(cls, context: SourceContext) -> RecordSource:
        """Return a source of the files at the path."""
        return open_files(context, read_json_lines)


def read_json_lines(path: Path, offset: int, make_position: MakePosition) -> Iterator[FileBatch]:
    """Yield the lines of a file unchanged. Offsets count bytes."""
    with open_at(path, offset) as file:
        for lines in cut_batches(read_bounded_lines(file.readline), count_line_bytes):
            start, offset = offset, offset + sum(line.total_bytes for line in lines)
            values = [line.stripped for line in lines if line.stripped]
            if values:
                yield FileBatch(SourceBatch(values, make_position(start)), offset)
