"""Batches of a table that are due to be checked."""

from hypothesis import given
from hypothesis import strategies as st

from penstock.quality.expectations.check_batches import DAY_MS, CheckedBatch, select_due_batches
from penstock.quality.expectations.suite import BatchCut

NOON = 1_800_000_000_000


@given(st.sampled_from(["final", "day"]), st.lists(st.integers(0, 5 * DAY_MS), max_size=12))
def test_every_final_window_is_checked_once_and_no_other(cut: BatchCut, steps: list[int]) -> None:
    final, last, covered = 0, None, 0
    for step in steps:
        final += step
        for batch in select_due_batches(cut, final, 0, last):
            assert batch.after == (last if last is not None else None)
            assert batch.upto <= final
            covered, last = batch.upto, batch.upto
    if steps and cut == "final":
        assert covered == final
    if cut == "day":
        assert final - covered < DAY_MS


def test_a_new_version_is_checked_once() -> None:
    assert [batch.upto for batch in select_due_batches("version", None, 7, None)] == [7]
    assert list(select_due_batches("version", None, 7, 7)) == []
    assert [batch.upto for batch in select_due_batches("version", None, 9, 7)] == [9]


def test_no_batch_is_due_before_a_window_is_final() -> None:
    assert list(select_due_batches("final", None, 3, None)) == []


def test_labels_sort_like_their_batches() -> None:
    ends = [0, 1, 999, 1_000, NOON, NOON + DAY_MS]
    assert sorted(CheckedBatch("final", end).label for end in ends) == [
        CheckedBatch("final", end).label for end in ends
    ]
