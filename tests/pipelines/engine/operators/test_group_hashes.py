"""Keys that compare as equal have one hash."""

from math import nan

import pyarrow as pa
import pytest

from penstock.engine.operators.group_hashes import hash_keys


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
@pytest.mark.parametrize("more", [0, 1])
def test_all_zeros_and_all_nans_are_one_key(kind: pa.DataType, more: int) -> None:
    key = pa.chunked_array([pa.array([0.0, -0.0, nan, -nan, None, 1.5], kind)])
    groups = hash_keys([key] * (1 + more), len(key))
    names = list(zip(groups.hi.tolist(), groups.lo.tolist(), strict=True))
    assert [names.index(name) for name in names] == [0, 0, 2, 2, 4, 5]
