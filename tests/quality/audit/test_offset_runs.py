"""Runs of offsets, compared with sets of offsets."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.core.kafka_topics import TopicIds
from penstock.ingestion.ledger import DeliveryLedger, to_offset_runs
from penstock.quality.audit.checks.archive_check import check_expired_gaps
from penstock.quality.audit.delivery_claims import (
    PartitionLimits,
    check_claims,
    find_deleted_topics,
    read_topic_claims,
)
from penstock.quality.audit.offset_runs import check_records_read, merge_runs

OFFSETS = st.sets(st.integers(0, 60))
RUNS = st.lists(st.tuples(st.integers(0, 60), st.integers(1, 9)))
PARTITION = ("t", 0)


def expand_runs(runs: list[tuple[int, int]]) -> set[int]:
    return {offset for first, length in runs for offset in range(first, first + length)}


@given(RUNS, st.integers(0, 70), st.integers(0, 30))
def test_records_in_a_range_are_counted_from_runs(
    runs: list[tuple[int, int]], start: int, length: int
) -> None:
    extent, present = merge_runs(runs), expand_runs(runs)
    end = start + length
    (count,) = extent.count_in_ranges(np.asarray([start]), np.asarray([end])).tolist()
    assert count == len(present & set(range(start, end)))
    missing = sorted(set(range(start, end)) - present)
    assert extent.find_first_missing(start, end) == (missing[0] if missing else None)


@given(OFFSETS, st.integers(0, 60), st.integers(0, 60), OFFSETS)
def test_a_missing_acknowledged_record_is_found_unless_expired(
    acknowledged: set[int], low: int, more: int, missing_offsets: set[int]
) -> None:
    high = low + more
    remaining = set(range(low, high)) - missing_offsets
    claims = {"feed": {PARTITION: to_offset_runs(sorted(acknowledged))}}
    present = {PARTITION: merge_runs(to_offset_runs(sorted(remaining)))}
    found = list(check_claims(claims, {PARTITION: PartitionLimits(low, high)}, present))
    lost = {offset for offset in acknowledged if offset >= low} - remaining
    assert bool(found) == bool(lost)
    if lost:
        reported = {int(first_rows.location.rpartition(" ")[2]) for first_rows in found}
        assert min(lost) in reported
        assert reported <= lost


TOPIC_IDS = TopicIds("here", {"t": "new"})


@pytest.mark.parametrize(
    ("session_ids", "expected"),
    [
        (TopicIds("here", {"t": "new"}), ({("t", 0): [(0, 8)]}, 0)),
        (TopicIds("here", {"t": "old"}), ({}, 8)),
        (TopicIds("elsewhere", {"t": "other"}), ({}, 0)),
        (TopicIds("", {}), ({("t", 0): [(0, 8)]}, 0)),
    ],
    ids=["this topic", "deleted topic", "another cluster", "version 0.1.0"],
)
def test_only_records_of_this_topic_are_claimed(
    session_ids: TopicIds, expected: tuple[object, int], tmp_path: Path
) -> None:
    ledger = DeliveryLedger(tmp_path / "feed", lambda: 0)
    ledger.start_session([("t", 0), ("t.dead-letters", 0)], [-1, -1], "test", topic_ids=session_ids)
    ledger.record_intent(0, 9, None)
    ledger.record_acknowledgements([(0, [0] * 8 + [1], {0: [(0, 8)], 1: [(0, 1)]})])
    ledger.close(clean=True)
    claims = read_topic_claims("t", TOPIC_IDS, tmp_path / "feed")
    assert (claims.runs, claims.lost_records) == expected
    found = [str(difference) for difference in find_deleted_topics("t", {"feed": claims})]
    lost_text = "t: 8 records acknowledged to feed were in an earlier topic of this name, which was deleted"
    assert found == ([lost_text] if claims.lost_records else [])


def test_a_record_acknowledged_to_two_producers_is_found(tmp_path: Path) -> None:
    for name, first in (("one", 0), ("two", 6)):
        ledger = DeliveryLedger(tmp_path / name, lambda: 0)
        ledger.start_session([("t", 0), ("t", 1)], [-1, -1], "test")
        ledger.record_intent(0, 12, None)
        ledger.record_acknowledgements([(0, [0] * 8 + [1] * 4, {0: [(first, 8)], 1: [(10 * first, 4)]})])
        ledger.close(clean=True)
    claims = {name: read_topic_claims("t", TOPIC_IDS, tmp_path / name).runs for name in ("one", "two")}
    limits = {("t", 0): PartitionLimits(0, 20), ("t", 1): PartitionLimits(0, 100)}
    (found,) = check_claims(claims, limits, {})
    assert str(found) == "t/0 offset 6: acknowledged to both two and one"


def test_acknowledged_runs_span_sessions_and_segments(tmp_path: Path) -> None:
    expected = []
    for session in range(3):
        ledger = DeliveryLedger(tmp_path / "feed", lambda: 0, max_segment_bytes=200)
        ledger.start_session([("t", session), ("t", 9)], [-1, -1], "test")
        for part in range(4):
            first = (session * 4 + part) * 10
            ledger.record_intent(first, 10, None)
            ledger.record_acknowledgements([(first, [0] * 10, {0: [(part * 10, 10)]})])
            expected += [("t", session, part * 10 + n) for n in range(10)]
        ledger.close(clean=True)
    found = read_topic_claims("t", TOPIC_IDS, tmp_path / "feed").runs
    assert [(*place, n) for place, runs in found.items() for n in sorted(expand_runs(runs))] == expected


LEDGER = pa.table(
    {
        "topic": ["t", "t"], "partition": pa.array([0, 0], pa.int32()), "batch_id": [0, 1],
        "start": [0, 10], "end": [10, 25], "read": [10, 15],
    }
)  # fmt: skip


@pytest.mark.parametrize(
    ("missing_offsets", "message"),
    [([], None), ([3], "batch 0: the batch read 10"), ([24], "batch 1: the batch read 15")],
)
def test_a_batch_that_read_more_than_the_archive_has_is_found(
    missing_offsets: list[int], message: str | None
) -> None:
    present = merge_runs(to_offset_runs([offset for offset in range(30) if offset not in missing_offsets]))
    found = [
        str(first_rows) for first_rows in check_records_read(LEDGER, {PARTITION: present}, "the archive")
    ]
    assert [message in first_rows for first_rows in found if message] == [True] * len(found)
    assert bool(found) == bool(missing_offsets)


def test_expired_gaps_must_end_before_the_start_of_the_topic() -> None:
    message = {0: [(0, 100), (150, 20)], 1: [(0, 30)], 2: [(0, 5)]}
    assert list(check_expired_gaps("t", message, {0: (170, 200), 1: (30, 60)})) == []
    (early,) = check_expired_gaps("t", message, {0: (160, 200), 1: (30, 60), 2: (5, 9)})
    assert str(early) == (
        "ledger/archive-t, t/0 offset 160: the archive reports it as expired, "
        "but the topic starts at offset 160"
    )
