"""Elements of every field type, and aggregates over each of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from math import inf, nan
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from penstock.conformance.reference.input_records import StageElement
from penstock.engine.aggregates import Accumulator, lift_elements, merge_partials
from penstock.engine.aggregates.aggregate import Aggregate
from penstock.engine.aggregates.collect import Collect
from penstock.engine.aggregates.count import Count
from penstock.engine.aggregates.custom import Custom
from penstock.engine.aggregates.distinct import Distinct
from penstock.engine.aggregates.first import First
from penstock.engine.aggregates.last import Last
from penstock.engine.aggregates.max import Max
from penstock.engine.aggregates.mean import Mean
from penstock.engine.aggregates.min import Min
from penstock.engine.aggregates.quantiles import Quantiles
from penstock.engine.aggregates.sum import Sum
from penstock.engine.aggregates.top_n import TopN
from penstock.engine.columnar import Rows, new_rows, rows_from_table
from penstock.engine.definition.user_functions import combiner_ref

FIELDS = pa.schema(
    {
        "long": pa.int64(),
        "int": pa.int32(),
        "double": pa.float64(),
        "word": pa.string(),
        "yes": pa.bool_(),
        "when": pa.timestamp("us", tz="UTC"),
        "day": pa.date32(),
        "price": pa.decimal128(10, 2),
    }
)
"""Doubles are multiples of a half, infinite or NaN, so that sums are exact in any order."""

FIELD_VALUES: dict[str, Any] = {
    "long": st.integers(-5, 5) | st.just(2**40),
    "int": st.integers(-3, 3),
    "double": st.sampled_from([-1.5, 0.0, 0.5, 2.5, inf, -inf, nan]),
    "word": st.sampled_from(["", "a", "b", "ä", "aa"]),
    "yes": st.booleans(),
    "when": st.sampled_from([datetime(year, 2, 3, 4, 5, 6, 7, UTC) for year in (1700, 1969, 2026, 2200)]),
    "day": st.sampled_from([date(1900, 1, 1), date(2026, 11, 18), date(9999, 12, 31)]),
    "price": st.sampled_from([Decimal("-1.25"), Decimal("0.00"), Decimal("99.90")]),
}
NUMBERS = ("long", "int", "double", "price")
ORDERED_NUMBERS = (*NUMBERS, "when", "day")


def element_fields(*names: str) -> st.SearchStrategy[dict[str, Any]]:
    """Elements with values in these fields only."""
    null_fields = dict.fromkeys(FIELDS.names)
    chosen_fields = st.fixed_dictionaries({name: st.none() | FIELD_VALUES[name] for name in names})
    return chosen_fields.map(lambda fields: null_fields | fields)


class ValueRange:
    """Greatest minus least, with a partial of two numbers. It is not retractable."""

    partial_type = pa.struct({"least": pa.int64(), "greatest": pa.int64()})
    result_type = pa.int64()
    can_subtract = False

    def add(self, values: pa.Table, groups: np.ndarray, count: int) -> pa.Array:
        value = values.column(0)
        return self._by_group(value, value, groups, count)

    def merge(self, partials: pa.Array, groups: np.ndarray, count: int) -> pa.Array:
        least, greatest = partials.flatten()
        return self._by_group(pa.chunked_array([least]), pa.chunked_array([greatest]), groups, count)

    def subtract(self, partials: pa.Array, retracted: pa.Array) -> pa.Array:
        raise AssertionError("can_subtract is false")

    def result(self, partials: pa.Array) -> pa.Array:
        least, greatest = (np.array(part.to_pylist(), float) for part in partials.flatten())
        return pa.array(greatest - least, from_pandas=True).cast(pa.int64())

    def _by_group(
        self, least: pa.ChunkedArray, greatest: pa.ChunkedArray, groups: np.ndarray, count: int
    ) -> pa.Array:
        rows = pa.table({"group": groups, "least": least.cast("int64"), "greatest": greatest.cast("int64")})
        extremes = rows.group_by("group").aggregate([("least", "min"), ("greatest", "max")])
        all_groups = (
            pa.table({"group": np.arange(count)}).join(extremes, "group").sort_by("group").combine_chunks()
        )
        parts = [all_groups.column(name).combine_chunks() for name in ("least_min", "greatest_max")]
        is_empty = parts[0].is_null()
        return pa.StructArray.from_arrays(parts, fields=list(self.partial_type), mask=is_empty)


class SquareSum:
    """Sum of squares, with a single number as partial. It is retractable."""

    partial_type = pa.int64()
    result_type = pa.int64()
    can_subtract = True

    def add(self, values: pa.Table, groups: np.ndarray, count: int) -> pa.Array:
        total = np.zeros(count, np.int64)
        value = np.asarray(values.column(0).cast("int64").fill_null(0)) % 1000
        np.add.at(total, groups, value * value)
        return pa.array(total)

    def merge(self, partials: pa.Array, groups: np.ndarray, count: int) -> pa.Array:
        total = np.zeros(count, np.int64)
        np.add.at(total, groups, np.asarray(partials.fill_null(0)))
        return pa.array(total)

    def subtract(self, partials: pa.Array, retracted: pa.Array) -> pa.Array:
        return pa.array(np.asarray(partials.fill_null(0)) - np.asarray(retracted.fill_null(0)))

    def result(self, partials: pa.Array) -> pa.Array:
        return partials


def list_aggregates_over(name: str) -> list[Aggregate]:
    """Every aggregate over a field of this type."""
    aggregates: list[Aggregate] = [
        Count(),
        Count(name),
        Min(name),
        Max(name),
        First(name),
        First(name, "arrival"),
        Last(name),
        Last(name, "arrival"),
        Distinct(name),
        Distinct(name, exact=False),
        TopN(name, 2),
        TopN(name, 3, largest=False),
        TopN("word", 2, by=name),
        TopN("long", 3, by=name, largest=False),
        Collect(name),
        Collect(name, "arrival"),
    ]
    if name in NUMBERS:
        aggregates += [Sum(name), Mean(name)]
    if name in ORDERED_NUMBERS:
        aggregates.append(Quantiles(name, (0.0, 0.1, 0.5, 0.99, 1.0)))
    if name == "long":
        aggregates += [
            Custom((name,), combiner_ref(ValueRange())),
            Custom((name,), combiner_ref(SquareSum())),
        ]
    return aggregates


ALL_AGGREGATES = list(dict.fromkeys(of for name in FIELDS.names for of in list_aggregates_over(name)))


@dataclass(frozen=True)
class WindowElement:
    """An element, its window, and the batch that brings it."""

    window: int
    batch: int
    element: StageElement


def make_element_table(elements: Sequence[StageElement], weights: Sequence[int] | None = None) -> pa.Table:
    """Elements as the operators take them."""
    table = pa.Table.from_pylist([dict(element.fields) for element in elements], schema=FIELDS)
    columns = {
        "_time": pa.array([element.time for element in elements], pa.int64()),
        "_topic": pa.array([element.address[0] for element in elements], pa.string()),
        "_partition": pa.array([element.address[1] for element in elements], pa.int32()),
        "_offset": pa.array([element.address[2] for element in elements], pa.int64()),
        "_weight": pa.array(weights or [1] * len(elements), pa.int64()),
    }
    for name, column in columns.items():
        table = table.append_column(name, column)
    return table


def compute_rows(
    accumulator: Accumulator,
    elements: Sequence[StageElement],
    windows: Sequence[int],
    count: int,
    weights: Any = None,
) -> Rows:
    """Partials of elements for `count` windows: lift each element, merge all."""
    rows = new_rows([part.state_column for part in accumulator.parts], count)
    partials = lift_elements(accumulator.parts, make_element_table(elements, weights))
    merge_partials(accumulator.parts, rows, np.array(windows, np.int64), partials)
    return rows


def store_and_read(accumulator: Accumulator, rows: Rows) -> Rows:
    """The same rows after a round trip through a state file."""
    schema = pa.schema([pa.field(part.name, part.type) for part in accumulator.parts])
    return rows_from_table(rows.to_table(schema))
