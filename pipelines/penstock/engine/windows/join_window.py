"""The base of join conditions in event time, for joins without windows."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from penstock.engine.definition.phrases import format_duration
from penstock.engine.state.header_columns import MAX_TIMESTAMP_MS, BoolArray, Int64Array
from penstock.engine.windows.window import StateRetention, Window

RecordPairs = tuple[Int64Array, Int64Array]
"""The positions of left and right records, -1 for no partner."""


@dataclass(frozen=True)
class JoinRecords:
    """Records with the number of their key: stored records first, then new ones in order of arrival.

    `is_matched` marks records that have matched a partner before.
    """

    key_of_record: Int64Array
    is_left: BoolArray
    time: Int64Array
    is_new: BoolArray
    is_matched: BoolArray
    has_null_key: BoolArray
    """Records whose key contains a null. As in SQL, they match no partner."""
    is_end_marker: BoolArray
    """Right records that end the validity of the version before: from their time on there is no partner."""
    fields: pa.Table

    def __len__(self) -> int:
        """Return the number of records."""
        return len(self.key_of_record)

    def sort(self, positions: Int64Array) -> Int64Array:
        """Sort positions of records by key, time and arrival."""
        return positions[np.lexsort((positions, self.time[positions], self.key_of_record[positions]))]


@dataclass(frozen=True)
class JoinMatches:
    """Matched pairs as record positions (-1 for no partner), and which records to store."""

    left: Int64Array
    right: Int64Array
    is_matched: BoolArray
    is_buffered: BoolArray
    due_event: Int64Array
    """The watermark at which each stored record is due."""


class JoinWindow(Window):
    """Which records of two inputs match by their event times. Each row of the join is final.

    A `record_condition` is evaluated on right records only. A right record that meets it is an end marker.
    """

    is_record_ordered: ClassVar[bool] = True

    pane_relation: ClassVar[str] = "Each row is final; it is never corrected."

    unsupported_kinds: ClassVar[tuple[str, ...]] = ()
    """The kinds of joins that cannot be computed, such as `right`."""
    unsupported_kinds_fix: ClassVar[str] = ""

    @property
    def is_event_time_bound(self) -> bool:
        """A row is emitted once the watermark allows it."""
        return True

    def partner_wait_ms(self, kind: str) -> int:
        """Return how much later than a record a record may lie that decides whether its row is emitted."""
        return 0

    def describe_timing(self, lateness: int) -> tuple[str, ...]:
        """Describe when a row is emitted, and which records are late."""
        threshold = f"more than {format_duration(lateness)} behind" if lateness else "behind"
        return self.describe_emission(lateness), f"Records {threshold} the watermark go to the late table."

    @abstractmethod
    def describe_emission(self, lateness: int) -> str:
        """Describe when a row is emitted, in a sentence."""

    @abstractmethod
    def describe_state(self, lateness: int) -> StateRetention:
        """Describe the stored records."""

    @abstractmethod
    def match_records(self, records: JoinRecords, lateness: int, watermark: int) -> JoinMatches:
        """Match the records of a batch with each other and with stored records, vectorized."""

    @abstractmethod
    def select_rows(self, kind: str, records: JoinRecords, matches: JoinMatches) -> RecordPairs:
        """Return the rows that a kind of join emits."""

    @abstractmethod
    def row_times(self, left: Int64Array, right: Int64Array) -> Int64Array:
        """Return the event time of each row, from the times of its records; a missing record has the first time."""


def combine_key_rank(key: Int64Array, rank: Int64Array, rank_count: int) -> Int64Array:
    """Combine a key and the rank of a time into one sortable number."""
    return np.asarray(key, np.int64) * (rank_count + 1) + rank


def add_saturating(time: Int64Array, span: Int64Array) -> Int64Array:
    """Add a span to times, capped at the end of time."""
    is_endless = (span == MAX_TIMESTAMP_MS) | (time > MAX_TIMESTAMP_MS - span)
    return np.where(is_endless, MAX_TIMESTAMP_MS, time + np.where(is_endless, 0, span))
