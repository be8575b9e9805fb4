"""The tables of a stream, read as they were after a batch; and whether a table is whole."""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from penstock.engine.storage import StoragePath
from penstock.engine.storage.file_access import (
    DELTA_LOG_FOLDER,
    file_size,
    open_delta_table,
    read_file_contents,
)
from penstock.quality.audit.verdict import AuditDifference
from penstock.quality.errors import DamagedTableError, NoTableError

COMMIT_FILE_PATTERN = re.compile(r"\d{20}\.json")


@dataclass(frozen=True)
class TableRequirements:
    """What a table must have: the columns that the audit goes by, and the last batch that its writer decided."""

    columns: Collection[str] = ()
    writer: str = ""
    batch: int = -1


def check_table_files(
    path: StoragePath, table: str, requirements: TableRequirements = TableRequirements()
) -> Iterator[AuditDifference]:
    """Yield the files that a table names that are not there as it says, and batches that came in twice or never.

    A table that is not there has none; one that cannot be opened, or has other columns, is a difference itself.
    """
    try:
        delta = open_table(path)
    except DamagedTableError as problem:
        yield AuditDifference(table, f"it {problem.finding}")
        return
    if delta is None:
        return
    if missing_columns := describe_missing_columns(delta, requirements.columns):
        yield AuditDifference(table, f"it {missing_columns}")
        return
    for row in pa.table(delta.get_add_actions(flatten=True)).select(["path", "size_bytes"]).to_pylist():
        size = file_size(path / row["path"])
        if size is None:
            yield AuditDifference(f"{table}, file {row['path']}", "the table names it, and it is not there")
        elif size != row["size_bytes"]:
            yield AuditDifference(
                f"{table}, file {row['path']}",
                f"it has {size} bytes, and was brought in with {row['size_bytes']}",
            )
    yield from _find_double_commits(path, table)
    newest_batch = delta.transaction_version(requirements.writer)
    if requirements.batch > (-1 if newest_batch is None else newest_batch):
        state_text = (
            f"its newest is {newest_batch}" if newest_batch is not None else "it has none of its batches"
        )
        yield AuditDifference(
            table, f"{requirements.writer} wrote to it in batch {requirements.batch}, and {state_text}"
        )


def describe_missing_columns(table: DeltaTable, columns: Iterable[str]) -> str:
    """Say which of some columns a table lacks; nothing where it has them all."""
    missing = sorted({*columns} - {field.name for field in table.schema().fields})
    missing_names = ", ".join(missing)
    return f"has no column {missing_names}: it is not what its stream made there" if missing else ""


def read_rows(
    path: StoragePath, upto: int, columns: Sequence[str] | None = None, stream: str | None = None
) -> pa.Table | None:
    """Return the rows of batches up to `upto`, of one stream where several write; None where there is no table.

    With `columns` those and the batch, else all. DamagedTableError where a column is not there, or a file of the
    table cannot be read.
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
    # Filtered here, not by the library: a file without statistics of a column has no rows for it.
    table_rows = table_rows.filter(pc.less_equal(table_rows.column("batch_id"), upto))
    return table_rows if stream is None else table_rows.filter(pc.equal(table_rows.column("stream"), stream))


def read_required_rows(path: StoragePath, upto: int, columns: Sequence[str] | None = None) -> pa.Table:
    """Return the same of a table that must be there. NoTableError where it is not."""
    return require_table(path, read_rows(path, upto, columns))


def require_table(path: StoragePath, table_rows: pa.Table | None) -> pa.Table:
    """Return what was found of a table. NoTableError where that is nothing."""
    if table_rows is None:
        raise NoTableError(f"there is no table at {path}: a stream makes its tables when it starts")
    return table_rows


def read_as_of(path: StoragePath, application: str, upto: int) -> pa.Table | None:
    """Return a table of newest values as it stood after a batch of its writer; None where there is none."""
    table = open_table(path)
    if table is None:
        return None
    version = table.version()
    while version > 0 and (table.transaction_version(application) or 0) > upto:
        version -= 1
        table.load_as_version(version)
    return read_table(table, path, None)


def open_table(path: StoragePath) -> DeltaTable | None:
    """Return a table; None where nothing was ever written."""
    try:
        return open_delta_table(path)
    except TableNotFoundError:
        return None
    except DeltaError as problem:
        cause = _describe_log_gap(path) or str(problem).splitlines()[0]
        raise DamagedTableError(path, f"cannot be opened: {cause}") from problem


def _describe_log_gap(path: StoragePath) -> str:
    """Say which version a table's log lacks after what sums it up; nothing where it is another thing."""
    names = sorted(log_file.name for log_file in (path / DELTA_LOG_FOLDER).iterdir())
    commits = [int(name.partition(".")[0]) for name in names if COMMIT_FILE_PATTERN.fullmatch(name)]
    checkpoints = [
        int(name.partition(".")[0]) for name in names if ".checkpoint." in name and name[:20].isdecimal()
    ]
    first_version = max(checkpoints, default=-1) + 1
    expected = range(first_version, max(commits, default=first_version - 1) + 1)
    missing = next((version for version in expected if version not in set(commits)), None)
    return "" if missing is None else f"version {missing} is not in its log"


def read_table(table: DeltaTable, path: StoragePath, columns: Sequence[str] | None) -> pa.Table:
    """Return the rows of a table as it was opened. DamagedTableError where a file cannot be read."""
    try:
        return pa.table(table.to_pyarrow_table(columns=None if columns is None else list(columns)))
    except (DeltaError, OSError, pa.ArrowException) as problem:
        raise DamagedTableError(path, f"cannot be read: {str(problem).splitlines()[0]}") from problem


def _find_double_commits(path: StoragePath, table: str) -> Iterator[AuditDifference]:
    """Yield batches that two commits brought in: each carries the batch of its writer, and these only rise."""
    newest_by_writer: dict[str, tuple[int, int]] = {}
    logs = sorted(
        (
            log_file
            for log_file in (path / DELTA_LOG_FOLDER).iterdir()
            if COMMIT_FILE_PATTERN.fullmatch(log_file.name)
        ),
        key=lambda log_file: log_file.name,
    )
    for log, content in zip(logs, read_file_contents(logs), strict=True):
        version = int(log.name.partition(".")[0])
        try:
            actions = [json.loads(line) for line in content.decode().splitlines() if '"txn"' in line]
        except ValueError as problem:
            yield AuditDifference(
                f"{table}, version {version}", f"what its log says cannot be read: {problem}"
            )
            continue
        for action in actions:
            if "txn" in action:
                writer, batch = action["txn"]["appId"], action["txn"]["version"]
                previous = newest_by_writer.get(writer)
                if previous is not None and batch <= previous[1]:
                    yield AuditDifference(
                        f"{table}, version {version}",
                        f"it brings in batch {batch} of {writer}, and version {previous[0]} batch {previous[1]}",
                    )
                newest_by_writer[writer] = (version, batch)


def to_milliseconds(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return times of a table as milliseconds."""
    return pc.cast(pc.cast(column, pa.timestamp("ms", tz="UTC"), safe=False), pa.int64())
