"""What a batch is given to fold: partials, and the single records that need a place of their own."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa
import pyarrow.compute as pc

from penstock.pipelines.batch.intent import Range, partition_name
from penstock.pipelines.fold.stage import ReadyStage
from penstock.pipelines.host.control import PartitionAccount
from penstock.pipelines.repeats.ids import IDS
from penstock.pipelines.state.columns import BEFORE_ALL, Mask

ACCOUNT_COLUMNS = pa.schema(
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


CHECKED = pa.schema(
    [
        pa.field("topic", pa.string()),
        pa.field("check", pa.string()),
        pa.field("action", pa.string()),
        pa.field("records", pa.int64()),
    ]
)
"""How many records of a batch break a check of their input, and what is done about it."""

QUARANTINED = "quarantined"
DUPLICATE = "duplicate"
FILTERED = "filtered"


class Reading(Protocol):
    """The records of one batch. Asked again, it answers the same."""

    def partials(self) -> pa.Table:
        """One row per partition, key and window, and one per partition for records that were set aside."""

    def invalid(self) -> pa.Table:
        """The records that are no good, as the quarantine keeps them."""

    def late(self, windows: pa.Table) -> pa.Table:
        """The records of some windows, given by key and bounds: `LATE` and the key, a row for each window."""


@runtime_checkable
class Branching(Reading, Protocol):
    """The records of a batch as several first stages read them, of which this is the first's reading."""

    def beside(self) -> "Mapping[str, Reading]":
        """The readings of the other first stages, by their names; they share this one's pass."""


@runtime_checkable
class Weighable(Reading, Protocol):
    """Records whose partials may be kept where they are made, until somebody knows how many they are."""

    def weigh(self) -> "Mapping[str, Weighed]":
        """Make the partials of all first stages, and say what those of each amount to, by its name."""


class Weighed(Protocol):
    """Partials that were made and stay where they are until somebody says what becomes of them."""

    summary: pa.Table
    """What they say of records, `ACCOUNT_COLUMNS`: a row for each partition and each thing that became of some."""
    rows: int
    """How many partials of good records there are."""
    nbytes: int
    """What they take where they are, about: it may be packed closer there than it is once fetched."""

    def fetched(self) -> pa.Table:
        """Bring all of them here."""

    def release(self) -> None:
        """Say that they are not needed any more."""


@runtime_checkable
class Identified(Reading, Protocol):
    """Records that can be told from repeats."""

    def ids(self) -> pa.Table:
        """The ids of good records of inputs whose repeats are set aside, as `repeats.ids.IDS` has them."""

    def without(self, repeats: pa.Table) -> "Reading":
        """The same records, of which these, by their addresses, are set aside as repeats."""


@runtime_checkable
class Checked(Reading, Protocol):
    """Records that are checked one by one while they are read."""

    def broken(self) -> pa.Table:
        """How many break each check, as `CHECKED` has it; known once the partials are."""


LATE = pa.schema(
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
class _Nothing:
    """The records of a tick: none."""

    stage: ReadyStage
    others: tuple[ReadyStage, ...] = ()

    def beside(self) -> Mapping[str, Reading]:
        return {stage.plan.name: _Nothing(stage) for stage in self.others}

    def partials(self) -> pa.Table:
        return pa.schema([*ACCOUNT_COLUMNS, *self.stage.partial_columns]).empty_table()

    def invalid(self) -> pa.Table:
        raise AssertionError("a tick has no records")

    def late(self, windows: pa.Table) -> pa.Table:
        raise AssertionError("a tick has no records")

    def ids(self) -> pa.Table:
        return IDS.empty_table()

    def without(self, repeats: pa.Table) -> Reading:
        return self


def nothing_read(firsts: Sequence[ReadyStage]) -> Reading:
    """The records of a tick: none."""
    return _Nothing(firsts[0], tuple(firsts[1:]))


def readings_of(reading: Reading, firsts: Sequence[ReadyStage]) -> dict[str, Reading]:
    """The records as each first stage reads them, by its name."""
    beside = reading.beside() if isinstance(reading, Branching) else {}
    return {firsts[0].plan.name: reading, **beside}


def windowed(partials: pa.Table) -> pa.Table:
    """The partials of good records."""
    aside = partials.column("_set_aside")
    # As a rule nothing is set aside, and then nothing is copied: there may be a partial for each record.
    return partials if aside.null_count == len(aside) else partials.filter(pc.is_null(aside))


def newest_times(partials: pa.Table) -> dict[str, int]:
    """The newest event time of each partition that had records, BEFORE_ALL where none of them can tell."""
    newest = _each_partition(partials, "_newest", "max")
    return {name: BEFORE_ALL if time is None else time for name, time in newest.items()}


def accounts(ranges: Sequence[Range], partials: pa.Table, late: Mask) -> tuple[PartitionAccount, ...]:
    """What became of the records of each partition in a stage; `late` says which windowed partials were refused."""
    partials = partials.select(ACCOUNT_COLUMNS.names)
    good = windowed(partials)
    # As a rule nothing is late, and then nothing is copied.
    folded_in = _by_partition(good.filter(pa.array(~late)) if late.any() else good)
    refused = _by_partition(good.filter(pa.array(late)))
    aside = {
        fate: _by_partition(partials.filter(pc.equal(partials.column("_set_aside"), fate)))
        for fate in (QUARANTINED, DUPLICATE, FILTERED)
    }
    return tuple(
        _account(span, folded_in[span.name], refused[span.name], {f: n[span.name] for f, n in aside.items()})
        for span in ranges
    )


def _by_partition(partials: pa.Table) -> Counter[str]:
    return Counter(_each_partition(partials, "_counted", "sum"))


def _each_partition(partials: pa.Table, column: str, how: str) -> dict[str, Any]:
    """What some partials come to, partition by partition: there may be one for each record."""
    found = partials.group_by(["_topic", "_partition"]).aggregate([(column, how)])
    names = zip(found.column("_topic").to_pylist(), found.column("_partition").to_pylist(), strict=True)
    return {
        partition_name(*name): value
        for name, value in zip(names, found.column(f"{column}_{how}").to_pylist(), strict=True)
    }


def _account(span: Range, folded: int, late: int, aside: Mapping[str, int]) -> PartitionAccount:
    return PartitionAccount(
        span.topic,
        span.partition,
        span.start,
        span.end,
        folded + late + sum(aside.values()),
        folded=folded,
        late=late,
        quarantined=aside[QUARANTINED],
        duplicate=aside[DUPLICATE],
        filtered=aside[FILTERED],
    )
