"""A stream over records in memory, with real state files and real tables."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from tests.pipelines.engine.operators.duckdb_partials import compute_partials, find_windows, list_elements

from penstock.conformance.reference.input_records import InputBatch, InputRecord
from penstock.engine.batch.batch_engine import BatchEngine
from penstock.engine.batch.batch_input import ACCOUNT_SCHEMA, LATE_RECORD_SCHEMA, BatchInput
from penstock.engine.batch.engine_options import EngineOptions
from penstock.engine.batch.input_watermarks import collect_watermark_rules
from penstock.engine.batch.intent import OffsetRange
from penstock.engine.batch.outcome import BatchOutcome
from penstock.engine.batch.placement import DRIVER_ONLY, Placement
from penstock.engine.batch.record_schemas import QUARANTINED_RECORD_SCHEMA
from penstock.engine.batch.stream_tables import StreamTables
from penstock.engine.batch.write_fence import WriteFence
from penstock.engine.dedup.id_store import RecordIdStore
from penstock.engine.host_settings import STANDALONE_SETTINGS
from penstock.engine.operators.compiled_stage import CompiledStage
from penstock.engine.operators.stage_compilation import compile_stage
from penstock.engine.operators.stage_graph import CompiledGraph, compile_graph
from penstock.engine.plan.stages import Plan
from penstock.engine.storage import StoragePath
from penstock.engine.storage.file_access import open_delta_table
from penstock.engine.windows.join_window import JoinWindow

FIELDS = pa.schema([("key", pa.string()), ("at", pa.int64()), ("value", pa.int64()), ("word", pa.string())])

TYPES = {each.name: each.type for each in FIELDS}


@dataclass(frozen=True)
class InMemoryBatchInput:
    """The input of one batch. A record with an error is invalid."""

    stage: CompiledStage
    records: Sequence[InputRecord]
    clock: int
    other_stages: Sequence[CompiledStage] = ()

    def inputs_of_other_stages(self) -> "dict[str, InMemoryBatchInput]":
        return {
            stage.plan.name: InMemoryBatchInput(stage, self.records, self.clock)
            for stage in self.other_stages
        }

    def compute_partials(self) -> pa.Table:
        valid_records = [record for record in self.records if record.error is None]
        partials_by_partition = [
            self._partials_of(number, [r for r in valid_records if r.partition == number])
            for number in (0, 1)
        ]
        invalid_records = [record for record in self.records if record.error is not None]
        accounts = [
            {"_topic": r.source, "_partition": r.partition, "_fate": "quarantined", "_counted": 1}
            for r in invalid_records
        ]
        schema = pa.schema([*ACCOUNT_SCHEMA, *self.stage.partial_schema])
        return pa.concat_tables([*partials_by_partition, pa.Table.from_pylist(accounts, schema=schema)])

    def read_invalid_records(self) -> pa.Table:
        rows = [
            {
                "topic": r.source,
                "partition": r.partition,
                "offset": r.offset,
                "value": b"?",
                "reason": r.error,
            }
            for r in self.records
            if r.error is not None
        ]
        return pa.Table.from_pylist(rows, schema=QUARANTINED_RECORD_SCHEMA)

    def read_late_records(self, windows: pa.Table) -> pa.Table:
        late_windows = {tuple(row.values()) for row in windows.to_pylist()}
        names = [field.name for field in self.stage.key]
        schema = pa.schema([*LATE_RECORD_SCHEMA, *self.stage.key])
        rows = [
            {
                "topic": record.source,
                "partition": record.partition,
                "offset": record.offset,
                "event_time": record.fields["at"],
                "window_start": start,
                "window_end": end,
                "record": str(record.offset),
                **{name: record.fields[name] for name in names},
            }
            for record in self.records
            if record.error is None
            for start, end in self._find_windows(record)
            if (*(record.fields[name] for name in names), start, end) in late_windows
        ]
        return pa.Table.from_pylist(rows, schema=schema)

    def _find_windows(self, record: InputRecord) -> list[tuple[float, float]]:
        """Return the windows of a record, or the event time that an interval join judges it by."""
        at = record.fields["at"]
        if isinstance(self.stage.plan.window, JoinWindow):
            return [(at, at + 1)]
        return find_windows(self.stage.plan.window, at, self.clock)

    def _partials_of(self, partition: int, records: Sequence[InputRecord]) -> pa.Table:
        if self.stage.is_ordered:
            return self._list_records(records)
        rows = compute_partials(self.stage, records, FIELDS, "at", self.clock)
        row_count = rows.num_rows
        newest_time = max((record.fields["at"] for record in records), default=None)
        columns = [
            pa.array(["records"] * row_count, pa.string()),
            pa.array([partition] * row_count, pa.int32()),
            pa.nulls(row_count, pa.string()),
            rows.column("elements"),
            pa.array([newest_time] * row_count, pa.int64()),
            *rows.columns,
        ]
        return pa.table(columns, schema=pa.schema([*ACCOUNT_SCHEMA, *self.stage.partial_schema]))

    def _list_records(self, records: Sequence[InputRecord]) -> pa.Table:
        rows = list_elements(self.stage, records, "at")
        account_columns = {
            "_fate": pa.nulls(rows.num_rows, pa.string()),
            "_counted": pa.array([1] * rows.num_rows, pa.int64()),
            "_newest": rows.column("_time"),
        }
        for name, column in account_columns.items():
            rows = rows.append_column(name, column)
        schema = pa.schema([*ACCOUNT_SCHEMA, *self.stage.partial_schema])
        return rows.select(schema.names).cast(schema)


@dataclass
class Bench:
    """A stream in a folder. Each call of `open` is another host."""

    plan: Plan
    folder: Path
    outcomes: list[BatchOutcome] = field(default_factory=list)
    placement: Placement = DRIVER_ONLY
    table_root: StoragePath | None = None
    """Where the tables are, if not in the folder."""
    syncs: bool = False
    """Whether the stream would survive a power cut; most tests need not wait for the disk."""

    def open(
        self,
        epoch: int = 1,
        is_held: Callable[[], bool] = lambda: True,
        make_tables: Callable[[Plan, CompiledGraph, StoragePath], StreamTables] = StreamTables,
        report_outcome: Callable[[BatchOutcome], None] | None = None,
    ) -> BatchEngine:
        """Open the engine of a host, and resume the stream."""
        graph = self.compile_plan()
        engine = BatchEngine(
            graph,
            collect_watermark_rules(self.plan.sources),
            self.folder / "stream",
            make_tables(self.plan, graph, self.warehouse),
            WriteFence(self.plan.name, epoch, is_held),
            report_outcome or self.outcomes.append,
            self.build_options(),
        )
        engine.resume()
        return engine

    def compile_plan(self) -> CompiledGraph:
        """Compile the plan."""
        return compile_graph(self.plan, {stage.name: TYPES for stage in self.plan.source_stages})

    def build_options(self) -> EngineOptions:
        """Return the optional parts of the engine."""
        settings = STANDALONE_SETTINGS.model_copy(update={"sync_writes": self.syncs})
        return EngineOptions(dedup_memory=self.open_id_store(), placement=self.placement, settings=settings)

    def open_id_store(self) -> RecordIdStore | None:
        """Open the store of record ids; return None without deduplication."""
        return None

    def make_input(self, batch: InputBatch, clock: int) -> BatchInput:
        """Return the input of a batch."""
        return InMemoryBatchInput(self.stage, batch.records, clock, self.other_stages)

    def assign_source(self, record: InputRecord) -> InputRecord:
        """Return the record as one of a source of the plan. Each of two sources has one partition."""
        names = [source.name for source in self.plan.sources]
        return replace(record, source=names[record.partition % len(names)])

    @property
    def warehouse(self) -> StoragePath:
        return self.table_root or self.folder / "warehouse"

    @property
    def stage(self) -> CompiledStage:
        return compile_stage(self.plan.first_source_stage, TYPES)

    @property
    def other_stages(self) -> list[CompiledStage]:
        return [compile_stage(stage, TYPES) for stage in self.plan.source_stages[1:]]

    def feed(self, engine: BatchEngine, batch: InputBatch, unread: Collection[str] = ()) -> None:
        """Run a batch as a host does: records as a data batch, no records as a tick."""
        batch = replace(batch, records=tuple(map(self.assign_source, batch.records)))
        if batch.records:
            intent = engine.start_data_batch(
                batch.id, batch.clock, find_offset_ranges(batch.records), unread_partitions=unread
            )
            if intent is not None:
                engine.run_data_batch(intent, self.make_input(batch, intent.clock))
        else:
            engine.run_tick(batch.clock, unread_partitions=unread)

    def rows(self, table: str) -> list[dict[str, Any]]:
        """Return all rows of a table, sorted."""
        content = pa.table(open_delta_table(self.warehouse / table).to_pyarrow_table())
        return sorted(content.to_pylist(), key=repr)


def find_offset_ranges(records: Sequence[InputRecord]) -> tuple[OffsetRange, ...]:
    """Return the offset range of the records in each partition."""
    offset_ranges = []
    for source, partition in sorted({(record.source, record.partition) for record in records}):
        offsets = [record.offset for record in records if record.address[:2] == (source, partition)]
        offset_ranges.append(OffsetRange(source, partition, min(offsets), max(offsets) + 1))
    return tuple(offset_ranges)
