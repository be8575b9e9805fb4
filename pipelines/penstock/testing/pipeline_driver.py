"""Drives a pipeline in a test: records in, batches on the clock of the test, rows out."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Literal, Self, TypeAlias

from penstock.conformance.reference import Pane
from penstock.core.names import explain_unknown_name
from penstock.engine.batch.input_watermarks import topic_of
from penstock.engine.errors import PipelineTestError
from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.plan.stateful_function import SIDE_OUTPUT_COLUMN, StatefulFunction
from penstock.ingestion.contracts import Contract, load_contract
from penstock.pipelines import catalog
from penstock.stream import Pipeline
from penstock.testing.observed_rows import ObservedRows, PipelineBackend, TopicBatch
from penstock.testing.reference_backend import ReferenceBackend
from penstock.testing.result_rows import (
    ResultRow,
    late_row,
    latest_rows,
    pane_row,
    quarantined_row,
    select_columns,
)
from penstock.testing.step_tables import LookupRows, StepTables
from penstock.testing.times import TimeLike, format_time, utc
from penstock.testing.topic_records import RecordLike, TopicRecord, encode_value

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BackendName: TypeAlias = Literal["reference", "spark"]
DEFAULT_CLOCK = "2026-01-01T00:00:00Z"


@dataclass(frozen=True)
class DrivenBatch:
    """The rows of one batch: panes of the pipeline's result, late records and quarantined records."""

    panes: list[ResultRow]
    late: list[ResultRow]
    quarantined: list[ResultRow]


class PipelineDriver:
    """A pipeline that a test runs batch by batch.

    `send` adds records to the topics of the pipeline. `run_batch` reads them at the time of the clock, as one
    batch of the stream. `end_input` runs the last batch: the watermark becomes infinite, and every window closes.

    The backend `reference` is the specification in plain Python. `spark` is the engine of live streams; it starts
    Spark and gives the same rows. SQL and DataFrame steps need Spark with either backend.

    Kafka, retries and the expectation suites of topics take no part: all records are valid or invalid by their
    contract alone.
    """

    def __init__(
        self,
        pipeline: str | Pipeline | Plan,
        *,
        clock: TimeLike = DEFAULT_CLOCK,
        partitions: int = 1,
        lookups: LookupRows | None = None,
        contracts: Sequence[Contract] = (),
        backend: BackendName = "reference",
        spark: "SparkSession | Callable[[], SparkSession] | None" = None,
    ) -> None:
        """Prepare a pipeline of the catalog, or a definition.

        Args:
            pipeline: the name of a pipeline, or its definition.
            clock: the time of the first batch.
            partitions: the partitions of each topic. One without records holds the watermark back.
            lookups: the rows of each lookup table, by the name that the pipeline gives it.
            contracts: contracts of topics that the catalog does not have.
            backend: `reference`, or `spark` for the engine of live streams.
            spark: the Spark session, or a function that opens it when it is needed. In pytest, take the fixture
                `penstock_spark`.
        """
        self.plan = _load_plan(pipeline)
        self.clock_ms = utc(clock)
        self._partition_count = partitions
        self._contracts = _find_contracts(self.plan, contracts)
        self._spark = spark
        self._resources = ExitStack()
        self._backend = self._open_backend(backend, lookups or {})
        self._pending: list[TopicRecord] = []
        self._offsets: Counter[tuple[str, int]] = Counter()
        self._batches: list[ObservedRows] = []
        self._is_ended = False

    def send(
        self, *records: RecordLike, topic: str | None = None, partition: int = 0, key: str | None = None
    ) -> None:
        """Add records to a topic, for the next batch. A record is a dict of fields, JSON as text or bytes, or None.

        `topic` may be omitted if the pipeline reads only one. `key` is the Kafka key, which only tombstones need.
        """
        name = self._resolve_topic(topic)
        if not 0 <= partition < self._partition_count:
            raise PipelineTestError(
                f"partition {partition} does not exist. Set partitions={partition + 1}, or use 0 to "
                f"{self._partition_count - 1}"
            )
        for record in records:
            offset = self._offsets[name, partition]
            self._offsets[name, partition] += 1
            key_bytes = None if key is None else key.encode()
            self._pending.append(TopicRecord(name, partition, offset, key_bytes, encode_value(record)))

    def run_batch(self, clock: TimeLike | None = None) -> DrivenBatch:
        """Run a batch over the records sent since the last one, and return its rows.

        Without records it is a tick, which fires timers. `clock` moves the clock forward first.
        """
        return self._run(clock, is_last=False)

    def end_input(self, clock: TimeLike | None = None) -> DrivenBatch:
        """Run the last batch: the input ends, so every window closes. Return the rows of this batch."""
        rows = self._run(clock, is_last=True)
        self._is_ended = True
        return rows

    def panes(self, output: str | None = None, columns: Sequence[str] = ()) -> list[ResultRow]:
        """Return every pane so far, in the order of batches, as the log of panes has them.

        `output` is the name of a table or a stage; by default the stage with the pipeline's name,
        or else the last one.
        """
        stage = self.stage_of(output)
        return select_columns([pane_row(stage, pane) for pane in self._panes_of(stage, output)], columns)

    def latest(self, output: str | None = None, columns: Sequence[str] = ()) -> list[ResultRow]:
        """Return the newest values of each key and window, as a table of latest values has them."""
        stage = self.stage_of(output)
        replaced = [row for batch in self._batches for row in batch.replaced]
        is_first = stage == self.plan.first_source_stage
        rows = latest_rows(stage, self._panes_of(stage, output), replaced if is_first else ())
        return select_columns(rows, columns)

    def late(self, columns: Sequence[str] = ()) -> list[ResultRow]:
        """Return every late record so far."""
        rows = [row for batch in self._batches for row in self._late_rows(batch)]
        return select_columns(rows, columns)

    def quarantined(self, columns: Sequence[str] = ()) -> list[ResultRow]:
        """Return every quarantined record so far, with its reason."""
        rows = [quarantined_row(row) for batch in self._batches for row in batch.quarantined]
        return select_columns(rows, columns)

    def stage_of(self, output: str | None) -> Stage:
        """Return the stage that writes a table, or the stage of this name; by default that of the result."""
        stages = {stage.name: stage for stage in self.plan.stages}
        if output is None:
            return stages.get(self.plan.name, self.plan.stages[-1])
        tables = {sink.name: stage for stage in self.plan.stages for sink in stage.all_sinks}
        if output not in tables and output not in stages:
            raise PipelineTestError(explain_unknown_name("output", output, sorted({*tables, *stages})))
        return tables.get(output) or stages[output]

    def close(self) -> None:
        """Delete temporary files."""
        self._resources.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self, clock: TimeLike | None, *, is_last: bool) -> DrivenBatch:
        if self._is_ended:
            raise PipelineTestError("the input has ended. Make a new driver to run more batches")
        self._advance_clock(clock)
        records, self._pending = tuple(self._pending), []
        batch = TopicBatch(len(self._batches), self.clock_ms, records, self._partition_count, is_last)
        observed = self._backend.run(batch)
        self._batches.append(observed)
        stage = self.stage_of(None)
        return DrivenBatch(
            [pane_row(stage, pane) for pane in observed.panes[stage.name]],
            self._late_rows(observed),
            [quarantined_row(row) for row in observed.quarantined],
        )

    def _advance_clock(self, clock: TimeLike | None) -> None:
        clock_ms = self.clock_ms if clock is None else utc(clock)
        if clock_ms < self.clock_ms:
            raise PipelineTestError(f"the clock cannot go back, from {format_time(self.clock_ms)} to {clock}")
        self.clock_ms = clock_ms

    def _resolve_topic(self, topic: str | None) -> str:
        topics = [topic_of(source) for source in self.plan.sources]
        if topic is None and len(topics) > 1:
            raise PipelineTestError(
                f"{self.plan.name} reads {', '.join(topics)}. Name one: send(..., topic={topics[0]!r})"
            )
        if topic is not None and topic not in topics:
            raise PipelineTestError(explain_unknown_name("topic", topic, topics))
        return topic or topics[0]

    def _panes_of(self, stage: Stage, output: str | None) -> list[Pane]:
        """Return the panes of a stage; for the table of a side output, its rows alone."""
        panes = [pane for batch in self._batches for pane in batch.panes[stage.name]]
        if not isinstance(stage.window, StatefulFunction) or not stage.window.outputs:
            return panes
        side_output = next((sink.output for sink in stage.sinks if sink.name == output), None)
        return [pane for pane in panes if dict(pane.values)[SIDE_OUTPUT_COLUMN] == side_output]

    def _late_rows(self, batch: ObservedRows) -> list[ResultRow]:
        stages = {stage.name: stage for stage in self.plan.stages}
        return [late_row(stages[name], row) for name, rows in batch.late.items() for row in rows]

    def _open_backend(self, name: BackendName, lookups: LookupRows) -> PipelineBackend:
        if name == "reference":
            return ReferenceBackend(
                self.plan, self._contracts, StepTables(self.plan, lookups, self._open_spark)
            )
        from penstock.testing.spark_backend import SparkBackend  # imports Spark's side of the engine

        folder = Path(self._resources.enter_context(TemporaryDirectory(prefix="penstock-test-")))
        return SparkBackend(self.plan, lookups, self._open_spark, folder)

    def _open_spark(self) -> "SparkSession":
        if self._spark is None:
            raise PipelineTestError(
                f"{self.plan.name} needs Spark. Take the pytest fixture penstock_spark, and pass it: "
                f"PipelineDriver({self.plan.name!r}, spark=penstock_spark)"
            )
        if callable(self._spark):
            self._spark = self._spark()
        return self._spark


def _load_plan(pipeline: str | Pipeline | Plan) -> Plan:
    match pipeline:
        case Plan():
            return pipeline
        case Pipeline():
            return pipeline.to_plan("pipeline")
        case str():
            return catalog.load_plan(pipeline)
    raise PipelineTestError(
        f"{pipeline!r} is not a pipeline. Give its name, as in PipelineDriver('sensor_minute')"
    )


def _find_contracts(plan: Plan, contracts: Sequence[Contract]) -> Mapping[str, Contract]:
    """Return the contract of each source, by the name of the source."""
    by_topic = {contract.topic: contract for contract in contracts}
    return {source.name: by_topic.get(source.name) or load_contract(source.name) for source in plan.sources}
