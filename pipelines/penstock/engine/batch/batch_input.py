"""What a batch is given to fold: partials, and the single records that need a place of their own."""

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
        pa.field("_set_aside", pa.string()),
        pa.field("_counted", pa.int64()),
        pa.field("_newest", pa.int64()),
    ]
)
"""What a partial says of records: their partition, what kept them from a window, how many, the newest event time.

A record in several windows is counted in one of its partials only, that of its last window.
"""


CHECK_COUNTS_SCHEMA = pa.schema(
    [
        pa.field("topic", pa.string()),
        pa.field("check", pa.string()),
        pa.field("action", pa.string()),
        pa.field("records", pa.int64()),
    ]
)
"""How many records of a batch break a check of their input, and what is done about it."""

FATE_QUARANTINED = "quarantined"
FATE_DUPLICATE = "duplicate"
FATE_FILTERED = "filtered"


class BatchInput(Protocol):
    """The records of one batch. Asked again, it answers the same."""

    def compute_partials(self) -> pa.Table:
        """One row per partition, key and window, and one per partition for records that were set aside."""

    def read_invalid_records(self) -> pa.Table:
        """The records that are no good, as the quarantine keeps them."""

    def read_late_records(self, windows: pa.Table) -> pa.Table:
        """The records of some windows, given by key and bounds: `LATE` and the key, a row for each window."""


@runtime_checkable
class MultiStageInput(BatchInput, Protocol):
    """The records of a batch as several first stages read them, of which this is the first's reading."""

    def inputs_of_other_stages(self) -> "Mapping[str, BatchInput]":
        """The readings of the other first stages, by their names; they share this one's pass."""


@runtime_checkable
class RemotePartialsInput(BatchInput, Protocol):
    """Records whose partials may be kept where they are made, until somebody knows how many they are."""

    def compute_remote_partials(self) -> "Mapping[str, RemotePartials]":
        """Make the partials of all first stages, and say what those of each amount to, by its name."""


class RemotePartials(Protocol):
    """Partials that were made and stay where they are until somebody says what becomes of them."""

    summary: pa.Table
    """What they say of records, `ACCOUNT_COLUMNS`: a row for each partition and each thing that became of some."""
    rows: int
    """How many partials of good records there are."""
    nbytes: int
    """What they take where they are, about: it may be packed closer there than it is once fetched."""

    def fetch(self) -> pa.Table:
        """Bring all of them here."""

    def release(self) -> None:
        """Say that they are not needed any more."""


@runtime_checkable
class IdentifiedInput(BatchInput, Protocol):
    """Records that can be told from repeats."""

    def read_ids(self) -> pa.Table:
        """The ids of good records of inputs whose repeats are set aside, as `repeats.ids.IDS` has them."""

    def drop_duplicates(self, repeats: pa.Table) -> "BatchInput":
        """The same records, of which these, by their addresses, are set aside as repeats."""


@runtime_checkable
class CheckedInput(BatchInput, Protocol):
    """Records that are checked one by one while they are read."""

    def count_failed_checks(self) -> pa.Table:
        """How many break each check, as `CHECKED` has it; known once the partials are."""


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
    """The records of a tick: none."""

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

    def drop_duplicates(self, repeats: pa.Table) -> BatchInput:
        return self


def make_empty_input(first_stages: Sequence[CompiledStage]) -> BatchInput:
    """The records of a tick: none."""
    return _EmptyInput(first_stages[0], tuple(first_stages[1:]))


def split_by_stage(batch_input: BatchInput, first_stages: Sequence[CompiledStage]) -> dict[str, BatchInput]:
    """The records as each first stage reads them, by its name."""
    other_inputs = batch_input.inputs_of_other_stages() if isinstance(batch_input, MultiStageInput) else {}
    return {first_stages[0].plan.name: batch_input, **other_inputs}


def select_window_partials(partials: pa.Table) -> pa.Table:
    """The partials of good records."""
    fates = partials.column("_set_aside")
    # As a rule nothing is set aside, and then nothing is copied: there may be a partial for each record.
    return partials if fates.null_count == len(fates) else partials.filter(pc.is_null(fates))


def find_newest_times(partials: pa.Table) -> dict[str, int]:
    """The newest event time of each partition that had records, BEFORE_ALL where none of them can tell."""
    newest = _aggregate_by_partition(partials, "_newest", "max")
    return {name: MIN_TIMESTAMP_MS if time is None else time for name, time in newest.items()}


def account_partitions(
    ranges: Sequence[OffsetRange], partials: pa.Table, is_late: BoolArray
) -> tuple[PartitionAccount, ...]:
    """What became of the records of each partition in a stage; `late` says which windowed partials were refused."""
    partials = partials.select(ACCOUNT_SCHEMA.names)
    window_partials = select_window_partials(partials)
    # As a rule nothing is late, and then nothing is copied.
    folded_counts = _count_by_partition(
        window_partials.filter(pa.array(~is_late)) if is_late.any() else window_partials
    )
    late_counts = _count_by_partition(window_partials.filter(pa.array(is_late)))
    counts_by_fate = {
        fate: _count_by_partition(partials.filter(pc.equal(partials.column("_set_aside"), fate)))
        for fate in (FATE_QUARANTINED, FATE_DUPLICATE, FATE_FILTERED)
    }
    return tuple(
        _build_account(
            offset_range,
            folded_counts[offset_range.name],
            late_counts[offset_range.name],
            {fate_name: counts[offset_range.name] for fate_name, counts in counts_by_fate.items()},
        )
        for offset_range in ranges
    )


def _count_by_partition(partials: pa.Table) -> Counter[str]:
    return Counter(_aggregate_by_partition(partials, "_counted", "sum"))


def _aggregate_by_partition(partials: pa.Table, column: str, function: str) -> dict[str, Any]:
    """What some partials come to, partition by partition: there may be one for each record."""
    grouped = partials.group_by(["_topic", "_partition"]).aggregate([(column, function)])
    names = zip(grouped.column("_topic").to_pylist(), grouped.column("_partition").to_pylist(), strict=True)
    return {
        partition_name(*name): value
        for name, value in zip(names, grouped.column(f"{column}_{function}").to_pylist(), strict=True)
    }


def _build_account(
    offset_range: OffsetRange, folded: int, late: int, counts_by_fate: Mapping[str, int]
) -> PartitionAccount:
    return PartitionAccount(
        offset_range.topic,
        offset_range.partition,
        offset_range.start,
        offset_range.end,
        folded + late + sum(counts_by_fate.values()),
        folded=folded,
        late=late,
        quarantined=counts_by_fate[FATE_QUARANTINED],
        duplicate=counts_by_fate[FATE_DUPLICATE],
        filtered=counts_by_fate[FATE_FILTERED],
    )
