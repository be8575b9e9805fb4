"""What is shipped: something is expected of every topic and table, and what is shipped to be fed in meets it."""

import re
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from penstock.ingestion.contracts import contract_names, load_contract
from penstock.ingestion.contracts.types import spark_type
from penstock.ingestion.generators import GENERATORS, evenly
from penstock.ingestion.sources.access_log import parsed
from penstock.ingestion.sources.flights import data_file, departures
from penstock.pipelines import catalog
from penstock.pipelines.tables.places import result_of
from penstock.platform.described import columns_of
from penstock.quality.expectations.compile import broken_when
from penstock.quality.expectations.suite import Suite, load_suite

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

GALLERY = Path("pipelines/docs/gallery")
MADE = 3_000
"""Records of each generator: three of its blocks."""
NOON = 1_800_000_000_000
WRITTEN_BY = {
    result_of(sink): plan
    for plan in map(catalog.load, catalog.names())
    for stage in plan.stages
    for sink in stage.sinks
}
TABLES = sorted(WRITTEN_BY)
NOT_FED = {
    "card-alerts": "the stream card_alerts publishes it; what it tells is checked in panes/card_alerts"
}
"""Topics that nothing shipped is fed into, and why."""
LOG = b"""\
::1 - - [10/Oct/2025:13:55:36 +0000] "GET /prices HTTP/1.1" 200 2326 "https://shop.example/" "curl/8"
192.0.2.7 - ada [10/Oct/2025:13:55:37 +0000] "POST /orders HTTP/1.1" 503 -
"""


@pytest.mark.parametrize("topic", contract_names())
def test_something_is_expected_of_every_topic_and_its_contract_says_whose_it_is_and_what_it_means(
    topic: str,
) -> None:
    contract, suite = load_contract(topic), load_suite(f"topics/{topic}")
    assert suite is not None, f"write quality/penstock/quality/suites/topics/{topic}.yaml"
    assert (contract.owner or "").startswith("team:")
    assert contract.doc
    assert [field.name for field in contract.fields if not field.doc] == []
    assert asked_of(suite) <= {field.name for field in contract.fields}


@pytest.mark.parametrize("table", TABLES)
def test_something_is_expected_of_every_table_and_of_columns_that_it_has(table: str) -> None:
    suite = load_suite(table)
    assert suite is not None, f"write quality/penstock/quality/suites/{table}.yaml"
    columns = columns_of(suite, WRITTEN_BY[table])
    assert [column.name for column in columns if not column.said] == []
    assert asked_of(suite) <= {column.name for column in columns}


def asked_of(suite: Suite) -> set[str]:
    """The columns that a suite speaks of."""
    one = ("column", "column_A", "column_B")
    named = {each.kwargs[key] for each in suite.expectations for key in one if key in each.kwargs}
    counted = () if suite.statistics is None else suite.statistics.distinct
    return named.union(counted, *(each.kwargs.get("column_list", ()) for each in suite.expectations))


@pytest.mark.parametrize("table", TABLES)
def test_the_tables_of_the_gallery_are_as_expected(table: str) -> None:
    """Each page was made by the pipeline, from its generators, with each expectation asked of its rows."""
    suite, page = load_suite(table), (GALLERY / f"{WRITTEN_BY[table].name}.md").read_text("utf-8")
    assert suite is not None
    told = page.partition(f"`{table}`, ")[2].partition("\n\n")[0]
    verdicts = dict(re.findall(r"`([a-z0-9_]+)`: (.+)", told))
    assert verdicts == {one.name: "met" for one in suite.expectations}


@pytest.mark.spark
@pytest.mark.parametrize("topic", [topic for topic in contract_names() if topic not in NOT_FED])
def test_the_records_of_the_shipped_sources_are_as_expected(spark: "SparkSession", topic: str) -> None:
    suite, contract = load_suite(f"topics/{topic}"), load_contract(topic)
    assert suite is not None
    types = {field.name: spark_type(field.kind).upper() for field in contract.fields}
    counts = [f"count_if({broken_when(one, types)}) AS {one.name}" for one in suite.expectations]
    records = shipped(spark, topic, ", ".join(f"{name} {kind}" for name, kind in types.items()))
    assert records.count() >= 2
    (found,) = records.selectExpr(*counts).toArrow().to_pylist()
    assert found == {one.name: 0 for one in suite.expectations}


def shipped(spark: "SparkSession", topic: str, fields: str) -> "DataFrame":
    """Records that come with the platform: all flights, lines of a log, or what the topic's generator makes."""
    if topic == "flights":
        return spark.createDataFrame(departures(data_file()))
    rows: Iterable[Any]
    if topic == "access-log":
        rows = [parsed(line) for line in LOG.splitlines()]
        rows = [
            {**row, "at": round(row["at"].timestamp() * 1_000), "status": int(row["status"])} for row in rows
        ]
        rows = [{**row, "bytes": int(row["bytes"]) if "bytes" in row else None} for row in rows]
    else:
        made = GENERATORS[topic](7).records(0, evenly(NOON, 50.0))
        rows = map(msgspec.to_builtins, islice(made, MADE))
    names = [field.split()[0] for field in fields.split(", ")]
    return spark.createDataFrame([tuple(row.get(name) for name in names) for row in rows], fields)
