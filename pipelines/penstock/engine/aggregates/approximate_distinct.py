"""The state of an approximate number of distinct values: a HyperLogLog sketch of their hashes."""

import datasketches
import numpy as np
import pyarrow as pa

from penstock.engine.aggregates.accumulator import Accumulator, AccumulatorPart
from penstock.engine.aggregates.aggregate_context import AggregateContext
from penstock.engine.aggregates.list_columns import to_object_column
from penstock.engine.aggregates.sketches import SketchColumnMerger
from penstock.engine.aggregates.spark_xxhash64 import hash_like_spark
from penstock.engine.columnar import NumpyColumn, Rows
from penstock.engine.definition.predicates import quote_column


def build_approximate_distinct(context: AggregateContext, field: str, precision: int) -> Accumulator:
    """Build the approximate number of distinct values."""
    name = f"{context.output}_sketch"
    merger = SketchColumnMerger(name, _HllMerger(precision))
    column = quote_column(field)
    # Spark's own hash works for values of any type, and distinguishes empty strings and NaN.
    sql = f"hll_sketch_agg(CASE WHEN {column} IS NOT NULL THEN xxhash64({column}) END, {precision})"

    def lift(elements: pa.Table) -> NumpyColumn:
        hashes = hash_like_spark(elements.column(field))
        return to_object_column(
            [None if value is None else _sketch_value(value, precision) for value in hashes]
        )

    def show(rows: Rows) -> NumpyColumn:
        return np.array([_estimate_count(sketch) for sketch in rows[name].tolist()], np.int64)

    return Accumulator(
        context.output, pa.int64(), (AccumulatorPart(name, sql, pa.binary(), merger, lift),), show
    )


class _HllMerger:
    """Merges sketches in a union, whose estimate does not depend on their order."""

    def __init__(self, precision: int) -> None:
        self._precision = precision

    def merge_sketches(self, sketches: list[bytes]) -> bytes:
        union = datasketches.hll_union(self._precision)
        for sketch in sketches:
            union.update(datasketches.hll_sketch.deserialize(sketch))
        serialized: bytes = union.get_result(datasketches.HLL_8).serialize_compact()
        return serialized


def _sketch_value(value: int, precision: int) -> bytes:
    sketch = datasketches.hll_sketch(precision, datasketches.HLL_8)
    sketch.update(value)
    serialized: bytes = sketch.serialize_compact()
    return serialized


def _estimate_count(sketch: bytes | None) -> int:
    if sketch is None:
        return 0
    estimate: float = datasketches.hll_sketch.deserialize(sketch).get_estimate()
    return round(estimate)
