"""Checks that use only the key run once per group, with the result of a check per record."""

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
from penstock.engine.plan.sources import RowCheck, TopicOrigin
from penstock.engine.plan.stages import Plan
from penstock.engine.spark.aggregate.key_checks import find_key_checks
from penstock.engine.spark.parse.records import parse_records
from penstock.engine.triggers.default import Default
from penstock.engine.windows.sessions import Sessions
from penstock.engine.windows.window import Window
from penstock.stream import fixed, sliding

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
VALID_NAME = RowCheck("named", "NOT (`device` RLIKE '^d[0-9]$')", "quarantine")
EVEN_NAME = RowCheck("even", "`device` RLIKE '[02468]$'", "warn")
LATE_ENOUGH = RowCheck("later", "`at` < 10000", "quarantine")
CHECKS = (VALID_NAME, WARM, EVEN_NAME, LATE_ENOUGH)
UNUSUAL_RECORDS: list[Any] = [
    {"device": "z", "at": 70_000, "temperature": 1.0},
    {"device": "", "at": 5, "temperature": -1.0},
    {"device": None, "at": 6, "temperature": 1.0},
    b"broken",
    None,
]


def sort_window_partials(partials: pa.Table) -> list[tuple[Any, ...]]:
    """Return the partials of valid records, sorted."""
    return sorted((tuple(row.values()) for row in select_window_partials(partials).to_pylist()), key=repr)


def count_fates(partials: pa.Table) -> Counter[tuple[str, int, str]]:
    """Count the records per partition and fate that are in no window."""
    found: Counter[tuple[str, int, str]] = Counter()
    for row in partials.select(["_topic", "_partition", "_fate", "_counted"]).to_pylist():
        if row["_fate"] is not None:
            found[row["_topic"], row["_partition"], row["_fate"]] += row["_counted"]
    return found


def add_topic(plan: Plan) -> Plan:
    """Add a second topic with other checks to a plan."""
    (source,) = plan.sources
    other = replace(
        source, name="u", origin=TopicOrigin("u"), checks=(LATE_ENOUGH, replace(VALID_NAME, action="warn"))
    )
    return replace(plan, sources=(source, other), stages=(replace(plan.only_stage, inputs=("t", "u")),))


@pytest.mark.parametrize("topics", [1, 2])
@pytest.mark.parametrize("window", [fixed("10 seconds"), sliding("20 seconds", "5 seconds"), Sessions(3_000)])
def test_checks_of_groups_match_checks_of_records(spark: "SparkSession", window: Window, topics: int) -> None:
    plan = add_checks(build_plan("t", window), *CHECKS)
    records = [*make_readings(300, seed=7), *UNUSUAL_RECORDS]
    random.Random(3).shuffle(records)
    batch_input = make_batch_input(spark, plan if topics == 1 else add_topic(plan), records)
    if topics == 2:
        both = batch_input.raw.unionAll(
            batch_input.raw.selectExpr("key", "value", "'u' AS topic", *batch_input.raw.columns[3:])
        )
        batch_input = replace(
            batch_input, raw=both, ranges=(*batch_input.ranges, replace(batch_input.ranges[0], topic="u"))
        )
    assert find_key_checks(
        parse_records(batch_input.raw, batch_input.sources), batch_input.stage, batch_input.sources
    )
    by_groups, by_records = (
        batch_input.compute_partials(),
        replace(batch_input, broken_checks=[], fetched_partials={}).compute_remote_partials(),
    )
    one_by_one = by_records[batch_input.stage.plan.name].fetch()
    assert sort_window_partials(by_groups) == sort_window_partials(one_by_one)
    assert count_fates(by_groups) == count_fates(one_by_one)
    assert find_newest_times(by_groups) == find_newest_times(one_by_one)
    no_late_groups = np.zeros(len(sort_window_partials(one_by_one)), bool)
    assert account_partitions(batch_input.ranges, by_groups, no_late_groups) == account_partitions(
        batch_input.ranges, one_by_one, no_late_groups
    )
    failed_checks = batch_input.count_failed_checks()
    assert {row["check"] for row in failed_checks.to_pylist()} == {check.name for check in CHECKS}
    with_duplicates = replace(
        batch_input, broken_checks=[], fetched_partials={}, duplicates=batch_input.read_ids()
    )  # duplicates are checked one by one
    with_duplicates.compute_partials()
    assert failed_checks.equals(with_duplicates.count_failed_checks())


def test_only_checks_of_the_key_run_per_group(spark: "SparkSession") -> None:
    both = RowCheck("both", "`device` = 'd1' AND `temperature` > 3", "quarantine")
    always = RowCheck("always", "1 = 2", "quarantine")
    named = RowCheck("text", "`device` = 'temperature'", "quarantine")
    batch_input = make_batch_input(
        spark, add_checks(build_plan("t", fixed(10)), *CHECKS, both, always, named), []
    )
    found = find_key_checks(
        parse_records(batch_input.raw, batch_input.sources), batch_input.stage, batch_input.sources
    )
    assert [each.check.name for each in found] == ["named", "even", "always", "text"]
    assert [each.bit for each in found] == [0, 2, 5, 6]


def test_order_windows_have_no_key_checks(spark: "SparkSession") -> None:
    plan = add_checks(
        replace(IN_ORDER, stages=(replace(IN_ORDER.only_stage, trigger=Default()),)), VALID_NAME
    )
    batch_input = make_batch_input(spark, plan, [])
    assert (
        find_key_checks(
            parse_records(batch_input.raw, batch_input.sources), batch_input.stage, batch_input.sources
        )
        == ()
    )


def test_quarantined_keys_do_not_overflow_a_sum(
    spark: "SparkSession",
) -> None:
    plan = add_checks(build_time_sum_plan(), VALID_NAME)
    far_ahead = [{"device": "z", "at": FAR_AHEAD + n % 10} for n in range(40_000)]
    partials = make_batch_input(spark, plan, [*far_ahead, {"device": "d1", "at": 5}]).compute_partials()
    assert [row["total_sum"] for row in select_window_partials(partials).to_pylist()] == [5]
    assert count_fates(partials) == {("t", 0, "quarantined"): 40_000}
