"""A stream's history run again beside it, and put in the place of what it wrote.

The history is run like stored records, into folders and tables of the replay's own, while the stream goes on. Then,
with the stream drained and its lease held, the rest is run, and every table takes over its replayed files in one
commit. The stream goes on from the replay's state. No record is counted twice, because nothing is added to what was
there: it is replaced.

Each step can be done again. Who is killed on the way begins the replay again by its name.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa

from penstock.engine.batch.accounts import PartitionAccount
from penstock.engine.batch.intent import OffsetRange
from penstock.engine.batch.journal import BatchJournal
from penstock.engine.batch.outcome import BatchOutcome
from penstock.engine.batch.stream_tables import LEDGER_SCHEMA
from penstock.engine.batch.write_fence import WriteFence
from penstock.engine.errors import ReplayError
from penstock.engine.history.batch_history import HistoryBatch, is_cut_by_clock, load_batch_history
from penstock.engine.history.bounded_run import (
    BoundedRun,
    BoundedRunConfig,
    load_or_create_inputs,
    split_by_table_versions,
)
from penstock.engine.plan.stages import Plan
from penstock.engine.spark.bounded_sources import BoundedSource
from penstock.engine.state.header_columns import MIN_TIMESTAMP_MS
from penstock.engine.storage import StoragePath
from penstock.engine.storage.file_access import is_delta_table, open_delta_table
from penstock.engine.stream_folders import (
    finish_switch,
    read_unfinished_switch,
    resolve_stream_folder,
    start_switch,
)
from penstock.engine.tables.table_paths import list_owned_paths, list_quarantine_paths
from penstock.engine.tables.table_takeover import FilePredicate, take_over_table
from penstock.engine.upgrade.stored_plan import store_plan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REPLAY_KIND = "replay"
ProgressReporter = Callable[[str], None]


@dataclass(frozen=True)
class ReplayPaths:
    """Where a stream lives, and where its replay does."""

    streams_folder: Path
    warehouse: StoragePath
    stream_name: str
    replay_name: str

    @property
    def replay_folder(self) -> Path:
        """The replay's own folder, which becomes the stream's."""
        return self.streams_folder / self.stream_name / self.replay_name

    @property
    def replay_warehouse(self) -> StoragePath:
        """The replay's own tables."""
        return self.warehouse / "runs" / self.stream_name / self.replay_name

    @property
    def live_folder(self) -> Path:
        """The folder that the stream has now."""
        return resolve_stream_folder(self.streams_folder, self.stream_name)


class ReplayTail(msgspec.Struct):
    """What is left to read once the stream stands still, and when it was looked up.

    `recorded` is what the stream has read of it in batches that are to be run as they were.
    """

    clock: int
    ranges: list[OffsetRange]
    batches: list[HistoryBatch] = []


class StreamReplay:
    """One replay of one stream. `run_history` may take hours; `finish` wants the stream to stand still."""

    def __init__(
        self,
        plan: Plan,
        session: "SparkSession",
        source: BoundedSource,
        paths: ReplayPaths,
        config: BoundedRunConfig,
        clock: Callable[[], int],
        report_progress: ProgressReporter = lambda _: None,
    ) -> None:
        if paths.live_folder == paths.replay_folder and not read_unfinished_switch(
            paths.streams_folder, plan.name
        ):
            raise ReplayError(
                plan.name,
                f"it goes on from replay {paths.replay_name} already",
                "Give a new replay another name",
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
        """Raise ReplayError where the stream's tables hold results of records before those that are replayed."""
        starts = {span.name: span.start for spans in reversed(self._inputs.batches) for span in spans}
        for partition, first_offset in read_first_offsets(self._paths.warehouse, self._plan.name).items():
            if starts.get(partition, first_offset) > first_offset:
                raise ReplayError(
                    self._plan.name,
                    f"its tables count {partition} from offset {first_offset}, "
                    f"and the replay begins at {starts[partition]}",
                    "Begin earlier, as with --from archive, replay --beside, or say --drop-earlier to have the "
                    "tables begin there",
                )

    def run_history(self) -> None:
        """Run everything that was there when the replay was begun; the watermark waits before all of it.

        Of a stream whose windows go by the clock it is what the stream had read, batch by batch, each at its
        own moment, and the watermark is what it was.
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
        """What the stream has read of some ranges, as it read it."""
        return load_batch_history(
            self._plan, self._paths.warehouse / "ledger" / self._plan.name, ranges, self._max_records
        )

    def finish_and_switch(self, fence: WriteFence) -> BatchOutcome:
        """Run what came since, and switch; the stream must stand still, and `right` is that to write it."""
        seal = self._find_seal() or self._run_tail_and_seal(fence)
        self._switch_tables(seal, fence)
        finish_switch(self._paths.streams_folder, self._plan.name, self._paths.replay_name)
        return seal

    def _find_seal(self) -> BatchOutcome | None:
        last_outcome = self._journal.read_last_outcome()
        return last_outcome if last_outcome is not None and last_outcome.kind == REPLAY_KIND else None

    def _run_tail_and_seal(self, fence: WriteFence) -> BatchOutcome:
        """Bring the replay to the end of what there is, and number its state after the stream's last batch."""
        tail = self._load_or_create_tail()
        remaining = [
            (recorded_batch.clock, spans, table_versions)
            for recorded_batch in [*tail.batches, HistoryBatch(tail.clock, tail.ranges)]
            for spans, table_versions in split_by_table_versions(
                self._plan, recorded_batch.ranges, self._paths.warehouse
            )
        ]
        for position, (clock_ms, spans, table_versions) in enumerate(remaining, start=1):
            # Between two of its parts the watermark waits, as it does before all of it.
            holds_watermark = not self._is_cut_by_clock and position < len(remaining)
            number = len(self._inputs.batches) + position - 1
            self._run_batch(
                number, clock_ms, spans, MIN_TIMESTAMP_MS if holds_watermark else None, table_versions
            )
        fence.ensure_held()
        store_plan(self._paths.replay_folder, self._plan)
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
                spark_batch=None,  # Spark begins to count anew
                changes={},
                panes={},
                accounts=(),  # the ledger tells of the batches that were run; this one read nothing
                lag_records=0,
                durations_ms={},
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
            partial = path.with_suffix(".partial")
            partial.write_bytes(msgspec.json.encode(ReplayTail(self._clock(), spans, batches)))
            partial.replace(path)
        return msgspec.json.decode(path.read_bytes(), type=ReplayTail)

    def _switch_tables(self, seal: BatchOutcome, fence: WriteFence) -> None:
        for path, is_exclusive in list_written_tables(self._plan).items():
            fence.ensure_held()
            self._report_progress(f"switching {path}")
            replay_table = self._paths.replay_warehouse / path
            args = (self._plan.name, seal.batch_id, self._clock())
            take_over_table(
                self._paths.warehouse / path,
                replay_table,
                *args,
                is_ours=_batch_owner_filter(self._plan.name, is_exclusive),
            )

    def _report_batch(self, outcome: BatchOutcome) -> None:
        self._report_progress(f"batch {outcome.batch_id + 1} of {len(self._inputs.batches)}")


def list_written_tables(plan: Plan) -> Mapping[str, bool]:
    """The tables that a stream writes, below the warehouse, and whether it is the only one that does."""
    return {
        **dict.fromkeys(list_owned_paths(plan), True),
        **dict.fromkeys(list_quarantine_paths(plan), False),
    }


def read_first_offsets(warehouse: StoragePath, stream: str) -> Mapping[str, int]:
    """The first offset of each partition that a stream's tables tell of."""
    accounts = sum_ledger(warehouse / "ledger" / stream)
    return {f"{account.topic}/{account.partition}": account.start for account in accounts}


def _batch_owner_filter(stream: str, is_exclusive: bool) -> FilePredicate | None:
    return None if is_exclusive else lambda name: name.startswith(f"{stream}-")


def sum_ledger(ledger: StoragePath) -> tuple[PartitionAccount, ...]:
    """What a ledger says of each partition, over all batches."""
    if not is_delta_table(ledger):
        return ()
    count_columns = [
        name for name in LEDGER_SCHEMA.names if name not in ("topic", "partition", "start", "end")
    ]
    rows = open_delta_table(ledger).to_pyarrow_table(columns=LEDGER_SCHEMA.names)
    aggregations: Sequence[tuple[str, str]] = [
        ("start", "min"),
        ("end", "max"),
        *((n, "sum") for n in count_columns),
    ]
    sums: pa.Table = rows.group_by(["topic", "partition"]).aggregate(list(aggregations))
    return tuple(
        PartitionAccount(
            row["topic"],
            row["partition"],
            row["start_min"],
            row["end_max"],
            **{name: row[f"{name}_sum"] for name in count_columns},
        )
        for row in sorted(sums.to_pylist(), key=lambda row: (row["topic"], row["partition"]))
    )
