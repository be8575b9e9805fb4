"""Spark does not send columns that follow from others; fetched tables have them."""

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from tests.pipelines.engine.spark.test_row_checks import (
    IN_ORDER,
    KNOWN,
    PLANS,
    RECORDS,
    add_checks,
    make_batch_input,
)

from penstock.engine.dedup.duplicates import DUPLICATES_SCHEMA
from penstock.engine.plan.sources import FutureSkewPolicy, WatermarkStrategy
from penstock.engine.plan.stages import Plan
from penstock.engine.spark.aggregate.constant_columns import find_derived_columns
from penstock.engine.spark.aggregate.partials import aggregate_partials
from penstock.engine.triggers.default import Default

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
FIRST = {"_topic": "t", "_partition": 0, "_offset": 1}


def build_ordered_plan(
    max_future_skew: int | None = None, future_records: FutureSkewPolicy = "quarantine"
) -> Plan:
    plan = replace(IN_ORDER, stages=(replace(IN_ORDER.only_stage, trigger=Default()),))
    source = replace(
        plan.sources[0],
        watermark=WatermarkStrategy(
            max_out_of_orderness=0, max_future_skew=max_future_skew, future_records=future_records
        ),
    )
    return add_checks(replace(plan, sources=(source,)), KNOWN)


@pytest.mark.parametrize(
    ("max_future_skew", "future_records", "duplicate_count", "expected"),
    [
        (None, "quarantine", 0, {"_topic", "_counted", "_newest"}),
        (None, "quarantine", 1, {"_topic", "_counted"}),
        (5, "quarantine", 0, {"_topic", "_counted", "_newest"}),
        (5, "accept", 0, {"_topic", "_counted"}),
    ],
    ids=["records", "with a duplicate", "with a max future skew", "with accepted records in the future"],
)
def test_derived_columns_are_not_sent_but_restored(
    spark: "SparkSession",
    max_future_skew: int | None,
    future_records: FutureSkewPolicy,
    duplicate_count: int,
    expected: set[str],
) -> None:
    duplicates = pa.Table.from_pylist([FIRST][:duplicate_count], DUPLICATES_SCHEMA)
    read = make_batch_input(
        spark, build_ordered_plan(max_future_skew, future_records), RECORDS
    ).drop_duplicates(duplicates)
    records = read.load()
    computed = aggregate_partials(records, read.stage).toArrow()
    found = read.compute_partials()
    has_duplicates = read.duplicates is not None
    assert (
        set(
            find_derived_columns(
                read.stage, read.sources, {"t"}, records.columns, has_duplicates=has_duplicates
            )
        )
        == expected
    )
    assert sort_rows(found) == sort_rows(computed)
    assert found.num_rows == len(RECORDS)


def test_counted_records_have_no_derived_columns(spark: "SparkSession") -> None:
    read = make_batch_input(spark, PLANS[0], RECORDS)
    assert (
        find_derived_columns(read.stage, read.sources, {"t"}, read.load().columns, has_duplicates=False) == {}
    )


def test_the_topic_column_is_sent_for_several_topics(spark: "SparkSession") -> None:
    read = make_batch_input(spark, build_ordered_plan(), RECORDS)
    derived = find_derived_columns(
        read.stage, read.sources, {"t", "u"}, read.load().columns, has_duplicates=False
    )
    assert set(derived) == {"_counted", "_newest"}


def sort_rows(table: pa.Table) -> list[str]:
    names = sorted(table.column_names)
    return sorted(str(row) for row in table.select(names).to_pylist())
