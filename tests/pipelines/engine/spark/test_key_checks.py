"""Checks of nothing but the key are asked of groups, and records come out as if each had been asked by itself."""

import random
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from tests.pipelines.engine.spark.test_live_stream import build_plan, make_readings
from tests.pipelines.engine.spark.test_row_checks import (
    FAR_AHEAD,
    IN_ORDER,
    WARM,
    add_checks,
    build_time_sum_plan,
    make_batch_input,
)

from penstock.engine.batch.batch_input import account_partitions, find_newest_times, select_window_partials
from penstock.engine.plan import Plan, RowCheck, TopicOrigin
from penstock.engine.spark.aggregate.key_checks import find_key_checks
from penstock.engine.spark.parse.records import parse_records
from penstock.engine.triggers.default import Default
from penstock.engine.windows.sessions import Sessions
from penstock.engine.windows.window import Window
from penstock.stream import fixed, sliding

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
NAMED = RowCheck("named", "NOT (`device` RLIKE '^d[0-9]$')", "quarantine")
EVEN = RowCheck("even", "`device` RLIKE '[02468]$'", "warn")
LATER = RowCheck("later", "`at` < 10000", "quarantine")
CHECKS = (NAMED, WARM, EVEN, LATER)
ODD: list[Any] = [
    {"device": "z", "at": 70_000, "temperature": 1.0},
    {"device": "", "at": 5, "temperature": -1.0},
    {"device": None, "at": 6, "temperature": 1.0},
    b"broken",
    None,
]


def rows(partials: pa.Table) -> list[tuple[Any, ...]]:
    """The partials of good records, in any order."""
    return sorted((tuple(row.values()) for row in select_window_partials(partials).to_pylist()), key=repr)


def set_aside(partials: pa.Table) -> Counter[tuple[str, int, str]]:
    """How many records of each partition were kept from a window, and by what."""
    found: Counter[tuple[str, int, str]] = Counter()
    for row in partials.select(["_topic", "_partition", "_fate", "_counted"]).to_pylist():
        if row["_fate"] is not None:
            found[row["_topic"], row["_partition"], row["_fate"]] += row["_counted"]
    return found


def of_two_topics(plan: Plan) -> Plan:
    """The same over a topic more, which has checks of its own."""
    (source,) = plan.sources
    other = replace(source, name="u", origin=TopicOrigin("u"), checks=(LATER, replace(NAMED, action="warn")))
    return replace(plan, sources=(source, other), stages=(replace(plan.only_stage, inputs=("t", "u")),))


@pytest.mark.parametrize("topics", [1, 2])
@pytest.mark.parametrize("window", [fixed("10 seconds"), sliding("20 seconds", "5 seconds"), Sessions(3_000)])
def test_records_come_out_as_if_each_had_been_asked(
    spark: "SparkSession", window: Window, topics: int
) -> None:
    plan = add_checks(build_plan("t", window), *CHECKS)
    records = [*make_readings(300, seed=7), *ODD]
    random.Random(3).shuffle(records)
    one = make_batch_input(spark, plan if topics == 1 else of_two_topics(plan), records)
    if topics == 2:
        both = one.raw.unionAll(one.raw.selectExpr("key", "value", "'u' AS topic", *one.raw.columns[3:]))
        one = replace(one, raw=both, ranges=(*one.ranges, replace(one.ranges[0], topic="u")))
    assert find_key_checks(parse_records(one.raw, one.sources), one.stage, one.sources)
    by_groups, by_records = (
        one.compute_partials(),
        replace(one, broken_checks=[], fetched_partials={}).compute_remote_partials(),
    )
    exact = by_records[one.stage.plan.name].fetch()
    assert rows(by_groups) == rows(exact)
    assert set_aside(by_groups) == set_aside(exact)
    assert find_newest_times(by_groups) == find_newest_times(exact)
    nobody = np.zeros(len(rows(exact)), bool)
    assert account_partitions(one.ranges, by_groups, nobody) == account_partitions(one.ranges, exact, nobody)
    told = one.count_failed_checks()
    assert {row["check"] for row in told.to_pylist()} == {check.name for check in CHECKS}
    asked = replace(
        one, broken_checks=[], fetched_partials={}, duplicates=one.read_ids()
    )  # repeats are judged one by one
    asked.compute_partials()
    assert told.equals(asked.count_failed_checks())


def test_only_checks_that_ask_for_no_other_field_are_asked_of_groups(spark: "SparkSession") -> None:
    both = RowCheck("both", "`device` = 'd1' AND `temperature` > 3", "quarantine")
    always = RowCheck("always", "1 = 2", "quarantine")
    named = RowCheck("text", "`device` = 'temperature'", "quarantine")
    one = make_batch_input(spark, add_checks(build_plan("t", fixed(10)), *CHECKS, both, always, named), [])
    found = find_key_checks(parse_records(one.raw, one.sources), one.stage, one.sources)
    assert [each.check.name for each in found] == ["named", "even", "always", "text"]
    assert [each.bit for each in found] == [0, 2, 5, 6]


def test_records_that_are_taken_one_by_one_are_asked_one_by_one(spark: "SparkSession") -> None:
    plan = add_checks(replace(IN_ORDER, stages=(replace(IN_ORDER.only_stage, trigger=Default()),)), NAMED)
    one = make_batch_input(spark, plan, [])
    assert find_key_checks(parse_records(one.raw, one.sources), one.stage, one.sources) == ()


def test_a_sum_that_fails_by_records_of_a_key_that_is_no_good_is_made_without_them(
    spark: "SparkSession",
) -> None:
    plan = add_checks(build_time_sum_plan(), NAMED)
    far = [{"device": "z", "at": FAR_AHEAD + n % 10} for n in range(40_000)]
    partials = make_batch_input(spark, plan, [*far, {"device": "d1", "at": 5}]).compute_partials()
    assert [row["total_sum"] for row in select_window_partials(partials).to_pylist()] == [5]
    assert set_aside(partials) == {("t", 0, "quarantined"): 40_000}
