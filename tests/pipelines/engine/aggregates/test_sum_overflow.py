"""Sums are exact up to the limit of their column; a sum beyond it fails the batch with a clear error."""

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.engine.aggregates import AggregateContext, lift_elements, merge_partials
from penstock.engine.aggregates.sum import Sum
from penstock.engine.columnar import new_rows
from penstock.engine.errors import SumOverflowError

LEAST, MOST = -(2**63), 2**63 - 1
near_the_end = st.one_of(
    st.integers(-3, 3), st.sampled_from([2**62, -(2**62), MOST, LEAST, MOST - 1, LEAST + 1])
)
DECIMALS = pa.decimal128(38, 2)


def total(batches: list[list[Any]], kind: pa.DataType) -> Any:
    """The sum of values that arrive in batches, for one window."""
    sum_ = Sum("value").build_accumulator(AggregateContext("total", {"value": kind}))
    rows = new_rows([part.state_column for part in sum_.parts], 1)
    for values in batches:
        came = lift_elements(sum_.parts, pa.table({"value": pa.array(values, kind)}))
        merge_partials(sum_.parts, rows, np.zeros(len(values), np.int64), came)
    return sum_.pane_values(rows)[0]


@settings(deadline=None)
@given(st.lists(st.lists(near_the_end, max_size=4), max_size=4))
def test_a_sum_of_integers_is_exact_or_raises(batches: list[list[int]]) -> None:
    reached = [sum(sum(values) for values in batches[: n + 1]) for n in range(len(batches))]
    if all(LEAST <= each <= MOST for each in reached):
        assert total(batches, pa.int64()) == (reached[-1] if any(batches) else None)
    else:
        with pytest.raises(SumOverflowError, match="total of a window"):
            total(batches, pa.int64())


def test_an_overflow_leaves_the_rows_of_all_windows_unchanged() -> None:
    sum_ = Sum("value").build_accumulator(AggregateContext("total", {"value": pa.int64()}))
    rows = new_rows([part.state_column for part in sum_.parts], 2)
    came = lift_elements(sum_.parts, pa.table({"value": [5, MOST, MOST]}))
    with pytest.raises(SumOverflowError):
        merge_partials(sum_.parts, rows, np.array([0, 1, 1]), came)
    assert rows["total_sum"].tolist() == [0, 0]


def test_sums_of_decimals_keep_every_digit() -> None:
    great, small = Decimal("9" * 35 + ".00"), Decimal("0.01")
    assert total([[great], [small, small]], DECIMALS) == Decimal("9" * 35 + ".02")


def test_a_sum_of_decimals_beyond_its_precision_raises() -> None:
    with pytest.raises(SumOverflowError):
        total([[Decimal("9" * 36)], [Decimal(1)]], DECIMALS)
