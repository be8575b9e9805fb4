"""Every shipped pipeline live, all beside each other: late records, corrections, and what is left at the end.

What is left is compared with what a bounded run says of the same records, and with DuckDB or a plain loop; the
panes of each stage must add up to it, and each record is accounted for.
"""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.ingestion.topic_reading import read_topic
from tests.pipelines.engine.spark.bounded_catalog import Record
from tests.pipelines.engine.spark.catalog_expectations import expect_tables
from tests.pipelines.engine.spark.live_catalog import (
    PIPELINES,
    LiveCatalog,
    drops_late_records,
    list_addresses,
    list_topics,
    load_plan_with_all_panes,
)
from tests.pipelines.engine.spark.live_catalog_inputs import list_phase_records, list_sent_records
from tests.pipelines.engine.spark.materialized_panes import index_rows, materialize_panes

from penstock.engine.sinks.latest_values import LatestValues
from penstock.infra.local_broker import LocalBroker
from penstock.ingestion.contracts import load_contract
from penstock.pipelines import catalog
from penstock.pipelines.catalog.word_count_incremental import SLIDE_MS, SLIDES_PER_WINDOW

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.kafka]
PHASES = ("first", "late", "then", "close", "lost")
WINDOW_MS = SLIDES_PER_WINDOW * SLIDE_MS
BY_THE_WATERMARK = ("card_travel",)
"""Functions that have told already, when something late comes, what it would have changed."""
BY_THE_CUT = ("click_through",)
"""Whether what comes late finds something shown already depends on how its batches are cut."""


@pytest.fixture(scope="module")
def topics(tmp_path_factory: pytest.TempPathFactory, kafka_jar_paths: list[Path]) -> Iterator[LocalBroker]:
    """A broker whose topics have the names that the pipelines read."""
    with LocalBroker.in_directory(tmp_path_factory.mktemp("topics"), kafka_jar_paths) as running:
        yield running


@pytest.fixture(scope="module")
def found(
    spark: "SparkSession", topics: LocalBroker, tmp_path_factory: pytest.TempPathFactory
) -> LiveCatalog:
    """The catalog, after all was sent and every stream was drained."""
    ran = LiveCatalog(spark, topics, tmp_path_factory.mktemp("catalog"))
    ran.run()
    return ran


def sent_to(name: str) -> dict[str, list[Record]]:
    """The records that a pipeline is to count, by topic."""
    plan = catalog.load_plan(name)
    phases = ["first", "then"] if name in BY_THE_WATERMARK else ["first", "late", "then"]
    phases += [] if drops_late_records(plan) else ["lost"]
    phases += ["close"] if name == "running_avg" else []
    return {topic: list_phase_records(topic, phases) for topic in list_topics(plan)}


@pytest.mark.parametrize("name", [name for name in PIPELINES if name != "word_count_incremental"])
def test_what_is_left_is_what_another_way_of_computing_says(found: LiveCatalog, name: str) -> None:
    sent = sent_to(name)
    run_to_the_end = found.run_bounded(name, sent)
    for expected_table in expect_tables(name, sent):
        assert expected_table.rows
        assert expected_table.read_rows(found.table(name, expected_table.table)) == expected_table.rows
        assert expected_table.read_rows(run_to_the_end(expected_table.table)) == expected_table.rows


def test_moving_counts_have_late_lines_in_the_windows_that_were_still_to_come(found: LiveCatalog) -> None:
    in_time, late = (
        list_phase_records("lines", ("first", "then", "lost")),
        list_phase_records("lines", ["late"]),
    )
    (expected_table,) = expect_tables("word_count_incremental", {"lines": in_time})
    (added,) = expect_tables("word_count_incremental", {"lines": late})
    told_until = told_when_late_lines_came()
    times = Counter({(word, begins): n for word, begins, n in expected_table.rows})
    times.update({(word, begins): n for word, begins, n in added.rows if begins + WINDOW_MS > told_until})
    expected = sorted((*place, n) for place, n in times.items())
    assert expected_table.read_rows(found.table("word_count_incremental", expected_table.table)) == expected
    assert any(begins + WINDOW_MS <= told_until for _, begins, _ in added.rows)
    assert any(begins + WINDOW_MS > told_until for _, begins, _ in added.rows)


def told_when_late_lines_came() -> int:
    """The end of the last window that was told: both partitions' watermarks lie between it and the next."""
    newest: dict[int, int] = {}
    for each in list_sent_records("lines"):
        if each.phase == "first":
            newest[each.partition] = max(newest.get(each.partition, 0), each.record["at"])
    bound = load_contract("lines").max_out_of_orderness_ms
    (end,) = {(at - bound) // SLIDE_MS * SLIDE_MS for at in newest.values()}
    return end


@pytest.mark.parametrize("name", PIPELINES)
def test_the_panes_of_each_stage_add_up_to_what_is_left(found: LiveCatalog, name: str) -> None:
    stages = load_plan_with_all_panes(name).stages
    panes = {stage.name: found.table(name, f"panes/{stage.name}") for stage in stages}
    for stage in stages:
        for table in (sink.table for sink in stage.sinks if isinstance(sink, LatestValues)):
            assert materialize_panes(stage, panes[stage.name]) == index_rows(
                stage, found.table(name, f"latest/{table}")
            )
    corrected = [panes[stage.name] for stage in stages if stage.accumulation == "retracting"]
    if corrected and name not in BY_THE_CUT:
        said = [row for table in corrected for row in table.select(["kind", "timing"]).to_pylist()]
        assert {"kind": "retract", "timing": "late"} in said, "what came late corrected something"


@pytest.mark.parametrize("name", PIPELINES)
def test_each_record_is_accounted_for(found: LiveCatalog, name: str) -> None:
    plan = load_plan_with_all_panes(name)
    refused = {place for topic in list_topics(plan) for place in list_addresses(topic, "lost")}
    assert found.list_late_addresses(name) == (refused if drops_late_records(plan) else set())
    sent = [
        len(list_phase_records(each.name, PHASES))
        for stage in plan.source_stages
        for each in plan.sources_of(stage)
    ]
    accounts = found.read_ledger(name)
    read = sum(row["read"] for row in accounts)
    assert read == sum(sent)
    ends = ("folded", "late", "quarantined", "duplicate", "filtered")
    assert read == sum(row[end] for row in accounts for end in ends)
    repeats = 40 if plan.sources[0].deduplication else 0
    assert sum(row["duplicate"] for row in accounts) == repeats
    assert sum(row["quarantined"] for row in accounts) == 0


def test_each_alert_about_a_card_is_in_its_topic_once(found: LiveCatalog, topics: LocalBroker) -> None:
    told = [
        (read.partition, json.loads(read.value))
        for read in read_topic(topics.bootstrap, "card-alerts", "read_committed")
    ]
    alerts = [(partition, row) for partition, row in told if row["kind"] == "insert"]
    columns = ("card", "payment", "country", "previous_country", "apart_ms")
    (expected_table,) = expect_tables("card_alerts", sent_to("card_alerts"))
    assert sorted(tuple(row[name] for name in columns) for _, row in alerts) == expected_table.rows
    batches = found.table("card_alerts", "panes/card_alerts").to_pylist()
    assert sorted((row["payment"], row["batch_id"]) for _, row in alerts) == sorted(
        (row["payment"], row["batch_id"]) for row in batches
    )
    assert len({(row["card"], partition) for partition, row in alerts}) == len(
        {row["card"] for _, row in alerts}
    )
    assert {row["kind"] for _, row in told} == {"insert", "watermark"}
