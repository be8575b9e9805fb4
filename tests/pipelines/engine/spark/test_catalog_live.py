"""All shipped pipelines run live at the same time, with late records and corrections.

Their tables match a bounded run of the same records and DuckDB or a plain loop. The panes of each stage add up to
its table, and each record is accounted for.
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
IGNORES_LATE_RECORDS = ("card_travel",)
"""Functions that have already emitted the rows that a late record would change."""
DEPENDS_ON_BATCH_SIZE = ("click_through",)
"""Whether a late record corrects a pane depends on the size of its batches."""


@pytest.fixture(scope="module")
def catalog_broker(
    tmp_path_factory: pytest.TempPathFactory, kafka_jar_paths: list[Path]
) -> Iterator[LocalBroker]:
    """A broker of its own, because topics have the names that the pipelines read."""
    with LocalBroker.in_directory(tmp_path_factory.mktemp("topics"), kafka_jar_paths) as broker:
        yield broker


@pytest.fixture(scope="module")
def live_catalog(
    spark: "SparkSession", catalog_broker: LocalBroker, tmp_path_factory: pytest.TempPathFactory
) -> LiveCatalog:
    """The catalog after all records are sent and every stream is drained."""
    live_catalog = LiveCatalog(spark, catalog_broker, tmp_path_factory.mktemp("catalog"))
    live_catalog.run()
    return live_catalog


def list_counted_records(name: str) -> dict[str, list[Record]]:
    """Return the records that a pipeline counts, by topic."""
    plan = catalog.load_plan(name)
    phases = ["first", "then"] if name in IGNORES_LATE_RECORDS else ["first", "late", "then"]
    phases += [] if drops_late_records(plan) else ["lost"]
    phases += ["close"] if name == "running_avg" else []
    return {topic: list_phase_records(topic, phases) for topic in list_topics(plan)}


@pytest.mark.parametrize("name", [name for name in PIPELINES if name != "word_count_incremental"])
def test_live_and_bounded_tables_match_the_expectations(live_catalog: LiveCatalog, name: str) -> None:
    sent = list_counted_records(name)
    read_bounded = live_catalog.run_bounded(name, sent)
    for expected_table in expect_tables(name, sent):
        assert expected_table.rows
        assert expected_table.read_rows(live_catalog.table(name, expected_table.table)) == expected_table.rows
        assert expected_table.read_rows(read_bounded(expected_table.table)) == expected_table.rows


def test_word_count_incremental_adds_late_lines_to_open_windows(live_catalog: LiveCatalog) -> None:
    in_time, late = (
        list_phase_records("lines", ("first", "then", "lost")),
        list_phase_records("lines", ["late"]),
    )
    (expected_table,) = expect_tables("word_count_incremental", {"lines": in_time})
    (added,) = expect_tables("word_count_incremental", {"lines": late})
    reported_until = find_last_reported_end()
    times = Counter({(word, begins): n for word, begins, n in expected_table.rows})
    times.update({(word, begins): n for word, begins, n in added.rows if begins + WINDOW_MS > reported_until})
    expected = sorted((*address, n) for address, n in times.items())
    assert (
        expected_table.read_rows(live_catalog.table("word_count_incremental", expected_table.table))
        == expected
    )
    assert any(begins + WINDOW_MS <= reported_until for _, begins, _ in added.rows)
    assert any(begins + WINDOW_MS > reported_until for _, begins, _ in added.rows)


def find_last_reported_end() -> int:
    """Return the end of the last window before the watermarks of both partitions."""
    newest: dict[int, int] = {}
    for each in list_sent_records("lines"):
        if each.phase == "first":
            newest[each.partition] = max(newest.get(each.partition, 0), each.record["at"])
    out_of_orderness_ms = load_contract("lines").max_out_of_orderness_ms
    (end,) = {(at - out_of_orderness_ms) // SLIDE_MS * SLIDE_MS for at in newest.values()}
    return end


@pytest.mark.parametrize("name", PIPELINES)
def test_the_panes_of_each_stage_add_up_to_its_table(live_catalog: LiveCatalog, name: str) -> None:
    stages = load_plan_with_all_panes(name).stages
    panes = {stage.name: live_catalog.table(name, f"panes/{stage.name}") for stage in stages}
    for stage in stages:
        for table in (sink.table for sink in stage.sinks if isinstance(sink, LatestValues)):
            assert materialize_panes(stage, panes[stage.name]) == index_rows(
                stage, live_catalog.table(name, f"latest/{table}")
            )
    corrected = [panes[stage.name] for stage in stages if stage.accumulation == "retracting"]
    if corrected and name not in DEPENDS_ON_BATCH_SIZE:
        kinds = [row for table in corrected for row in table.select(["kind", "timing"]).to_pylist()]
        assert {"kind": "retract", "timing": "late"} in kinds, "a late record corrected a pane"


@pytest.mark.parametrize("name", PIPELINES)
def test_each_record_is_accounted_for(live_catalog: LiveCatalog, name: str) -> None:
    plan = load_plan_with_all_panes(name)
    late_addresses = {address for topic in list_topics(plan) for address in list_addresses(topic, "lost")}
    assert live_catalog.list_late_addresses(name) == (late_addresses if drops_late_records(plan) else set())
    sent = [
        len(list_phase_records(each.name, PHASES))
        for stage in plan.source_stages
        for each in plan.sources_of(stage)
    ]
    accounts = live_catalog.read_ledger(name)
    read = sum(row["read"] for row in accounts)
    assert read == sum(sent)
    fates = ("accepted", "late", "quarantined", "duplicate", "filtered")
    assert read == sum(row[end] for row in accounts for end in fates)
    duplicates = 40 if plan.sources[0].deduplication else 0
    assert sum(row["duplicate"] for row in accounts) == duplicates
    assert sum(row["quarantined"] for row in accounts) == 0


def test_each_card_alert_is_published_once(live_catalog: LiveCatalog, catalog_broker: LocalBroker) -> None:
    messages = [
        (read.partition, json.loads(read.value))
        for read in read_topic(catalog_broker.bootstrap, "card-alerts", "read_committed")
    ]
    alerts = [(partition, row) for partition, row in messages if row["kind"] == "insert"]
    columns = ("card", "payment", "country", "previous_country", "apart_ms")
    (expected_table,) = expect_tables("card_alerts", list_counted_records("card_alerts"))
    assert sorted(tuple(row[name] for name in columns) for _, row in alerts) == expected_table.rows
    batches = live_catalog.table("card_alerts", "panes/card_alerts").to_pylist()
    assert sorted((row["payment"], row["batch_id"]) for _, row in alerts) == sorted(
        (row["payment"], row["batch_id"]) for row in batches
    )
    assert len({(row["card"], partition) for partition, row in alerts}) == len(
        {row["card"] for _, row in alerts}
    )
    assert {row["kind"] for _, row in messages} == {"insert", "watermark"}
