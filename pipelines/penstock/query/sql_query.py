"""Runs one SQL query over tables of a warehouse, each at one version.

The engine is DataFusion, as delta-rs brings it. Decision record 0078 compares it with DuckDB.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from queue import Empty, Full, Queue
from threading import Event, Thread
from time import monotonic
from typing import Literal

import pyarrow as pa
from deltalake import QueryBuilder
from deltalake.exceptions import DeltaError

from penstock.engine.storage import StoragePath
from penstock.query.errors import DamagedRowsError, QueryTimeoutError
from penstock.query.sql_errors import explain_sql_error, find_unknown_table
from penstock.query.sql_statement import require_query
from penstock.query.table_snapshots import (
    ChangedTables,
    TableSnapshot,
    align_snapshots,
    know_no_changes,
    open_snapshot,
)
from penstock.query.table_versions import VersionSelector

BATCHES_AHEAD = 4
"""How many batches of an answer are computed before they are read."""
FULL_QUEUE_POLL_S = 0.1


@dataclass(frozen=True)
class QueryOptions:
    """Which versions a query reads, and its limits. None means the newest, and no limit."""

    selector: VersionSelector = None
    max_rows: int | None = None
    time_limit_s: float | None = None
    find_changes: ChangedTables = know_no_changes


@dataclass
class QueryAnswer:
    """The rows of a query, in batches, and the versions that they come from. Batches can be read once."""

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]
    snapshots: Sequence[TableSnapshot]
    is_cut: bool = False
    """Whether there are more rows than `max_rows`; known after the last batch."""

    def read_all(self) -> pa.Table:
        """Return all rows."""
        return pa.Table.from_batches(self.batches, self.schema)

    def describe_snapshots(self) -> str:
        """Describe the tables and their batches."""
        return ", ".join(snapshot.describe() for snapshot in self.snapshots)


def run_query(warehouse: StoragePath, statement: str, options: QueryOptions | None = None) -> QueryAnswer:
    """Run a query.

    Raises StatementError for one that is invalid or not a query, UnknownTableError and VersionError for its tables,
    and QueryTimeoutError, also while batches are read.
    """
    options = options or QueryOptions()
    query = require_query(statement)
    return run_snapshot_query(query, _open_tables(warehouse, query, options), options)


def run_snapshot_query(
    query: str, snapshots: Sequence[TableSnapshot], options: QueryOptions | None = None
) -> QueryAnswer:
    """Run a query over open tables. Raises StatementError for an invalid one, and DamagedRowsError."""
    options = options or QueryOptions()
    _verify_tables(snapshots)
    try:
        execution = _Execution(query, snapshots, options.time_limit_s)
    except DeltaError as error:
        raise explain_sql_error(str(error)) from None
    answer = QueryAnswer(execution.schema, iter(()), snapshots)
    answer.batches = _limit_rows(execution, answer, options.max_rows)
    return answer


def _verify_tables(snapshots: Sequence[TableSnapshot]) -> None:
    for snapshot in snapshots:
        try:
            snapshot.table.verify()
        except OSError as damage:
            fix = "`penstock audit` shows the extent; a replay of the stream replaces all rows"
            raise DamagedRowsError(f"table {snapshot.name}: {damage}. {fix}") from damage


def _open_tables(warehouse: StoragePath, query: str, options: QueryOptions) -> list[TableSnapshot]:
    """Open the tables of a query: the engine names one that it lacks, until it lacks none."""
    snapshots: list[TableSnapshot] = []
    while (name := _find_missing_table(query, snapshots)) is not None:
        snapshots.append(open_snapshot(warehouse, name, options.selector))
    align_snapshots(snapshots, options.find_changes)
    return snapshots


def _find_missing_table(query: str, snapshots: Sequence[TableSnapshot]) -> str | None:
    try:
        _start(f"EXPLAIN {query}" if query[:7].lower() != "explain" else query, snapshots)
    except DeltaError as error:
        if (name := find_unknown_table(str(error))) is None:
            raise explain_sql_error(str(error)) from None
        return name
    return None


def _start(query: str, snapshots: Sequence[TableSnapshot]) -> pa.RecordBatchReader:
    """Plan a query. Its rows are computed when they are read, without Python's lock."""
    builder = QueryBuilder()
    for snapshot in snapshots:
        builder.register(f'"{snapshot.name}"', snapshot.table)
    return pa.RecordBatchReader.from_stream(builder.execute(query))


class _Execution:
    """A query that runs in a thread, so that a limit of time or Ctrl-C ends the wait for it."""

    def __init__(self, query: str, snapshots: Sequence[TableSnapshot], time_limit_s: float | None) -> None:
        self._reader = _start(query, snapshots)
        self.schema = pa.schema([field.with_type(_plain_type(field.type)) for field in self._reader.schema])
        self._deadline = None if time_limit_s is None else monotonic() + time_limit_s
        self._time_limit_s = time_limit_s
        self._queue: Queue[pa.RecordBatch | BaseException | Literal["end"]] = Queue(BATCHES_AHEAD)
        self._is_abandoned = Event()
        Thread(target=self._produce, daemon=True, name="query").start()

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        try:
            while (item := self._take()) != "end":
                if isinstance(item, BaseException):
                    raise explain_sql_error(str(item)) from None
                yield item.cast(self.schema)
        finally:
            self._is_abandoned.set()

    def _produce(self) -> None:
        try:
            for batch in self._reader:
                if not self._put(batch):
                    return
        except (OSError, pa.ArrowException) as error:
            self._put(error)
        else:
            self._put("end")

    def _put(self, item: pa.RecordBatch | BaseException | Literal["end"]) -> bool:
        """Put an item into the queue; return False once the caller reads no more."""
        while not self._is_abandoned.is_set():
            try:
                self._queue.put(item, timeout=FULL_QUEUE_POLL_S)
            except Full:
                continue
            return True
        return False

    def _take(self) -> pa.RecordBatch | BaseException | Literal["end"]:
        remaining_s = None if self._deadline is None else max(self._deadline - monotonic(), 0.0)
        try:
            return self._queue.get(timeout=remaining_s)
        except Empty:
            raise QueryTimeoutError(
                f"the query took longer than {self._time_limit_s:g} s. Restrict it with WHERE, or allow more time"
            ) from None


def _limit_rows(batches: "_Execution", answer: QueryAnswer, max_rows: int | None) -> Iterator[pa.RecordBatch]:
    remaining = max_rows
    for batch in batches:
        if remaining is None:
            yield batch
            continue
        if batch.num_rows > remaining:
            answer.is_cut = True
            yield batch.slice(0, remaining)
            return
        remaining -= batch.num_rows
        yield batch


def _plain_type(data_type: pa.DataType) -> pa.DataType:
    """Return the type without views, which many readers do not know."""
    if pa.types.is_string_view(data_type):
        return pa.string()
    return pa.binary() if pa.types.is_binary_view(data_type) else data_type
