"""Match the records of a join without windows, vectorized over a batch. Pure functions over arrays."""

from dataclasses import dataclass

import numpy as np

from penstock.engine.operators.joins.join_records import JoinRecords
from penstock.engine.plan.join_windows import AsOf, Between
from penstock.engine.state.header_columns import MAX_TIMESTAMP_MS, BoolArray, Int64Array


@dataclass(frozen=True)
class JoinMatches:
    """Matched pairs as record positions (-1 for no partner), and which records to store."""

    left: Int64Array
    right: Int64Array
    is_matched: BoolArray
    is_buffered: BoolArray
    due_event: Int64Array
    """The watermark at which each stored record is due."""


def match_interval(window: Between, records: JoinRecords, lateness: int, watermark: int) -> JoinMatches:
    """Match every pair with at least one new record. A record expires once no partner can arrive for it."""
    lefts, rights = (
        np.flatnonzero(side & ~records.has_null_key) for side in (records.is_left, ~records.is_left)
    )
    is_new = records.is_new
    new_left_pairs = _pair_within(window, records, lefts[is_new[lefts]], rights)
    old_left_pairs = _pair_within(window, records, lefts[~is_new[lefts]], rights[is_new[rights]])
    left, right = (
        np.append(first_positions, second_positions)
        for first_positions, second_positions in zip(new_left_pairs, old_left_pairs, strict=True)
    )
    is_matched = records.is_matched.copy()
    is_matched[left] = is_matched[right] = True
    interval_reach = np.where(records.is_left, window.after, window.before)
    due_event = _add_saturating(records.time, interval_reach + 1 + lateness)
    return JoinMatches(left, right, is_matched, due_event > watermark, due_event)


def match_as_of(window: AsOf, records: JoinRecords, lateness: int, watermark: int) -> JoinMatches:
    """Match each due left record with its newest version. Until it is due, older versions may still arrive."""
    version_lifetime = MAX_TIMESTAMP_MS if window.tolerance is None else window.tolerance + 1 + lateness
    # An end marker is only needed as long as the versions before it are stored.
    version_wait = np.where(records.is_end_marker, min(version_lifetime, lateness), version_lifetime)
    due_event = _add_saturating(records.time, np.where(records.is_left, 1 + lateness, version_wait))
    due_lefts = np.flatnonzero(records.is_left & (due_event <= watermark))
    versions = _sort_records(records, np.flatnonzero(~records.is_left & ~records.has_null_key))
    times = np.unique(records.time[versions])
    version_rank = _combine_key_rank(
        records.key_of_record[versions], np.searchsorted(times, records.time[versions]), len(times)
    )
    wanted_rank = _combine_key_rank(
        records.key_of_record[due_lefts], np.searchsorted(times, records.time[due_lefts], "right"), len(times)
    )
    nearest = np.searchsorted(version_rank, wanted_rank, "left") - 1
    nearest_versions = (
        versions[np.maximum(nearest, 0)] if len(versions) else np.zeros(len(due_lefts), np.int64)
    )
    has_version = (nearest >= 0) & (len(versions) > 0)
    has_version &= (
        (records.key_of_record[nearest_versions] == records.key_of_record[due_lefts])
        if len(versions)
        else has_version
    )
    if window.tolerance is not None and len(versions):
        has_version &= records.time[due_lefts] - records.time[nearest_versions] <= window.tolerance
    has_version &= ~records.is_end_marker[nearest_versions]
    is_matched = records.is_matched.copy()
    is_matched[due_lefts[has_version]] = True
    is_buffered = np.where(records.is_left, due_event > watermark, False)
    is_buffered[versions[_is_still_needed(records, versions, lateness, watermark)]] = True
    is_buffered &= (
        due_event > watermark
    )  # a version that is due can match no left record that is still in time
    return JoinMatches(
        due_lefts, np.where(has_version, nearest_versions, -1), is_matched, is_buffered, due_event
    )


def _pair_within(
    window: Between, records: JoinRecords, lefts: Int64Array, rights: Int64Array
) -> tuple[Int64Array, Int64Array]:
    """Return pairs of records of one key within the interval."""
    rights = _sort_records(records, rights)
    times = np.unique(records.time[rights])
    right_rank = _combine_key_rank(
        records.key_of_record[rights], np.searchsorted(times, records.time[rights]), len(times)
    )
    time, key = records.time[lefts], records.key_of_record[lefts]
    lowest_rank = _combine_key_rank(key, np.searchsorted(times, time - window.before, "left"), len(times))
    end_rank = _combine_key_rank(key, np.searchsorted(times, time + window.after, "right"), len(times))
    begin, end = (
        np.searchsorted(right_rank, lowest_rank, "left"),
        np.searchsorted(right_rank, end_rank, "left"),
    )
    pair_counts = end - begin
    left = np.repeat(lefts, pair_counts)
    pair_number = np.arange(len(left)) - np.repeat(np.cumsum(pair_counts) - pair_counts, pair_counts)
    return left, rights[np.repeat(begin, pair_counts) + pair_number]


def _sort_records(records: JoinRecords, positions: Int64Array) -> Int64Array:
    """Sort records by key, time and arrival."""
    return positions[np.lexsort((positions, records.time[positions], records.key_of_record[positions]))]


def _combine_key_rank(key: Int64Array, rank: Int64Array, rank_count: int) -> Int64Array:
    """Combine a key and the rank of a time into one sortable number."""
    return np.asarray(key, np.int64) * (rank_count + 1) + rank


def _is_still_needed(records: JoinRecords, versions: Int64Array, lateness: int, watermark: int) -> BoolArray:
    """Return the versions that may still match: the last of each instant, unless a later one is old enough."""
    key, time = records.key_of_record[versions], records.time[versions]
    is_superseded = np.zeros(len(versions), bool)
    oldest_needed = watermark - lateness if watermark != MAX_TIMESTAMP_MS else MAX_TIMESTAMP_MS
    is_superseded[:-1] = (key[1:] == key[:-1]) & ((time[1:] <= oldest_needed) | (time[1:] == time[:-1]))
    return ~is_superseded


def _add_saturating(time: Int64Array, span: Int64Array) -> Int64Array:
    """Add a span to times, capped at the end of time."""
    is_endless = (span == MAX_TIMESTAMP_MS) | (time > MAX_TIMESTAMP_MS - span)
    return np.where(is_endless, MAX_TIMESTAMP_MS, time + np.where(is_endless, 0, span))
