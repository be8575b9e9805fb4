"""As-of joins."""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from penstock.engine.definition.argument_checks import require_positive
from penstock.engine.definition.condition_parser import parse_condition
from penstock.engine.definition.durations import Duration, to_milliseconds
from penstock.engine.definition.keyword import keyword
from penstock.engine.definition.phrases import format_delay, format_duration
from penstock.engine.definition.predicates import Predicate, predicate_sql
from penstock.engine.definition.stored_fields import OMITTED_AT_DEFAULT
from penstock.engine.state.header_columns import MAX_TIMESTAMP_MS, BoolArray, Int64Array
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
class AsOf(JoinWindow):
    """An as-of join: a left record matches the latest right record at or before its time.

    A right record that is older than `tolerance` does not match. A right record that meets `ends` ends the version
    before it: there is no match from then on, until a newer record arrives.
    """

    unsupported_kinds: ClassVar[tuple[str, ...]] = ("right", "full")
    unsupported_kinds_fix: ClassVar[str] = (
        "Write inner, left, semi or anti: a version may match any later record"
    )

    tolerance: int | None = None
    ends: Predicate | None = field(default=None, metadata=OMITTED_AT_DEFAULT)

    def __post_init__(self) -> None:
        if self.tolerance is not None:
            require_positive(self.tolerance, "window.as_of.tolerance")

    def describe(self) -> str:
        """Describe which right record matches."""
        tolerance_note = (
            "" if self.tolerance is None else f", at most {format_duration(self.tolerance)} older"
        )
        end_note = "" if self.ends is None else f", unless its {predicate_sql(self.ends)}"
        return f"pairs of a left record and the latest right record as of its time{tolerance_note}{end_note}"

    def describe_emission(self, lateness: int) -> str:
        """Describe when a row is emitted."""
        return f"A record is emitted when the watermark has passed it{format_delay(lateness)}."

    def describe_state(self, lateness: int) -> StateRetention:
        """Describe waiting records and versions."""
        watermark_condition = f"the watermark has passed them{format_delay(lateness)}"
        until = f"{watermark_condition}; a version until a newer one is behind the watermark"
        if self.tolerance is not None:
            until += f" or it is older than the tolerance of {format_duration(self.tolerance)}"
        return StateRetention(
            "records", "left records that wait for the watermark, and versions of each key", until
        )

    @property
    def record_condition(self) -> Predicate | None:
        """The condition of right records that end the version before them."""
        return self.ends

    @property
    def condition_location(self) -> str:
        """The location of the condition."""
        return "window.as_of.ends"

    def match_records(self, records: JoinRecords, lateness: int, watermark: int) -> JoinMatches:
        """Match each due left record with its newest version. Until it is due, older versions may still arrive."""
        version_lifetime = MAX_TIMESTAMP_MS if self.tolerance is None else self.tolerance + 1 + lateness
        # An end marker is only needed as long as the versions before it are stored.
        version_wait = np.where(records.is_end_marker, min(version_lifetime, lateness), version_lifetime)
        due_event = add_saturating(records.time, np.where(records.is_left, 1 + lateness, version_wait))
        due_lefts = np.flatnonzero(records.is_left & (due_event <= watermark))
        versions = records.sort(np.flatnonzero(~records.is_left & ~records.has_null_key))
        nearest_versions, has_version = self._find_versions(records, due_lefts, versions)
        is_matched = records.is_matched.copy()
        is_matched[due_lefts[has_version]] = True
        is_buffered = np.where(records.is_left, due_event > watermark, False)
        is_buffered[versions[_is_still_needed(records, versions, lateness, watermark)]] = True
        # A version that is due can match no left record that is still in time.
        is_buffered &= due_event > watermark
        return JoinMatches(
            due_lefts, np.where(has_version, nearest_versions, -1), is_matched, is_buffered, due_event
        )

    def _find_versions(
        self, records: JoinRecords, lefts: Int64Array, versions: Int64Array
    ) -> tuple[Int64Array, BoolArray]:
        """Return the newest version at the time of each left record, and whether it matches."""
        if not len(versions):
            return np.zeros(len(lefts), np.int64), np.zeros(len(lefts), bool)
        times = np.unique(records.time[versions])
        version_rank = combine_key_rank(
            records.key_of_record[versions], np.searchsorted(times, records.time[versions]), len(times)
        )
        wanted_rank = combine_key_rank(
            records.key_of_record[lefts], np.searchsorted(times, records.time[lefts], "right"), len(times)
        )
        nearest = np.searchsorted(version_rank, wanted_rank, "left") - 1
        nearest_versions = versions[np.maximum(nearest, 0)]
        has_version = nearest >= 0
        has_version &= records.key_of_record[nearest_versions] == records.key_of_record[lefts]
        if self.tolerance is not None:
            has_version &= records.time[lefts] - records.time[nearest_versions] <= self.tolerance
        has_version &= ~records.is_end_marker[nearest_versions]
        return nearest_versions, has_version

    def select_rows(self, kind: str, records: JoinRecords, matches: JoinMatches) -> RecordPairs:
        """Return the due left records that the kind emits."""
        has_partner = matches.right >= 0
        is_chosen: BoolArray = {"inner": has_partner, "semi": has_partner, "anti": ~has_partner}.get(
            kind, has_partner | True
        )
        return matches.left[is_chosen], matches.right[is_chosen]

    def row_times(self, left: Int64Array, right: Int64Array) -> Int64Array:
        """Return the time of each left record."""
        return left


@keyword("as_of", synonyms=("asofjoin", "temporal", "versioned"))
def as_of(tolerance: Duration | None = None, ends: str | None = None) -> AsOf:
    """Join each left record with the latest right record at or before its time (an as-of join).

    Args:
        tolerance: a right record that is older than this does not match. The default is no limit.
        ends: a condition on right records, such as "deleted = true". A right record that meets it matches nothing,
            and ends the version before it.

    Example:
        join(read("payments"), read("card-limits"), by="card", how="left").window(as_of("1 day"))

    Not promised: a row before the watermark has passed the left record, because a right record may still come.
    """
    tolerance_ms = None if tolerance is None else to_milliseconds(tolerance, "window.as_of.tolerance")
    return AsOf(tolerance_ms, None if ends is None else parse_condition(ends, "window.as_of.ends"))


def _is_still_needed(records: JoinRecords, versions: Int64Array, lateness: int, watermark: int) -> BoolArray:
    """Return the versions that may still match: the last of each instant, unless a later one is old enough."""
    key, time = records.key_of_record[versions], records.time[versions]
    is_superseded = np.zeros(len(versions), bool)
    oldest_needed = watermark - lateness if watermark != MAX_TIMESTAMP_MS else MAX_TIMESTAMP_MS
    is_superseded[:-1] = (key[1:] == key[:-1]) & ((time[1:] <= oldest_needed) | (time[1:] == time[:-1]))
    return ~is_superseded
