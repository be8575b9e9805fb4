"""The batches of one stream, each exactly once, whatever fails between two steps.

The engine says which batch is next: it declares the intent of a batch, with its clock, offsets and epoch, before
anything of it happens. `batch_run` has the steps that follow. A batch that was declared and is not committed comes
first after a restart, with the intent that it had.
"""

from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from penstock.core.log_context import bind_log_context
from penstock.engine.batch.batch_input import BatchInput, make_empty_input
from penstock.engine.batch.batch_rows import BatchSink
from penstock.engine.batch.batch_run import BatchRunner
from penstock.engine.batch.batch_sync import BatchSync
from penstock.engine.batch.committed_state import CommittedState
from penstock.engine.batch.engine_options import DEFAULT_OPTIONS, EngineOptions
from penstock.engine.batch.input_watermarks import WatermarkRules
from penstock.engine.batch.intent import BatchIntent, OffsetRange
from penstock.engine.batch.journal import BatchJournal
from penstock.engine.batch.outcome import BatchOutcome
from penstock.engine.batch.stage_states import StateTrees
from penstock.engine.batch.write_fence import WriteFence
from penstock.engine.errors import JournalError, TableAheadError, WriterFencedError
from penstock.engine.operators.stage_graph import CompiledGraph
from penstock.engine.state.header_columns import MAX_TIMESTAMP_MS


class BatchEngine:
    """The batches of one stream. The caller runs one batch at a time."""

    def __init__(
        self,
        graph: CompiledGraph,
        watermark_rules: WatermarkRules,
        directory: Path,
        tables: BatchSink,
        fence: WriteFence,
        report_outcome: Callable[[BatchOutcome], None],
        options: EngineOptions = DEFAULT_OPTIONS,
    ) -> None:
        self._graph = graph
        self._watermark_rules = watermark_rules
        self._fence = fence
        self._read_lookup_versions = options.read_lookup_versions
        self._journal = BatchJournal.open_for_writing(
            directory / "journal", syncs=options.settings.sync_writes
        )
        self._tables = tables
        self._committed = CommittedState(graph, directory, options.dedup_memory)
        self._runner = BatchRunner(
            graph,
            watermark_rules,
            tables,
            fence,
            report_outcome,
            options,
            self._journal,
            self._committed,
            BatchSync(
                self._journal,
                tables,
                directory,
                options.list_input_files,
                enabled=options.settings.sync_writes,
            ),
        )

    @property
    def last_outcome(self) -> BatchOutcome | None:
        """The outcome of the last committed batch."""
        return self._committed.last_outcome

    @property
    def state_trees(self) -> StateTrees:
        """The state of each stage after the last committed batch."""
        return self._committed.stages.trees

    @property
    def unfinished_batch(self) -> str:
        """Describe the batch that was started and is not committed, and its records; empty if there is none."""
        try:
            pending_intent = self._pending_intent()
        except JournalError:  # the caller reports this error anyway
            return ""
        return "" if pending_intent is None else pending_intent.description

    def drop_unplanned_batch(self, is_planned: Callable[[int], bool]) -> None:
        """Drop the intent of a batch that Spark does not repeat, because a power cut took its plan.

        Nothing of the batch was shown, so its records may be cut otherwise. Call this before `resume`.
        """
        outcome = self._journal.read_last_outcome()
        pending = self._journal.read_intent(0 if outcome is None else outcome.batch_id + 1)
        if pending is not None and pending.spark_batch is not None and not is_planned(pending.spark_batch):
            self._fence.ensure_held()
            self._journal.drop_pending(pending.batch_id)

    def resume(self) -> None:
        """Resume from the journal: commit and report the last outcome again, and finish a tick that was started."""
        outcomes = self._recover_tables()
        if outcomes:
            self._runner.resume_from(outcomes[-1])
        pending_intent = self._pending_intent()
        if pending_intent is not None and pending_intent.kind == "tick":
            self._run_tick(pending_intent)

    def start_data_batch(
        self,
        spark_batch: int,
        clock: int,
        ranges: tuple[OffsetRange, ...],
        watermark: int | None = None,
        lookup_versions: Mapping[str, int] | None = None,
        *,
        unread_partitions: Collection[str] = (),
    ) -> BatchIntent | None:
        """Declare the intent of a batch of records, for `run_data_batch`; None if the state contains the batch.

        A batch that was started before keeps its first intent, with its clock and lookup versions.
        `watermark` replaces the one that the records would produce; it never goes back. `lookup_versions` are the
        versions of the tables that lookups read; the newest ones by default. `unread_partitions` may hold records
        that were not read yet, so they do not count as idle.
        """
        last_spark_batch = self._committed.last_spark_batch
        if last_spark_batch is not None and spark_batch <= last_spark_batch:
            return None
        requested = BatchIntent(
            self._committed.next_batch_id,
            "data",
            self._committed.monotonic_clock(clock),
            self._fence.epoch,
            ranges,
            spark_batch,
            watermark,
            self._read_lookup_versions() if lookup_versions is None else lookup_versions,
            tuple(unread_partitions),
        )
        with bind_log_context(self._fence.stream, requested.batch_id):
            return self._declare_intent(requested)

    def run_data_batch(self, intent: BatchIntent, batch_input: BatchInput) -> None:
        """Run a started batch over the records of its ranges."""
        with bind_log_context(self._fence.stream, intent.batch_id):
            self._runner.run(intent, batch_input)

    def run_tick(
        self, clock: int, watermark: int | None = None, *, unread_partitions: Collection[str] = ()
    ) -> None:
        """Run a batch without records, for timers and for a given watermark.

        Does nothing while a started batch of records must be repeated: that one comes first. `unread_partitions`
        may hold records that were not read yet, so they do not count as idle.
        """
        if self._pending_intent() is None:
            intent = BatchIntent(
                self._committed.next_batch_id,
                "tick",
                self._committed.monotonic_clock(clock),
                self._fence.epoch,
                watermark=watermark,
                unread=tuple(unread_partitions),
            )
            self._run_tick(intent)

    def next_due_clock(self) -> int:
        """Return the next clock at which a tick has something to do; MAX_TIMESTAMP_MS if only records can."""
        if self.last_outcome is None or self._pending_intent() is not None:
            return MAX_TIMESTAMP_MS
        return self._committed.next_due_clock(self._watermark_rules)

    def _recover_tables(self) -> list[BatchOutcome]:
        """Make the tables fit the journal; return its outcomes, oldest first.

        A host that has just lost its lease may commit one more batch meanwhile, so the journal is read again.
        """
        while True:
            outcomes = list(self._journal.read_outcomes())
            try:
                self._tables.recover(outcomes)
            except TableAheadError:
                if self._journal.read_last_outcome() == (outcomes[-1] if outcomes else None):
                    raise
            else:
                return outcomes

    def _pending_intent(self) -> BatchIntent | None:
        """Return the intent after the last committed batch, if there is one."""
        return self._journal.read_intent(self._committed.next_batch_id)

    def _run_tick(self, requested: BatchIntent) -> None:
        with bind_log_context(self._fence.stream, requested.batch_id):
            intent = self._declare_intent(requested)
            self._runner.run(intent, make_empty_input(self._graph.record_stages))

    def _declare_intent(self, requested: BatchIntent) -> BatchIntent:
        """Write the intent of a batch, or return the one that an earlier attempt wrote."""
        self._fence.ensure_held()
        self._check_contiguous(requested)
        intent = self._journal.declare_intent(requested)
        if intent.epoch > self._fence.epoch:
            raise WriterFencedError(self._fence.stream, self._fence.epoch)
        if not intent.has_same_input(requested):
            raise JournalError(
                self._journal.directory,
                f"batch {intent.batch_id} was started with {intent.ranges}, but repeats {requested.ranges}",
                "Stop every other host of this stream, and start it again",
            )
        return intent

    def _check_contiguous(self, requested: BatchIntent) -> None:
        """Refuse records that do not start where the last batch ended: some would be lost, or counted twice."""
        for offset_range in requested.ranges:
            end = self._committed.ends.get(offset_range.name, offset_range.start)
            if offset_range.start != end:
                raise JournalError(
                    self._journal.directory,
                    f"{offset_range.name} was read up to {end}, "
                    f"and batch {requested.batch_id} starts at {offset_range.start}",
                    "Restore the checkpoint that belongs to this journal, or replay the stream into new tables",
                )
