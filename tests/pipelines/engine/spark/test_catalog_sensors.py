"""Bounded runs of sensor_minute, running_avg and card_travel match DuckDB or a plain loop."""

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.pipelines.catalog.test_card_travel import find_impossible_travel, generate_payments
from tests.pipelines.engine.spark.bounded_catalog import generate_records, query_duckdb, run_on_records

from penstock.pipelines import catalog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RUN_CALL = re.compile(r'\b(?:run_on_records|run_on_files)\(\s*spark, "(\w+)"|\bpipeline\.run\(\s*"(\w+)"')


@pytest.mark.spark
def test_sensor_minute_has_the_mean_per_device_and_minute(spark: "SparkSession", tmp_path: Path) -> None:
    sensors = generate_records("sensors", 1_500, per_second=5)
    found = run_on_records(spark, "sensor_minute", sensors, tmp_path, "latest/sensor_minute")
    query = "SELECT device, epoch_ms(window_start), round(temperature, 6), readings FROM found ORDER BY ALL"
    expected = """
      SELECT device, "at" - "at" % 60000, round(avg(temperature), 6), count(1)
      FROM sent GROUP BY ALL ORDER BY ALL"""
    assert query_duckdb(query, found=found) == query_duckdb(expected, sent=sensors)


@pytest.mark.spark
def test_running_avg_has_one_mean_per_key(spark: "SparkSession", tmp_path: Path) -> None:
    numbers = generate_records("avg", 600, per_second=5)
    found = run_on_records(spark, "running_avg", numbers, tmp_path, "latest/running_avg")
    query = 'SELECT "key", round(mean, 6), "values" FROM found ORDER BY ALL'
    expected = 'SELECT "key", round(avg("value"), 6), count(1) FROM sent GROUP BY ALL ORDER BY ALL'
    assert query_duckdb(query, found=found) == query_duckdb(expected, sent=numbers)


@pytest.mark.spark
def test_card_travel_reports_fast_travel_in_event_time_order(spark: "SparkSession", tmp_path: Path) -> None:
    cards = generate_payments()
    found = run_on_records(spark, "card_travel", cards[::-1], tmp_path, "panes/card_travel")
    expected = find_impossible_travel(cards)
    assert (
        query_duckdb("SELECT card, payment, previous_payment FROM found ORDER BY ALL", found=found)
        == expected
    )
    assert len(expected) > 100


def test_every_shipped_pipeline_has_a_bounded_run() -> None:
    files = Path(__file__).parent.glob("test_catalog*.py")
    tested = {
        name
        for file in files
        for names in RUN_CALL.findall(file.read_text("utf-8"))
        for name in names
        if name
    }
    assert tested >= set(catalog.pipeline_names())
