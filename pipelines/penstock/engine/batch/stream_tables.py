"""The tables of one stream, written together for each batch."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.batch.accounts import PartitionAccount
from penstock.engine.batch.batch_input import CHECK_COUNTS_SCHEMA
from penstock.engine.batch.erasure_account import ERASURES_FOLDER, ERASURES_SCHEMA
from penstock.engine.batch.input_watermarks import topic_of
from penstock.engine.batch.lookup_versions import LOOKUP_VERSIONS_SCHEMA
from penstock.engine.batch_time import BatchTime
from penstock.engine.operators.compiled_stage import CompiledStage
from penstock.engine.operators.ordered.state_schema import WINDOW_NUMBER_FIELD
from penstock.engine.operators.stage_graph import CompiledGraph
from penstock.engine.operators.stateful.side_outputs import output_schema, select_output_panes
from penstock.engine.plan.codec import contract_version
from penstock.engine.plan.sinks import CompleteTableSink, FinalPanes, LatestValues, PaneLog, Sink
from penstock.engine.plan.stages import Plan
from penstock.engine.plan.windows import Fixed, Global, Sliding, Window
from penstock.engine.storage import StoragePath
from penstock.engine.tables.batch_table import BatchTable
from penstock.engine.tables.complete_table import CompleteResultTable
from penstock.engine.tables.latest_table import LatestTable, to_latest_schema
from penstock.engine.tables.log_table import LogTable
from penstock.engine.tables.published_topic import open_published_topics
from penstock.engine.tables.table_change import TableChange
from penstock.engine.tables.table_paths import (
    LOOKUPS_FOLDER,
    late_records_path,
    result_path,
    stage_ledger_path,
)
from penstock.engine.tables.timestamps import TIMESTAMP_TYPE, as_table, to_table_schema, to_timestamps

DEFAULT_FILE_SPAN_US = 3_600_000_000
MAX_PARALLEL_COMMITS = 4
BATCH_FIELDS = (pa.field("batch_id", pa.int64()), pa.field("batch_clock", TIMESTAMP_TYPE))
ADDRESS_FIELDS = (
    pa.field("topic", pa.string()),
    pa.field("partition", pa.int32()),
    pa.field("offset", pa.int64()),
)
QUARANTINED_RECORD_SCHEMA = pa.schema(
    [
        *ADDRESS_FIELDS,
        pa.field("arrived", TIMESTAMP_TYPE),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("reason", pa.string()),
    ]
)
"""An invalid record: its address, its bytes, and the reason."""

QUARANTINE_SCHEMA = pa.schema(
    [*QUARANTINED_RECORD_SCHEMA, pa.field("stream", pa.string()), pa.field("contract", pa.string())]
)
"""The quarantine table of a topic, which several streams may write: the stream and contract that rejected it."""

LEDGER_SCHEMA = pa.schema(
    [
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        *(pa.field(name, pa.int64()) for name in ("start", "end", "read", "folded", "late", "quarantined")),
        *(pa.field(name, pa.int64()) for name in ("duplicate", "filtered")),
    ]
)
"""The account of each batch for a partition, offsets [start, end)."""


def late_record_schema(stage: CompiledStage) -> pa.Schema:
    """Return the schema of late records: address, window, and by how much the record missed it."""
    return pa.schema(
        [
            *ADDRESS_FIELDS,
            *stage.key,
            pa.field("event_time", TIMESTAMP_TYPE),
            pa.field("window_start", TIMESTAMP_TYPE),
            pa.field("window_end", TIMESTAMP_TYPE),
            pa.field("watermark", TIMESTAMP_TYPE),
            pa.field("missed_by_ms", pa.int64()),
            pa.field("reason", pa.string()),
            pa.field("record", pa.string()),
        ]
    )


@dataclass(frozen=True)
class BatchRows:
    """The rows of a batch for its tables. Tables without rows are left out."""

    panes: Mapping[str, pa.Table]
    """The panes of each stage."""
    late: Mapping[str, pa.Table]
    """The records that each first stage refused."""
    quarantined: pa.Table
    accounts: tuple[PartitionAccount, ...]
    """The account of each partition in the first stage that reads it."""
    other_accounts: Mapping[str, tuple[PartitionAccount, ...]] = field(default_factory=dict)
    """The accounts of other first stages that read the same partitions."""
    check_counts: pa.Table = field(default_factory=CHECK_COUNTS_SCHEMA.empty_table)
    lookup_rows: pa.Table = field(default_factory=LOOKUP_VERSIONS_SCHEMA.empty_table)
    topic_rows: Mapping[str, pa.Table] = field(default_factory=dict)
    """The rows for topics, by stage."""


class BatchSink(Protocol):
    """Where an engine writes the rows of a batch."""

    def write(self, rows: BatchRows, batch_time: BatchTime) -> dict[str, TableChange]:
        """Write the rows invisibly, and return the changes that make them visible."""

    def discard(self, changes: Mapping[str, TableChange]) -> None:
        """Remove what was written for a batch that failed before its commit."""

    def commit(self, batch_id: int, changes: Mapping[str, TableChange], clock: int) -> None:
        """Commit a batch's changes, each once."""


class StreamTables:
    """The tables of one stream: panes, late records, the quarantine of its topics, and its ledger."""

    def __init__(
        self,
        plan: Plan,
        graph: CompiledGraph,
        warehouse: StoragePath,
        client_config: Mapping[str, str] | None = None,
    ) -> None:
        """Open the tables. Without `client_config` for Kafka nothing is published, as in a bounded run."""
        self._sinks = {
            path: (stage.plan.name, *_open_sink(sink, stage, warehouse / path, plan.name))
            for stage in graph.stages
            for path, sink in list_sink_paths(stage)
        }

        def open_log(path: str, schema: pa.Schema) -> tuple[str, LogTable]:
            return path, LogTable(warehouse / path, _add_batch_fields(schema), plan.name)

        self._late = {
            stage.plan.name: open_log(late_records_path(plan, stage.plan), late_record_schema(stage))
            for stage in graph.record_stages
        }
        self._quarantines = {
            topic_of(source): open_log(f"quarantine/{source.name}", QUARANTINE_SCHEMA)
            for source in plan.sources
        }
        self._validated_by = {
            topic_of(source): (plan.name, contract_version(source)) for source in plan.sources
        }
        self._ledgers = {
            stage.plan.name: open_log(stage_ledger_path(plan, stage.plan), LEDGER_SCHEMA)
            for stage in graph.record_stages
        }
        self._first_ledger = self._ledgers[plan.first_source_stage.name]
        self._checks = (
            open_log(f"checks/{plan.name}", CHECK_COUNTS_SCHEMA)
            if any(s.checks for s in plan.sources)
            else None
        )
        self._lookups = (
            open_log(f"{LOOKUPS_FOLDER}/{plan.name}", LOOKUP_VERSIONS_SCHEMA) if plan.lookups else None
        )
        self._tables_by_path: dict[str, BatchTable] = dict(
            [*self._late.values(), *self._quarantines.values(), *self._ledgers.values()]
        )
        self._tables_by_path |= {path: table for path, (_, table, _) in self._sinks.items()}
        self._tables_by_path |= dict(
            optional_log for optional_log in (self._checks, self._lookups) if optional_log
        )
        self._pool = ThreadPoolExecutor(MAX_PARALLEL_COMMITS, thread_name_prefix=f"commits of {plan.name}")
        self._topics = (
            {} if client_config is None else dict(open_published_topics(plan, warehouse, client_config))
        )
        self._erasures_path = f"{ERASURES_FOLDER}/{plan.name}"
        self._open_erasures_table = partial(
            LogTable, warehouse / self._erasures_path, ERASURES_SCHEMA, plan.name
        )

    def write(self, rows: BatchRows, batch_time: BatchTime) -> dict[str, TableChange]:
        """Write a batch's rows to new files that no table references yet."""
        panes_by_stage = {stage: as_table(table) for stage, table in rows.panes.items()}
        log_rows = {
            **{self._late[stage]: _stamp_batch(late, batch_time) for stage, late in rows.late.items()},
            **self._quarantine_rows(_stamp_batch(rows.quarantined, batch_time)),
            self._first_ledger: _stamp_batch(_to_ledger_rows(rows.accounts), batch_time),
            **{
                self._ledgers[stage]: _stamp_batch(_to_ledger_rows(accounts), batch_time)
                for stage, accounts in rows.other_accounts.items()
            },
            **({self._checks: _stamp_batch(rows.check_counts, batch_time)} if self._checks else {}),
            **({self._lookups: _stamp_batch(rows.lookup_rows, batch_time)} if self._lookups else {}),
        }
        batch_id, clock = batch_time.batch_id, batch_time.clock
        changes: dict[str, TableChange] = {}
        try:
            for path, (stage, table, select_panes) in self._sinks.items():
                changes[path] = table.write(select_panes(panes_by_stage[stage]), batch_id, clock)
            for (path, log_table), table_rows in log_rows.items():
                changes[path] = log_table.write(table_rows, batch_id, clock)
            for path, topic in self._topics.items():
                changes[path] = topic.write(rows.topic_rows[topic.stage], batch_id, clock)
        except Exception:
            self.discard(changes)
            raise
        return {path: change for path, change in changes.items() if not change.is_empty}

    def discard(self, changes: Mapping[str, TableChange]) -> None:
        """Remove the files of an attempt that failed before its batch was committed."""
        for path, change in changes.items():
            target = self._topics[path] if path in self._topics else self._tables_by_path[path]
            target.discard(change.adds)

    def _quarantine_rows(self, rows: pa.Table) -> dict[tuple[str, LogTable], pa.Table]:
        """Return the invalid records for the quarantine of each topic."""
        return {
            log_entry: _to_quarantine_rows(
                rows.filter(pc.equal(rows.column("topic"), topic)), *self._validated_by[topic]
            )
            for topic, log_entry in self._quarantines.items()
        }

    def commit(self, batch_id: int, changes: Mapping[str, TableChange], clock: int) -> None:
        """Commit a batch's changes to its tables, each once, in parallel, because a commit mostly waits for files.

        If some commits fail, the others are still made, and the first error is raised.
        """

        def commit_change(path: str, change: TableChange) -> None:
            if path in self._tables_by_path:  # a table that is no longer declared does not change
                self._tables_by_path[path].commit(batch_id, change, clock)
            elif path in self._topics:
                self._topics[path].commit(batch_id, change, clock)
            elif path == self._erasures_path:  # the table exists only after an erasure
                self._open_erasures_table().commit(batch_id, change, clock)

        futures = [self._pool.submit(commit_change, path, change) for path, change in changes.items()]
        wait(futures)
        for future in futures:
            future.result()
        for path in changes.keys() & self._tables_by_path.keys():
            self._pool.submit(self._tables_by_path[path].refresh_ahead)


def list_sink_paths(stage: CompiledStage) -> list[tuple[str, Sink]]:
    """Return the path of each sink's table, below the warehouse."""
    return [(result_path(sink), sink) for sink in stage.plan.sinks]


def _open_sink(
    sink: Sink, stage: CompiledStage, path: StoragePath, application: str
) -> tuple[LogTable | LatestTable, Callable[[pa.Table], pa.Table]]:
    schema = to_table_schema(stage.pane_schema)
    match sink:
        case PaneLog(output=output):
            table_schema = to_table_schema(output_schema(stage, output))
            return LogTable(path, table_schema, application), partial(_select_output, stage, output)
        case FinalPanes():
            return LogTable(path, schema, application), _select_final
        case LatestValues():
            span_us = _file_span_us(stage.plan.window)
            return LatestTable(
                path, to_latest_schema(schema), application, _window_key_columns(stage), span_us
            ), _select_all
        case CompleteTableSink():
            return CompleteResultTable(
                path, to_latest_schema(schema), application, _window_key_columns(stage)
            ), _select_all


def _window_key_columns(stage: CompiledStage) -> list[str]:
    """Return the columns that identify a window, beside its bounds."""
    return [
        field.name for field in (*stage.key, *((WINDOW_NUMBER_FIELD,) if stage.has_window_numbers else ()))
    ]


def _select_all(panes: pa.Table) -> pa.Table:
    return panes


def _select_output(stage: CompiledStage, output: str | None, panes: pa.Table) -> pa.Table:
    return select_output_panes(stage, panes, output)


def _select_final(panes: pa.Table) -> pa.Table:
    is_insert = pc.equal(panes.column("kind"), "insert")  # a pane that was never written needs no retraction
    return panes.filter(pc.and_(panes.column("final"), is_insert))


def _file_span_us(window: Window) -> int | None:
    """Return the interval of windows that a file of latest values covers."""
    match window:
        case Fixed(size=size):
            return size * 1000
        case Sliding(period=period):
            return period * 1000
        case Global():
            return None
        case _:
            return DEFAULT_FILE_SPAN_US


def _add_batch_fields(schema: pa.Schema) -> pa.Schema:
    return pa.schema([*schema, *BATCH_FIELDS])


def _stamp_batch(rows: pa.Table, batch_time: BatchTime) -> pa.Table:
    row_count = rows.num_rows
    clock = to_timestamps(pa.chunked_array([np.full(row_count, batch_time.clock, np.int64)]))
    rows = rows.append_column(BATCH_FIELDS[0], pa.array(np.full(row_count, batch_time.batch_id, np.int64)))
    return rows.append_column(BATCH_FIELDS[1], clock)


def _to_quarantine_rows(rows: pa.Table, stream: str, contract_version_text: str) -> pa.Table:
    """Return the rows for the quarantine of one topic, in the order of its columns."""
    for column_name, text in (("stream", stream), ("contract", contract_version_text)):
        rows = rows.append_column(column_name, pa.array([text] * rows.num_rows, pa.string()))
    return rows.select(_add_batch_fields(QUARANTINE_SCHEMA).names)


def _to_ledger_rows(accounts: tuple[PartitionAccount, ...]) -> pa.Table:
    columns = {name: [getattr(account, name) for account in accounts] for name in LEDGER_SCHEMA.names}
    return pa.table(columns, schema=LEDGER_SCHEMA)


def count_panes_by_timing(panes: Iterable[pa.Table]) -> dict[str, int]:
    """Count panes by timing, and retractions, over all stages."""
    counts: Counter[str] = Counter()
    for table in panes:
        for group in table.group_by(["timing", "kind"]).aggregate([([], "count_all")]).to_pylist():
            counts[group["timing"] if group["kind"] == "insert" else group["kind"]] += group["count_all"]
    return dict(counts)
