"""The shipped pipelines over records of the generators, to their end: what they leave, computed another way."""

import math
import os
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.pipelines.spark.catalog_runs import BEGAN, asked, generated, left, left_of

from penstock.ingestion.sources.flights import data_file, departures
from penstock.pipelines.catalog.card_alerts import NEAR
from penstock.pipelines.catalog.hashtags import LONGEST

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_words_are_counted_in_each_window_that_slides_over_them(
    spark: "SparkSession", tmp_path: Path
) -> None:
    text = ["Der Bär sagt: Hallo, hallo!", "it's 2 o'clock", "", "HALLO again — again"]
    lines = [{"at": BEGAN + n * 1_700, "text": text[n % 4]} for n in range(120)]
    words: defaultdict[tuple[str, int], int] = defaultdict(int)
    for line in lines:
        said = "".join(letter if letter.isalnum() else " " for letter in line["text"].lower()).split()
        newest = line["at"] - line["at"] % 10_000
        for word in said:
            for start in (newest, newest - 10_000, newest - 20_000):
                words[word, start] += 1
    found = left(spark, "word_count", lines, tmp_path, "latest/word_count")
    shown = asked("SELECT word, epoch_ms(window_start), times FROM found ORDER BY ALL", found=found)
    assert shown == sorted((*place, times) for place, times in words.items())


def test_words_of_text_files_are_counted_at_the_times_of_the_files(
    spark: "SparkSession", tmp_path: Path
) -> None:
    books = tmp_path / "books"
    books.mkdir()
    for name, text, after in (("a", "to be\n\nor not to be", 5), ("b", "to\n", 65), ("c", "Bär\n", 66)):
        (books / f"{name}.txt").write_text(text, encoding="utf-8")
        os.utime(books / f"{name}.txt", (0, BEGAN / 1000 + after))
    found = left_of(spark, "word_count", books, "text", tmp_path, "latest/word_count")
    shown = asked("SELECT word, epoch_ms(window_start), times FROM found", found=found)
    said = {0: {"to": 2, "be": 2, "or": 1, "not": 1}, 60_000: {"to": 1, "bär": 1}}
    first = BEGAN - BEGAN % 10_000
    assert sorted(shown) == sorted(
        (word, first + at - back, times)
        for at, words in said.items()
        for word, times in words.items()
        for back in (0, 10_000, 20_000)
    )


def test_the_three_best_tags_stand_at_every_beginning(spark: "SparkSession", tmp_path: Path) -> None:
    tweets = generated("tweets", 1_500, per_second=20)
    found = left(spark, "hashtags", tweets, tmp_path, "latest/hashtags")
    shown = "SELECT typed, epoch_ms(window_start), suggestions FROM found ORDER BY ALL"
    expected = f"""
      WITH tagged AS (SELECT "at", unnest(hashtags) AS tag FROM sent),
      placed AS (SELECT tag, unnest(range("at" - "at" % 10000, "at" - 60000, -10000)) AS w FROM tagged),
      counts AS (SELECT tag, w, count(1) AS uses FROM placed GROUP BY ALL),
      typed AS (SELECT tag[:upto] AS typed, w, tag, uses
                FROM counts, unnest(range(1, least(len(tag), {LONGEST}) + 1)) AS each(upto))
      SELECT typed, w, list(tag ORDER BY uses DESC, tag)[:3] FROM typed GROUP BY ALL ORDER BY ALL"""
    assert asked(shown, found=found) == asked(expected, sent=tweets)


def test_visits_are_clicks_without_a_long_pause(spark: "SparkSession", tmp_path: Path) -> None:
    clicks = generated("clicks", 2_000, per_second=5)
    found = left(spark, "visits", clicks, tmp_path, "latest/visits")
    columns = "clicks, pages, came_by, left_from, steps"
    shown = f'SELECT "user", epoch_ms(window_start), epoch_ms(window_end), {columns} FROM found ORDER BY ALL'
    expected = """
      WITH paused AS (SELECT *, "at" - lag("at") OVER w > 30000 AS again FROM sent
                      WINDOW w AS (PARTITION BY "user" ORDER BY "at", nth)),
      numbered AS (SELECT *, sum(coalesce(again, false)::INT) OVER (PARTITION BY "user" ORDER BY "at", nth) AS visit
                   FROM paused)
      SELECT "user", min("at"), max("at") + 30000, count(1), count(DISTINCT page), first(page ORDER BY "at", nth),
             last(page ORDER BY "at", nth), list(action ORDER BY "at", nth)
      FROM numbered GROUP BY "user", visit ORDER BY ALL"""
    assert asked(shown, found=found) == asked(expected, sent=clicks)


def test_cards_are_watched_over_ten_minutes_without_repeats(spark: "SparkSession", tmp_path: Path) -> None:
    cards = [
        {**card, "amount": round(card["amount"] * 4) / 4} for card in generated("cards", 1_500, per_second=2)
    ]
    found = left(spark, "card_velocity", [*cards, *cards[200:400]], tmp_path, "latest/card_velocity")
    columns = "payments, spent, most, countries"
    shown = f"SELECT card, epoch_ms(window_start), {columns} FROM found ORDER BY ALL"
    expected = """
      WITH placed AS (SELECT *, unnest(range("at" - "at" % 60000, "at" - 600000, -60000)) AS w FROM sent)
      SELECT card, w, count(1), sum(amount), max(amount), count(DISTINCT country)
      FROM placed GROUP BY ALL ORDER BY ALL"""
    assert asked(shown, found=found) == asked(expected, sent=cards)


def test_cards_that_are_in_two_countries_at_once_are_told(spark: "SparkSession", tmp_path: Path) -> None:
    cards = generated("cards", 3_000, per_second=2)
    # Every seventh payment is followed by one in another country, each a little later than the one before.
    away = [
        {**card, "id": f"{card['id']}-away", "country": "XX", "at": card["at"] + n * 4_000}
        for n, card in enumerate(cards[::7])
    ]
    cards += away
    found = left(spark, "card_alerts", cards, tmp_path, "panes/card_alerts")
    seen: dict[str, tuple[str, int]] = {}
    alerts = []
    for card in cards:
        last = seen.get(card["card"])
        if last is not None and last[0] != card["country"] and abs(card["at"] - last[1]) <= NEAR:
            alerts.append((card["card"], card["id"], card["country"], last[0], abs(card["at"] - last[1])))
        if last is None or card["at"] >= last[1]:
            seen[card["card"]] = (card["country"], card["at"])
    assert alerts
    shown = "SELECT card, payment, here, there, apart_ms FROM found ORDER BY ALL"
    assert asked(shown, found=found) == sorted(alerts)


def test_delays_are_told_by_airport_and_hour(spark: "SparkSession", tmp_path: Path) -> None:
    flights = departures(data_file()).slice(0, 1_200).to_pylist()
    found = left(spark, "flight_delays", flights, tmp_path, "latest/flight_delays")
    shown = "SELECT origin, epoch_ms(window_start), flights, delay, worst, shares FROM found ORDER BY ALL"
    expected = """
      SELECT origin, planned - planned % 3600000, count(1), avg(dep_delay), max(dep_delay),
             quantile_disc(dep_delay, [0.5, 0.9]) FROM sent GROUP BY ALL ORDER BY ALL"""
    assert asked(shown, found=found) == asked(expected, sent=flights)


def test_the_last_hundred_readings_are_shown_with_every_tenth(spark: "SparkSession", tmp_path: Path) -> None:
    sensors = generated("sensors", 2_500, per_second=50)
    found = left(spark, "last_readings", sensors, tmp_path, "panes/last_readings")
    held: defaultdict[str, list[float | None]] = defaultdict(list)
    expected = []
    for reading in sensors:
        mine = held[reading["device"]]
        mine.append(reading.get("temperature"))
        if len(mine) % 10 == 0:
            last = [value for value in mine[-100:] if value is not None]
            mean = math.fsum(last) / len(last)
            expected.append((reading["device"], len(mine[-100:]), round(mean, 6), min(last), max(last)))
    columns = "readings, round(mean, 6), least, most"
    assert asked(f"SELECT device, {columns} FROM found ORDER BY ALL", found=found) == sorted(expected)


def test_a_rise_by_a_degree_ends_what_was_before_it(spark: "SparkSession", tmp_path: Path) -> None:
    sensors = generated("sensors", 1_000, per_second=50)
    found = left(spark, "temperature_rises", sensors, tmp_path, "panes/temperature_rises")
    open_: dict[str, list[float | None]] = {}
    expected = []
    for reading in sensors:
        device, now = reading["device"], reading.get("temperature")
        mine = open_.setdefault(device, [])
        known = [value for value in mine if value is not None]
        if now is not None and known and now - known[0] > 1:
            expected.append((device, len(mine), known[0]))
            mine.clear()
        mine.append(now)
    shown = "SELECT device, readings, began_at FROM found ORDER BY ALL"
    assert asked(shown, found=found) == sorted(expected)
