"""Columns that Spark does not send because they follow from others: what is fetched is as if it had sent them."""

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
from penstock.engine.plan import Plan, WatermarkStrategy
from penstock.engine.spark.aggregate.constant_columns import find_derived_columns
from penstock.engine.spark.aggregate.partials import aggregate_partials
from penstock.engine.triggers.default import Default

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
FIRST = {"_topic": "t", "_partition": 0, "_offset": 1}


def in_order(ahead: int | None = None) -> Plan:
    plan = replace(IN_ORDER, stages=(replace(IN_ORDER.only_stage, trigger=Default()),))
    source = replace(
        plan.sources[0], watermark=WatermarkStrategy(max_out_of_orderness=0, max_future_skew=ahead)
    )
    return add_checks(replace(plan, sources=(source,)), KNOWN)


@pytest.mark.parametrize(
    ("ahead", "repeats", "left_out"),
    [
        (None, 0, {"_topic", "_counted", "_newest"}),
        (None, 1, {"_topic", "_counted"}),
        (5, 0, {"_topic", "_counted"}),
    ],
    ids=["records", "with a repeat", "with a record too far ahead"],
)
def test_what_follows_from_other_columns_is_not_sent_and_is_there(
    spark: "SparkSession", ahead: int | None, repeats: int, left_out: set[str]
) -> None:
    known = pa.Table.from_pylist([FIRST][:repeats], DUPLICATES_SCHEMA)
    read = make_batch_input(spark, in_order(ahead), RECORDS).drop_duplicates(known)
    records = read.load()
    whole = aggregate_partials(records, read.stage).toArrow()
    found = read.compute_partials()
    again = read.duplicates is not None
    assert (
        set(find_derived_columns(read.stage, read.sources, {"t"}, records.columns, has_duplicates=again))
        == left_out
    )
    assert rows(found) == rows(whole)
    assert found.num_rows == len(RECORDS)


def test_of_counted_records_everything_is_sent(spark: "SparkSession") -> None:
    read = make_batch_input(spark, PLANS[0], RECORDS)
    assert (
        find_derived_columns(read.stage, read.sources, {"t"}, read.load().columns, has_duplicates=False) == {}
    )


def test_of_several_topics_each_record_says_which_it_is_of(spark: "SparkSession") -> None:
    read = make_batch_input(spark, in_order(), RECORDS)
    missing = find_derived_columns(
        read.stage, read.sources, {"t", "u"}, read.load().columns, has_duplicates=False
    )
    assert set(missing) == {"_counted", "_newest"}


def rows(table: pa.Table) -> list[str]:
    names = sorted(table.column_names)
    return sorted(str(row) for row in table.select(names).to_pylist())
