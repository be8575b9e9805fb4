"""A Delta table that takes each batch once.

A batch's rows are first written into files that no version of the table names yet, and later brought in by one
commit that carries (application, batch id). Both can be done again: every attempt writes files of its own, so that
a host that was taken over and wakes replaces nothing, and a commit that is there already is not made twice. Two
writers at work on one table cannot both commit a batch either: Delta refuses the one whose view of the
application's last batch was old. What nobody named goes with maintenance.
"""

import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from math import isfinite
from pathlib import Path
from threading import RLock
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Schema, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction

from penstock.pipelines.store import Place
from penstock.pipelines.store.files import delta_table, new_table, write_rows
from penstock.pipelines.tables.change import Change, DataFile

CHECKPOINT_EVERY = 50
CHECKPOINT_EVERY_IN_A_STORE = 10
"""Each commit reads all entries of the log since the last checkpoint, and in an object store each is a request."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
EARLIEST_US, LATEST_US = -62_135_596_800_000_000, 253_402_300_799_999_999
"""The years 1 to 9999, which a text has four digits for. The window of the last second ends after them: a file
that holds it has no statistics of that column, and is always looked into."""
LONGEST_TEXT = 64
"""Characters up to which a text is a bound: longer ones would make the log larger than what it saves."""
ATTEMPTS = 5


class BatchTable:
    """One table. `application` is who writes it: the name of the stream. Others may write it too, as others."""

    def __init__(self, path: Place, schema: pa.Schema, application: str) -> None:
        self.path = path
        self.schema = schema
        self.application = application
        self._table = _opened(path, schema)
        self._one_at_a_time = RLock()
        self._looked = False

    def last_batch(self) -> int:
        """The newest batch that is in the table; -1 before the first."""
        with self._one_at_a_time:
            self._look()
            return self._newest()

    def look_ahead(self) -> None:
        """Look at the table now, in any thread, so that the next commit need not: it takes as long as to commit.

        What somebody else commits after that makes the next commit look again.
        """
        with self._one_at_a_time:
            if not self._looked:
                self._look()

    def commit(self, batch_id: int, change: Change, clock: int) -> bool:
        """Make a batch's change, once; False where the batch is in the table already."""
        with self._one_at_a_time:
            for attempt in range(ATTEMPTS):
                looked_now = attempt > 0 or not self._looked
                if looked_now:
                    self._look()
                if self._newest() >= batch_id:
                    return False
                try:
                    self._commit(batch_id, change, clock)
                except DeltaError as problem:
                    # Somebody else committed since: look again, and try again if it was not this batch.
                    conflict = isinstance(problem, CommitFailedError) and attempt + 1 < ATTEMPTS
                    if looked_now and not conflict:
                        raise
                else:
                    self._looked = False
                    return True
            return False

    def _look(self) -> None:
        self._looked = False  # where this fails, the next one looks again
        self._table.update_incremental()
        self._looked = True

    def _newest(self) -> int:
        version = self._table.transaction_version(self.application)
        return -1 if version is None else version

    def write_file(self, rows: pa.Table, name: str, clock: int, **how: Any) -> DataFile:
        """Write rows into a file whose name begins so, and is like no other. The table does not name it yet."""
        path = self.path / f"{name}-{uuid4().hex[:8]}.parquet"
        size = write_rows(rows.cast(self.schema), path, store_schema=False, **how)
        return DataFile(path.name, size, rows.num_rows, statistics(rows), clock)

    def discard(self, files: Iterable[DataFile]) -> None:
        """Remove files of an attempt that failed before anything named them."""
        for file in files:
            (self.path / file.path).unlink(missing_ok=True)

    def _commit(self, batch_id: int, change: Change, clock: int) -> None:
        actions: list[AddAction | RemoveAction] = [
            AddAction(f.path, f.size, {}, f.written_at_ms, True, f.statistics) for f in change.adds
        ]
        actions += [RemoveAction(path, True, clock) for path in change.removes]
        self._table.create_write_transaction(
            actions,
            mode="append",
            schema=self.schema,
            commit_properties=CommitProperties(app_transactions=[Transaction(self.application, batch_id)]),
            post_commithook_properties=PostCommitHookProperties(cleanup_expired_logs=False),
        )


def _opened(path: Place, schema: pa.Schema) -> DeltaTable:
    try:
        return _widened(delta_table(path), schema)
    except TableNotFoundError:
        return new_table(path, schema, configuration=checkpoints(path))


def checkpoints(place: Place) -> dict[str, str]:
    """How often a new table sums its log up, as Delta's configuration says it."""
    every = CHECKPOINT_EVERY if isinstance(place, Path) else CHECKPOINT_EVERY_IN_A_STORE
    return {"delta.checkpointInterval": str(every)}


def _widened(table: DeltaTable, schema: pa.Schema) -> DeltaTable:
    """The table with columns that it lacks: one that an older version made. Its rows have nulls there."""
    known = {field.name for field in table.schema().fields}
    missing = [field for field in Schema.from_arrow(schema).fields if field.name not in known]
    if missing:
        table.alter.add_columns(missing)
    return table


def statistics(rows: pa.Table) -> str:
    """Say what Delta's readers skip files by: the count, nulls, and least and greatest of numbers, texts and times.

    There are readers that take a file without bounds of a column for one without rows of the value asked for.
    """
    least: dict[str, Any] = {}
    greatest: dict[str, Any] = {}
    for field in rows.schema:
        bounds = _bounds(rows.column(field.name))
        if bounds is not None:
            least[field.name], greatest[field.name] = bounds
    nulls = {f.name: rows.column(f.name).null_count for f in rows.schema if not pa.types.is_nested(f.type)}
    told = {"numRecords": rows.num_rows, "minValues": least, "maxValues": greatest, "nullCount": nulls}
    return json.dumps(told)


def _bounds(column: pa.ChunkedArray) -> tuple[Any, Any] | None:
    """The least and the greatest value as statistics say them; None where they cannot be said exactly."""
    if pa.types.is_timestamp(column.type):
        least, greatest = _least_and_greatest(pc.cast(column, pa.int64()))
        known = least is not None and least >= EARLIEST_US and greatest <= LATEST_US
        return (stamp(least), stamp(greatest)) if known else None
    if pa.types.is_integer(column.type):
        least, greatest = _least_and_greatest(column)
        return None if least is None else (least, greatest)
    if pa.types.is_floating(column.type):
        least, greatest = _least_and_greatest(column)
        finite = least is not None and isfinite(least) and isfinite(greatest)
        # NaN is greater than every number, and least and greatest pass over it.
        return (least, greatest) if finite and not pc.any(pc.is_nan(column)).as_py() else None
    if pa.types.is_string(column.type):
        least, greatest = _least_and_greatest(column)
        short = least is not None and max(len(least), len(greatest)) <= LONGEST_TEXT
        return (least, greatest) if short else None
    return None


def _least_and_greatest(column: pa.ChunkedArray) -> tuple[Any, Any]:
    bounds = pc.min_max(column).as_py()
    return bounds["min"], bounds["max"]


def stamp(microseconds: int) -> str:
    """A time as the statistics of a file have it."""
    return (EPOCH + timedelta(microseconds=microseconds)).strftime("%Y-%m-%dT%H:%M:%S.%fZ").zfill(27)
