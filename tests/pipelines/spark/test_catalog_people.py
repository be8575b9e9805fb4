"""Words, queries and clicks: what the shipped pipelines leave of them, computed another way."""

import random
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.pipelines.spark.catalog_runs import BEGAN, asked, generated, left

from penstock.ingestion.generators.blocks import BLOCK
from penstock.ingestion.generators.queries import planted
from penstock.pipelines.catalog.funnel import STEPS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_words_are_counted_as_they_enter_and_leave_and_in_all(spark: "SparkSession", tmp_path: Path) -> None:
    lines = generated("lines", 200, per_second=4)
    windows: Counter[tuple[str, int]] = Counter()
    for line in lines:
        newest = line["at"] - line["at"] % 10_000
        windows.update((word, newest - back) for word in line["text"].split() for back in (0, 10_000, 20_000))
    moving = left(spark, "word_count_incremental", lines, tmp_path / "moving", "panes/word_count_incremental")
    assert asked("SELECT word, begins, times FROM found ORDER BY ALL", found=moving) == sorted(
        (*window, times) for window, times in windows.items()
    )
    totals = left(spark, "word_totals", lines, tmp_path / "totals", "panes/word_totals")
    said = Counter(word for line in lines for word in line["text"].split())
    assert asked("SELECT word, max(times) FROM found GROUP BY ALL ORDER BY ALL", found=totals) == sorted(
        said.items()
    )


def test_planted_trends_are_found_among_questions_in_disorder_and_with_repeats(
    spark: "SparkSession", tmp_path: Path
) -> None:
    asked_for = generated("queries", 12_000, per_second=100, seed=4)
    sent = [*asked_for, *asked_for[1_000:9_000:11]]
    random.Random(7).shuffle(sent)
    found = left(spark, "zeitgeist", sent, tmp_path, "panes/zeitgeist")
    truth = [(block, trend) for block in range(12) if (trend := planted(4, block)) is not None]
    shown = asked("SELECT query, trend, epoch_ms(window_start) FROM found ORDER BY window_start", found=found)
    assert [row[:2] for row in shown] == [(each.query, each.trend) for _, each in truth]
    assert all(
        0 <= at - BEGAN - block * BLOCK * 10 <= 5_000
        for (_, _, at), (block, _) in zip(shown, truth, strict=True)
    )


def test_the_pages_that_are_looked_at_most_are_told(spark: "SparkSession", tmp_path: Path) -> None:
    clicks = generated("clicks", 2_000, per_second=20)
    found = left(spark, "trending", clicks, tmp_path, "latest/trending")
    expected = """
      WITH placed AS (SELECT page, unnest(range("at" - "at" % 10000, "at" - 60000, -10000)) AS w FROM sent),
      looks AS (SELECT page, w, count(1) AS looks FROM placed GROUP BY ALL)
      SELECT w, list(page ORDER BY looks DESC, page)[:5] FROM looks GROUP BY ALL ORDER BY ALL"""
    shown = "SELECT epoch_ms(window_start), pages FROM found ORDER BY ALL"
    assert asked(shown, found=found) == asked(expected, sent=clicks)


def test_visits_are_counted_by_how_far_they_came(spark: "SparkSession", tmp_path: Path) -> None:
    clicks = generated("clicks", 2_000, per_second=5)
    found = left(spark, "funnel", clicks, tmp_path, "latest/funnel")
    expected = f"""
      WITH paused AS (SELECT *, "at" - lag("at") OVER w > 30000 AS again FROM sent
                      WINDOW w AS (PARTITION BY "user" ORDER BY "at", nth)),
      numbered AS (SELECT *, sum(coalesce(again, false)::INT) OVER (PARTITION BY "user" ORDER BY "at", nth) AS visit
                   FROM paused),
      steps AS (SELECT *, CASE action WHEN 'search' THEN 1 WHEN 'add' THEN 2 WHEN 'buy' THEN 3 ELSE 0 END AS step
                FROM numbered),
      visits AS (SELECT "user", visit, max("at") + 29999 AS over, count(1) AS clicks, max(step) AS n
                 FROM steps GROUP BY ALL)
      SELECT over - over % 60000, list_extract({list(STEPS)}, n + 1), count(1), sum(clicks)
      FROM visits GROUP BY ALL ORDER BY ALL"""
    shown = "SELECT epoch_ms(window_start), reached, visits, clicks FROM found ORDER BY ALL"
    assert asked(shown, found=found) == asked(expected, sent=clicks)


def test_a_run_of_an_oven_is_told_when_the_oven_says_that_it_is_over(
    spark: "SparkSession", tmp_path: Path
) -> None:
    readings = generated("ovens", 700, per_second=20)
    found = left(spark, "batch_runs", readings, tmp_path, "panes/batch_runs")
    expected = """
      WITH numbered AS (SELECT *, coalesce(sum((phase = 'end')::INT) OVER (PARTITION BY oven ORDER BY nth
                                  ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS run FROM sent)
      SELECT oven, run, count(1), max(temperature), round(avg(temperature), 6), last(recipe ORDER BY nth)
      FROM numbered GROUP BY ALL HAVING bool_or(phase = 'end') ORDER BY ALL"""
    columns = "readings, hottest, round(mean, 6), recipe"
    shown = f"SELECT oven, window_number, {columns} FROM found ORDER BY ALL"
    assert asked(shown, found=found) == asked(expected, sent=readings)
