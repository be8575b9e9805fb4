"""What one's own combiner is asked: about groups of good records, and no others."""

import pyarrow as pa
import pytest

from penstock.engine.spark.aggregate.arrow_finish import make_batch_finisher

BAD = 13


def doubled(groups: pa.Array) -> pa.Array:
    assert len(groups), "nobody is asked about nothing"
    assert BAD not in groups.to_pylist(), "nobody should have asked"
    return pa.array([2 * value for value in groups.to_pylist()], pa.int64())


@pytest.mark.parametrize(
    ("own", "aside", "made"),
    [
        ([1, 2, 3], [None, None, None], [2, 4, 6]),
        ([1, BAD, 3], [None, "quarantined", None], [2, None, 6]),
        ([BAD, BAD], ["quarantined", "quarantined"], [None, None]),
        ([], [], []),
    ],
)
def test_groups_that_are_set_aside_are_left_out(
    own: list[int], aside: list[str | None], made: list[int | None]
) -> None:
    batch = pa.record_batch({"_fate": pa.array(aside, pa.string()), "own": pa.array(own, pa.int64())})
    (found,) = make_batch_finisher({"own": (doubled, pa.int64())})([batch])
    assert found.column("own").to_pylist() == made
    assert found.column("_fate").to_pylist() == aside
