"""Bounded runs of shipped pipelines over generated records match DuckDB or a plain loop."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.pipelines.engine.spark.bounded_catalog import (
    START_MS,
    generate_records,
    query_duckdb,
    run_on_files,
    run_on_records,
)
from tests.pipelines.engine.spark.catalog_expectations import expect_tables

from penstock.ingestion.sources.flights import find_flights_file, load_departures

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_word_count_counts_words_in_sliding_windows(spark: "SparkSession", tmp_path: Path) -> None:
    text = ["Der Bär sagt: Hallo, hallo!", "it's 2 o'clock", "", "HALLO again — again"]
    lines = [{"at": START_MS + n * 1_700, "text": text[n % 4]} for n in range(120)]
    found = run_on_records(spark, "word_count", lines, tmp_path, "latest/word_count")
    (expected,) = expect_tables("word_count", {"lines": lines})
    assert expected.read_rows(found) == expected.rows


def test_word_count_reads_text_files_at_their_modification_times(
    spark: "SparkSession", tmp_path: Path
) -> None:
    books = tmp_path / "books"
    books.mkdir()
    for name, text, after in (("a", "to be\n\nor not to be", 5), ("b", "to\n", 65), ("c", "Bär\n", 66)):
        (books / f"{name}.txt").write_text(text, encoding="utf-8")
        os.utime(books / f"{name}.txt", (0, START_MS / 1000 + after))
    found = run_on_files(spark, "word_count", books, "text", tmp_path, "latest/word_count")
    rows = query_duckdb("SELECT word, epoch_ms(window_start), times FROM found", found=found)
    counts = {0: {"to": 2, "be": 2, "or": 1, "not": 1}, 60_000: {"to": 1, "bär": 1}}
    first = START_MS - START_MS % 10_000
    assert sorted(rows) == sorted(
        (word, first + at - shift, times)
        for at, words in counts.items()
        for word, times in words.items()
        for shift in (0, 10_000, 20_000)
    )


def test_hashtags_suggests_the_top_three_tags_per_prefix(spark: "SparkSession", tmp_path: Path) -> None:
    tweets = generate_records("tweets", 1_500, per_second=20)
    found = run_on_records(spark, "hashtags", tweets, tmp_path, "latest/hashtags")
    _, best = expect_tables("hashtags", {"tweets": tweets})
    assert best.read_rows(found) == best.rows


def test_visits_are_sessions_of_clicks(spark: "SparkSession", tmp_path: Path) -> None:
    clicks = generate_records("clicks", 2_000, per_second=5)
    (expected,) = expect_tables("visits", {"clicks": clicks})
    assert (
        expected.read_rows(run_on_records(spark, "visits", clicks, tmp_path, expected.table)) == expected.rows
    )


def test_card_velocity_counts_each_payment_once_in_ten_minutes(spark: "SparkSession", tmp_path: Path) -> None:
    cards = [
        {**card, "amount": round(card["amount"] * 4) / 4}
        for card in generate_records("cards", 1_500, per_second=2)
    ]
    (expected,) = expect_tables("card_velocity", {"cards": cards})
    found = run_on_records(spark, "card_velocity", [*cards, *cards[200:400]], tmp_path, expected.table)
    assert expected.read_rows(found) == expected.rows


def test_card_alerts_reports_cards_in_two_countries(spark: "SparkSession", tmp_path: Path) -> None:
    cards = generate_records("cards", 3_000, per_second=2)
    # Every seventh payment is followed by one in another country, at growing distances.
    away = [
        {**card, "id": f"{card['id']}-away", "country": "XX", "at": card["at"] + n * 4_000}
        for n, card in enumerate(cards[::7])
    ]
    cards += away
    (expected,) = expect_tables("card_alerts", {"cards": cards})
    assert expected.rows
    assert (
        expected.read_rows(run_on_records(spark, "card_alerts", cards, tmp_path, expected.table))
        == expected.rows
    )


def test_flight_delays_are_computed_per_airport_and_hour(spark: "SparkSession", tmp_path: Path) -> None:
    flights = load_departures(find_flights_file()).slice(0, 1_200).to_pylist()
    (expected,) = expect_tables("flight_delays", {"flights": flights})
    assert (
        expected.read_rows(run_on_records(spark, "flight_delays", flights, tmp_path, expected.table))
        == expected.rows
    )


def test_last_readings_shows_the_last_hundred_at_every_tenth(spark: "SparkSession", tmp_path: Path) -> None:
    sensors = generate_records("sensors", 2_500, per_second=50)
    (expected,) = expect_tables("last_readings", {"sensors": sensors})
    assert (
        expected.read_rows(run_on_records(spark, "last_readings", sensors, tmp_path, expected.table))
        == expected.rows
    )


def test_temperature_rises_closes_a_window_at_a_rise_of_one_degree(
    spark: "SparkSession", tmp_path: Path
) -> None:
    sensors = generate_records("sensors", 1_000, per_second=50)
    (expected,) = expect_tables("temperature_rises", {"sensors": sensors})
    assert (
        expected.read_rows(run_on_records(spark, "temperature_rises", sensors, tmp_path, expected.table))
        == expected.rows
    )
