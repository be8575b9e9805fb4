"""What is done with the records of each batch is analysed once, and gives of later records what it would anew."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from tests.pipelines.explain.test_explain import CORRECTIONS

from penstock.pipelines.batch.intent import Range
from penstock.pipelines.fold.stage import ready_stage
from penstock.pipelines.plan import CountPolicy, Tumbling
from penstock.pipelines.plan.triggers import Default
from penstock.pipelines.plan.windows import Window
from penstock.pipelines.spark.analysed import Analysed
from penstock.pipelines.spark.fields import FieldTypes
from penstock.pipelines.spark.reading import SparkReading
from penstock.pipelines.spark.records import KAFKA_SCHEMA

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark
RECORDS = 12


class Counted:
    """Counts how often it is asked."""

    def __init__(self, make: "Callable[[DataFrame], DataFrame]") -> None:
        self.make = make
        self.times = 0

    def __call__(self, records: "DataFrame") -> "DataFrame":
        self.times += 1
        return self.make(records)


def counts(records: "DataFrame") -> "DataFrame":
    return records.selectExpr("offset % 3 AS third", "offset").coalesce(1).groupBy("third").sum("offset")


def rows(frame: "DataFrame") -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in frame.collect())


def batches(spark: "SparkSession") -> "list[DataFrame]":
    """Records of one query, cut into batches: their columns are the same ones."""
    arrived = "timestamp '2026-01-01' AS timestamp"
    fields = "'id', id, 'device', 'd' || id % 2, 'site', 's', 'at', id * 1000, 'temperature', id / 10"
    told = f"encode(to_json(named_struct({fields})), 'utf-8') AS value"
    names = [word.split(" ")[0] for word in KAFKA_SCHEMA.split(", ")]
    known = [
        "cast(NULL AS BINARY) AS key",
        told,
        "'sensors' AS topic",
        "0 AS partition",
        "id AS offset",
        arrived,
    ]
    every = spark.range(RECORDS).selectExpr(*known).select(*names)
    return [every.where(f"offset >= {start} AND offset < {start + 4}") for start in range(0, RECORDS, 4)]


def test_later_batches_are_what_they_would_be_anew_and_nothing_is_made_again(spark: "SparkSession") -> None:
    make, analysed = Counted(counts), Analysed()
    for records in batches(spark):
        assert rows(analysed.over(records, "counts", make)) == rows(counts(records))
    assert make.times == 1


@pytest.mark.parametrize("window", [CORRECTIONS.stage.window, Tumbling(CountPolicy(3))])
def test_partials_of_later_batches_are_what_they_would_be_anew(spark: "SparkSession", window: Window) -> None:
    order = isinstance(window, Tumbling)
    sources = tuple(replace(each, deduplication=None, checks=()) for each in CORRECTIONS.sources)
    plain = replace(CORRECTIONS.stage, window=window, steps=(), lateness=0)
    plan = replace(plain, trigger=Default()) if order else plain
    stage = ready_stage(plan, FieldTypes(spark).after(sources, plan))
    known = Analysed()

    def told(records: "DataFrame", number: int, analysed: Analysed) -> list[dict[str, Any]]:
        ranges = (Range("sensors", 0, number * 4, number * 4 + 4),)
        table = SparkReading(records, sources, stage, number, ranges, analysed=analysed).partials()
        return sorted(table.to_pylist(), key=str)

    for number, records in enumerate(batches(spark)):
        assert told(records, number, known) == told(records, number, Analysed()) != []


def test_other_work_and_a_query_that_began_anew_are_analysed_anew(spark: "SparkSession") -> None:
    make, analysed = Counted(counts), Analysed()
    first, second, _ = batches(spark)
    anew, *_ = batches(spark)
    for records, name in ((first, "counts"), (second, "others"), (anew, "counts")):
        assert rows(analysed.over(records, name, make)) == rows(counts(records))
    assert make.times == 3


def test_what_is_read_beside_the_records_is_read_anew_with_each_batch(spark: "SparkSession") -> None:
    beside = iter([["a"], ["b"], ["c"]])

    def joined(records: "DataFrame") -> "DataFrame":
        return records.select("offset").crossJoin(spark.createDataFrame([next(beside)], "word STRING"))

    analysed = Analysed()
    words = [
        {row["word"] for row in analysed.over(each, "joined", joined).collect()} for each in batches(spark)
    ]
    assert words == [{"a"}, {"b"}, {"c"}]
