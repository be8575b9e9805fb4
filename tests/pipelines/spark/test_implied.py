"""Columns that Spark does not send because they follow from others: what is fetched is as if it had sent them."""

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from tests.pipelines.spark.test_checks import IN_ORDER, KNOWN, PLANS, RECORDS, checked, reading

from penstock.pipelines.plan import Plan, WatermarkRule
from penstock.pipelines.plan.triggers import Default
from penstock.pipelines.repeats.ids import REPEATS
from penstock.pipelines.spark.implied import implied
from penstock.pipelines.spark.partials import partials

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
FIRST = {"_topic": "t", "_partition": 0, "_offset": 1}


def in_order(ahead: int | None = None) -> Plan:
    plan = replace(IN_ORDER, stages=(replace(IN_ORDER.stage, trigger=Default()),))
    source = replace(plan.sources[0], watermark=WatermarkRule(bound=0, max_ahead=ahead))
    return checked(replace(plan, sources=(source,)), KNOWN)


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
    known = pa.Table.from_pylist([FIRST][:repeats], REPEATS)
    read = reading(spark, in_order(ahead), RECORDS).without(known)
    records = read._records()
    whole = partials(records, read.stage).toArrow()
    found = read.partials()
    again = read.repeats is not None
    assert set(implied(read.stage, read.sources, {"t"}, records.columns, repeats=again)) == left_out
    assert rows(found) == rows(whole)
    assert found.num_rows == len(RECORDS)


def test_of_counted_records_everything_is_sent(spark: "SparkSession") -> None:
    read = reading(spark, PLANS[0], RECORDS)
    assert implied(read.stage, read.sources, {"t"}, read._records().columns, repeats=False) == {}


def test_of_several_topics_each_record_says_which_it_is_of(spark: "SparkSession") -> None:
    read = reading(spark, in_order(), RECORDS)
    missing = implied(read.stage, read.sources, {"t", "u"}, read._records().columns, repeats=False)
    assert set(missing) == {"_counted", "_newest"}


def rows(table: pa.Table) -> list[str]:
    names = sorted(table.column_names)
    return sorted(str(row) for row in table.select(names).to_pylist())
