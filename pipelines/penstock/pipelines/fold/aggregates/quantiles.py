"""Quantiles by a KLL sketch, in which values of any type lie as floating numbers."""

from datetime import UTC, date, datetime, timedelta
from math import ceil, nan
from typing import Any

import datasketches
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.pipelines.fold.aggregates.accumulator import Accumulator, Part
from penstock.pipelines.fold.aggregates.kinds import measured
from penstock.pipelines.fold.aggregates.lists import objects
from penstock.pipelines.fold.aggregates.merges import Added
from penstock.pipelines.fold.aggregates.setting import Setting
from penstock.pipelines.fold.aggregates.sketches import Sketches
from penstock.pipelines.fold.rows import Column, Rows
from penstock.pipelines.plan.aggregates import Output, Quantiles
from penstock.pipelines.plan.predicates import quoted

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DAY_ZERO = date(1970, 1, 1)


def quantiles(output: Output, of: Quantiles, setting: Setting) -> Accumulator:
    """The values at some ranks; NaN is greater than every number, and is counted apart."""
    name, nans = f"{output.name}_sketch", f"{output.name}_nans"
    kind = measured(setting.types[of.field], output)
    number = _number_sql(quoted(of.field), kind)
    sketch = Part(
        name,
        f"kll_sketch_agg_double({number}, {of.k})",
        pa.binary(),
        Sketches(name, _Ranking(of.k)),
        lambda elements: objects([_sketch_of(value, of.k) for value in _numbers(elements.column(of.field))]),
    )

    def is_nan(elements: pa.Table) -> Column:
        return np.array(
            [value is not None and value != value for value in _numbers(elements.column(of.field))], int
        )

    counted = Part(nans, f"count_if(isnan({number}))", pa.int64(), Added(nans), is_nan, 0)

    def show(rows: Rows) -> Column:
        found = zip(rows[name].tolist(), rows[nans].tolist(), strict=True)
        return objects([tuple(_at_ranks(of, made, missing, kind)) for made, missing in found])

    return Accumulator(output.name, pa.list_(_shown_type(kind)), (sketch, counted), show)


class _Ranking:
    """Brings sketches of one `k` together."""

    def __init__(self, k: int) -> None:
        self._k = k

    def merged(self, sketches: list[bytes]) -> bytes:
        whole = datasketches.kll_doubles_sketch(self._k)
        for sketch in sketches:
            whole.merge(datasketches.kll_doubles_sketch.deserialize(sketch))
        merged: bytes = whole.serialize()
        return merged


def _sketch_of(value: float | None, k: int) -> bytes | None:
    if value is None or value != value:
        return None
    sketch = datasketches.kll_doubles_sketch(k)
    sketch.update(value)
    made: bytes = sketch.serialize()
    return made


def _at_ranks(of: Quantiles, made: bytes | None, nans: int, kind: pa.DataType) -> list[Any]:
    """The least value at or below which at least each share of all values lies; null where there are none."""
    sketch = datasketches.kll_doubles_sketch(of.k) if made is None else _read(made)
    total = sketch.n + nans
    if not total:
        return [None] * len(of.ranks)
    places = [max(ceil(share * total), 1) for share in of.ranks]
    # The middle of a place, so that no rounding of a share moves it to the place beside.
    return [
        nan
        if place > sketch.n
        else _value(sketch.get_quantile((place - 0.5) / sketch.n, inclusive=True), kind)
        for place in places
    ]


def _read(sketch: bytes) -> Any:
    return datasketches.kll_doubles_sketch.deserialize(sketch)


def _shown_type(kind: pa.DataType) -> pa.DataType:
    return pa.float64() if pa.types.is_decimal(kind) else kind


def _number_sql(field: str, kind: pa.DataType) -> str:
    if pa.types.is_timestamp(kind):
        return f"cast(unix_micros(cast({field} as timestamp)) as double)"
    if pa.types.is_date32(kind):
        return f"cast(unix_date({field}) as double)"
    return f"cast({field} as double)"


def _numbers(column: pa.ChunkedArray) -> list[float | None]:
    """Values as numbers: times as microseconds, dates as days since 1970."""
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
    elif pa.types.is_date32(column.type):
        column = column.cast(pa.int32())
    found: list[float | None] = pc.cast(column, pa.float64(), safe=False).to_pylist()
    return found


def _value(number: float, kind: pa.DataType) -> Any:
    """A value of the field's type again."""
    if pa.types.is_integer(kind):
        return int(number)
    if pa.types.is_timestamp(kind):
        instant = EPOCH + timedelta(microseconds=int(number))
        return instant if kind.tz else instant.replace(tzinfo=None)
    return DAY_ZERO + timedelta(days=int(number)) if pa.types.is_date32(kind) else number
