"""The changes of a table, batch by batch, from its log.

A table of current rows replaces rows, so its changes are in the log beside it. All other tables are logs.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

import pyarrow as pa
import pyarrow.compute as pc

from penstock.core.clock import Clock, now_ms
from penstock.engine.storage import StoragePath
from penstock.engine.storage.file_access import is_delta_table
from penstock.query.errors import QueryError
from penstock.query.table_names import LOG_FOLDER, LOG_SUFFIX
from penstock.query.table_rows import list_columns, read_table_rows
from penstock.query.table_snapshots import TableSnapshot, open_snapshot
from penstock.query.table_versions import read_batch

BATCH_COLUMN, KIND_COLUMN = "batch_id", "kind"
REPLACING_FOLDERS = ("latest", "complete")
"""The folders of tables whose rows are replaced."""


@dataclass(frozen=True)
class BatchChanges:
    """The rows that one batch appended to a log; retractions come before inserts."""

    batch_id: int
    rows: pa.Table


@dataclass(frozen=True)
class WatchOptions:
    """How `watch` waits: the interval of its polls, its clock, and after how long without a batch it ends."""

    poll_interval_s: float = 1.0
    idle_timeout_s: float | None = None
    clock: Clock = now_ms
    sleep: Callable[[float], None] = time.sleep


def open_log(warehouse: StoragePath, snapshot: TableSnapshot) -> TableSnapshot:
    """Return the newest version of the log of a table. Raises QueryError if it has none."""
    path = PurePosixPath(snapshot.path)
    name = f"{path.name}_{LOG_SUFFIX}"
    if path.parts[0] in REPLACING_FOLDERS:
        if not is_delta_table(warehouse / LOG_FOLDER / path.name):
            raise QueryError(
                f"table {snapshot.name} has no log, so its changes are not known. "
                f'Add .write("{path.name}", mode="log") to its pipeline'
            )
    else:
        name = snapshot.name.partition("@")[0]
    log = open_snapshot(warehouse, name)
    if BATCH_COLUMN not in list_columns(log):
        raise QueryError(f"table {name} has no column {BATCH_COLUMN}, so its changes are not known")
    if log.stream is None:
        raise QueryError(f"table {name} has no single writer, so its batches have no common order")
    return log


def read_changes(log: TableSnapshot, since: int, columns: Sequence[str] = (), where: str = "") -> pa.Table:
    """Return the rows of all batches after `since`, in order."""
    order = [BATCH_COLUMN, *([f"{KIND_COLUMN} DESC"] if KIND_COLUMN in list_columns(log) else [])]
    condition = f"{BATCH_COLUMN} > {since}" + (f" AND ({where})" if where else "")
    return read_table_rows(log, columns, condition, order)


def watch_changes(
    log: TableSnapshot, since: int | None, columns: Sequence[str], where: str, options: WatchOptions
) -> Iterator[BatchChanges]:
    """Yield the changes of each batch after `since`, and wait for the next; None means the newest batch."""
    last = read_batch(log.table, str(log.stream)) if since is None else since
    needed = list(dict.fromkeys([*columns, BATCH_COLUMN])) if columns else []
    waiting_since_ms = options.clock()
    while True:
        rows = read_changes(log, last, needed, where)
        for batch_id in pc.unique(rows.column(BATCH_COLUMN)).to_pylist():
            batch_rows = rows.filter(pc.equal(rows.column(BATCH_COLUMN), batch_id))
            yield BatchChanges(batch_id, batch_rows.select(list(columns)) if columns else batch_rows)
        if (newest := read_batch(log.table, str(log.stream))) > last:
            last, waiting_since_ms = newest, options.clock()
        idle_s = (options.clock() - waiting_since_ms) / 1000
        if options.idle_timeout_s is not None and idle_s >= options.idle_timeout_s:
            return
        options.sleep(options.poll_interval_s)
        log.table.update_incremental()
