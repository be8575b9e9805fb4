"""Shipped pipelines of several inputs or outputs, from files to their end, beside DuckDB."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from tests.pipelines.spark.catalog_runs import BEGAN, Record, asked, generated

from penstock.pipelines import catalog
from penstock.pipelines.plan import Files
from penstock.pipelines.spark.bounded import BoundedConfig, run_bounded
from penstock.pipelines.spark.stored.formats import stored_files
from penstock.pipelines.spark.stored.together import StoredTogether

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


class Bench:
    """A session and a folder for one pipeline."""

    def __init__(self, spark: "SparkSession", folder: Path) -> None:
        self.spark, self.folder = spark, folder

    def run(self, name: str, sent: Mapping[str, list[Record]]) -> None:
        """Store the records of each topic in a file, and run a pipeline over all of them."""
        plan, sources, parts = catalog.load(name), [], []
        for source in plan.sources:
            path = self.folder / f"{source.name}.json"
            path.write_text("".join(f"{json.dumps(record)}\n" for record in sent[source.name]), "utf-8")
            sources.append(replace(source, origin=Files(str(path), "json")))
            parts.append(stored_files(self.spark, sources[-1], str(path), "json"))
        plan = replace(plan, sources=tuple(sources))
        config = BoundedConfig(self.folder / "run", self.folder / "tables")
        run_bounded(plan, self.spark, StoredTogether(parts), config, lambda: BEGAN)

    def table(self, name: str, folder: str = "latest") -> pa.Table:
        return pa.table(DeltaTable(self.folder / "tables" / folder / name).to_pyarrow_table())


@pytest.fixture
def bench(spark: "SparkSession", tmp_path: Path) -> Bench:
    return Bench(spark, tmp_path)


def test_clicks_count_that_came_in_the_ten_minutes_after_their_showing(bench: Bench) -> None:
    shown = generated("impressions", 6_000, per_second=5)
    clicked = generated("ad-clicks", 1_200, per_second=1)
    clicked += [
        {"id": f"{one['id']}-{minutes}", "impression": one["id"], "at": one["at"] + minutes * 60_000}
        for one in shown[:400:4]
        for minutes in (-2, 8, 16)
    ]
    bench.run("click_through", {"impressions": shown, "ad-clicks": clicked})
    expected = """
      WITH events AS (
        SELECT id AS showing, "at" AS t, ad FROM shown UNION ALL SELECT impression, "at", NULL FROM clicked),
      apart AS (
        SELECT *, t - lag(t) OVER of_one > 600000 AS begins FROM events
        WINDOW of_one AS (PARTITION BY showing ORDER BY t)),
      numbered AS (
        SELECT *, sum(coalesce(begins, false)::INT) OVER of_one AS session FROM apart
        WINDOW of_one AS (PARTITION BY showing ORDER BY t RANGE UNBOUNDED PRECEDING)),
      sessions AS (
        SELECT any_value(ad) AS ad, max(t) + 599999 AS over, min(t) FILTER (ad IS NOT NULL) AS shown,
          coalesce(list(t) FILTER (ad IS NULL), []) AS clicks FROM numbered GROUP BY showing, session)
      SELECT ad, over - over % 600000, count(1),
        sum(len([c FOR c IN clicks IF c BETWEEN shown AND shown + 600000]))
      FROM sessions WHERE shown IS NOT NULL GROUP BY ALL ORDER BY ALL"""
    told = "SELECT ad, epoch_ms(window_start), showings, clicks FROM found ORDER BY ALL"
    rows = asked(told, found=bench.table("click_through"))
    assert rows == asked(expected, shown=shown, clicked=clicked)
    known = {each["id"] for each in shown}
    others = sum(each["impression"] in known for each in clicked) - sum(row[3] for row in rows)
    assert others > 220, "those that came before, those after a second click, and some of the generator's"


def test_payments_are_parted_into_three_tables(bench: Bench) -> None:
    cards = [
        {**each, "amount": round(each["amount"] * 4) / 4} for each in generated("cards", 2_000, per_second=10)
    ]
    bench.run("payments_parted", {"cards": cards})
    placed = """SELECT {key}, "at" - "at" % {size} AS w, count(1), {of}(amount)
                FROM sent WHERE {where} GROUP BY ALL ORDER BY ALL"""
    for table, key, size, of, column, where in (
        ("payments_parted", "card", 60_000, "max", "most", "amount > 200"),
        ("payments_online", "merchant", 60_000, "sum", "spent", "amount <= 200 AND online"),
        ("payments_by_country", "country", 300_000, "sum", "spent", "amount <= 200 AND NOT online"),
    ):
        expected = asked(placed.format(key=key, size=size, of=of, where=where), sent=cards)
        told = f"SELECT {key}, epoch_ms(window_start), payments, {column} FROM found ORDER BY ALL"
        assert asked(told, found=bench.table(table)) == expected
        assert expected


def test_one_topic_is_computed_by_two_keys(bench: Bench) -> None:
    sensors = generated("sensors", 1_500, per_second=20)
    bench.run("device_and_site", {"sensors": sensors})
    by_device = """SELECT device, "at" - "at" % 60000, round(avg(temperature), 6), count(1)
                   FROM sent GROUP BY ALL ORDER BY ALL"""
    told = "SELECT device, epoch_ms(window_start), round(temperature, 6), readings FROM found ORDER BY ALL"
    assert asked(told, found=bench.table("device_and_site")) == asked(by_device, sent=sensors)
    by_site = """SELECT site, "at" - "at" % 120000, max(temperature), count(1)
                 FROM sent GROUP BY ALL ORDER BY ALL"""
    told = "SELECT site, epoch_ms(window_start), warmest, readings FROM found ORDER BY ALL"
    assert asked(told, found=bench.table("site_minutes")) == asked(by_site, sent=sensors)


def test_three_topics_are_counted_as_one(bench: Bench) -> None:
    sent = {topic: generated(topic, 400, per_second=4) for topic in ("clicks", "cards", "tweets")}
    bench.run("activity", sent)
    words = {"clicks": "click", "cards": "payment", "tweets": "message"}
    everything = [
        {"what": words[topic], "at": each["at"]} for topic, records in sent.items() for each in records
    ]
    expected = """SELECT what, "at" - "at" % 60000, count(1) FROM sent GROUP BY ALL ORDER BY ALL"""
    told = "SELECT what, epoch_ms(window_start), happened FROM found ORDER BY ALL"
    assert asked(told, found=bench.table("activity")) == asked(expected, sent=everything)


def test_a_payment_is_told_with_the_limit_that_held_when_it_was_made(bench: Bench) -> None:
    cards, limits = generated("cards", 2_000, per_second=10), generated("card-limits", 4_000, per_second=20)
    bench.run("card_limits", {"cards": cards, "card-limits": limits})
    expected = """
      WITH told AS (SELECT card, "at", arg_max(most, nth) AS most FROM limits GROUP BY ALL)
      SELECT cards.id, told.most FROM cards ASOF LEFT JOIN told
      ON cards.card = told.card AND cards."at" >= told."at" ORDER BY ALL"""
    rows = asked("SELECT payment, most FROM found ORDER BY ALL", found=bench.table("card_limits", "panes"))
    assert rows == asked(expected, cards=cards, limits=limits)
    assert 100 < sum(most is not None for _, most in rows) < 2_000


def test_an_auction_house_is_asked_three_questions_in_one_pass(bench: Bench) -> None:
    counts = {"persons": 40, "auctions": 120, "bids": 1_840}
    sent = {
        f"nexmark-{each}": generated(f"nexmark-{each}", count, per_second=count / 40)
        for each, count in counts.items()
    }
    bench.run("nexmark", sent)
    tables = {each: sent[f"nexmark-{each}"] for each in counts}
    hottest = """
      WITH placed AS (SELECT auction, unnest(range("at" - "at" % 2000, "at" - 10000, -2000)) AS w FROM bids),
      counted AS (SELECT auction, w, count(1) AS n FROM placed GROUP BY ALL)
      SELECT w, list(auction ORDER BY n DESC, auction)[:3] FROM counted GROUP BY ALL ORDER BY ALL"""
    told = "SELECT epoch_ms(window_start), auctions FROM found ORDER BY ALL"
    assert asked(told, found=bench.table("nexmark")) == asked(hottest, **tables)
    highest = (
        'SELECT "at" - "at" % 10000, max(price), [arg_max(auction, price)] FROM bids GROUP BY 1 ORDER BY 1'
    )
    told = "SELECT epoch_ms(window_start), price, auction FROM found ORDER BY 1"
    assert asked(told, found=bench.table("highest_bids")) == asked(highest, **tables)
    newcomers = """
      SELECT DISTINCT persons.id, city, persons.at - persons.at % 10000 FROM persons
      JOIN auctions ON seller = persons.id AND auctions.at - auctions.at % 10000 = persons.at - persons.at % 10000
      ORDER BY ALL"""
    told = "SELECT person, city, epoch_ms(window_start) FROM found ORDER BY ALL"
    assert asked(told, found=bench.table("selling_newcomers", "panes")) == asked(newcomers, **tables)
