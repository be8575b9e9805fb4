"""A table takes over what another holds that was made beside it: in one commit, so readers see all of it or none.

The files are linked into the table's folder, or copied where they cannot be; what they replace stays on disk for
whoever reads an older version. The commit carries (application, batch id) like every other: it is made once. It is
written as Delta's log has it, because it must replace files and columns at once, which no library offers.
"""

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from penstock.pipelines.tables.table import ATTEMPTS, EPOCH, stamp

Whose = Callable[[str], bool]
MICROSECOND = timedelta(microseconds=1)


def take_over(
    table: Path, beside: Path, application: str, batch_id: int, clock: int, whose: Whose = lambda _: True
) -> bool:
    """Replace the files of `table` that are ours by those of the table beside; False where that was done before.

    `whose` tells by a file's name whether it is ours, for a table that several streams write.
    """
    made = DeltaTable(beside)
    live = _opened(table, made)
    for _ in range(ATTEMPTS):
        live.update_incremental()
        done = live.transaction_version(application)
        if done is not None and done >= batch_id:
            return False
        if _committed(
            live, table, list(_actions(live, made, table, beside, application, batch_id, clock, whose))
        ):
            return True
    raise OSError(f"{table} is written by somebody else all the time: stop that, and try again")


def _actions(
    live: DeltaTable,
    made: DeltaTable,
    table: Path,
    beside: Path,
    application: str,
    batch_id: int,
    clock: int,
    whose: Whose,
) -> Iterator[Mapping[str, Any]]:
    yield {"commitInfo": {"timestamp": clock, "operation": "REPLACE", "operationParameters": {}}}
    if made.schema() != live.schema():
        yield {"metaData": _metadata(live, made)}
    for path in pa.table(live.get_add_actions()).column("path").to_pylist():
        if whose(path):
            yield {"remove": {"path": path, "deletionTimestamp": clock, "dataChange": True}}
    for file in pa.table(made.get_add_actions(flatten=True)).to_pylist():
        name = f"{application}-{batch_id:012d}-{file['path']}"
        _linked(beside / file["path"], table / name)
        yield {
            "add": {
                "path": name,
                "partitionValues": {},
                "size": file["size_bytes"],
                "modificationTime": clock,
                "dataChange": True,
                "stats": _statistics(file),
            }
        }
    yield {"txn": {"appId": application, "version": batch_id, "lastUpdated": clock}}


def _committed(live: DeltaTable, table: Path, actions: list[Mapping[str, Any]]) -> bool:
    """Make the next version of the table; False where somebody else made one meanwhile."""
    entry = table / "_delta_log" / f"{live.version() + 1:020d}.json"
    partial = entry.with_name(f".{entry.name}.{os.getpid()}.partial")
    partial.write_text("".join(json.dumps(action) + "\n" for action in actions), "utf-8")
    try:
        os.link(partial, entry)
    except FileExistsError:
        return False
    finally:
        partial.unlink()
    return True


def _opened(table: Path, made: DeltaTable) -> DeltaTable:
    try:
        return DeltaTable(table)
    except TableNotFoundError:
        table.parent.mkdir(parents=True, exist_ok=True)
        kept = made.metadata().configuration
        return DeltaTable.create(table, made.schema(), mode="ignore", name=table.name, configuration=kept)


def _metadata(live: DeltaTable, made: DeltaTable) -> Mapping[str, Any]:
    now = live.metadata()
    return {
        "id": now.id,
        "name": now.name,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": made.schema().to_json(),
        "partitionColumns": list(now.partition_columns),
        "createdTime": now.created_time,
        "configuration": dict(now.configuration),
    }


def _linked(source: Path, target: Path) -> None:
    if target.exists():
        return
    partial = target.with_name(f"_{target.name}.partial")
    partial.unlink(missing_ok=True)
    try:
        os.link(source, partial)
    except OSError:  # another file system
        shutil.copyfile(source, partial)
    partial.replace(target)


def _statistics(file: Mapping[str, Any]) -> str:
    """What the table beside says of a file: its rows, nulls and bounds, by which it is found."""

    def of(end: str) -> dict[str, Any]:
        return {
            name.removeprefix(f"{end}."): _said(value)
            for name, value in file.items()
            if name.startswith(f"{end}.") and value is not None
        }

    told = {
        "numRecords": file["num_records"],
        "minValues": of("min"),
        "maxValues": of("max"),
        "nullCount": of("null_count"),
    }
    return json.dumps(told)


def _said(value: Any) -> Any:
    return stamp((value - EPOCH) // MICROSECOND) if hasattr(value, "timestamp") else value
