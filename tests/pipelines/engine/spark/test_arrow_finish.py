"""User combiners are called only with groups of valid records."""

import pyarrow as pa
import pytest

from penstock.engine.spark.aggregate.arrow_finish import make_batch_finisher

INVALID_VALUE = 13


def double_values(groups: pa.Array) -> pa.Array:
    assert len(groups), "called without groups"
    assert INVALID_VALUE not in groups.to_pylist(), "called with a quarantined group"
    return pa.array([2 * value for value in groups.to_pylist()], pa.int64())


@pytest.mark.parametrize(
    ("values", "fates", "expected"),
    [
        ([1, 2, 3], [None, None, None], [2, 4, 6]),
        ([1, INVALID_VALUE, 3], [None, "quarantined", None], [2, None, 6]),
        ([INVALID_VALUE, INVALID_VALUE], ["quarantined", "quarantined"], [None, None]),
        ([], [], []),
    ],
)
def test_quarantined_groups_are_left_out(
    values: list[int], fates: list[str | None], expected: list[int | None]
) -> None:
    batch = pa.record_batch({"_fate": pa.array(fates, pa.string()), "own": pa.array(values, pa.int64())})
    (finished,) = make_batch_finisher({"own": (double_values, pa.int64())})([batch])
    assert finished.column("own").to_pylist() == expected
    assert finished.column("_fate").to_pylist() == fates
