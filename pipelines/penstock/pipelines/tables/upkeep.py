"""Few files of many, and none that nobody needs: upkeep of a table beside the stream that writes it.

A stream may have decided which files it is about to replace. So of a table of newest values only files are merged
whose windows are closed, which no batch touches any more. No batch replaces files of a table that only grows.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import PurePath
from typing import Any
from uuid import uuid4

import pyarrow as pa
from deltalake import DeltaTable, PostCommitHookProperties
from deltalake.exceptions import CommitFailedError
from deltalake.transaction import AddAction, RemoveAction

from penstock.pipelines.store import Address, Place
from penstock.pipelines.store.files import delta_table, read_rows, write_rows
from penstock.pipelines.tables.table import statistics

MOST_ROWS = 1_000_000
WORTH_MERGING = 8


@dataclass(frozen=True)
class Merged:
    """So many files became so few."""

    files: int = 0
    into: int = 0


File = dict[str, Any]


def merge_small_files(path: Place, whose: str, clock: int, closed_before: datetime | None = None) -> Merged:
    """Merge the small files of one stream in a table; without `closed_before` it is a table that only grows.

    `whose` is the stream: several may write a table, and each file says by its name whose it is. Where somebody
    commits at the same moment the files stay as they are until the next time.
    """
    table = delta_table(path)
    files = [
        file
        for file in pa.table(table.get_add_actions(flatten=True)).to_pylist()
        if file["num_records"] < MOST_ROWS // 2 and _is_free(file, whose, closed_before)
    ]
    merged = into = 0
    for group in _groups(sorted(files, key=lambda file: (str(file.get("min.window_start")), file["path"]))):
        if len(group) >= WORTH_MERGING and _merge(table, path, group, whose, clock):
            merged, into = merged + len(group), into + 1
    return Merged(merged, into)


def remove_unneeded(path: Place, hours: int, needed: Collection[str], *, dry_run: bool = False) -> list[str]:
    """Remove files that no version of the last hours names, unless they are needed; returns their names.

    `needed` are the files of batches that are decided and perhaps not committed yet: no version names them.
    """
    table = delta_table(path)
    found = table.vacuum(retention_hours=hours, dry_run=True, enforce_retention_duration=False, full=True)
    unneeded = [name for name in found if PurePath(name).name not in needed and not _is_folder(path, name)]
    if not dry_run:
        for name in unneeded:
            (path / name).unlink(missing_ok=True)
        table.create_checkpoint()
        table.cleanup_metadata()
    return unneeded


def _is_folder(table: Place, name: str) -> bool:
    """Whether a name is that of an empty object by which an object store's tools mark a folder."""
    return isinstance(table, Address) and not PurePath(name).suffix


def _is_free(file: File, whose: str, closed_before: datetime | None) -> bool:
    """Whether no batch can be about to replace a file."""
    if not file["path"].startswith(f"{whose}-") and closed_before is None:
        return False
    end = file.get("max.window_end")
    return closed_before is None or (end is not None and end <= closed_before)


def _groups(files: list[File]) -> Iterator[list[File]]:
    group: list[File] = []
    for file in files:
        if group and sum(each["num_records"] for each in group) + file["num_records"] > MOST_ROWS:
            yield group
            group = []
        group.append(file)
    yield group


def _merge(table: DeltaTable, path: Place, group: list[File], whose: str, clock: int) -> bool:
    schema = pa.schema(table.schema().to_arrow())
    rows = pa.concat_tables([read_rows(path / file["path"], schema) for file in group])
    name = f"{whose}-merged-{uuid4().hex}.parquet"
    size = write_rows(rows, path / name, store_schema=False)
    added = AddAction(name, size, {}, clock, False, statistics(rows))
    removed = [RemoveAction(file["path"], False, clock) for file in group]
    try:
        table.create_write_transaction(
            [added, *removed],
            mode="append",
            schema=schema,
            post_commithook_properties=PostCommitHookProperties(cleanup_expired_logs=False),
        )
    except CommitFailedError:
        (path / name).unlink()
        return False
    return True
