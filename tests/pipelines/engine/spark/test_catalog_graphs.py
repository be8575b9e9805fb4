"""Shipped pipelines of several inputs or outputs, from files to their end, beside DuckDB."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from tests.pipelines.engine.spark.bounded_catalog import START_MS, Record, generate_records
from tests.pipelines.engine.spark.catalog_expectations import ExpectedTable, Rows, expect_tables

from penstock.engine.history.bounded_run import run_bounded
from penstock.engine.history.bounded_run_config import BoundedRunConfig
from penstock.engine.plan import FileOrigin
from penstock.engine.spark.bounded_sources.file_formats import open_file_source
from penstock.engine.spark.bounded_sources.union_source import UnionSource
from penstock.pipelines import catalog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


class Bench:
    """Runs one pipeline over files in a folder."""

    def __init__(self, spark: "SparkSession", folder: Path) -> None:
        self.spark, self.folder = spark, folder

    def run(self, name: str, sent: Mapping[str, list[Record]]) -> None:
        """Store the records of each topic in a file, and run a pipeline over all of them."""
        plan, sources, parts = catalog.load_plan(name), [], []
        for source in plan.sources:
            path = self.folder / f"{source.name}.json"
            path.write_text("".join(f"{json.dumps(record)}\n" for record in sent[source.name]), "utf-8")
            sources.append(replace(source, origin=FileOrigin(str(path), "json")))
            parts.append(open_file_source(self.spark, sources[-1], str(path), "json"))
        plan = replace(plan, sources=tuple(sources))
        config = BoundedRunConfig(self.folder / "run", self.folder / "tables")
        run_bounded(plan, self.spark, UnionSource(parts), config, lambda: START_MS)

    def read_rows(self, expected: ExpectedTable) -> Rows:
        """Query a table as the expectation does."""
        return expected.read_rows(
            pa.table(DeltaTable(self.folder / "tables" / expected.table).to_pyarrow_table())
        )


@pytest.fixture
def bench(spark: "SparkSession", tmp_path: Path) -> Bench:
    return Bench(spark, tmp_path)


def test_clicks_count_that_came_in_the_ten_minutes_after_their_showing(bench: Bench) -> None:
    shown = generate_records("impressions", 6_000, per_second=5)
    clicked = generate_records("ad-clicks", 1_200, per_second=1)
    clicked += [
        {"id": f"{one['id']}-{minutes}", "impression": one["id"], "at": one["at"] + minutes * 60_000}
        for one in shown[:400:4]
        for minutes in (-2, 8, 16)
    ]
    sent = {"impressions": shown, "ad-clicks": clicked}
    bench.run("click_through", sent)
    (expected,) = expect_tables("click_through", sent)
    assert bench.read_rows(expected) == expected.rows
    known = {each["id"] for each in shown}
    others = sum(each["impression"] in known for each in clicked) - sum(row[3] for row in expected.rows)
    assert others > 220, "those that came before, those after a second click, and some of the generator's"


def test_payments_are_parted_into_three_tables(bench: Bench) -> None:
    cards = [
        {**each, "amount": round(each["amount"] * 4) / 4}
        for each in generate_records("cards", 2_000, per_second=10)
    ]
    bench.run("payments_parted", {"cards": cards})
    for expected in expect_tables("payments_parted", {"cards": cards}):
        assert expected.rows
        assert bench.read_rows(expected) == expected.rows


def test_one_topic_is_computed_by_two_keys(bench: Bench) -> None:
    sensors = generate_records("sensors", 1_500, per_second=20)
    bench.run("device_and_site", {"sensors": sensors})
    by_device, by_site = expect_tables("device_and_site", {"sensors": sensors})
    assert bench.read_rows(by_device) == by_device.rows
    assert bench.read_rows(by_site) == by_site.rows


def test_three_topics_are_counted_as_one(bench: Bench) -> None:
    sent = {topic: generate_records(topic, 400, per_second=4) for topic in ("clicks", "cards", "tweets")}
    bench.run("activity", sent)
    (expected,) = expect_tables("activity", sent)
    assert bench.read_rows(expected) == expected.rows


def test_a_payment_is_told_with_the_limit_that_held_when_it_was_made(bench: Bench) -> None:
    cards, limits = (
        generate_records("cards", 2_000, per_second=10),
        generate_records("card-limits", 4_000, per_second=20),
    )
    sent = {"cards": cards, "card-limits": limits}
    bench.run("card_limits", sent)
    (expected,) = expect_tables("card_limits", sent)
    assert bench.read_rows(expected) == expected.rows
    assert 100 < sum(most is not None for _, most in expected.rows) < 2_000


def test_an_auction_house_is_asked_three_questions_in_one_pass(bench: Bench) -> None:
    counts = {"persons": 40, "auctions": 120, "bids": 1_840}
    sent = {
        f"nexmark-{each}": generate_records(f"nexmark-{each}", count, per_second=count / 40)
        for each, count in counts.items()
    }
    bench.run("nexmark", sent)
    for expected in expect_tables("nexmark", sent):
        assert expected.rows
        assert bench.read_rows(expected) == expected.rows
