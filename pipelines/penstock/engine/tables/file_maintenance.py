"""Compacts small files and removes unreferenced ones, while the stream writes the table.

A stream may have chosen the files that its next commit replaces. So in a latest table only files are merged whose
windows are all closed, as no batch touches them. Append-only tables have no such limit: no batch replaces files.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePath
from typing import Any
from uuid import uuid4

import pyarrow as pa
from deltalake import DeltaTable, PostCommitHookProperties
from deltalake.exceptions import CommitFailedError
from deltalake.transaction import AddAction, RemoveAction

from penstock.core.file_sync import sync_files
from penstock.engine.storage import ObjectStorePath, StoragePath
from penstock.engine.storage.file_access import open_delta_table, read_parquet, write_parquet
from penstock.engine.tables.file_statistics import build_file_statistics
from penstock.engine.tables.log_entries import build_commit_properties, find_newest_version, list_log_files

MAX_MERGED_FILE_ROWS = 1_000_000
MIN_FILES_TO_MERGE = 8


@dataclass(frozen=True)
class FileMergeCounts:
    """The numbers of files before and after a merge."""

    merged_files: int = 0
    new_files: int = 0


FileEntry = dict[str, Any]


def merge_small_files(
    path: StoragePath, stream: str, clock: int, closed_before: datetime | None = None
) -> FileMergeCounts:
    """Merge the small files of one stream in a table; `closed_before=None` means an append-only table.

    Several streams may write an append-only table; the name of a file starts with its stream. If another writer
    commits at the same time, the files stay unmerged until the next run.
    """
    table = open_delta_table(path)
    files = [
        file
        for file in pa.table(table.get_add_actions(flatten=True)).to_pylist()
        if file["num_records"] < MAX_MERGED_FILE_ROWS // 2 and _is_mergeable(file, stream, closed_before)
    ]
    merged_files = new_files = 0
    for group in _group_files(
        sorted(files, key=lambda file: (str(file.get("min.window_start")), file["path"]))
    ):
        if len(group) >= MIN_FILES_TO_MERGE and _merge_group(table, path, group, stream, clock):
            merged_files, new_files = merged_files + len(group), new_files + 1
    return FileMergeCounts(merged_files, new_files)


def remove_unreferenced_files(
    path: StoragePath, retention_hours: int, needed: Collection[str], *, dry_run: bool = False
) -> list[str]:
    """Remove files that no retained version of the table names, and return their names.

    `needed` are the files of committed batches that the table may not name yet; they stay.
    """
    table = open_delta_table(path)
    vacuumable = table.vacuum(
        retention_hours=retention_hours, dry_run=True, enforce_retention_duration=False, full=True
    )
    unreferenced = [
        name for name in vacuumable if PurePath(name).name not in needed and not _is_folder(path, name)
    ]
    if not dry_run:
        for name in unreferenced:
            (path / name).unlink(missing_ok=True)
        table.create_checkpoint()
        if isinstance(path, Path):  # the entries that the checkpoint replaces are removed
            version = find_newest_version(path, table.version())
            sync_files(list_log_files(path, table.version(), version))
        table.cleanup_metadata()
    return unreferenced


def _is_folder(table: StoragePath, name: str) -> bool:
    """Whether a name is that of an empty object that marks a folder in an object store."""
    return isinstance(table, ObjectStorePath) and not PurePath(name).suffix


def _is_mergeable(file: FileEntry, stream: str, closed_before: datetime | None) -> bool:
    """Whether no batch can be about to replace this file."""
    if not file["path"].startswith(f"{stream}-") and closed_before is None:
        return False
    window_end = file.get("max.window_end")
    return closed_before is None or (window_end is not None and window_end <= closed_before)


def _group_files(files: list[FileEntry]) -> Iterator[list[FileEntry]]:
    group: list[FileEntry] = []
    for file in files:
        if (
            group
            and sum(entry["num_records"] for entry in group) + file["num_records"] > MAX_MERGED_FILE_ROWS
        ):
            yield group
            group = []
        group.append(file)
    yield group


def _merge_group(
    table: DeltaTable, path: StoragePath, group: list[FileEntry], stream: str, clock: int
) -> bool:
    schema = pa.schema(table.schema().to_arrow())
    rows = pa.concat_tables([read_parquet(path / file["path"], schema) for file in group])
    name = f"{stream}-merged-{uuid4().hex}.parquet"
    size = write_parquet(rows, path / name, store_schema=False)
    add_action = AddAction(name, size, {}, clock, False, build_file_statistics(rows))
    remove_actions = [RemoveAction(file["path"], False, clock) for file in group]
    try:
        table.create_write_transaction(
            [add_action, *remove_actions],
            mode="append",
            schema=schema,
            commit_properties=build_commit_properties([add_action], [file["path"] for file in group]),
            post_commithook_properties=PostCommitHookProperties(cleanup_expired_logs=False),
        )
    except CommitFailedError:
        (path / name).unlink()
        return False
    if isinstance(path, Path):
        version = find_newest_version(path, table.version())
        sync_files([path / name, *list_log_files(path, version - 1, version)])
    return True
