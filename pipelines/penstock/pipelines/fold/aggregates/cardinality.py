"""Distinct values that are counted approximately: a HyperLogLog sketch of the values' hashes."""

import datasketches
import numpy as np
import pyarrow as pa

from penstock.pipelines.fold.aggregates.accumulator import Accumulator, Part
from penstock.pipelines.fold.aggregates.hashes import spark_hashes
from penstock.pipelines.fold.aggregates.kinds import compared
from penstock.pipelines.fold.aggregates.lists import objects
from penstock.pipelines.fold.aggregates.setting import Setting
from penstock.pipelines.fold.aggregates.sketches import Sketches
from penstock.pipelines.fold.rows import Column, Rows
from penstock.pipelines.plan.aggregates import Distinct, Output
from penstock.pipelines.plan.predicates import quoted


def approximate(output: Output, of: Distinct, setting: Setting) -> Accumulator:
    """The number of different values, as the sketch estimates it."""
    name = f"{output.name}_sketch"
    compared(setting.types[of.field], output)
    merge = Sketches(name, _Counting(of.precision))
    field = quoted(of.field)
    # The hash is Spark's own, so that values of any type, empty text and NaN among them, are told apart.
    sql = f"hll_sketch_agg(CASE WHEN {field} IS NOT NULL THEN xxhash64({field}) END, {of.precision})"

    def lift(elements: pa.Table) -> Column:
        hashes = spark_hashes(elements.column(of.field))
        return objects([None if value is None else _sketch_of(value, of.precision) for value in hashes])

    def show(rows: Rows) -> Column:
        return np.array([_estimate(sketch) for sketch in rows[name].tolist()], np.int64)

    return Accumulator(output.name, pa.int64(), (Part(name, sql, pa.binary(), merge, lift),), show)


class _Counting:
    """Brings sketches together in a union, whose estimate does not depend on their order."""

    def __init__(self, precision: int) -> None:
        self._precision = precision

    def merged(self, sketches: list[bytes]) -> bytes:
        union = datasketches.hll_union(self._precision)
        for sketch in sketches:
            union.update(datasketches.hll_sketch.deserialize(sketch))
        merged: bytes = union.get_result(datasketches.HLL_8).serialize_compact()
        return merged


def _sketch_of(value: int, precision: int) -> bytes:
    sketch = datasketches.hll_sketch(precision, datasketches.HLL_8)
    sketch.update(value)
    made: bytes = sketch.serialize_compact()
    return made


def _estimate(sketch: bytes | None) -> int:
    if sketch is None:
        return 0
    estimate: float = datasketches.hll_sketch.deserialize(sketch).get_estimate()
    return round(estimate)
