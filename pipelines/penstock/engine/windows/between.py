"""Interval joins."""

from dataclasses import dataclass

import numpy as np

from penstock.engine.definition.argument_checks import require_non_negative
from penstock.engine.definition.durations import Duration, to_milliseconds
from penstock.engine.definition.keyword import keyword
from penstock.engine.definition.phrases import format_duration
from penstock.engine.state.header_columns import Int64Array
from penstock.engine.windows.join_window import (
    JoinMatches,
    JoinRecords,
    JoinWindow,
    RecordPairs,
    add_saturating,
    combine_key_rank,
)
from penstock.engine.windows.window import StateRetention


@dataclass(frozen=True)
class Between(JoinWindow):
    """An interval join: a left record matches right records from `before` earlier to `after` later."""

    before: int
    after: int

    def __post_init__(self) -> None:
        require_non_negative(self.before, "window.between.before")
        require_non_negative(self.after, "window.between.after")

    def describe(self) -> str:
        """Describe the interval."""
        time_range = f"from {format_duration(self.before)} before to {format_duration(self.after)} after"
        return f"pairs whose right record is {time_range} the left record"

    def describe_emission(self, lateness: int) -> str:
        """Describe when a row is emitted."""
        return (
            "A pair is emitted when its second record arrives, "
            "an unmatched record when no match can arrive any more."
        )

    def describe_state(self, lateness: int) -> StateRetention:
        """Describe the stored records."""
        return StateRetention(
            "records", "their fields, and whether they have matched", "no matching record can arrive any more"
        )

    def partner_wait_ms(self, kind: str) -> int:
        """Return how long an unmatched record waits for a match."""
        left_wait_ms = self.after if kind in ("left", "full", "semi", "anti") else 0
        right_wait_ms = self.before if kind in ("right", "full") else 0
        return max(left_wait_ms, right_wait_ms)

    def match_records(self, records: JoinRecords, lateness: int, watermark: int) -> JoinMatches:
        """Match every pair with at least one new record. A record expires once no partner can arrive for it."""
        lefts, rights = (
            np.flatnonzero(side & ~records.has_null_key) for side in (records.is_left, ~records.is_left)
        )
        is_new = records.is_new
        new_left_pairs = self._pair_within(records, lefts[is_new[lefts]], rights)
        old_left_pairs = self._pair_within(records, lefts[~is_new[lefts]], rights[is_new[rights]])
        left, right = (
            np.append(first_positions, second_positions)
            for first_positions, second_positions in zip(new_left_pairs, old_left_pairs, strict=True)
        )
        is_matched = records.is_matched.copy()
        is_matched[left] = is_matched[right] = True
        interval_reach = np.where(records.is_left, self.after, self.before)
        due_event = add_saturating(records.time, interval_reach + 1 + lateness)
        return JoinMatches(left, right, is_matched, due_event > watermark, due_event)

    def _pair_within(self, records: JoinRecords, lefts: Int64Array, rights: Int64Array) -> RecordPairs:
        """Return pairs of records of one key within the interval."""
        rights = records.sort(rights)
        times = np.unique(records.time[rights])
        right_rank = combine_key_rank(
            records.key_of_record[rights], np.searchsorted(times, records.time[rights]), len(times)
        )
        time, key = records.time[lefts], records.key_of_record[lefts]
        lowest_rank = combine_key_rank(key, np.searchsorted(times, time - self.before, "left"), len(times))
        end_rank = combine_key_rank(key, np.searchsorted(times, time + self.after, "right"), len(times))
        begin, end = (np.searchsorted(right_rank, rank, "left") for rank in (lowest_rank, end_rank))
        pair_counts = end - begin
        left = np.repeat(lefts, pair_counts)
        pair_number = np.arange(len(left)) - np.repeat(np.cumsum(pair_counts) - pair_counts, pair_counts)
        return left, rights[np.repeat(begin, pair_counts) + pair_number]

    def select_rows(self, kind: str, records: JoinRecords, matches: JoinMatches) -> RecordPairs:
        """Return the pairs, and the records that expire unmatched if the kind keeps them."""
        is_unmatched = ~matches.is_buffered & ~matches.is_matched
        lefts, rights = (np.flatnonzero(is_unmatched & side) for side in (records.is_left, ~records.is_left))
        no_partners = np.full(len(lefts), -1), np.full(len(rights), -1)
        match kind:
            case "semi":
                is_first_match = matches.is_matched & ~records.is_matched & records.is_left
                return np.flatnonzero(is_first_match), np.full(np.count_nonzero(is_first_match), -1)
            case "anti":
                return lefts, no_partners[0]
        left, right = matches.left, matches.right
        if kind in ("left", "full"):
            left, right = np.append(left, lefts), np.append(right, no_partners[0])
        if kind in ("right", "full"):
            left, right = np.append(left, no_partners[1]), np.append(right, rights)
        return left, right

    def row_times(self, left: Int64Array, right: Int64Array) -> Int64Array:
        """Return the later time of each pair."""
        return np.maximum(left, right)


@keyword("between", synonyms=("interval", "intervaljoin"))
def between(before: Duration, after: Duration) -> Between:
    """Join each left record with the right records around its time (an interval join).

    Args:
        before: how much earlier a right record may be.
        after: how much later a right record may be.

    Example:
        join(read("views"), read("clicks"), by="user").window(between("0 s", "10 minutes"))
    """
    return Between(
        to_milliseconds(before, "window.between.before"), to_milliseconds(after, "window.between.after")
    )
