"""Every aggregate over every type of field: what Spark makes of many records is what the reference says of them."""

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
from tests.pipelines.engine.aggregates.typed_elements import FIELDS, aggregates_over, table_of

from penstock.conformance.reference.aggregates import compute_aggregate
from penstock.conformance.reference.input_records import StageElement
from penstock.conformance.reference.number_semantics import canonicalize
from penstock.engine.aggregates import Accumulator, AggregateContext, merge_partials
from penstock.engine.aggregates.spark_xxhash64 import hash_like_spark
from penstock.engine.columnar import new_rows, rows_from_table
from penstock.engine.errors import SumOverflowError
from penstock.engine.operators.stage_compilation import compile_stage
from penstock.engine.plan import (
    Aggregate,
    AggregateOutput,
    Custom,
    Distinct,
    Fixed,
    Mean,
    Quantiles,
    Stage,
    Sum,
)
from penstock.engine.spark.aggregate.partials import aggregate_partials
from penstock.engine.spark.poison_records import translate_sum_overflow, user_error_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

TYPES = {field.name: field.type for field in FIELDS}
SIZE = 10
GOOD = ("cast(null AS STRING) AS _invalid", "cast(null AS STRING) AS _fate", "0L AS _clock")
"""What is said of a record that goes on."""
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


def elements(count: int, seed: int) -> list[StageElement]:
    """Elements of two partitions, whose times meet."""
    chance = random.Random(seed)
    offsets = [0, 0]
    found = []
    for _ in range(count):
        partition = chance.randrange(2)
        content = {name: chance.choice(VALUES[name]) for name in FIELDS.names}
        address = ("records", partition, offsets[partition])
        found.append(StageElement((), chance.randrange(6 * SIZE), address, content))
        offsets[partition] += 1
    return found


def records(spark: "SparkSession", some: list[StageElement]) -> "DataFrame":
    """Elements as good records, as a batch's job gets them."""
    frame = spark.createDataFrame(table_of(some))
    return frame.selectExpr("*", "_time AS _watermark_time", *GOOD)


def said(each: Accumulator, partial: pa.Table) -> dict[int, Any]:
    """What each window says once the partials of all partitions are merged."""
    starts = np.unique(np.asarray(partial.column("window_start")))
    rows = new_rows([part.state_column for part in each.parts], len(starts))
    windows = np.searchsorted(starts, np.asarray(partial.column("window_start")))
    schema = pa.schema([pa.field(part.name, part.type) for part in each.parts])
    merge_partials(each.parts, rows, windows, rows_from_table(partial.select(schema.names).cast(schema)))
    shown = pa.array(each.pane_values(rows), each.type, from_pandas=False).to_pylist()
    return dict(zip(starts.tolist(), [canonicalize(item) for item in shown], strict=True))


def expected(of: Aggregate, some: list[StageElement]) -> dict[int, Any]:
    found = {}
    for start in sorted({element.time // SIZE * SIZE for element in some}):
        said_there = canonicalize(compute_aggregate(of, [e for e in some if e.time // SIZE * SIZE == start]))
        if isinstance(of, Mean) and isinstance(said_there, Decimal):
            said_there = float(said_there)
        if isinstance(of, Quantiles):
            said_there = tuple(float(v) if isinstance(v, Decimal) else v for v in said_there)
        found[start] = said_there
    return found


@pytest.mark.parametrize("name", FIELDS.names)
def test_partials_of_spark_say_what_the_reference_says(spark: "SparkSession", name: str) -> None:
    outputs = tuple(AggregateOutput(f"out_{number}", of) for number, of in enumerate(aggregates_over(name)))
    stage = compile_stage(Stage("stage", ("records",), Fixed(SIZE), outputs), TYPES)
    some = elements(300, seed=len(name))
    partial = aggregate_partials(records(spark, some), stage).toArrow()
    for each, output in zip(stage.accumulators, outputs, strict=True):
        assert said(each, partial) == expected(output.aggregate, some), output


def test_a_value_is_hashed_as_spark_hashes_it(spark: "SparkSession") -> None:
    some = elements(200, seed=3)
    wide = pa.array(
        [Decimal(10) ** 25 * sign for sign in (-1, 0, 1)] * 66 + [None, None], pa.decimal128(30, 2)
    )
    table = table_of(some).append_column("wide", wide)
    narrow = pc.cast(table.column("double"), pa.float32())
    table = table.append_column("narrow", narrow).append_column("bytes", table.column("word").cast("binary"))
    names = [*FIELDS.names, "wide", "narrow", "bytes"]
    hashed = spark.createDataFrame(table).selectExpr(*(f"xxhash64({name}) AS {name}" for name in names))
    answers = hashed.toArrow()
    for name in names:
        there = np.asarray(table.column(name).is_valid())
        ours = [found for found in hash_like_spark(table.column(name)) if found is not None]
        assert ours == answers.column(name).filter(pa.array(there)).to_pylist(), name


def test_sketches_of_spark_keep_their_promise(spark: "SparkSession") -> None:
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
        "0L AS _time", "0L AS _watermark_time", *GOOD,
    )  # fmt: skip
    partial = aggregate_partials(frame, stage).toArrow()
    assert partial.num_rows == 8
    different, quantiles = (said(each, partial)[0] for each in stage.accumulators)
    assert abs(different - 50_000) < 5 * 1.04 / 2**6 * 50_000
    assert [
        abs(found / 50_000 - share) < 3 * 0.0133 for found, share in zip(quantiles, ranks, strict=True)
    ] == [True] * len(ranks)


def test_a_sum_that_outgrows_its_column_within_a_batch_fails_the_batch(spark: "SparkSession") -> None:
    stage = compile_stage(
        Stage("stage", ("records",), Fixed(SIZE), (AggregateOutput("total", Sum("long")),)), TYPES
    )
    some = [replace(each, fields={**each.fields, "long": 2**62}, time=0) for each in elements(4, seed=1)]
    with pytest.raises(SumOverflowError, match="total of a window") as failed, translate_sum_overflow():
        aggregate_partials(records(spark, some), stage).toArrow()
    assert user_error_text(failed.value).startswith("total of a window exceeds what its column can hold")


def test_an_accumulator_of_changes_is_made_by_spark_too(spark: "SparkSession") -> None:
    """A record that came and was taken back leaves what is left of the others."""
    from pyspark.sql.functions import expr

    some = elements(120, seed=9)
    changes = [(element, 1) for element in some] + [(element, -1) for element in some[:50]]
    frame = spark.createDataFrame(table_of([e for e, _ in changes], [w for _, w in changes]))
    ofs = [of for name in FIELDS.names for of in aggregates_over(name) if not depends_on_place(of)]
    outputs = [AggregateOutput(f"out_{number}", of) for number, of in enumerate(ofs)]
    accumulators = [
        output.aggregate.build_accumulator(AggregateContext(output.name, TYPES, over_changes=True))
        for output in outputs
    ]
    parts = [part for each in accumulators for part in each.parts]
    start = (frame["_time"] - frame["_time"] % SIZE).alias("window_start")
    partial = frame.groupBy(start).agg(*(expr(f"{part.sql} AS {part.name}") for part in parts)).toArrow()
    for each, of in zip(accumulators, ofs, strict=True):
        left = expected(of, some[50:])
        assert {begin: shown for begin, shown in said(each, partial).items() if begin in left} == left, of


def depends_on_place(of: Aggregate) -> bool:
    """Whether it says something else of changes, which have no address, or needs a step after Spark's."""
    return isinstance(of, Custom) or hasattr(of, "order") or hasattr(of, "largest")
