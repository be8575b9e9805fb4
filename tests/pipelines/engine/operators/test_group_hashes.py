"""Keys that compare as equal have one hash."""

from math import nan

import pyarrow as pa
import pytest

from penstock.engine.operators.group_hashes import hash_keys


@pytest.mark.parametrize("column_type", [pa.float32(), pa.float64()])
@pytest.mark.parametrize("extra_columns", [0, 1])
def test_all_zeros_and_all_nans_are_one_key(column_type: pa.DataType, extra_columns: int) -> None:
    key = pa.chunked_array([pa.array([0.0, -0.0, nan, -nan, None, 1.5], column_type)])
    groups = hash_keys([key] * (1 + extra_columns), len(key))
    hashes = list(zip(groups.hi.tolist(), groups.lo.tolist(), strict=True))
    assert [hashes.index(hash_pair) for hash_pair in hashes] == [0, 0, 2, 2, 4, 5]
