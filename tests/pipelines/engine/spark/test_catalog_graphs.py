"""Bounded runs of shipped pipelines with several inputs or outputs match DuckDB."""

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
from penstock.engine.plan.sources import FileOrigin
from penstock.engine.spark.bounded_sources.file_formats import open_file_source
from penstock.engine.spark.bounded_sources.union_source import UnionSource
from penstock.pipelines import catalog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


class BoundedPipeline:
    """Runs one pipeline over files in a folder."""

    def __init__(self, spark: "SparkSession", folder: Path) -> None:
        self.spark, self.folder = spark, folder

    def run(self, name: str, sent: Mapping[str, list[Record]]) -> None:
        """Store the records of each topic in a file, and run a pipeline over all of them."""
        plan, sources, file_sources = catalog.load_plan(name), [], []
        for source in plan.sources:
            path = self.folder / f"{source.name}.json"
            path.write_text("".join(f"{json.dumps(record)}\n" for record in sent[source.name]), "utf-8")
            sources.append(replace(source, origin=FileOrigin(str(path), "json")))
            file_sources.append(open_file_source(self.spark, sources[-1], str(path), "json"))
        plan = replace(plan, sources=tuple(sources))
        config = BoundedRunConfig(self.folder / "run", self.folder / "tables")
        run_bounded(plan, self.spark, UnionSource(file_sources), config, lambda: START_MS)

    def read_rows(self, expected: ExpectedTable) -> Rows:
        """Query a table as the expectation does."""
        return expected.read_rows(
            pa.table(DeltaTable(self.folder / "tables" / expected.table).to_pyarrow_table())
        )


@pytest.fixture
def pipeline(spark: "SparkSession", tmp_path: Path) -> BoundedPipeline:
    return BoundedPipeline(spark, tmp_path)


def test_click_through_counts_clicks_within_ten_minutes_of_an_impression(pipeline: BoundedPipeline) -> None:
    impressions = generate_records("impressions", 6_000, per_second=5)
    clicks = generate_records("ad-clicks", 1_200, per_second=1)
    clicks += [
        {
            "id": f"{impression['id']}-{minutes}",
            "impression": impression["id"],
            "at": impression["at"] + minutes * 60_000,
        }
        for impression in impressions[:400:4]
        for minutes in (-2, 8, 16)
    ]
    sent = {"impressions": impressions, "ad-clicks": clicks}
    pipeline.run("click_through", sent)
    (expected,) = expect_tables("click_through", sent)
    assert pipeline.read_rows(expected) == expected.rows
    impression_ids = {each["id"] for each in impressions}
    unmatched = sum(each["impression"] in impression_ids for each in clicks) - sum(
        row[3] for row in expected.rows
    )
    assert unmatched > 220, "clicks before the impression, later ones, and some of the generator"


def test_payments_are_split_into_three_tables(pipeline: BoundedPipeline) -> None:
    cards = [
        {**each, "amount": round(each["amount"] * 4) / 4}
        for each in generate_records("cards", 2_000, per_second=10)
    ]
    pipeline.run("payments_parted", {"cards": cards})
    for expected in expect_tables("payments_parted", {"cards": cards}):
        assert expected.rows
        assert pipeline.read_rows(expected) == expected.rows


def test_one_topic_is_aggregated_by_two_keys(pipeline: BoundedPipeline) -> None:
    sensors = generate_records("sensors", 1_500, per_second=20)
    pipeline.run("device_and_site", {"sensors": sensors})
    by_device, by_site = expect_tables("device_and_site", {"sensors": sensors})
    assert pipeline.read_rows(by_device) == by_device.rows
    assert pipeline.read_rows(by_site) == by_site.rows


def test_a_union_of_three_topics_is_counted(pipeline: BoundedPipeline) -> None:
    sent = {topic: generate_records(topic, 400, per_second=4) for topic in ("clicks", "cards", "tweets")}
    pipeline.run("activity", sent)
    (expected,) = expect_tables("activity", sent)
    assert pipeline.read_rows(expected) == expected.rows


def test_card_limits_joins_each_payment_with_its_current_limit(pipeline: BoundedPipeline) -> None:
    cards, limits = (
        generate_records("cards", 2_000, per_second=10),
        generate_records("card-limits", 4_000, per_second=20),
    )
    sent = {"cards": cards, "card-limits": limits}
    pipeline.run("card_limits", sent)
    (expected,) = expect_tables("card_limits", sent)
    assert pipeline.read_rows(expected) == expected.rows
    assert 100 < sum(most is not None for _, most in expected.rows) < 2_000


def test_nexmark_answers_three_queries_in_one_pass(pipeline: BoundedPipeline) -> None:
    counts = {"persons": 40, "auctions": 120, "bids": 1_840}
    sent = {
        f"nexmark-{each}": generate_records(f"nexmark-{each}", count, per_second=count / 40)
        for each, count in counts.items()
    }
    pipeline.run("nexmark", sent)
    for expected in expect_tables("nexmark", sent):
        assert expected.rows
        assert pipeline.read_rows(expected) == expected.rows
