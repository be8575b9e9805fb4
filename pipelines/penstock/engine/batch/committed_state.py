"""What the last committed batch left to the next one: its outcome, the state of each stage, and the record ids."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from penstock.engine.batch.batch_result import BatchResult
from penstock.engine.batch.input_watermarks import StreamWatermarks, WatermarkRules
from penstock.engine.batch.intent import BatchIntent
from penstock.engine.batch.outcome import BatchOutcome
from penstock.engine.batch.stage_states import StageStates, StateTrees
from penstock.engine.batch_time import BatchTime
from penstock.engine.dedup.id_store import RecordIdStore
from penstock.engine.errors import DamagedEntryError
from penstock.engine.operators.stage_graph import CompiledGraph
from penstock.engine.operators.watermark import Watermark
from penstock.engine.state.header_columns import MAX_TIMESTAMP_MS, MIN_TIMESTAMP_MS
from penstock.engine.state.state_tree import StateTree

DEDUP_IDS_KEY = "/ids"
"""The key of the deduplication ids among an outcome's files; no table's name has a slash."""


def find_state_folder(key: str) -> str:
    """Return the folder of state files below that of the stream, by their key in an outcome."""
    return "ids" if key == DEDUP_IDS_KEY else f"state/{key}"


@dataclass(frozen=True)
class WrittenState:
    """The state after a batch, in files that nothing references before its outcome is committed."""

    stages: StateTrees
    ids: StateTree | None

    @property
    def files(self) -> dict[str, list[str]]:
        """The files of each stage, and those of the record ids."""
        trees = self.stages if self.ids is None else {**self.stages, DEDUP_IDS_KEY: self.ids}
        return {name: tree.list_file_names() for name, tree in trees.items()}

    @property
    def row_count(self) -> int:
        """The number of rows, superseded ones included."""
        return sum(tree.row_count for tree in self.stages.values()) + (
            0 if self.ids is None else self.ids.row_count
        )

    @property
    def sizes(self) -> dict[str, dict[str, int]]:
        """The rows and bytes of each stage."""
        return {
            name: {"rows": tree.row_count, "bytes": tree.size_bytes} for name, tree in self.stages.items()
        }


class CommittedState:
    """The state of a stream after its last committed batch; `adopt` moves it to the next one."""

    def __init__(self, graph: CompiledGraph, directory: Path, id_store: RecordIdStore | None) -> None:
        self.stages = StageStates(graph, directory / "state")
        self.id_store = id_store
        self.last_outcome: BatchOutcome | None = None

    def adopt(self, outcome: BatchOutcome, written: WrittenState | None = None) -> None:
        """Continue from an outcome. Without `written`, another host committed it, and its files are opened.

        Raises DamagedEntryError if one of these files is missing or damaged.
        """
        try:
            self.stages.adopt(
                self.stages.open_trees(outcome.state_files) if written is None else written.stages
            )
            if self.id_store is not None:
                files = outcome.state_files.get(DEDUP_IDS_KEY, ())
                self.id_store.adopt(files, None if written is None else written.ids)
        except FileNotFoundError as error:
            raise DamagedEntryError(
                error.filename, f"is missing, and batch {outcome.batch_id} needs it"
            ) from error
        self.last_outcome = outcome

    @property
    def next_batch_id(self) -> int:
        """The id of the batch after the last committed one."""
        return 0 if self.last_outcome is None else self.last_outcome.batch_id + 1

    @property
    def last_spark_batch(self) -> int | None:
        """Spark's number of the last batch of records."""
        return None if self.last_outcome is None else self.last_outcome.spark_batch

    @property
    def watermarks(self) -> StreamWatermarks:
        """The watermarks after the last batch."""
        return (
            StreamWatermarks(Watermark(), {}) if self.last_outcome is None else self.last_outcome.watermarks
        )

    @property
    def ends(self) -> Mapping[str, int]:
        """The offset up to which each partition was read."""
        return {} if self.last_outcome is None else self.last_outcome.ends

    def monotonic_clock(self, now: int) -> int:
        """Return a batch clock that never goes back, whatever the machine's clock does."""
        return now if self.last_outcome is None else max(now, self.last_outcome.clock)

    def next_due_clock(self, rules: WatermarkRules) -> int:
        """Return the next clock at which a batch without records has something to do."""
        if self.last_outcome is None:
            return MAX_TIMESTAMP_MS
        clock, watermarks = self.last_outcome.clock, self.last_outcome.watermarks
        next_event_time = self.stages.next_event_time(watermarks.stream.value)
        return min(
            self.stages.next_due_clock(clock - 1),
            watermarks.next_idle(rules, clock),
            watermarks.clock_reaching(rules, next_event_time),
        )

    def make_batch_time(self, intent: BatchIntent, watermark: Watermark) -> BatchTime:
        """Return the times of the next batch, which advances the watermark to this one."""
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

    def write_changes(self, result: BatchResult) -> WrittenState:
        """Write the state after a batch. Expired record ids are left out."""
        batch_time, stage_results = result.batch_time, result.stage_results
        stages = self.stages.write_changes(stage_results.outcomes, batch_time.batch_id, stage_results.runs)
        if self.id_store is None:
            return WrittenState(stages, None)
        ids = self.id_store.write_changes(
            result.dedup_result, batch_time.watermark_before, batch_time.watermark, batch_time.batch_id
        )
        return WrittenState(stages, ids)

    def list_files(self) -> Iterator[tuple[str, Path]]:
        """Yield every state file with its key in an outcome, referenced by an outcome or not."""
        yield from self.stages.list_files()
        for path in () if self.id_store is None else self.id_store.list_files():
            yield DEDUP_IDS_KEY, path
