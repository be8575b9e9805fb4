"""The state of quantiles: a KLL sketch, which stores values of any type as floating-point numbers."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from math import ceil, nan
from typing import Any

import datasketches
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.aggregates.accumulator import Accumulator, AccumulatorPart
from penstock.engine.aggregates.aggregate_context import AggregateContext
from penstock.engine.aggregates.list_columns import to_object_column
from penstock.engine.aggregates.mergers import SumMerger
from penstock.engine.aggregates.sketches import SketchColumnMerger
from penstock.engine.columnar import NumpyColumn, Rows
from penstock.engine.definition.predicates import quote_column

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
EPOCH_DATE = date(1970, 1, 1)


def build_kll_quantiles(
    context: AggregateContext, field: str, ranks: Sequence[float], k: int, result_type: pa.DataType
) -> Accumulator:
    """Build the values at some ranks. NaN is greater than every number, and is counted separately."""
    sketch_name, nan_count_name = f"{context.output}_sketch", f"{context.output}_nan_count"
    field_type = context.field_types[field]
    number_sql = _numeric_sql(quote_column(field), field_type)
    sketch_part = AccumulatorPart(
        sketch_name,
        f"kll_sketch_agg_double({number_sql}, {k})",
        pa.binary(),
        SketchColumnMerger(sketch_name, _KllMerger(k)),
        lambda elements: to_object_column(
            [_sketch_value(value, k) for value in _to_numbers(elements.column(field))]
        ),
    )

    def is_nan(elements: pa.Table) -> NumpyColumn:
        return np.array(
            [value is not None and value != value for value in _to_numbers(elements.column(field))],
            int,
        )

    nan_count_part = AccumulatorPart(
        nan_count_name, f"count_if(isnan({number_sql}))", pa.int64(), SumMerger(nan_count_name), is_nan, 0
    )

    def show(rows: Rows) -> NumpyColumn:
        sketches = zip(rows[sketch_name].tolist(), rows[nan_count_name].tolist(), strict=True)
        return to_object_column(
            [
                tuple(_estimate_quantiles(ranks, k, sketch, nan_count, field_type))
                for sketch, nan_count in sketches
            ]
        )

    return Accumulator(context.output, result_type, (sketch_part, nan_count_part), show)


class _KllMerger:
    """Merges sketches of one `k`."""

    def __init__(self, k: int) -> None:
        self._k = k

    def merge_sketches(self, sketches: list[bytes]) -> bytes:
        union = datasketches.kll_doubles_sketch(self._k)
        for sketch in sketches:
            union.merge(datasketches.kll_doubles_sketch.deserialize(sketch))
        serialized: bytes = union.serialize()
        return serialized


def _sketch_value(value: float | None, k: int) -> bytes | None:
    if value is None or value != value:
        return None
    sketch = datasketches.kll_doubles_sketch(k)
    sketch.update(value)
    serialized: bytes = sketch.serialize()
    return serialized


def _estimate_quantiles(
    ranks: Sequence[float], k: int, serialized: bytes | None, nan_count: int, field_type: pa.DataType
) -> list[Any]:
    """Return, for each rank, the least value with at least that share at or below it; null without values."""
    sketch = datasketches.kll_doubles_sketch(k) if serialized is None else _deserialize_sketch(serialized)
    total = sketch.n + nan_count
    if not total:
        return [None] * len(ranks)
    positions = [max(ceil(share * total), 1) for share in ranks]
    # Ask for the middle of a position, so that rounding cannot shift it to a neighbor.
    return [
        nan
        if position > sketch.n
        else _from_number(sketch.get_quantile((position - 0.5) / sketch.n, inclusive=True), field_type)
        for position in positions
    ]


def _deserialize_sketch(sketch: bytes) -> Any:
    return datasketches.kll_doubles_sketch.deserialize(sketch)


def _numeric_sql(field: str, field_type: pa.DataType) -> str:
    if pa.types.is_timestamp(field_type):
        return f"cast(unix_micros(cast({field} as timestamp)) as double)"
    if pa.types.is_date32(field_type):
        return f"cast(unix_date({field}) as double)"
    return f"cast({field} as double)"


def _to_numbers(column: pa.ChunkedArray) -> list[float | None]:
    """Return values as numbers: timestamps in microseconds, dates in days since 1970."""
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
    elif pa.types.is_date32(column.type):
        column = column.cast(pa.int32())
    numbers: list[float | None] = pc.cast(column, pa.float64(), safe=False).to_pylist()
    return numbers


def _from_number(number: float, field_type: pa.DataType) -> Any:
    """Convert a number back to the field's type."""
    if pa.types.is_integer(field_type):
        return int(number)
    if pa.types.is_timestamp(field_type):
        instant = EPOCH + timedelta(microseconds=int(number))
        return instant if field_type.tz else instant.replace(tzinfo=None)
    return EPOCH_DATE + timedelta(days=int(number)) if pa.types.is_date32(field_type) else number
