"""Runs a pipeline over stored records with the engine of live streams, up to a fixed end.

The input may be cut into several batches to bound memory. The watermark stays at its minimum until the last batch,
which sets it to its maximum. So no record is late, and results do not depend on the cuts.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from penstock.core.clock import Clock
from penstock.core.files import write_atomically
from penstock.engine.batch.batch_engine import BatchEngine
from penstock.engine.batch.engine_options import EngineOptions
from penstock.engine.batch.excluded_records import ResentFinder, find_no_resent
from penstock.engine.batch.input_watermarks import collect_watermark_rules
from penstock.engine.batch.intent import BatchIntent, OffsetRange
from penstock.engine.batch.lookup_versions import read_pinned_lookups, split_by_versions
from penstock.engine.batch.outcome import BatchOutcome
from penstock.engine.batch.placement import Placement
from penstock.engine.batch.stream_tables import StreamTables
from penstock.engine.batch.write_fence import WriteFence
from penstock.engine.dedup.id_store import open_id_store
from penstock.engine.errors import DefinitionError
from penstock.engine.history.batch_history import HistoryBatch, is_cut_by_clock
from penstock.engine.host_settings import STANDALONE_SETTINGS, HostSettings
from penstock.engine.operators.stage_graph import compile_graph
from penstock.engine.plan.codec import fingerprint
from penstock.engine.plan.stages import Plan
from penstock.engine.spark.aggregate.part_execution import SparkPartExecutor
from penstock.engine.spark.batch_input import SparkBatchInput
from penstock.engine.spark.bounded_sources import BoundedSource
from penstock.engine.spark.bounded_sources.range_slicing import slice_ranges
from penstock.engine.spark.parse.avro import SchemaLookup, load_writer_schemas, refuse_without_registry
from penstock.engine.spark.transform.schema_inference import FieldTypeResolver
from penstock.engine.state.header_columns import MAX_TIMESTAMP_MS, MIN_TIMESTAMP_MS
from penstock.engine.storage import StoragePath
from penstock.engine.tables.lookup_tables import LookupTables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class BoundedRunConfig:
    """Where a run stores its state and tables. It must not share them with a live stream."""

    directory: Path
    warehouse: StoragePath
    max_records_per_batch: int | None = None
    settings: HostSettings = STANDALONE_SETTINGS
    find_resent: ResentFinder = find_no_resent
    schema_lookup: SchemaLookup = field(default=refuse_without_registry, repr=False)
    live_warehouse: StoragePath | None = None
    """The warehouse of the live stream if it differs: lookups read its tables, at the versions the stream read."""

    @property
    def lookup_warehouse(self) -> StoragePath:
        """The warehouse of the lookup tables, and of the lookup versions of live batches."""
        return self.warehouse if self.live_warehouse is None else self.live_warehouse


@dataclass(frozen=True)
class BoundedRunInputs:
    """The input of a run and its start time, stored before the first batch; a resumed run uses the same input."""

    clock: int
    plan_fingerprint: str
    batches: list[list[OffsetRange]]
    table_versions: list[dict[str, int]] = field(default_factory=list)
    """The versions of lookup tables that each batch reads; empty without lookups."""
    clocks: list[int] = field(default_factory=list)
    """The clock of each batch if they repeat the batches of a stream; else empty."""

    def table_versions_of(self, number: int) -> dict[str, int]:
        """Return the versions of lookup tables that a batch reads."""
        return self.table_versions[number] if self.table_versions else {}

    def clock_of_batch(self, number: int) -> int:
        """Return the clock of a batch."""
        return self.clocks[number] if self.clocks else self.clock


def run_bounded(
    plan: Plan,
    session: "SparkSession",
    source: BoundedSource,
    config: BoundedRunConfig,
    clock: Clock,
    report_outcome: Callable[[BatchOutcome, int], None] = lambda _outcome, _batches: None,
) -> BatchOutcome:
    """Run every batch that has not run yet, and return the outcome of the last one.

    With the same folders, a killed run resumes at its last batch, and a finished run changes nothing.
    `report_outcome` gets each outcome and the number of batches.
    """
    refuse_clock_windows(plan)
    inputs = load_or_create_inputs(plan, source, config, clock)
    batch_count = len(inputs.batches)
    bounded_run = BoundedRun(plan, session, config, lambda outcome: report_outcome(outcome, batch_count))
    for number, spans in enumerate(inputs.batches):
        watermark = MAX_TIMESTAMP_MS if number + 1 == batch_count else MIN_TIMESTAMP_MS
        bounded_run.run_batch(
            number, inputs.clock, spans, source, watermark, inputs.table_versions_of(number)
        )
    return bounded_run.last_outcome


class BoundedRun:
    """An engine that runs batches of stored records."""

    def __init__(
        self,
        plan: Plan,
        session: "SparkSession",
        config: BoundedRunConfig,
        report_outcome: Callable[[BatchOutcome], None],
    ) -> None:
        self._plan = plan
        self._graph = compile_graph(plan, FieldTypeResolver(session).resolve_plan(plan))
        self._lookup_tables = LookupTables(plan.lookups, config.lookup_warehouse)
        self._schema_lookup = config.schema_lookup
        self._engine = BatchEngine(
            self._graph,
            collect_watermark_rules(plan.sources),
            config.directory,
            StreamTables(plan, self._graph, config.warehouse),
            WriteFence(plan.name, 1, lambda: True),
            report_outcome,
            EngineOptions(
                plan_fingerprint=fingerprint(plan),
                dedup_memory=open_id_store(plan, config.directory / "ids"),
                placement=Placement(config.settings.driver_budget_bytes, SparkPartExecutor(session)),
                settings=config.settings,
                find_resent=config.find_resent,
            ),
        )
        self._engine.resume()

    @property
    def last_outcome(self) -> BatchOutcome:
        """The newest batch; call `run_batch` first."""
        assert self._engine.last_outcome is not None
        return self._engine.last_outcome

    def run_batch(
        self,
        number: int,
        clock: int,
        spans: Sequence[OffsetRange],
        source: BoundedSource,
        watermark: int | None,
        table_versions: Mapping[str, int],
    ) -> None:
        """Run a batch unless it has run already. Without `watermark`, the records advance the watermark."""
        intent = self._engine.start_data_batch(number, clock, tuple(spans), watermark, table_versions)
        if intent is not None:
            self._engine.run_data_batch(intent, self._open_input(source, intent))

    def _open_input(self, source: BoundedSource, intent: BatchIntent) -> SparkBatchInput:
        return SparkBatchInput(
            source.read_records(intent.ranges),
            self._plan.sources,
            self._graph.first_record_stage,
            intent.clock,
            intent.ranges,
            lookup_rows=self._lookup_tables.rows_reader_at(intent.lookups),
            other_stages=self._graph.record_stages[1:],
            writer_schemas=load_writer_schemas(self._plan.sources, self._schema_lookup),
        )

    def run_tick(self, clock: int, watermark: int | None = None) -> None:
        """Run a batch without records; `watermark` replaces the previous one."""
        self._engine.run_tick(clock, watermark)

    def run_ticks_until(self, clock: int) -> None:
        """Run the ticks that are due up to this clock."""
        while (last_outcome := self._engine.last_outcome) is not None and last_outcome.clock < clock:
            # Timers that are due at the clock of the last batch have fired in it.
            due_ms = max(self._engine.next_due_clock(), last_outcome.clock + 1)
            if due_ms > clock:
                return
            self._engine.run_tick(due_ms)


def refuse_clock_windows(plan: Plan) -> None:
    """Raise DefinitionError for windows by processing time: stored records do not reproduce them."""
    if is_cut_by_clock(plan):
        raise DefinitionError(
            "window",
            "it uses processing time, and stored records do not tell when they were read",
            "To rerun a stream's own history by its ledger, use `penstock stream replay` without --beside. For "
            "other records, use windows by event time, count, delta or punctuation, or event-time timers",
        )


def split_by_table_versions(
    plan: Plan, ranges: Sequence[OffsetRange], warehouse: StoragePath
) -> list[tuple[Sequence[OffsetRange], Mapping[str, int]]]:
    """Split ranges where the live stream read another version of a lookup table; return each with its versions.

    Offsets that the live stream has not read get the newest versions.
    """
    lookup_steps = plan.lookups
    if not lookup_steps:
        return [(ranges, {})]
    newest = LookupTables(lookup_steps, warehouse).read_versions()
    parts = split_by_versions(ranges, read_pinned_lookups(warehouse, plan.name))
    return [(part.ranges, {**newest, **(part.versions or {})}) for part in parts]


def create_empty_batch(ranges: Sequence[OffsetRange], clock: int) -> HistoryBatch:
    """Return a batch of empty ranges at the start of these ranges."""
    return HistoryBatch(clock, [replace(span, end=span.start) for span in ranges])


def load_or_create_inputs(
    plan: Plan,
    source: BoundedSource,
    config: BoundedRunConfig,
    clock: Clock,
    load_history: Callable[[Sequence[OffsetRange]], Sequence[HistoryBatch]] | None = None,
) -> BoundedRunInputs:
    """Return the stored input of a run; on the first call, list the source's ranges and store them.

    `load_history` returns the batches in which a stream read these ranges; the run then repeats them.
    """
    path = config.directory / "inputs.json"
    if not path.exists():
        ranges, now_ms = source.list_ranges(), clock()
        history = (
            [HistoryBatch(now_ms, list(ranges))]
            if load_history is None
            else load_history(ranges) or [create_empty_batch(ranges, now_ms)]
        )
        max_records = config.max_records_per_batch if load_history is None else None
        slices = [
            (batch.clock, range_slice, table_versions)
            for batch in history
            for part, table_versions in split_by_table_versions(plan, batch.ranges, config.lookup_warehouse)
            for range_slice in slice_ranges(part, max_records)
        ]
        created = BoundedRunInputs(
            now_ms,
            fingerprint(plan),
            [list(range_slice) for _, range_slice, _ in slices],
            [dict(table_versions) for _, _, table_versions in slices],
            [] if load_history is None else [clock_ms for clock_ms, _, _ in slices],
        )
        config.directory.mkdir(parents=True, exist_ok=True)
        write_atomically(path, msgspec.json.encode(created))
    inputs = msgspec.json.decode(path.read_bytes(), type=BoundedRunInputs)
    if inputs.plan_fingerprint != fingerprint(plan):
        raise DefinitionError(
            "run", f"{config.directory} holds a run of another definition", "Use another name for this run"
        )
    return inputs
