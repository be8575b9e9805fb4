"""Runs the batches of one stream, each exactly once, whatever fails between two steps.

1. Declare the intent: clock, offsets, epoch.
2. Read and fold the records. Nothing of this is visible outside.
3. Write files that nothing references yet: the changed state, and the rows of each table.
4. Commit the outcome, which references all of them, to the journal.
5. Commit the files of each table in one transaction, identified by (application, batch id).
6. Report the outcome to the control store.

A run that was killed before step 4 repeats the batch with the clock of its intent. A run that was killed after it
repeats steps 5 and 6, which change nothing that is already there.
"""

import logging
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from penstock.core.log_context import bind_log_context
from penstock.engine.batch.batch_input import (
    BatchInput,
    IdentifiedInput,
    find_newest_times,
    make_empty_input,
    split_by_stage,
)
from penstock.engine.batch.batch_result import BatchResult
from penstock.engine.batch.batch_rows import BatchSink, count_panes_by_timing
from penstock.engine.batch.engine_options import DEFAULT_OPTIONS, EngineOptions
from penstock.engine.batch.input_watermarks import StreamWatermarks, WatermarkRules
from penstock.engine.batch.intent import BatchIntent, OffsetRange
from penstock.engine.batch.journal import RETAINED_BATCHES, BatchJournal
from penstock.engine.batch.outcome import BatchOutcome
from penstock.engine.batch.poison_isolation import PoisonIsolation
from penstock.engine.batch.stage_execution import (
    collect_partials,
    fold_stages,
    release_partials,
    summarize_partials,
)
from penstock.engine.batch.stage_states import StageStates, StateTrees
from penstock.engine.batch.stopwatch import Stopwatch
from penstock.engine.batch.write_fence import WriteFence
from penstock.engine.batch_time import BatchTime
from penstock.engine.dedup.duplicates import DuplicateSplit, create_empty_split
from penstock.engine.errors import JournalError, WriterFencedError
from penstock.engine.operators.stage_graph import CompiledGraph
from penstock.engine.operators.watermark import Watermark
from penstock.engine.state.header_columns import MAX_TIMESTAMP_MS, MIN_TIMESTAMP_MS
from penstock.engine.state.state_tree import StateTree

log = logging.getLogger(__name__)

DEDUP_IDS_KEY = "/ids"
"""The key of the deduplication ids among an outcome's files; no table's name has a slash."""


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
        self._tables = tables
        self._fence = fence
        self._report_outcome = report_outcome
        self._options = options
        self._dedup_memory = options.dedup_memory
        self._journal = BatchJournal.open_for_writing(directory / "journal")
        self._stage_states = StageStates(graph, directory / "state")
        self._poison_isolation = PoisonIsolation(
            self._journal, fence.stream, options.settings.poison_limit, options.find_resent
        )
        self.last_outcome: BatchOutcome | None = None

    def resume(self) -> None:
        """Resume from the journal: commit and report the last outcome again, and finish a tick that was started."""
        outcome = self._journal.read_last_outcome()
        if outcome is not None:
            self._adopt_outcome(outcome)
            self._commit_and_report(outcome)
            if outcome.erased is not None:
                self._forget_before(outcome.batch_id)  # an interrupted erasure did not do this
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
        if (
            self.last_outcome is not None
            and self.last_outcome.spark_batch is not None
            and spark_batch <= self.last_outcome.spark_batch
        ):
            return None
        batch_clock, epoch = self._monotonic_clock(clock), self._fence.epoch
        versions = self._options.read_lookup_versions() if lookup_versions is None else lookup_versions
        requested = BatchIntent(
            self._next_batch_id(),
            "data",
            batch_clock,
            epoch,
            ranges,
            spark_batch,
            watermark,
            versions,
            tuple(unread_partitions),
        )
        with bind_log_context(self._fence.stream, requested.batch_id):
            return self._declare_intent(requested)

    def run_data_batch(self, intent: BatchIntent, batch_input: BatchInput) -> None:
        """Run a started batch over the records of its ranges."""
        with bind_log_context(self._fence.stream, intent.batch_id):
            self._run_and_publish(intent, batch_input)

    def run_tick(
        self, clock: int, watermark: int | None = None, *, unread_partitions: Collection[str] = ()
    ) -> None:
        """Run a batch without records, for timers and for a given watermark.

        Does nothing while a started batch of records must be repeated: that one comes first. `unread_partitions`
        may hold records that were not read yet, so they do not count as idle.
        """
        if self._pending_intent() is None:
            batch_clock, epoch = self._monotonic_clock(clock), self._fence.epoch
            intent = BatchIntent(
                self._next_batch_id(),
                "tick",
                batch_clock,
                epoch,
                watermark=watermark,
                unread=tuple(unread_partitions),
            )
            self._run_tick(intent)

    @property
    def unfinished_batch(self) -> str:
        """Describe the batch that was started and is not committed, and its records; empty if there is none."""
        try:
            pending_intent = self._pending_intent()
        except JournalError:  # the caller reports this error anyway
            return ""
        return "" if pending_intent is None else pending_intent.description

    @property
    def state_trees(self) -> StateTrees:
        """The state of each stage after the last committed batch."""
        return self._stage_states.trees

    def next_due_clock(self) -> int:
        """Return the next clock at which a tick has something to do; MAX_TIMESTAMP_MS if only records can."""
        if self.last_outcome is None or self._pending_intent() is not None:
            return MAX_TIMESTAMP_MS
        next_timer_clock, watermarks = (
            self._stage_states.next_due_clock(self.last_outcome.clock - 1),
            self.last_outcome.watermarks,
        )
        next_event_time = self._stage_states.next_event_time(watermarks.stream.value)
        next_idle_clock = watermarks.next_idle(self._watermark_rules, self.last_outcome.clock)
        return min(
            next_timer_clock,
            next_idle_clock,
            watermarks.clock_reaching(self._watermark_rules, next_event_time),
        )

    def _pending_intent(self) -> BatchIntent | None:
        """Return the intent after the last committed batch, if there is one."""
        return self._journal.read_intent(self._next_batch_id())

    def _run_tick(self, requested: BatchIntent) -> None:
        with bind_log_context(self._fence.stream, requested.batch_id):
            intent = self._declare_intent(requested)
            self._run_and_publish(intent, make_empty_input(self._graph.record_stages))

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

    def _run_and_publish(self, intent: BatchIntent, batch_input: BatchInput) -> None:
        outcome = self._compute_and_decide(intent, batch_input)
        self._fence.ensure_held()
        self._commit_and_report(outcome)
        log.debug(
            "Batch committed (records=%d, rows=%d)",
            sum(account.read for account in outcome.accounts),
            outcome.rows,
        )
        self._prune_history(outcome.batch_id)

    def _check_contiguous(self, requested: BatchIntent) -> None:
        """Refuse records that do not start where the last batch ended: some would be lost, or counted twice."""
        for offset_range in requested.ranges:
            end = (
                offset_range.start
                if self.last_outcome is None
                else self.last_outcome.ends.get(offset_range.name, offset_range.start)
            )
            if offset_range.start != end:
                raise JournalError(
                    self._journal.directory,
                    f"{offset_range.name} was read up to {end}, "
                    f"and batch {requested.batch_id} starts at {offset_range.start}",
                    "Restore the checkpoint that belongs to this journal, or replay the stream into new tables",
                )

    def _compute_and_decide(self, intent: BatchIntent, batch_input: BatchInput) -> BatchOutcome:
        stopwatch = Stopwatch()
        result = self._poison_isolation.compute_isolated(
            intent,
            batch_input,
            lambda trial_input: self._compute_batch(intent, trial_input, stopwatch),
            BatchResult.release,
        )
        watermarks, batch_time, stage_results = result.watermarks, result.batch_time, result.stage_results
        watermark = watermarks.stream
        # Computing may take long, and a host that lost its lease must write nothing more.
        self._fence.ensure_held()
        with stopwatch.step("write"):
            table_rows = result.collect_rows(self._graph, intent)
            changes = self._tables.write(table_rows, batch_time)
            try:
                state_trees = self._stage_states.write_changes(
                    stage_results.outcomes, intent.batch_id, stage_results.runs
                )
                id_tree = self._update_dedup_ids(result.dedup_result, watermark, intent.batch_id)
            except Exception:
                self._tables.discard(changes)
                raise
        self._fence.ensure_held()
        outcome = BatchOutcome(
            batch_id=intent.batch_id,
            kind=intent.kind,
            clock=intent.clock,
            epoch=self._fence.epoch,
            spark_batch=intent.spark_batch if intent.kind == "data" else self._last_spark_batch(),
            watermark=watermark,
            inputs=watermarks.inputs,
            ends=({} if self.last_outcome is None else dict(self.last_outcome.ends))
            | {r.name: r.end for r in intent.ranges},
            state_files={name: tree.list_file_names() for name, tree in state_trees.items()}
            | ({} if id_tree is None else {DEDUP_IDS_KEY: id_tree.list_file_names()}),
            changes=changes,
            accounts=table_rows.accounts,
            panes=count_panes_by_timing(table_rows.panes.values()),
            lag_records=self._options.count_backlog(intent.ranges),
            state_rows=sum(tree.row_count for tree in state_trees.values())
            + (0 if id_tree is None else id_tree.row_count),
            state_sizes={
                name: {"rows": tree.row_count, "bytes": tree.size_bytes} for name, tree in state_trees.items()
            },
            durations_ms=stopwatch.durations_ms,
            plan=self._options.plan_fingerprint,
            placement=stage_results.placement,
        )
        result.release()
        decided_outcome = self._journal.commit_outcome(outcome)
        if decided_outcome.epoch > self._fence.epoch:
            raise WriterFencedError(self._fence.stream, self._fence.epoch)
        self._adopt_outcome(decided_outcome, *((state_trees, id_tree) if decided_outcome is outcome else ()))
        return decided_outcome

    def _compute_batch(
        self, intent: BatchIntent, batch_input: BatchInput, stopwatch: Stopwatch
    ) -> BatchResult:
        """Read and fold some records. Changes nothing, so that it can be repeated with other records."""
        placement = self._options.placement
        with stopwatch.step("read"):
            batch_input, dedup_result = self._drop_duplicates(batch_input)
            record_count = sum(span.end - span.start for span in intent.ranges)
            inputs_by_stage = split_by_stage(batch_input, self._graph.record_stages)
            partials = collect_partials(inputs_by_stage, self._graph, placement, record_count)
        try:
            watermarks = self._advance_watermarks(
                intent, [summarize_partials(stage_partials) for stage_partials in partials.values()]
            )
            batch_time = self._make_batch_time(intent, watermarks.stream)
            with stopwatch.step("fold"):
                stage_results = fold_stages(
                    self._graph, self._stage_states, placement, partials, batch_time, intent.batch_id
                )
        except Exception:
            release_partials(partials)
            raise
        return BatchResult(inputs_by_stage, dedup_result, partials, watermarks, batch_time, stage_results)

    def _drop_duplicates(self, batch_input: BatchInput) -> tuple[BatchInput, DuplicateSplit]:
        """Drop records whose ids were seen before, if the stream deduplicates."""
        if self._dedup_memory is None:
            return batch_input, create_empty_split()
        if not isinstance(batch_input, IdentifiedInput):
            raise TypeError(f"{type(batch_input).__name__} has no record ids to deduplicate by")
        dedup_result = self._dedup_memory.split_duplicates(batch_input.read_ids())
        return batch_input.drop_duplicates(dedup_result.duplicates), dedup_result

    def _update_dedup_ids(
        self, dedup_result: DuplicateSplit, watermark: Watermark, batch_id: int
    ) -> StateTree | None:
        """Write the ids after the batch, without expired ones, if the stream deduplicates."""
        if self._dedup_memory is None:
            return None
        previous_watermark = (
            MIN_TIMESTAMP_MS if self.last_outcome is None else self.last_outcome.watermark.value
        )
        return self._dedup_memory.write_changes(dedup_result, previous_watermark, watermark.value, batch_id)

    def _commit_and_report(self, outcome: BatchOutcome) -> None:
        self._tables.commit(outcome.batch_id, outcome.changes, outcome.clock)
        self._report_outcome(outcome)

    def _adopt_outcome(
        self, outcome: BatchOutcome, state_trees: StateTrees | None = None, id_tree: StateTree | None = None
    ) -> None:
        """Continue from an outcome, which another host may have committed."""
        self._stage_states.adopt(
            self._stage_states.open_trees(outcome.state_files) if state_trees is None else state_trees
        )
        if self._dedup_memory is not None:
            self._dedup_memory.adopt(outcome.state_files.get(DEDUP_IDS_KEY, ()), id_tree)
        self.last_outcome = outcome

    def _advance_watermarks(self, intent: BatchIntent, summaries: Iterable[pa.Table]) -> StreamWatermarks:
        previous = (
            StreamWatermarks(Watermark(), {}) if self.last_outcome is None else self.last_outcome.watermarks
        )
        previous = previous.with_unread(intent.unread, intent.clock)
        partitions = [span.name for span in intent.ranges]
        newest = {name: time for current in summaries for name, time in find_newest_times(current).items()}
        current = previous.advance(self._watermark_rules, partitions, newest, intent.clock)
        if intent.watermark is None:
            return current
        watermark_ms = max(previous.stream.value, intent.watermark)
        return replace(current, stream=replace(current.stream, value=watermark_ms))

    def _make_batch_time(self, intent: BatchIntent, watermark: Watermark) -> BatchTime:
        previous = self.last_outcome
        return BatchTime(
            batch_id=intent.batch_id,
            clock_before=MIN_TIMESTAMP_MS if previous is None else previous.clock,
            clock=intent.clock,
            watermark_before=MIN_TIMESTAMP_MS if previous is None else previous.watermark.value,
            watermark=watermark.value,
            max_event_time=max(
                (mark.newest for mark in (watermark.marks or {}).values()), default=MIN_TIMESTAMP_MS
            ),
        )

    def _monotonic_clock(self, now: int) -> int:
        """Return a batch clock that never goes back, whatever the machine's clock does."""
        return now if self.last_outcome is None else max(now, self.last_outcome.clock)

    def _next_batch_id(self) -> int:
        return 0 if self.last_outcome is None else self.last_outcome.batch_id + 1

    def _last_spark_batch(self) -> int | None:
        return None if self.last_outcome is None else self.last_outcome.spark_batch

    def _prune_history(self, batch_id: int) -> None:
        """Remove history that is no longer needed, once in a while, because it lists folders."""
        # No outcome references the file of a running merge yet, so this waits for the next time.
        if (
            batch_id % RETAINED_BATCHES == 0
            and batch_id > RETAINED_BATCHES
            and not self._stage_states.is_merging()
        ):
            self._forget_before(batch_id - RETAINED_BATCHES)

    def _forget_before(self, batch_id: int) -> None:
        self._journal.forget_before(batch_id)
        id_files = () if self._dedup_memory is None else self._dedup_memory.list_files()
        existing_files = [*self._stage_states.list_files(), *((DEDUP_IDS_KEY, path) for path in id_files)]
        needed: dict[str, set[str]] = defaultdict(set)
        for outcome in self._journal.read_outcomes():
            for name, files in outcome.state_files.items():
                needed[name].update(files)
        # In this order: files that a successor writes from now on are not in `existing_files`.
        self._fence.ensure_held()
        for name, path in existing_files:
            if path.name not in needed[name]:
                path.unlink(missing_ok=True)
