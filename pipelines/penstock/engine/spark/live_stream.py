"""Runs one live stream: Spark's query delivers micro-batches, and a ticker runs batches by the clock."""

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError

from penstock.core.clock import Clock
from penstock.core.log_context import bind_log_context
from penstock.engine.batch.batch_engine import BatchEngine
from penstock.engine.batch.engine_options import EngineOptions
from penstock.engine.batch.input_watermarks import collect_watermark_rules, topic_of
from penstock.engine.batch.intent import BatchIntent
from penstock.engine.batch.journal import BatchJournal, read_retained_outcomes
from penstock.engine.batch.outcome import BatchOutcome
from penstock.engine.batch.placement import Placement
from penstock.engine.batch.stream_tables import StreamTables
from penstock.engine.batch.write_fence import WriteFence
from penstock.engine.dedup.id_store import open_id_store
from penstock.engine.errors import StreamDrainingError, StreamEndedError
from penstock.engine.operators.stage_graph import compile_graph
from penstock.engine.plan.codec import fingerprint
from penstock.engine.plan.sources import TopicOrigin
from penstock.engine.plan.stages import Plan
from penstock.engine.plan.validation.pane_timing import check_live_stages
from penstock.engine.spark.aggregate.part_execution import SparkPartExecutor
from penstock.engine.spark.batch_input import SparkBatchInput
from penstock.engine.spark.consumer_lag import LagTracker
from penstock.engine.spark.epoch_checkpoint import claim_checkpoint
from penstock.engine.spark.kafka.checkpoint_offsets import list_checkpoint_files, read_batch_ranges
from penstock.engine.spark.kafka.expired_records import explain_expired_records
from penstock.engine.spark.kafka.topic_identity import TopicIdentity
from penstock.engine.spark.kafka.topic_stream import open_topic_stream
from penstock.engine.spark.kafka.torn_checkpoint import has_planned, remove_torn_files
from penstock.engine.spark.parse.suspects import JudgeMode
from penstock.engine.spark.parse.writer_schemas import load_writer_schemas
from penstock.engine.spark.plan_cache import AnalyzedPlanCache
from penstock.engine.spark.session import is_session_alive
from penstock.engine.spark.stream_config import StreamConfig
from penstock.engine.spark.ticker import Ticker
from penstock.engine.spark.transform.schema_inference import FieldTypeResolver
from penstock.engine.spark.unread_partitions import UnreadPartitions
from penstock.engine.stream_folders import CHECKPOINT_FOLDER
from penstock.engine.tables.lookup_tables import LookupTables
from penstock.engine.tables.table_owner import TableClaim
from penstock.engine.upgrade.state_schema_check import check_state_schema
from penstock.engine.upgrade.stored_plan import accept_plan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

log = logging.getLogger(__name__)


class LiveStream:
    """A stream that runs until it is stopped or fails. Start it only once."""

    def __init__(
        self,
        plan: Plan,
        session: "SparkSession",
        directory: Path,
        config: StreamConfig,
        fence: WriteFence,
        report_outcome: Callable[[BatchOutcome], None],
        clock: Clock,
        claim: TableClaim | None = None,
    ) -> None:
        """Open the stream. With a claim, raises TableOwnedError if another writer has one of its tables."""
        self.plan = plan
        self._session = session
        self._directory = directory
        self._config = config
        self._clock = clock
        self._cancelled = threading.Event()
        check_live_stages(plan)
        is_lease_held = fence.is_held
        fence = replace(fence, is_held=lambda: is_lease_held() and not self._cancelled.is_set())
        self._fence = fence
        graph = compile_graph(plan, FieldTypeResolver(session).resolve_plan(plan))
        self._graph = graph
        lag, watermark_rules = LagTracker(config.broker, clock), collect_watermark_rules(plan.sources)
        self._plan_cache = AnalyzedPlanCache()
        self._judge_mode = JudgeMode()
        tables = StreamTables(plan, graph, config.warehouse, config.broker.client_config, claim)
        lookup_tables = LookupTables(plan.lookups, config.warehouse)
        self._engine = BatchEngine(
            graph,
            watermark_rules,
            directory,
            tables,
            fence,
            report_outcome,
            EngineOptions(
                lag.count_backlog,
                fingerprint(plan),
                open_id_store(plan, directory / "ids"),
                Placement(config.settings.driver_budget_bytes, SparkPartExecutor(session)),
                config.settings,
                lookup_tables.read_versions,
                config.find_resent,
                clock,
                self._list_checkpoint_files,
            ),
        )
        self._lookup_tables = lookup_tables
        topics = [topic_of(source) for source in plan.sources if isinstance(source.origin, TopicOrigin)]
        self._topics = TopicIdentity(plan.name, topics, directory, config.broker, clock)
        self._batch_lock = threading.Lock()
        self._paused = False
        self._stopping = threading.Event()
        self._unread = UnreadPartitions(lag, watermark_rules)
        self._ticker = Ticker(plan.name, self._engine, self._unread, clock, self._batch_lock, self._stopping)
        self._query: StreamingQuery | None = None
        self._checkpoint = directory / CHECKPOINT_FOLDER  # `start` replaces it by the folder of this epoch
        self._failure: BaseException | None = None

    def read_outcomes_after(self, after: int) -> Sequence[BatchOutcome]:
        """Return every committed batch after this one that the journal retains."""
        return read_retained_outcomes(self._directory / "journal", after)

    def start(self, *, reading: bool = True) -> None:
        """Finish the last run's batch and start to read; with `reading=False` only ticks run at first."""
        self._fence.ensure_held()  # preparing may have taken long, and accepting the plan writes to the folder
        directory = self._directory
        last_outcome = BatchJournal(directory / "journal").read_last_outcome()
        type_check = partial(check_state_schema, directory, self.plan.name, self._graph)
        self._topics.check_at_start(has_read=last_outcome is not None)
        upgrade = accept_plan(directory, self.plan, last_outcome, type_check)
        if upgrade.differences:
            with bind_log_context(self.plan.name):
                log.info("Resuming with a changed definition: %s", upgrade.description)
        self._checkpoint = claim_checkpoint(directory, self._fence)
        self._unread.reading_since_ms = self._clock()
        remove_torn_files(self._checkpoint, None if last_outcome is None else last_outcome.spark_batch)
        self._engine.drop_unplanned_batch(lambda spark_batch: has_planned(self._checkpoint, spark_batch))
        self._engine.resume()
        self._paused = not reading
        if reading:
            self._start_query()
        self._ticker.start()

    def _start_query(self) -> None:
        self._unread.reading_since_ms = self._clock()
        records = open_topic_stream(
            self._session, self.plan, self._config, self._checkpoint, self.last_outcome
        )
        writer = records.writeStream.queryName(self.plan.name).foreachBatch(self._on_micro_batch)
        if batch_interval_ms := int(self._config.settings.batch_interval):
            writer = writer.trigger(processingTime=f"{batch_interval_ms} milliseconds")
        self._query = writer.option("checkpointLocation", str(self._checkpoint)).start()

    def failure(self) -> BaseException | None:
        """Return why the stream no longer runs; None while it runs."""
        failure = self._failure or self._ticker.failure
        if failure is None and self._query is not None:
            query_error = _find_query_error(self._query)
            # A batch that failed set the original error before Spark ended the query.
            failure = self._failure = self._failure or self._ticker.failure or query_error
        return failure

    @property
    def last_outcome(self) -> BatchOutcome | None:
        """The newest committed batch."""
        return self._engine.last_outcome

    def describe_current_batch(self) -> str:
        """Return the batch in progress and its records; empty between batches."""
        return self._engine.unfinished_batch

    def pause(self) -> None:
        """Finish the batch in progress and stop reading; ticks continue."""
        with self._batch_lock:
            self._paused = True
        self._end_query()

    def resume(self) -> None:
        """Read again from the last position."""
        if self._paused:
            self._paused = False
            self._start_query()

    def drain(self) -> None:
        """Finish the batch in progress, then stop."""
        self._stopping.set()
        with self._batch_lock:
            pass  # the batch in progress has finished, and no other starts
        self._shut_down()

    def stop(self) -> None:
        """Interrupt the batch in progress and stop. The next start runs it again unless it was committed."""
        self._cancelled.set()
        self._stopping.set()
        self._shut_down()

    def _shut_down(self) -> None:
        self._end_query()
        with self._batch_lock:
            pass  # wait until an interrupted batch has noticed
        self._ticker.join()

    def _end_query(self) -> None:
        query, self._query = self._query, None
        if query is not None and is_session_alive(self._session):
            query.stop()

    def _on_micro_batch(self, frame: "DataFrame", spark_batch: int) -> None:
        with self._batch_lock:
            if self._stopping.is_set() or self._paused:
                # Spark must not record a batch as done that did not run: it comes again at the next start.
                raise StreamDrainingError(self.plan.name, spark_batch)
            try:
                self._run_batch(frame, spark_batch)
            except Exception as problem:
                # Keep the original error: Spark wraps it into a Java stack trace.
                if not self._stopping.is_set():
                    self._failure = explain_expired_records(self.plan.name, problem)
                raise

    def _run_batch(self, frame: "DataFrame", spark_batch: int) -> None:
        self._fence.ensure_held()  # a successor may have taken the checkpoint, which holds the ranges
        self._topics.check_while_running()
        ranges = read_batch_ranges(self._checkpoint, spark_batch)

        unread = self._unread.find_for_records(self.last_outcome)
        intent = self._engine.start_data_batch(spark_batch, self._clock(), ranges, unread_partitions=unread)
        if intent is not None:
            self._engine.run_data_batch(intent, self._open_input(frame, intent))

    def _list_checkpoint_files(self, intent: BatchIntent) -> list[Path]:
        """Return the files of Spark's checkpoint that an intent repeats; none for a tick."""
        return (
            [] if intent.spark_batch is None else list_checkpoint_files(self._checkpoint, intent.spark_batch)
        )

    def _open_input(self, frame: "DataFrame", intent: BatchIntent) -> SparkBatchInput:
        first_stage, *other_stages = self._graph.record_stages
        return SparkBatchInput(
            frame,
            self.plan.sources,
            first_stage,
            intent.clock,
            intent.ranges,
            lookup_rows=self._lookup_tables.rows_reader_at(intent.lookups),
            other_stages=tuple(other_stages),
            plan_cache=self._plan_cache,
            judge_mode=self._judge_mode,
            writer_schemas=load_writer_schemas(self.plan.sources, self._config.schema_lookup),
        )


def _find_query_error(query: "StreamingQuery") -> BaseException | None:
    """Return why a query has ended; None while it runs."""
    try:
        if query.isActive:
            return None
        return explain_expired_records(query.name, query.exception() or StreamEndedError(query.name))
    except (Py4JError, OSError) as problem:
        return problem
