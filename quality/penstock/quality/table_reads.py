"""Reads Delta tables of a stream as of a batch."""

import re
from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from penstock.engine.storage import StoragePath
from penstock.engine.storage.arrow_delta_table import ArrowDeltaTable
from penstock.engine.storage.file_access import open_delta_table
from penstock.engine.storage.log_checksums import DELTA_LOG_FOLDER
from penstock.quality.errors import DamagedTableError, NoTableError

COMMIT_FILE_PATTERN = re.compile(r"\d{20}\.json")


def describe_missing_columns(table: DeltaTable, columns: Iterable[str]) -> str:
    """Describe the columns that a table lacks; return an empty text if it has all of them."""
    missing = sorted({*columns} - {field.name for field in table.schema().fields})
    missing_names = ", ".join(missing)
    return f"has no column {missing_names}; its stream did not write this table" if missing else ""


def read_rows(
    path: StoragePath, upto: int, columns: Sequence[str] | None = None, stream: str | None = None
) -> pa.Table | None:
    """Return the rows of batches up to `upto`; None if the table does not exist.

    `columns` selects columns; `batch_id` is always included. `stream` selects the rows of one stream, for tables
    that several streams write. Raises DamagedTableError if a column is missing or a file cannot be read.
    """
    table = open_table(path)
    if table is None:
        return None
    wanted_columns = None if columns is None else sorted({"batch_id", *columns})
    if missing_columns := describe_missing_columns(
        table, [*(wanted_columns or ["batch_id"]), *(["stream"] if stream else [])]
    ):
        raise DamagedTableError(path, missing_columns)
    table_rows = read_table(table, path, wanted_columns)
    # Filter here, not in the library: it skips files that have no statistics for the column.
    table_rows = table_rows.filter(pc.less_equal(table_rows.column("batch_id"), upto))
    return table_rows if stream is None else table_rows.filter(pc.equal(table_rows.column("stream"), stream))


def read_required_rows(path: StoragePath, upto: int, columns: Sequence[str] | None = None) -> pa.Table:
    """Return the rows of batches up to `upto`; raise NoTableError if the table does not exist."""
    return require_table(path, read_rows(path, upto, columns))


def require_table(path: StoragePath, table_rows: pa.Table | None) -> pa.Table:
    """Return the rows, or raise NoTableError if they are None."""
    if table_rows is None:
        raise NoTableError(f"no table at {path}: a stream creates its tables when it starts")
    return table_rows


def read_as_of(path: StoragePath, application: str, upto: int) -> pa.Table | None:
    """Return a latest-values table as of a batch of its writer; None if the table does not exist."""
    table = open_table(path)
    if table is None:
        return None
    version = table.version()
    while version > 0 and (table.transaction_version(application) or 0) > upto:
        version -= 1
        table.load_as_version(version)
    return read_table(table, path, None)


def open_table(path: StoragePath) -> ArrowDeltaTable | None:
    """Open a table; return None if it does not exist. Raises DamagedTableError if it cannot be opened."""
    try:
        return open_delta_table(path)
    except TableNotFoundError:
        return None
    except DeltaError as problem:
        cause = _describe_log_gap(path) or str(problem).splitlines()[0]
        raise DamagedTableError(path, f"cannot be opened: {cause}") from problem


def _describe_log_gap(path: StoragePath) -> str:
    """Describe the first version that is missing from the log after the last checkpoint, if any."""
    names = sorted(log_file.name for log_file in (path / DELTA_LOG_FOLDER).iterdir())
    commits = [int(name.partition(".")[0]) for name in names if COMMIT_FILE_PATTERN.fullmatch(name)]
    checkpoints = [
        int(name.partition(".")[0]) for name in names if ".checkpoint." in name and name[:20].isdecimal()
    ]
    first_version = max(checkpoints, default=-1) + 1
    expected = range(first_version, max(commits, default=first_version - 1) + 1)
    missing = next((version for version in expected if version not in set(commits)), None)
    return "" if missing is None else f"version {missing} is missing from its log"


def read_table(table: DeltaTable, path: StoragePath, columns: Sequence[str] | None) -> pa.Table:
    """Return the rows of an open table; raise DamagedTableError if a file cannot be read."""
    try:
        return pa.table(table.to_pyarrow_table(columns=None if columns is None else list(columns)))
    except (DeltaError, OSError, pa.ArrowException) as problem:
        raise DamagedTableError(path, f"cannot be read: {str(problem).splitlines()[0]}") from problem


def to_milliseconds(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Convert a column of timestamps to milliseconds since the epoch."""
    return pc.cast(pc.cast(column, pa.timestamp("ms", tz="UTC"), safe=False), pa.int64())
