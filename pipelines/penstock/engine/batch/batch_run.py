"""Runs a batch whose intent is declared: computes it, writes it, commits its outcome, and publishes it.

1. Read and process the records. Nothing of this is visible outside.
2. Write files that nothing references yet: the changed state, and the rows of each table. Sync them.
3. Commit the outcome, which references all of them, to the journal.
4. Commit the files of each table in one transaction, identified by (application, batch id).
5. Report the outcome to the control store.

A run that was killed before step 3 repeats the batch with the clock of its intent. A run that was killed after it
repeats steps 4 and 5, which change nothing that is already there.
"""

import logging
from collections.abc import Callable

from penstock.engine.batch.batch_computation import BatchComputation
from penstock.engine.batch.batch_input import BatchInput
from penstock.engine.batch.batch_result import BatchResult
from penstock.engine.batch.batch_rows import BatchRows, BatchSink, count_panes_by_timing
from penstock.engine.batch.batch_sync import BatchSync
from penstock.engine.batch.committed_state import CommittedState, WrittenState
from penstock.engine.batch.engine_options import EngineOptions
from penstock.engine.batch.history_pruning import forget_before, prune_history
from penstock.engine.batch.input_watermarks import WatermarkRules
from penstock.engine.batch.intent import BatchIntent
from penstock.engine.batch.journal import BatchJournal
from penstock.engine.batch.outcome import BatchOutcome
from penstock.engine.batch.poison_isolation import PoisonIsolation
from penstock.engine.batch.write_fence import WriteFence
from penstock.engine.errors import WriterFencedError
from penstock.engine.operators.stage_graph import CompiledGraph
from penstock.engine.tables.table_change import TableChange

log = logging.getLogger(__name__)


class BatchRunner:
    """Runs the batches of one stream, one at a time, and moves the committed state forward."""

    def __init__(
        self,
        graph: CompiledGraph,
        watermark_rules: WatermarkRules,
        tables: BatchSink,
        fence: WriteFence,
        report_outcome: Callable[[BatchOutcome], None],
        options: EngineOptions,
        journal: BatchJournal,
        committed: CommittedState,
        batch_sync: BatchSync,
    ) -> None:
        self._graph = graph
        self._watermark_rules = watermark_rules
        self._tables = tables
        self._fence = fence
        self._report_outcome = report_outcome
        self._options = options
        self._journal = journal
        self._committed = committed
        self._sync = batch_sync
        self._poison_isolation = PoisonIsolation(
            journal, fence.stream, options.settings.poison_limit, options.find_resent
        )

    def run(self, intent: BatchIntent, batch_input: BatchInput) -> None:
        """Run a batch over the records of its ranges."""
        outcome = self._compute_and_commit(intent, batch_input)
        self._fence.ensure_held()
        self._publish(outcome)
        log.debug(
            "Batch committed (records=%d, rows=%d)",
            sum(account.read for account in outcome.accounts),
            outcome.rows,
        )
        prune_history(self._journal, self._committed, self._fence, outcome.batch_id)

    def resume_from(self, outcome: BatchOutcome) -> None:
        """Continue from the last outcome of the journal, and publish it again."""
        self._sync.sync_before_resume(outcome)
        self._committed.adopt(outcome)
        self._publish(outcome)
        if outcome.erased is not None:  # an interrupted erasure did not do this
            forget_before(self._journal, self._committed, self._fence, outcome.batch_id)

    def _compute_and_commit(self, intent: BatchIntent, batch_input: BatchInput) -> BatchOutcome:
        """Compute and write a batch, and commit its outcome. Returns the outcome in the journal."""
        computation = BatchComputation(
            intent, self._graph, self._watermark_rules, self._committed, self._options.placement
        )
        result = self._poison_isolation.compute_isolated(computation, batch_input)
        # Computing may take long, and a host that lost its lease must write nothing more.
        self._fence.ensure_held()
        with computation.stopwatch.step("write"):
            rows = result.collect_rows(self._graph, intent)
            changes, written = self._write(result, rows)
        with computation.stopwatch.step("sync"):
            previous = self._committed.last_outcome
            self._sync.sync_before_outcome(
                intent, changes, written.files, {} if previous is None else previous.state_files
            )
        self._fence.ensure_held()
        outcome = self._make_outcome(computation, result, rows, changes, written)
        result.release()
        committed_outcome = self._journal.commit_outcome(outcome)
        if committed_outcome.epoch > self._fence.epoch:
            raise WriterFencedError(self._fence.stream, self._fence.epoch)
        self._committed.adopt(committed_outcome, written if committed_outcome is outcome else None)
        return committed_outcome

    def _write(self, result: BatchResult, rows: BatchRows) -> tuple[dict[str, TableChange], WrittenState]:
        changes = self._tables.write(rows, result.batch_time)
        try:
            return changes, self._committed.write_changes(result)
        except Exception:
            self._tables.discard(changes)
            raise

    def _make_outcome(
        self,
        computation: BatchComputation,
        result: BatchResult,
        rows: BatchRows,
        changes: dict[str, TableChange],
        written: WrittenState,
    ) -> BatchOutcome:
        intent, committed = computation.intent, self._committed
        return BatchOutcome(
            batch_id=intent.batch_id,
            kind=intent.kind,
            clock=intent.clock,
            epoch=self._fence.epoch,
            spark_batch=intent.spark_batch if intent.kind == "data" else committed.last_spark_batch,
            watermark=result.watermarks.stream,
            inputs=result.watermarks.inputs,
            ends={**committed.ends, **{span.name: span.end for span in intent.ranges}},
            state_files=written.files,
            changes=changes,
            accounts=rows.accounts,
            panes=count_panes_by_timing(rows.panes.values()),
            lag_records=self._options.count_backlog(intent.ranges),
            state_rows=written.row_count,
            state_sizes=written.sizes,
            durations_ms=computation.stopwatch.durations_ms,
            plan=self._options.plan_fingerprint,
            placement=result.stage_results.placement,
            committed_at_ms=self._options.wall_clock(),
        )

    def _publish(self, outcome: BatchOutcome) -> None:
        self._tables.commit(outcome.batch_id, outcome.changes, outcome.clock)
        self._report_outcome(outcome)
