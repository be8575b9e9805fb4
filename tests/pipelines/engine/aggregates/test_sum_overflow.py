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

MIN_BIGINT, MAX_BIGINT = -(2**63), 2**63 - 1
integers_near_the_limits = st.one_of(
    st.integers(-3, 3),
    st.sampled_from([2**62, -(2**62), MAX_BIGINT, MIN_BIGINT, MAX_BIGINT - 1, MIN_BIGINT + 1]),
)
DECIMAL_TYPE = pa.decimal128(38, 2)


def sum_batches(batches: list[list[Any]], column_type: pa.DataType) -> Any:
    """The sum of values that arrive in batches, for one window."""
    sum_ = Sum("value").build_accumulator(AggregateContext("total", {"value": column_type}))
    rows = new_rows([part.state_column for part in sum_.parts], 1)
    for values in batches:
        partials = lift_elements(sum_.parts, pa.table({"value": pa.array(values, column_type)}))
        merge_partials(sum_.parts, rows, np.zeros(len(values), np.int64), partials)
    return sum_.pane_values(rows)[0]


@settings(deadline=None)
@given(st.lists(st.lists(integers_near_the_limits, max_size=4), max_size=4))
def test_a_sum_of_integers_is_exact_or_raises(batches: list[list[int]]) -> None:
    partial_sums = [sum(sum(values) for values in batches[: n + 1]) for n in range(len(batches))]
    if all(MIN_BIGINT <= partial_sum <= MAX_BIGINT for partial_sum in partial_sums):
        assert sum_batches(batches, pa.int64()) == (partial_sums[-1] if any(batches) else None)
    else:
        with pytest.raises(SumOverflowError, match="total of a window"):
            sum_batches(batches, pa.int64())


def test_an_overflow_leaves_the_rows_of_all_windows_unchanged() -> None:
    sum_ = Sum("value").build_accumulator(AggregateContext("total", {"value": pa.int64()}))
    rows = new_rows([part.state_column for part in sum_.parts], 2)
    partials = lift_elements(sum_.parts, pa.table({"value": [5, MAX_BIGINT, MAX_BIGINT]}))
    with pytest.raises(SumOverflowError):
        merge_partials(sum_.parts, rows, np.array([0, 1, 1]), partials)
    assert rows["total_sum"].tolist() == [0, 0]


def test_sums_of_decimals_keep_every_digit() -> None:
    large, small = Decimal("9" * 35 + ".00"), Decimal("0.01")
    assert sum_batches([[large], [small, small]], DECIMAL_TYPE) == Decimal("9" * 35 + ".02")


def test_a_sum_of_decimals_beyond_its_precision_raises() -> None:
    with pytest.raises(SumOverflowError):
        sum_batches([[Decimal("9" * 36)], [Decimal(1)]], DECIMAL_TYPE)
