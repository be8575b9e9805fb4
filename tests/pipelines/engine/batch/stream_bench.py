"""A stream over records in memory, with real state files and real tables."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from tests.pipelines.engine.operators.duckdb_partials import elements, partials, places

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
class StoredReading:
    """The input of one batch. A record with an error is invalid."""

    stage: CompiledStage
    records: Sequence[InputRecord]
    clock: int
    others: Sequence[CompiledStage] = ()

    def inputs_of_other_stages(self) -> "dict[str, StoredReading]":
        return {each.plan.name: StoredReading(each, self.records, self.clock) for each in self.others}

    def compute_partials(self) -> pa.Table:
        good = [record for record in self.records if record.error is None]
        pieces = [self._good(number, [r for r in good if r.partition == number]) for number in (0, 1)]
        bad = [record for record in self.records if record.error is not None]
        accounts = [
            {"_topic": r.source, "_partition": r.partition, "_fate": "quarantined", "_counted": 1}
            for r in bad
        ]
        schema = pa.schema([*ACCOUNT_SCHEMA, *self.stage.partial_schema])
        return pa.concat_tables([*pieces, pa.Table.from_pylist(accounts, schema=schema)])

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
        wanted = {tuple(row.values()) for row in windows.to_pylist()}
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
            for start, end in self._places(record)
            if (*(record.fields[name] for name in names), start, end) in wanted
        ]
        return pa.Table.from_pylist(rows, schema=schema)

    def _places(self, record: InputRecord) -> list[tuple[float, float]]:
        """Return the windows of a record, or the event time that an interval join judges it by."""
        at = record.fields["at"]
        if isinstance(self.stage.plan.window, JoinWindow):
            return [(at, at + 1)]
        return places(self.stage.plan.window, at, self.clock)

    def _good(self, partition: int, records: Sequence[InputRecord]) -> pa.Table:
        if self.stage.is_ordered:
            return self._single(records)
        found = partials(self.stage, records, FIELDS, "at", self.clock)
        count = found.num_rows
        newest = max((record.fields["at"] for record in records), default=None)
        columns = [
            pa.array(["records"] * count, pa.string()),
            pa.array([partition] * count, pa.int32()),
            pa.nulls(count, pa.string()),
            found.column("elements"),
            pa.array([newest] * count, pa.int64()),
            *found.columns,
        ]
        return pa.table(columns, schema=pa.schema([*ACCOUNT_SCHEMA, *self.stage.partial_schema]))

    def _single(self, records: Sequence[InputRecord]) -> pa.Table:
        found = elements(self.stage, records, "at")
        told = {
            "_fate": pa.nulls(found.num_rows, pa.string()),
            "_counted": pa.array([1] * found.num_rows, pa.int64()),
            "_newest": found.column("_time"),
        }
        for name, column in told.items():
            found = found.append_column(name, column)
        schema = pa.schema([*ACCOUNT_SCHEMA, *self.stage.partial_schema])
        return found.select(schema.names).cast(schema)


@dataclass
class Bench:
    """A stream in a folder. Each call of `open` is another host."""

    plan: Plan
    folder: Path
    told: list[BatchOutcome] = field(default_factory=list)
    placement: Placement = DRIVER_ONLY
    elsewhere: StoragePath | None = None
    """Where the tables are, if not in the folder."""

    def open(
        self,
        epoch: int = 1,
        holds: Callable[[], bool] = lambda: True,
        tables: Callable[[Plan, CompiledGraph, StoragePath], StreamTables] = StreamTables,
        told: Callable[[BatchOutcome], None] | None = None,
    ) -> BatchEngine:
        """Open the engine of a host, and resume the stream."""
        graph = self.ready()
        engine = BatchEngine(
            graph,
            collect_watermark_rules(self.plan.sources),
            self.folder / "stream",
            tables(self.plan, graph, self.warehouse),
            WriteFence(self.plan.name, epoch, holds),
            told or self.told.append,
            self.options(),
        )
        engine.resume()
        return engine

    def ready(self) -> CompiledGraph:
        """Compile the plan."""
        return compile_graph(self.plan, {stage.name: TYPES for stage in self.plan.source_stages})

    def options(self) -> EngineOptions:
        """Return the optional parts of the engine."""
        return EngineOptions(dedup_memory=self.remembering(), placement=self.placement)

    def remembering(self) -> RecordIdStore | None:
        """Return the stored record ids, or None without deduplication."""
        return None

    def reading(self, batch: InputBatch, clock: int) -> BatchInput:
        """Return the input of a batch."""
        return StoredReading(self.stage, batch.records, clock, self.others)

    def of_its_source(self, record: InputRecord) -> InputRecord:
        """Return a record under a source of the plan. Each of two sources has one partition."""
        names = [source.name for source in self.plan.sources]
        return replace(record, source=names[record.partition % len(names)])

    @property
    def warehouse(self) -> StoragePath:
        return self.elsewhere or self.folder / "warehouse"

    @property
    def stage(self) -> CompiledStage:
        return compile_stage(self.plan.first_source_stage, TYPES)

    @property
    def others(self) -> list[CompiledStage]:
        return [compile_stage(stage, TYPES) for stage in self.plan.source_stages[1:]]

    def feed(self, engine: BatchEngine, batch: InputBatch, unread: Collection[str] = ()) -> None:
        """Run a batch as a host does: records as a data batch, no records as a tick."""
        batch = replace(batch, records=tuple(map(self.of_its_source, batch.records)))
        if batch.records:
            intent = engine.start_data_batch(
                batch.id, batch.clock, ranges(batch.records), unread_partitions=unread
            )
            if intent is not None:
                engine.run_data_batch(intent, self.reading(batch, intent.clock))
        else:
            engine.run_tick(batch.clock, unread_partitions=unread)

    def rows(self, table: str) -> list[dict[str, Any]]:
        """Return all rows of a table, sorted."""
        content = pa.table(open_delta_table(self.warehouse / table).to_pyarrow_table())
        return sorted(content.to_pylist(), key=repr)


def ranges(records: Sequence[InputRecord]) -> tuple[OffsetRange, ...]:
    """Return the offset range of the records in each partition."""
    found = []
    for source, number in sorted({(record.source, record.partition) for record in records}):
        offsets = [record.offset for record in records if record.address[:2] == (source, number)]
        found.append(OffsetRange(source, number, min(offsets), max(offsets) + 1))
    return tuple(found)
