"""The order in which functions receive records, for any number of keys and any order of arrival."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.engine.operators.keyed_batch import sort_by_key
from penstock.engine.operators.stateful.record_dicts import make_dict_builder

Row = tuple[int, str, int, int]
ROWS = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from("ab"), st.integers(0, 2), st.integers(0, 9)),
    unique_by=lambda row: row[1:],
)


def sort_rows(rows: list[Row]) -> list[Row]:
    elements = pa.table(
        {
            "_topic": pa.array([topic for _, topic, _, _ in rows], pa.string()),
            "_partition": pa.array([partition for _, _, partition, _ in rows], pa.int32()),
            "_offset": pa.array([offset for _, _, _, offset in rows], pa.int64()),
        }
    )
    order = sort_by_key(elements, np.array([key for key, _, _, _ in rows], np.int64))
    return [rows[position] for position in order.tolist()]


@settings(deadline=None)
@given(rows=ROWS)
def test_records_are_sorted_by_key_and_address(rows: list[Row]) -> None:
    assert sort_rows(rows) == sorted(rows)


@settings(deadline=None)
@given(rows=ROWS)
def test_records_already_in_topic_order_are_sorted_by_key(rows: list[Row]) -> None:
    assert sort_rows(sorted(rows, key=lambda row: row[1:])) == sorted(rows)


@pytest.mark.parametrize("keys", [2**16, 2**16 + 1], ids=["fit into 16 bits", "do not"])
def test_all_keys_are_distinguished(keys: int) -> None:
    rows = [(key, "a", 0, offset) for offset, key in enumerate(reversed(range(keys)))]
    assert sort_rows(rows) == sorted(rows)


def test_fields_may_have_any_name() -> None:
    names = ("plain", "it's", 'say "so"', "a\\b", "{", "line\nbreak", "lambda")
    columns = [[f"{name} {row}" for row in range(2)] for name in names]
    assert make_dict_builder(names)(*columns) == [
        {name: f"{name} {row}" for name in names} for row in range(2)
    ]
