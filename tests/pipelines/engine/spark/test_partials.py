"""Partials that Spark computes match the reference, for every aggregate and field type."""

import random
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from math import inf, nan
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.pipelines.engine.aggregates.typed_elements import FIELDS, list_aggregates_over, make_element_table

from penstock.conformance.reference.aggregates import compute_aggregate
from penstock.conformance.reference.input_records import StageElement
from penstock.conformance.reference.number_semantics import canonicalize
from penstock.engine.aggregates import Accumulator, AggregateContext, merge_partials
from penstock.engine.aggregates.aggregate import Aggregate
from penstock.engine.aggregates.aggregate_output import AggregateOutput
from penstock.engine.aggregates.custom import Custom
from penstock.engine.aggregates.distinct import Distinct
from penstock.engine.aggregates.mean import Mean
from penstock.engine.aggregates.quantiles import Quantiles
from penstock.engine.aggregates.spark_xxhash64 import hash_like_spark
from penstock.engine.aggregates.sum import Sum
from penstock.engine.columnar import new_rows, rows_from_table
from penstock.engine.errors import SumOverflowError
from penstock.engine.operators.stage_compilation import compile_stage
from penstock.engine.plan.stages import Stage
from penstock.engine.spark.aggregate.partials import aggregate_partials
from penstock.engine.spark.poison_records import translate_sum_overflow, user_error_text
from penstock.engine.windows.fixed import Fixed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

TYPES = {field.name: field.type for field in FIELDS}
SIZE = 10
VALID_COLUMNS = ("cast(null AS STRING) AS _invalid", "cast(null AS STRING) AS _fate", "0L AS _clock")
"""The columns of a valid record."""
VALUES: dict[str, list[Any]] = {
    "long": [None, -5, 0, 1, 7, 2**40],
    "int": [None, -3, 0, 2**31 - 1],
    "double": [None, -1.5, 0.0, 0.5, 2.5, inf, -inf, nan],
    "word": [None, "", "a", "ä", "aa", "b"],
    "yes": [None, True, False],
    "when": [None, datetime(1969, 2, 3, 4, 5, 6, 7, UTC), datetime(2026, 11, 18, tzinfo=UTC)],
    "day": [None, date(1900, 1, 1), date(2026, 11, 18)],
    "price": [None, Decimal("-1.25"), Decimal("0.00"), Decimal("99.90")],
}


def make_elements(count: int, seed: int) -> list[StageElement]:
    """Return elements of two partitions with overlapping times."""
    rng = random.Random(seed)
    offsets = [0, 0]
    results = []
    for _ in range(count):
        partition = rng.randrange(2)
        content = {name: rng.choice(VALUES[name]) for name in FIELDS.names}
        address = ("records", partition, offsets[partition])
        results.append(StageElement((), rng.randrange(6 * SIZE), address, content))
        offsets[partition] += 1
    return results


def to_frame(spark: "SparkSession", elements: list[StageElement]) -> "DataFrame":
    """Return elements as valid records of a batch."""
    frame = spark.createDataFrame(make_element_table(elements))
    return frame.selectExpr("*", "_time AS _watermark_time", *VALID_COLUMNS)


def merge_windows(each: Accumulator, partial: pa.Table) -> dict[int, Any]:
    """Merge the partials of all partitions; return the value of each window."""
    starts = np.unique(np.asarray(partial.column("window_start")))
    rows = new_rows([part.state_column for part in each.parts], len(starts))
    windows = np.searchsorted(starts, np.asarray(partial.column("window_start")))
    schema = pa.schema([pa.field(part.name, part.type) for part in each.parts])
    merge_partials(each.parts, rows, windows, rows_from_table(partial.select(schema.names).cast(schema)))
    values = pa.array(each.pane_values(rows), each.type, from_pandas=False).to_pylist()
    return dict(zip(starts.tolist(), [canonicalize(item) for item in values], strict=True))


def compute_expected(aggregate: Aggregate, elements: list[StageElement]) -> dict[int, Any]:
    results = {}
    for start in sorted({element.time // SIZE * SIZE for element in elements}):
        value = canonicalize(
            compute_aggregate(aggregate, [e for e in elements if e.time // SIZE * SIZE == start])
        )
        if isinstance(aggregate, Mean) and isinstance(value, Decimal):
            value = float(value)
        if isinstance(aggregate, Quantiles):
            value = tuple(float(v) if isinstance(v, Decimal) else v for v in value)
        results[start] = value
    return results


@pytest.mark.parametrize("name", FIELDS.names)
def test_partials_match_the_reference(spark: "SparkSession", name: str) -> None:
    outputs = tuple(
        AggregateOutput(f"out_{number}", aggregate)
        for number, aggregate in enumerate(list_aggregates_over(name))
    )
    stage = compile_stage(Stage("stage", ("records",), Fixed(SIZE), outputs), TYPES)
    elements = make_elements(300, seed=len(name))
    partial = aggregate_partials(to_frame(spark, elements), stage).toArrow()
    for each, output in zip(stage.accumulators, outputs, strict=True):
        assert merge_windows(each, partial) == compute_expected(output.aggregate, elements), output


def test_hashes_match_those_of_spark(spark: "SparkSession") -> None:
    elements = make_elements(200, seed=3)
    wide = pa.array(
        [Decimal(10) ** 25 * sign for sign in (-1, 0, 1)] * 66 + [None, None], pa.decimal128(30, 2)
    )
    table = make_element_table(elements).append_column("wide", wide)
    narrow = pc.cast(table.column("double"), pa.float32())
    table = table.append_column("narrow", narrow).append_column("bytes", table.column("word").cast("binary"))
    names = [*FIELDS.names, "wide", "narrow", "bytes"]
    hashed = spark.createDataFrame(table).selectExpr(*(f"xxhash64({name}) AS {name}" for name in names))
    answers = hashed.toArrow()
    for name in names:
        is_valid = np.asarray(table.column(name).is_valid())
        hashes = [results for results in hash_like_spark(table.column(name)) if results is not None]
        assert hashes == answers.column(name).filter(pa.array(is_valid)).to_pylist(), name


def test_sketches_are_within_their_error_bounds(spark: "SparkSession") -> None:
    """At most 5 standard errors away for a number of values, and 1.33 % of the ranks for a quantile of k = 200."""
    ranks = (0.01, 0.25, 0.5, 0.75, 0.99)
    outputs = (
        AggregateOutput("different", Distinct("long", exact=False)),
        AggregateOutput("at", Quantiles("long", ranks)),
    )
    stage = compile_stage(Stage("stage", ("records",), Fixed(10**9), outputs), TYPES)
    many = 200_000
    frame = spark.range(many).selectExpr(
        "id % 50000 AS long", "'records' AS _topic", "cast(id % 8 AS INT) AS _partition", "id AS _offset",
        "0L AS _time", "0L AS _watermark_time", *VALID_COLUMNS,
    )  # fmt: skip
    partial = aggregate_partials(frame, stage).toArrow()
    assert partial.num_rows == 8
    different, quantiles = (merge_windows(each, partial)[0] for each in stage.accumulators)
    assert abs(different - 50_000) < 5 * 1.04 / 2**6 * 50_000
    assert [
        abs(results / 50_000 - share) < 3 * 0.0133 for results, share in zip(quantiles, ranks, strict=True)
    ] == [True] * len(ranks)


def test_a_sum_overflow_within_a_batch_fails_the_batch(spark: "SparkSession") -> None:
    stage = compile_stage(
        Stage("stage", ("records",), Fixed(SIZE), (AggregateOutput("total", Sum("long")),)), TYPES
    )
    elements = [
        replace(each, fields={**each.fields, "long": 2**62}, time=0) for each in make_elements(4, seed=1)
    ]
    with pytest.raises(SumOverflowError, match="total of a window") as failed, translate_sum_overflow():
        aggregate_partials(to_frame(spark, elements), stage).toArrow()
    assert user_error_text(failed.value).startswith("total of a window exceeds what its column can hold")


def test_spark_computes_partials_of_changes(spark: "SparkSession") -> None:
    """A retracted record leaves the values of the others."""
    from pyspark.sql.functions import expr

    elements = make_elements(120, seed=9)
    changes = [(element, 1) for element in elements] + [(element, -1) for element in elements[:50]]
    frame = spark.createDataFrame(make_element_table([e for e, _ in changes], [w for _, w in changes]))
    aggregates = [
        aggregate
        for name in FIELDS.names
        for aggregate in list_aggregates_over(name)
        if not depends_on_order(aggregate)
    ]
    outputs = [AggregateOutput(f"out_{number}", aggregate) for number, aggregate in enumerate(aggregates)]
    accumulators = [
        output.aggregate.build_accumulator(AggregateContext(output.name, TYPES, over_changes=True))
        for output in outputs
    ]
    parts = [part for each in accumulators for part in each.parts]
    start = (frame["_time"] - frame["_time"] % SIZE).alias("window_start")
    partial = frame.groupBy(start).agg(*(expr(f"{part.sql} AS {part.name}") for part in parts)).toArrow()
    for each, aggregate in zip(accumulators, aggregates, strict=True):
        expected = compute_expected(aggregate, elements[50:])
        assert {
            begin: values for begin, values in merge_windows(each, partial).items() if begin in expected
        } == expected, aggregate


def depends_on_order(aggregate: Aggregate) -> bool:
    """Return whether an aggregate needs record order, or a step after Spark."""
    return isinstance(aggregate, Custom) or hasattr(aggregate, "order") or hasattr(aggregate, "largest")
