"""Replays the history of a stream beside it, then replaces the stream's state and tables by the replayed ones.

The history runs like stored records, into separate folders and tables, while the stream continues. Then, with the
stream drained and its lease held, the replay runs the remaining records, and every table takes over the replayed
files in one commit. The stream resumes from the replay's state. No record is counted twice, because tables are
replaced, not extended.

Every step can be repeated: a killed replay resumes when it is started again under the same name.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from penstock.core.clock import Clock
from penstock.core.file_sync import sync_tree
from penstock.core.files import write_atomically
from penstock.core.progress import ProgressReporter
from penstock.engine.batch.intent import OffsetRange
from penstock.engine.batch.journal import BatchJournal
from penstock.engine.batch.outcome import BatchOutcome
from penstock.engine.batch.stream_claim import make_stream_claim
from penstock.engine.batch.write_fence import WriteFence
from penstock.engine.errors import ReplayError
from penstock.engine.history.batch_history import HistoryBatch, is_cut_by_clock, load_batch_history
from penstock.engine.history.bounded_run import BoundedRun
from penstock.engine.history.bounded_run_config import BoundedRunConfig
from penstock.engine.history.bounded_run_inputs import load_or_create_inputs, split_by_table_versions
from penstock.engine.history.ledger_sums import read_first_offsets
from penstock.engine.history.replaced_tables import list_replaced_tables, refuse_lasting_sinks
from penstock.engine.history.replay_paths import ReplayPaths
from penstock.engine.history.unreadable_records import find_unreadable_records
from penstock.engine.plan.stages import Plan
from penstock.engine.spark.bounded_sources import BoundedSource
from penstock.engine.state.header_columns import MIN_TIMESTAMP_MS
from penstock.engine.stream_folders import (
    finish_switch,
    read_unfinished_switch,
    start_switch,
)
from penstock.engine.tables.batch_table import claim_existing_tables
from penstock.engine.tables.table_paths import list_owned_paths
from penstock.engine.upgrade.stored_plan import store_plan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REPLAY_KIND = "replay"


class ReplayTail(msgspec.Struct):
    """The ranges left to read after the stream has drained, and the clock at which they were listed.

    `batches` are the stream's batches over these ranges, if they must be repeated as they were.
    """

    clock: int
    ranges: list[OffsetRange]
    batches: list[HistoryBatch] = []


class StreamReplay:
    """One replay of one stream. `run_history` may take hours; `finish_and_switch` needs a drained stream."""

    def __init__(
        self,
        plan: Plan,
        session: "SparkSession",
        source: BoundedSource,
        paths: ReplayPaths,
        config: BoundedRunConfig,
        clock: Clock,
        report_progress: ProgressReporter = lambda _: None,
    ) -> None:
        refuse_lasting_sinks(plan)
        if paths.live_folder == paths.replay_folder and not read_unfinished_switch(
            paths.streams_folder, plan.name
        ):
            raise ReplayError(
                plan.name,
                f"it runs from replay {paths.replay_name} already",
                "Use another name for a new replay",
            )
        self._plan = plan
        self._source = source
        self._paths = paths
        self._clock = clock
        self._report_progress = report_progress
        self._journal = BatchJournal(paths.replay_folder / "journal")
        self._is_cut_by_clock = is_cut_by_clock(plan)
        self._max_records = config.max_records_per_batch
        self._inputs = load_or_create_inputs(
            plan, source, config, clock, self._load_batch_history if self._is_cut_by_clock else None
        )
        self._bounded_run = BoundedRun(plan, session, config, self._report_batch)

    def refuse_data_loss(self) -> None:
        """Raise ReplayError when the stream's tables hold results of records before the replayed ones."""
        starts = {span.name: span.start for spans in reversed(self._inputs.batches) for span in spans}
        for partition, first_offset in read_first_offsets(self._paths.warehouse, self._plan.name).items():
            if starts.get(partition, first_offset) > first_offset:
                raise ReplayError(
                    self._plan.name,
                    f"its tables count {partition} from offset {first_offset}, "
                    f"but the replay starts at {starts[partition]}",
                    "Start earlier, such as with --from archive, or replay with --beside. To drop the earlier "
                    "results, pass --drop-earlier",
                )

    def refuse_unreadable_records(self) -> None:
        """Raise ReplayError when the contract does not read records any more that the stream's results count.

        Call it after `run_history`. An interrupted switch is not refused: the stream cannot run without its end.
        """
        if self._find_seal() is not None:
            return
        unreadable = find_unreadable_records(self._plan, self._paths.warehouse, self._paths.replay_warehouse)
        if unreadable is not None:
            records = "1 record" if unreadable.count == 1 else f"{unreadable.count:,} records"
            raise ReplayError(
                self._plan.name,
                f"its contract no longer reads {records} of its results, such as {unreadable.first}: "
                f"{unreadable.reason}. Nothing was changed",
                "Revert the contract, and send records of another form to a new topic. To drop these results, run "
                f"`penstock stream replay {self._plan.name} --drop-earlier`",
            )

    def run_history(self) -> None:
        """Run all records that existed when the replay started; the watermark stays at its minimum.

        For a stream with processing-time windows, repeat its batches with their clocks and watermarks instead.
        """
        if self._find_seal() is None:
            for number, spans in enumerate(self._inputs.batches):
                clock_ms, table_versions = (
                    self._inputs.clock_of_batch(number),
                    self._inputs.table_versions_of(number),
                )
                self._run_batch(
                    number,
                    clock_ms,
                    spans,
                    None if self._is_cut_by_clock else MIN_TIMESTAMP_MS,
                    table_versions,
                )

    def _run_batch(
        self,
        number: int,
        clock_ms: int,
        spans: Sequence[OffsetRange],
        watermark: int | None,
        table_versions: Mapping[str, int],
    ) -> None:
        if self._is_cut_by_clock:
            self._bounded_run.run_ticks_until(clock_ms)
        self._bounded_run.run_batch(number, clock_ms, spans, self._source, watermark, table_versions)

    def _load_batch_history(self, ranges: Sequence[OffsetRange]) -> Sequence[HistoryBatch]:
        """Return the batches in which the stream read these ranges."""
        return load_batch_history(
            self._plan, self._paths.warehouse / "ledger" / self._plan.name, ranges, self._max_records
        )

    def finish_and_switch(self, fence: WriteFence) -> BatchOutcome:
        """Run the remaining records and switch the stream to the replay; the stream must be drained.

        `fence` is the stream's write fence.
        """
        seal = self._find_seal() or self._run_tail_and_seal(fence)
        self._switch_tables(seal, fence)
        finish_switch(self._paths.streams_folder, self._plan.name, self._paths.replay_name)
        return seal

    def _find_seal(self) -> BatchOutcome | None:
        last_outcome = self._journal.read_last_outcome()
        return last_outcome if last_outcome is not None and last_outcome.kind == REPLAY_KIND else None

    def _run_tail_and_seal(self, fence: WriteFence) -> BatchOutcome:
        """Run the remaining records, and commit an outcome numbered after the stream's last batch."""
        tail = self._load_or_create_tail()
        remaining = [
            (recorded_batch.clock, spans, table_versions)
            for recorded_batch in [*tail.batches, HistoryBatch(tail.clock, tail.ranges)]
            for spans, table_versions in split_by_table_versions(
                self._plan, recorded_batch.ranges, self._paths.warehouse
            )
        ]
        for position, (clock_ms, spans, table_versions) in enumerate(remaining, start=1):
            # The watermark stays at its minimum until the last part.
            holds_watermark = not self._is_cut_by_clock and position < len(remaining)
            number = len(self._inputs.batches) + position - 1
            self._run_batch(
                number, clock_ms, spans, MIN_TIMESTAMP_MS if holds_watermark else None, table_versions
            )
        fence.ensure_held()
        store_plan(self._paths.replay_folder, self._plan)
        sync_tree(self._paths.replay_folder)
        if isinstance(self._paths.replay_warehouse, Path):
            sync_tree(self._paths.replay_warehouse)
        start_switch(self._paths.streams_folder, self._plan.name, self._paths.replay_name)
        live_outcome = BatchJournal(self._paths.live_folder / "journal").read_last_outcome()
        last_batch_id = max(
            self._bounded_run.last_outcome.batch_id, -1 if live_outcome is None else live_outcome.batch_id
        )
        return self._journal.commit_outcome(
            replace(
                self._bounded_run.last_outcome,
                batch_id=last_batch_id + 1,
                kind=REPLAY_KIND,
                epoch=fence.epoch,
                spark_batch=None,  # Spark numbers its batches from 0 again
                changes={},
                panes={},
                accounts=(),  # this outcome read nothing; the ledger holds the accounts of the batches before
                lag_records=0,
                durations_ms={},
                committed_at_ms=self._clock(),
            )
        )

    def _load_or_create_tail(self) -> ReplayTail:
        path = self._paths.replay_folder / "tail.json"
        if not path.exists():
            read_ends = self._bounded_run.last_outcome.ends
            spans = [replace(s, start=read_ends.get(s.name, s.start)) for s in self._source.list_ranges()]
            batches = list(self._load_batch_history(spans)) if self._is_cut_by_clock else []
            ends = {span.name: span.end for batch in batches for span in batch.ranges}
            spans = [replace(s, start=ends.get(s.name, s.start)) for s in spans]
            write_atomically(path, msgspec.json.encode(ReplayTail(self._clock(), spans, batches)))
        return msgspec.json.decode(path.read_bytes(), type=ReplayTail)

    def _switch_tables(self, seal: BatchOutcome, fence: WriteFence) -> None:
        claim = make_stream_claim(self._paths.streams_folder, self._plan.name)
        owned_tables = [self._paths.warehouse / path for path in list_owned_paths(self._plan)]
        # An interrupted switch has committed the seal to some tables.
        claim_existing_tables(owned_tables, replace(claim, last_batch=max(claim.last_batch, seal.batch_id)))
        for path, replace_content in list_replaced_tables(self._plan).items():
            fence.ensure_held()
            self._report_progress(f"switching {path}")
            replay_table = self._paths.replay_warehouse / path
            replace_content(
                self._paths.warehouse / path, replay_table, self._plan.name, seal.batch_id, self._clock()
            )

    def _report_batch(self, outcome: BatchOutcome) -> None:
        number, count = outcome.batch_id + 1, len(self._inputs.batches)
        self._report_progress(f"batch {number} of {count}" if number <= count else "the last records")
