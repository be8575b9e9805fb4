"""The plan over the records of a stream is analyzed once; later batches give the same rows as a fresh plan."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from tests.pipelines.engine.explain.test_explain import CORRECTIONS

from penstock.engine.batch.intent import OffsetRange
from penstock.engine.operators.stage_compilation import compile_stage
from penstock.engine.spark.batch_input import SparkBatchInput
from penstock.engine.spark.parse.records import KAFKA_SOURCE_DDL
from penstock.engine.spark.plan_cache import AnalyzedPlanCache
from penstock.engine.spark.transform.schema_inference import FieldTypeResolver
from penstock.engine.triggers.default import Default
from penstock.engine.windows.count_policy import CountPolicy
from penstock.engine.windows.tumbling import Tumbling
from penstock.engine.windows.window import Window

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark
RECORDS = 12


class CachedTransform:
    """Applies a transform by the plan cache and counts how often the transform itself is called."""

    def __init__(self, transform: "Callable[[DataFrame], DataFrame]") -> None:
        self.cache = AnalyzedPlanCache()
        self.transform = transform
        self.calls = 0

    def apply(self, records: "DataFrame", key: str) -> "DataFrame":
        cached = self.cache.apply_plan(records, key)
        if cached is not None:
            return cached
        self.calls += 1
        result = self.transform(records)
        self.cache.store_plan(records, key, result)
        return result


def sum_offsets(records: "DataFrame") -> "DataFrame":
    return records.selectExpr("offset % 3 AS third", "offset").coalesce(1).groupBy("third").sum("offset")


def sort_rows(frame: "DataFrame") -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in frame.collect())


def make_batches(spark: "SparkSession") -> "list[DataFrame]":
    """Return batches of one query, which share their columns."""
    arrived = "timestamp '2026-01-01' AS timestamp"
    texts = "'id', cast(id AS STRING), 'device', 'd' || id % 2, 'site', 's'"
    fields = f"{texts}, 'at', id * 1000, 'temperature', id / 10"
    value = f"encode(to_json(named_struct({fields})), 'utf-8') AS value"
    names = [word.split(" ")[0] for word in KAFKA_SOURCE_DDL.split(", ")]
    columns = [
        "cast(NULL AS BINARY) AS key",
        value,
        "'sensors' AS topic",
        "0 AS partition",
        "id AS offset",
        arrived,
    ]
    all_records = spark.range(RECORDS).selectExpr(*columns).select(*names)
    return [
        all_records.where(f"offset >= {start} AND offset < {start + 4}") for start in range(0, RECORDS, 4)
    ]


def test_later_batches_match_a_fresh_plan_and_reuse_the_first(spark: "SparkSession") -> None:
    cached = CachedTransform(sum_offsets)
    for records in make_batches(spark):
        assert sort_rows(cached.apply(records, "counts")) == sort_rows(sum_offsets(records))
    assert cached.calls == 1


@pytest.mark.parametrize("window", [CORRECTIONS.only_stage.window, Tumbling(CountPolicy(3))])
def test_partials_of_later_batches_match_a_fresh_plan(spark: "SparkSession", window: Window) -> None:
    order = isinstance(window, Tumbling)
    sources = tuple(replace(each, deduplication=None, checks=()) for each in CORRECTIONS.sources)
    plain = replace(CORRECTIONS.only_stage, window=window, steps=(), lateness=0)
    plan = replace(plain, trigger=Default()) if order else plain
    stage = compile_stage(plan, FieldTypeResolver(spark).resolve_stage(sources, plan))
    shared_cache = AnalyzedPlanCache()

    def compute_rows(records: "DataFrame", number: int, cache: AnalyzedPlanCache) -> list[dict[str, Any]]:
        ranges = (OffsetRange("sensors", 0, number * 4, number * 4 + 4),)
        table = SparkBatchInput(records, sources, stage, number, ranges, plan_cache=cache).compute_partials()
        return sorted(table.to_pylist(), key=str)

    for number, records in enumerate(make_batches(spark)):
        assert (
            compute_rows(records, number, shared_cache)
            == compute_rows(records, number, AnalyzedPlanCache())
            != []
        )


def test_another_key_and_a_restarted_query_are_analyzed_again(spark: "SparkSession") -> None:
    cached = CachedTransform(sum_offsets)
    first, second, _ = make_batches(spark)
    restarted, *_ = make_batches(spark)
    for records, name in ((first, "counts"), (second, "others"), (restarted, "counts")):
        assert sort_rows(cached.apply(records, name)) == sort_rows(sum_offsets(records))
    assert cached.calls == 3


def test_a_plan_that_reads_other_data_is_not_reused(spark: "SparkSession") -> None:
    other_data = iter([["a"], ["b"], ["c"]])

    def join_other_data(records: "DataFrame") -> "DataFrame":
        return records.select("offset").crossJoin(spark.createDataFrame([next(other_data)], "word STRING"))

    cached = CachedTransform(join_other_data)
    words = [{row["word"] for row in cached.apply(each, "joined").collect()} for each in make_batches(spark)]
    assert words == [{"a"}, {"b"}, {"c"}]
