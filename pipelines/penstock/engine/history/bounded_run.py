"""Runs a pipeline over stored records with the engine of live streams, up to a fixed end.

The input may be cut into several batches to bound memory. The watermark stays at its minimum until the last batch,
which sets it to its maximum. So no record is late, and results do not depend on the cuts.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from penstock.core.clock import Clock
from penstock.engine.batch.batch_engine import BatchEngine
from penstock.engine.batch.engine_options import EngineOptions
from penstock.engine.batch.input_watermarks import collect_watermark_rules
from penstock.engine.batch.intent import BatchIntent, OffsetRange
from penstock.engine.batch.outcome import BatchOutcome
from penstock.engine.batch.placement import Placement
from penstock.engine.batch.stream_tables import StreamTables
from penstock.engine.batch.write_fence import WriteFence
from penstock.engine.dedup.id_store import open_id_store
from penstock.engine.errors import DefinitionError
from penstock.engine.history.batch_history import is_cut_by_clock
from penstock.engine.history.bounded_run_config import BoundedRunConfig
from penstock.engine.history.bounded_run_inputs import load_or_create_inputs
from penstock.engine.operators.stage_graph import compile_graph
from penstock.engine.plan.codec import fingerprint
from penstock.engine.plan.stages import Plan
from penstock.engine.spark.aggregate.part_execution import SparkPartExecutor
from penstock.engine.spark.batch_input import SparkBatchInput
from penstock.engine.spark.bounded_sources import BoundedSource
from penstock.engine.spark.parse.suspects import JudgeMode
from penstock.engine.spark.parse.writer_schemas import load_writer_schemas
from penstock.engine.spark.transform.schema_inference import FieldTypeResolver
from penstock.engine.state.header_columns import MAX_TIMESTAMP_MS, MIN_TIMESTAMP_MS
from penstock.engine.tables.lookup_tables import LookupTables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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
        self._judge_mode = JudgeMode()
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
            judge_mode=self._judge_mode,
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
