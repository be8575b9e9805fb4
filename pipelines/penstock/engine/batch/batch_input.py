"""The input of a batch: partials to process, and the records that are stored one by one."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.batch.accounts import PartitionAccount
from penstock.engine.batch.intent import OffsetRange, partition_name
from penstock.engine.dedup.duplicates import RECORD_IDS_SCHEMA
from penstock.engine.operators.compiled_stage import CompiledStage
from penstock.engine.state.header_columns import MIN_TIMESTAMP_MS, BoolArray

ACCOUNT_SCHEMA = pa.schema(
    [
        pa.field("_topic", pa.string()),
        pa.field("_partition", pa.int32()),
        pa.field("_fate", pa.string()),
        pa.field("_counted", pa.int64()),
        pa.field("_newest", pa.int64()),
    ]
)
"""The account columns of a partial: partition, fate if not in a window, record count, newest event time.

A record in several windows is counted in the partial of its last window only.
"""


CHECK_COUNTS_SCHEMA = pa.schema(
    [
        pa.field("topic", pa.string()),
        pa.field("check", pa.string()),
        pa.field("action", pa.string()),
        pa.field("records", pa.int64()),
    ]
)
"""How many records of a batch violate each check of their input, and the action taken."""

FATE_QUARANTINED = "quarantined"
FATE_DUPLICATE = "duplicate"
FATE_FILTERED = "filtered"


class UnprovenRecordsError(Exception):
    """Records that were taken for invalid are valid. Compute the batch again: the same input then gives them."""


class BatchInput(Protocol):
    """The records of one batch. Repeated calls return the same."""

    def compute_partials(self) -> pa.Table:
        """Return a row per partition, key and window, and a row per partition for records without a window."""

    def read_invalid_records(self) -> pa.Table:
        """Return the invalid records, as the quarantine stores them."""

    def read_late_records(self, windows: pa.Table) -> pa.Table:
        """Return the records of windows, by key and bounds: LATE_RECORD_SCHEMA and the key, a row per window."""


@runtime_checkable
class MultiStageInput(BatchInput, Protocol):
    """The records of a batch as several first stages read them; this is the first stage's input."""

    def inputs_of_other_stages(self) -> "Mapping[str, BatchInput]":
        """Return the inputs of the other first stages by name; they share one pass over the records."""


@runtime_checkable
class RemotePartialsInput(BatchInput, Protocol):
    """Records whose partials can stay on executors until their size is known."""

    def compute_remote_partials(self) -> "Mapping[str, RemotePartials]":
        """Compute the partials of all first stages, and return a handle for each, by name."""


class RemotePartials(Protocol):
    """Partials that stay on executors until they are fetched or released."""

    summary: pa.Table
    """The columns of ACCOUNT_SCHEMA: a row for each partition and fate."""
    rows: int
    """The number of partials of valid records."""
    nbytes: int
    """Their approximate size on the executors; they may be larger once fetched."""

    def fetch(self) -> pa.Table:
        """Fetch all of them."""

    def release(self) -> None:
        """Release them."""


@runtime_checkable
class IdentifiedInput(BatchInput, Protocol):
    """Records with ids, which can be deduplicated."""

    def read_ids(self) -> pa.Table:
        """Return the ids of valid records of deduplicated inputs, as RECORD_IDS_SCHEMA has them."""

    def drop_duplicates(self, duplicates: pa.Table) -> "BatchInput":
        """Return the same records, with these addresses counted as duplicates."""


@runtime_checkable
class CheckedInput(BatchInput, Protocol):
    """Records that are checked one by one while they are read."""

    def count_failed_checks(self) -> pa.Table:
        """Return how many records violate each check, as CHECK_COUNTS_SCHEMA has it; known after the partials."""


LATE_RECORD_SCHEMA = pa.schema(
    [
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("event_time", pa.int64()),
        pa.field("window_start", pa.int64()),
        pa.field("window_end", pa.int64()),
        pa.field("record", pa.string()),
    ]
)


@dataclass(frozen=True)
class _EmptyInput:
    """The input of a tick: no records."""

    stage: CompiledStage
    other_stages: tuple[CompiledStage, ...] = ()

    def inputs_of_other_stages(self) -> Mapping[str, BatchInput]:
        return {stage.plan.name: _EmptyInput(stage) for stage in self.other_stages}

    def compute_partials(self) -> pa.Table:
        return pa.schema([*ACCOUNT_SCHEMA, *self.stage.partial_schema]).empty_table()

    def read_invalid_records(self) -> pa.Table:
        raise AssertionError("a tick has no records")

    def read_late_records(self, windows: pa.Table) -> pa.Table:
        raise AssertionError("a tick has no records")

    def read_ids(self) -> pa.Table:
        return RECORD_IDS_SCHEMA.empty_table()

    def drop_duplicates(self, duplicates: pa.Table) -> BatchInput:
        return self


def make_empty_input(first_stages: Sequence[CompiledStage]) -> BatchInput:
    """Return the input of a tick: no records."""
    return _EmptyInput(first_stages[0], tuple(first_stages[1:]))


def split_by_stage(batch_input: BatchInput, first_stages: Sequence[CompiledStage]) -> dict[str, BatchInput]:
    """Return the records as each first stage reads them, by its name."""
    other_inputs = batch_input.inputs_of_other_stages() if isinstance(batch_input, MultiStageInput) else {}
    return {first_stages[0].plan.name: batch_input, **other_inputs}


def select_window_partials(partials: pa.Table) -> pa.Table:
    """Return the partials of records in windows."""
    fates = partials.column("_fate")
    # Usually every record is in a window, and then nothing is copied: there may be a partial per record.
    return partials if fates.null_count == len(fates) else partials.filter(pc.is_null(fates))


def find_newest_times(partials: pa.Table) -> dict[str, int]:
    """Return the newest event time of each partition with records, MIN_TIMESTAMP_MS if none has a time."""
    newest = _aggregate_by_partition(partials, "_newest", "max")
    return {name: MIN_TIMESTAMP_MS if time is None else time for name, time in newest.items()}


def account_partitions(
    ranges: Sequence[OffsetRange], partials: pa.Table, is_late: BoolArray
) -> tuple[PartitionAccount, ...]:
    """Account for the records of each partition in a stage; `is_late` marks refused window partials."""
    partials = partials.select(ACCOUNT_SCHEMA.names)
    window_partials = select_window_partials(partials)
    # Usually nothing is late, and then nothing is copied.
    accepted_counts = _count_by_partition(
        window_partials.filter(pa.array(~is_late)) if is_late.any() else window_partials
    )
    late_counts = _count_by_partition(window_partials.filter(pa.array(is_late)))
    counts_by_fate = {
        fate: _count_by_partition(partials.filter(pc.equal(partials.column("_fate"), fate)))
        for fate in (FATE_QUARANTINED, FATE_DUPLICATE, FATE_FILTERED)
    }
    return tuple(
        _build_account(
            offset_range,
            accepted_counts[offset_range.name],
            late_counts[offset_range.name],
            {fate_name: counts[offset_range.name] for fate_name, counts in counts_by_fate.items()},
        )
        for offset_range in ranges
    )


def _count_by_partition(partials: pa.Table) -> Counter[str]:
    return Counter(_aggregate_by_partition(partials, "_counted", "sum"))


def _aggregate_by_partition(partials: pa.Table, column: str, function: str) -> dict[str, Any]:
    """Aggregate partials by partition: there may be one per record."""
    grouped = partials.group_by(["_topic", "_partition"]).aggregate([(column, function)])
    names = zip(grouped.column("_topic").to_pylist(), grouped.column("_partition").to_pylist(), strict=True)
    return {
        partition_name(*name): value
        for name, value in zip(names, grouped.column(f"{column}_{function}").to_pylist(), strict=True)
    }


def _build_account(
    offset_range: OffsetRange, accepted: int, late: int, counts_by_fate: Mapping[str, int]
) -> PartitionAccount:
    return PartitionAccount(
        offset_range.topic,
        offset_range.partition,
        offset_range.start,
        offset_range.end,
        accepted + late + sum(counts_by_fate.values()),
        accepted=accepted,
        late=late,
        quarantined=counts_by_fate[FATE_QUARANTINED],
        duplicate=counts_by_fate[FATE_DUPLICATE],
        filtered=counts_by_fate[FATE_FILTERED],
    )
