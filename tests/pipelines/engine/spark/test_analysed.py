"""What is done with the records of each batch is analysed once, and gives of later records what it would anew."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from tests.pipelines.engine.explain.test_explain import CORRECTIONS

from penstock.engine.batch.intent import OffsetRange
from penstock.engine.operators.compiled_stage import compile_stage
from penstock.engine.plan import CountPolicy, Tumbling
from penstock.engine.plan.triggers import Default
from penstock.engine.plan.windows import Window
from penstock.engine.spark.batch_input import SparkBatchInput
from penstock.engine.spark.parse.records import KAFKA_SOURCE_DDL
from penstock.engine.spark.plan_cache import AnalyzedPlanCache
from penstock.engine.spark.transform.schema_inference import FieldTypeResolver

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
    names = [word.split(" ")[0] for word in KAFKA_SOURCE_DDL.split(", ")]
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
    make, analysed = Counted(counts), AnalyzedPlanCache()
    for records in batches(spark):
        assert rows(analysed.apply_cached(records, "counts", make)) == rows(counts(records))
    assert make.times == 1


@pytest.mark.parametrize("window", [CORRECTIONS.only_stage.window, Tumbling(CountPolicy(3))])
def test_partials_of_later_batches_are_what_they_would_be_anew(spark: "SparkSession", window: Window) -> None:
    order = isinstance(window, Tumbling)
    sources = tuple(replace(each, deduplication=None, checks=()) for each in CORRECTIONS.sources)
    plain = replace(CORRECTIONS.only_stage, window=window, steps=(), lateness=0)
    plan = replace(plain, trigger=Default()) if order else plain
    stage = compile_stage(plan, FieldTypeResolver(spark).resolve_stage(sources, plan))
    known = AnalyzedPlanCache()

    def told(records: "DataFrame", number: int, analysed: AnalyzedPlanCache) -> list[dict[str, Any]]:
        ranges = (OffsetRange("sensors", 0, number * 4, number * 4 + 4),)
        table = SparkBatchInput(
            records, sources, stage, number, ranges, plan_cache=analysed
        ).compute_partials()
        return sorted(table.to_pylist(), key=str)

    for number, records in enumerate(batches(spark)):
        assert told(records, number, known) == told(records, number, AnalyzedPlanCache()) != []


def test_other_work_and_a_query_that_began_anew_are_analysed_anew(spark: "SparkSession") -> None:
    make, analysed = Counted(counts), AnalyzedPlanCache()
    first, second, _ = batches(spark)
    anew, *_ = batches(spark)
    for records, name in ((first, "counts"), (second, "others"), (anew, "counts")):
        assert rows(analysed.apply_cached(records, name, make)) == rows(counts(records))
    assert make.times == 3


def test_what_is_read_beside_the_records_is_read_anew_with_each_batch(spark: "SparkSession") -> None:
    beside = iter([["a"], ["b"], ["c"]])

    def joined(records: "DataFrame") -> "DataFrame":
        return records.select("offset").crossJoin(spark.createDataFrame([next(beside)], "word STRING"))

    analysed = AnalyzedPlanCache()
    words = [
        {row["word"] for row in analysed.apply_cached(each, "joined", joined).collect()}
        for each in batches(spark)
    ]
    assert words == [{"a"}, {"b"}, {"c"}]
