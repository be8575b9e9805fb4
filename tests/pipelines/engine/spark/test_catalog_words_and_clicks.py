"""Bounded runs of shipped pipelines over words, queries, clicks and ovens match DuckDB or a plain loop."""

import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.pipelines.engine.spark.bounded_catalog import (
    START_MS,
    generate_records,
    query_duckdb,
    run_on_records,
)
from tests.pipelines.engine.spark.catalog_expectations import expect_tables

from penstock.ingestion.generators.generator import BLOCK_RECORDS
from penstock.ingestion.generators.queries import find_planted_trend

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_incremental_and_total_word_counts_match(spark: "SparkSession", tmp_path: Path) -> None:
    lines = generate_records("lines", 200, per_second=4)
    (windows,) = expect_tables("word_count_incremental", {"lines": lines})
    moving = run_on_records(spark, "word_count_incremental", lines, tmp_path / "moving", windows.table)
    assert windows.read_rows(moving) == windows.rows
    (totals,) = expect_tables("word_totals", {"lines": lines})
    assert (
        totals.read_rows(run_on_records(spark, "word_totals", lines, tmp_path / "totals", totals.table))
        == totals.rows
    )


def test_zeitgeist_finds_planted_trends_in_shuffled_queries_with_duplicates(
    spark: "SparkSession", tmp_path: Path
) -> None:
    queries = generate_records("queries", 12_000, per_second=100, seed=4)
    sent = [*queries, *queries[1_000:9_000:11]]
    random.Random(7).shuffle(sent)
    found = run_on_records(spark, "zeitgeist", sent, tmp_path, "panes/zeitgeist")
    truth = [(block, trend) for block in range(12) if (trend := find_planted_trend(4, block)) is not None]
    rows = query_duckdb(
        "SELECT query, trend, epoch_ms(window_start) FROM found ORDER BY window_start", found=found
    )
    assert [row[:2] for row in rows] == [(each.query, each.trend) for _, each in truth]
    assert all(
        0 <= at - START_MS - block * BLOCK_RECORDS * 10 <= 5_000
        for (_, _, at), (block, _) in zip(rows, truth, strict=True)
    )


def test_trending_lists_the_most_viewed_pages(spark: "SparkSession", tmp_path: Path) -> None:
    clicks = generate_records("clicks", 2_000, per_second=20)
    (expected,) = expect_tables("trending", {"clicks": clicks})
    assert (
        expected.read_rows(run_on_records(spark, "trending", clicks, tmp_path, expected.table))
        == expected.rows
    )


def test_funnel_counts_visits_by_the_last_step(spark: "SparkSession", tmp_path: Path) -> None:
    clicks = generate_records("clicks", 2_000, per_second=5)
    _, reached = expect_tables("funnel", {"clicks": clicks})
    assert reached.read_rows(run_on_records(spark, "funnel", clicks, tmp_path, reached.table)) == reached.rows


def test_batch_runs_closes_a_window_at_the_end_of_an_oven_run(spark: "SparkSession", tmp_path: Path) -> None:
    readings = generate_records("ovens", 700, per_second=20)
    (expected,) = expect_tables("batch_runs", {"ovens": readings})
    assert (
        expected.read_rows(run_on_records(spark, "batch_runs", readings, tmp_path, expected.table))
        == expected.rows
    )
