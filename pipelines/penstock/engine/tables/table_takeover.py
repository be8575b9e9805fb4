"""Replaces the content of a table by that of a staged table in one commit, so readers see all of it or none.

The staged files are hard-linked into the table's folder, or copied where links do not work. The replaced files stay
for readers of older versions. The commit carries (application, batch id) like every other, so it happens once.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, PostCommitHookProperties, Transaction
from deltalake.exceptions import CommitFailedError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction

from penstock.core.file_sync import sync_files
from penstock.engine.storage import StoragePath
from penstock.engine.storage.file_access import create_delta_table, link_or_copy_file, open_delta_table
from penstock.engine.tables.batch_table import MAX_COMMIT_ATTEMPTS
from penstock.engine.tables.file_statistics import UNIX_EPOCH, encode_statistics, format_timestamp
from penstock.engine.tables.log_entries import build_commit_properties, find_newest_version, list_log_files
from penstock.engine.tables.table_change import DataFile

FilePredicate = Callable[[str], bool]
ONE_MICROSECOND = timedelta(microseconds=1)


def take_over_table(
    table: StoragePath,
    staged: StoragePath,
    application: str,
    batch_id: int,
    clock: int,
    is_ours: FilePredicate | None = None,
) -> bool:
    """Replace the files of `table` by those of the staged table; return False when that was done before.

    `is_ours` selects by name the files to replace, for a table that several streams write. Without it all files
    are replaced, and the table also gets the columns of the staged table.
    """
    staged_table = open_delta_table(staged)
    live_table = _open_or_create(table, staged_table)
    for _ in range(MAX_COMMIT_ATTEMPTS):
        live_table.update_incremental()
        last_batch = live_table.transaction_version(application)
        if last_batch is not None and last_batch >= batch_id:
            return False
        adds = list(_link_files(staged_table, table, staged, f"{application}-{batch_id:012d}", clock))
        _sync_files(table, [add.path for add in adds], live_table)
        try:
            _commit_takeover(
                live_table, staged_table, adds, Transaction(application, batch_id), clock, is_ours
            )
        except CommitFailedError:
            continue  # another writer committed meanwhile
        _sync_files(table, [], live_table)
        return True
    raise OSError(
        f"{table}: {MAX_COMMIT_ATTEMPTS} commits conflicted with other writers. Stop the other writers and retry"
    )


def _sync_files(table: StoragePath, names: Sequence[str], live_table: DeltaTable) -> None:
    """Sync these files, and the newest entry of the log; an object store needs none."""
    if isinstance(table, Path):
        version = find_newest_version(table, live_table.version())
        sync_files([*(table / name for name in names), *list_log_files(table, version, version)])


def _commit_takeover(
    live_table: DeltaTable,
    staged_table: DeltaTable,
    adds: list[AddAction],
    batch: Transaction,
    clock: int,
    is_ours: FilePredicate | None,
) -> None:
    removed_paths = [path for path in _list_live_paths(live_table) if is_ours is None or is_ours(path)]
    removes = [] if is_ours is None else [RemoveAction(path, True, clock) for path in removed_paths]
    live_table.create_write_transaction(
        [*adds, *removes],
        mode="overwrite" if is_ours is None else "append",
        schema=staged_table.schema() if is_ours is None else live_table.schema(),
        # No retries by Delta: changes by others, such as merged files, must be read before the next attempt.
        commit_properties=build_commit_properties(adds, removed_paths, [batch], max_commit_retries=0),
        post_commithook_properties=PostCommitHookProperties(cleanup_expired_logs=False),
    )


def _link_files(
    staged_table: DeltaTable, table: StoragePath, staged: StoragePath, prefix: str, clock: int
) -> Iterator[AddAction]:
    """Link the staged files into the table's folder under new names, and yield their add actions."""
    for file in pa.table(staged_table.get_add_actions(flatten=True)).to_pylist():
        new_name = f"{prefix}-{file['path']}"
        link_or_copy_file(staged / file["path"], table / new_name)
        yield AddAction(new_name, file["size_bytes"], {}, clock, True, _to_statistics_json(file))


def _list_live_paths(live_table: DeltaTable) -> list[str]:
    return [str(path) for path in pa.table(live_table.get_add_actions()).column("path").to_pylist()]


def _open_or_create(table: StoragePath, staged_table: DeltaTable) -> DeltaTable:
    try:
        return open_delta_table(table)
    except TableNotFoundError:
        metadata = staged_table.metadata()
        return create_delta_table(
            table,
            staged_table.schema(),
            description=metadata.description,
            configuration=metadata.configuration,
        )


def to_data_file(file: Mapping[str, Any]) -> DataFile:
    """Return a file of a table from its flattened add action."""
    return DataFile(
        file["path"],
        file["size_bytes"],
        file["num_records"],
        _to_statistics_json(file),
        file["modification_time"],
    )


def _to_statistics_json(file: Mapping[str, Any]) -> str:
    """Return the statistics of a staged file as JSON."""

    def select_bounds(end: str) -> dict[str, Any]:
        return {
            name.removeprefix(f"{end}."): _to_statistics_value(value)
            for name, value in file.items()
            if name.startswith(f"{end}.") and value is not None
        }

    payload = {
        "numRecords": file["num_records"],
        "minValues": select_bounds("min"),
        "maxValues": select_bounds("max"),
        "nullCount": select_bounds("null_count"),
    }
    return encode_statistics(payload)


def _to_statistics_value(value: Any) -> Any:
    match value:
        case datetime():
            return format_timestamp((value - UNIX_EPOCH) // ONE_MICROSECOND)
        case date():
            return value.isoformat()
        case _:
            return value
