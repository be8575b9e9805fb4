"""Runs of offsets against sets of them, and what is decided by them."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.conformance.reference.window_assignment import find_containing_windows as reference_windows
from penstock.engine.plan import Sliding
from penstock.ingestion.ledger import DeliveryLedger, to_offset_runs
from penstock.quality.audit.block_digests import (
    DIGEST_SCHEMA,
    OffsetBlock,
    compare_records,
    find_differing_blocks,
    find_sparse_blocks,
)
from penstock.quality.audit.delivery_claims import PartitionLimits, check_claims, read_acknowledged_runs
from penstock.quality.audit.offset_runs import check_records_read, merge_runs
from penstock.quality.audit.recomputation import count_windows
from penstock.quality.audit.record_checks import check_expired_gaps

OFFSETS = st.sets(st.integers(0, 60))
RUNS = st.lists(st.tuples(st.integers(0, 60), st.integers(1, 9)))
PLACE = ("t", 0)


def held_by(runs: list[tuple[int, int]]) -> set[int]:
    return {offset for first, length in runs for offset in range(first, first + length)}


@given(RUNS, st.integers(0, 70), st.integers(0, 30))
def test_what_a_range_holds_is_counted_from_runs_however_they_lie(
    runs: list[tuple[int, int]], start: int, length: int
) -> None:
    extent, held = merge_runs(runs), held_by(runs)
    end = start + length
    (count,) = extent.count_in_ranges(np.asarray([start]), np.asarray([end])).tolist()
    assert count == len(held & set(range(start, end)))
    missing = sorted(set(range(start, end)) - held)
    assert extent.find_first_missing(start, end) == (missing[0] if missing else None)


@given(OFFSETS, st.integers(0, 60), st.integers(0, 60), OFFSETS)
def test_an_acknowledged_record_is_there_or_expired_or_told(
    acknowledged: set[int], low: int, more: int, gone: set[int]
) -> None:
    high = low + more
    held = set(range(low, high)) - gone
    claims = {"feed": {PLACE: to_offset_runs(sorted(acknowledged))}}
    present = {PLACE: merge_runs(to_offset_runs(sorted(held)))}
    found = list(check_claims(claims, {PLACE: PartitionLimits(low, high)}, present))
    lost = {offset for offset in acknowledged if offset >= low} - held
    assert bool(found) == bool(lost)
    if lost:
        named = {int(one.location.rpartition(" ")[2]) for one in found}
        assert min(lost) in named
        assert named <= lost


def test_two_producers_cannot_have_delivered_the_same_record(tmp_path: Path) -> None:
    for name, first in (("one", 0), ("two", 6)):
        ledger = DeliveryLedger(tmp_path / name, lambda: 0)
        ledger.start_session([("t", 0), ("t", 1)], [-1, -1], "test")
        ledger.record_intent(0, 12, None)
        ledger.record_acknowledgements([(0, [0] * 8 + [1] * 4, {0: [(first, 8)], 1: [(10 * first, 4)]})])
        ledger.close(clean=True)
    claims = {name: read_acknowledged_runs(tmp_path / name) for name in ("one", "two")}
    limits = {("t", 0): PartitionLimits(0, 20), ("t", 1): PartitionLimits(0, 100)}
    (found,) = check_claims(claims, limits, {})
    assert str(found) == "t/0 offset 6: acknowledged to both two and one"


def test_a_producers_ledger_tells_its_runs_over_sessions_and_segments(tmp_path: Path) -> None:
    expected = []
    for turn in range(3):
        ledger = DeliveryLedger(tmp_path / "feed", lambda: 0, max_segment_bytes=200)
        ledger.start_session([("t", turn), ("t", 9)], [-1, -1], "test")
        for part in range(4):
            first = (turn * 4 + part) * 10
            ledger.record_intent(first, 10, None)
            ledger.record_acknowledgements([(first, [0] * 10, {0: [(part * 10, 10)]})])
            expected += [("t", turn, part * 10 + n) for n in range(10)]
        ledger.close(clean=True)
    found = read_acknowledged_runs(tmp_path / "feed")
    assert [(*place, n) for place, runs in found.items() for n in sorted(held_by(runs))] == expected


LEDGER = pa.table(
    {
        "topic": ["t", "t"], "partition": pa.array([0, 0], pa.int32()), "batch_id": [0, 1],
        "start": [0, 10], "end": [10, 25], "read": [10, 15],
    }
)  # fmt: skip


@pytest.mark.parametrize(
    ("gone", "said"), [([], None), ([3], "batch 0: the batch read 10"), ([24], "batch 1: the batch read 15")]
)
def test_a_batch_that_read_more_than_there_is_is_found(gone: list[int], said: str | None) -> None:
    held = merge_runs(to_offset_runs([offset for offset in range(30) if offset not in gone]))
    found = [str(one) for one in check_records_read(LEDGER, {PLACE: held}, "the archive")]
    assert [said in one for one in found if said] == [True] * len(found)
    assert bool(found) == bool(gone)


def digest(partition: int, block: int, count: int, first: int, last: int, value: int) -> dict[str, int]:
    return dict(zip(DIGEST_SCHEMA.names, (partition, block, count, first, last, value), strict=True))


def test_blocks_that_differ_are_named_in_order_and_holes_are_seen() -> None:
    one = [digest(0, 0, 5, 0, 4, 1), digest(0, 1, 4, 10, 14, 2), digest(1, 0, 1, 0, 0, 3)]
    other = [digest(0, 0, 5, 0, 4, 1), digest(0, 1, 4, 10, 14, 9)]
    ours, theirs = (pa.Table.from_pylist(rows, DIGEST_SCHEMA) for rows in (one, other))
    assert find_differing_blocks(ours, theirs) == [OffsetBlock(0, 1), OffsetBlock(1, 0)]
    assert find_sparse_blocks(ours) == [OffsetBlock(0, 1)]


def test_the_first_record_that_differs_is_named_with_what_differs() -> None:
    one = [{"offset": n, "key": b"k", "value": b"v"} for n in (1, 2, 4)]
    other = [one[0], {**one[1], "value": b"w"}, one[2], one[2]]
    found = list(compare_records(one, other, ("the topic", "the archive")))
    assert found == [
        (2, "its value differs between the topic and the archive"),
        (4, "the topic has 1 records there, but the archive has 2"),
    ]


@given(st.integers(1, 20), st.integers(1, 20), st.integers(0, 19), st.integers(-50, 50))
def test_a_record_lies_in_as_many_windows_as_the_reference_says(
    size: int, period: int, offset: int, time: int
) -> None:
    window = Sliding(size, period, offset % period)
    (count,) = count_windows(window, pa.chunked_array([[time]])).to_pylist()
    assert count == len(list(reference_windows(window, time)))


def test_what_an_archive_says_to_have_expired_must_lie_before_the_begin_of_the_topic() -> None:
    said = {0: [(0, 100), (150, 20)], 1: [(0, 30)], 2: [(0, 5)]}
    assert list(check_expired_gaps("t", said, {0: (170, 200), 1: (30, 60)})) == []
    (early,) = check_expired_gaps("t", said, {0: (160, 200), 1: (30, 60), 2: (5, 9)})
    assert str(early) == (
        "ledger/archive-t, t/0 offset 160: the archive reports it as expired, "
        "but the topic starts at offset 160"
    )
