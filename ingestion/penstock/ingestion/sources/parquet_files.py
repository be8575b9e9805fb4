"""The source `parquet`."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pyarrow.parquet as pq

from penstock.ingestion.sources.batching import MAX_BATCH_BYTES, MAX_BATCH_RECORDS
from penstock.ingestion.sources.record_files import FILE_OPTIONS, FileBatch, MakePosition, open_files
from penstock.ingestion.sources.row_reader import RowReader
from penstock.ingestion.sources.source import RecordSource
from penstock.ingestion.sources.source_kind import SourceContext, SourceKind


class ParquetSource(SourceKind):
    """Parquet files."""

    kind = "parquet"
    options = FILE_OPTIONS
    location = "path"

    @classmethod
    def open(cls, context: SourceContext) -> RecordSource:
        """Return a source of the files at the path."""
        return open_files(context, ParquetFileReader(context.row_reader))


class ParquetFileReader:
    """Reads Parquet. Offsets count rows. The dead letter of an invalid row is the row as JSON."""

    def __init__(self, row_reader: RowReader) -> None:
        self._row_reader = row_reader

    def __call__(self, path: Path, offset: int, make_position: MakePosition) -> Iterator[FileBatch]:
        """Yield the rows of a file from an offset on."""
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
