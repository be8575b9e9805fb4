"""What is shipped: something is expected of every topic and table, and what is shipped to be fed in meets it."""

import re
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from penstock.ingestion.contracts import list_contract_names, load_contract
from penstock.ingestion.contracts.field_types import to_spark_type
from penstock.ingestion.generators import GENERATORS, make_even_send_times
from penstock.ingestion.sources.access_log import parse_access_log_line
from penstock.ingestion.sources.flights import find_flights_file, load_departures
from penstock.pipelines import catalog
from penstock.platform.lineage.suite_metadata import describe_columns
from penstock.quality.expectations.sql_compiler import compile_unexpected
from penstock.quality.expectations.suite import Suite, load_suite

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

GALLERY = Path("pipelines/docs/gallery")
MADE = 3_000
"""Records of each generator: three of its blocks."""
NOON = 1_800_000_000_000
WRITTEN_BY = {
    sink.path: plan
    for plan in map(catalog.load_plan, catalog.pipeline_names())
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


@pytest.mark.parametrize("topic", list_contract_names())
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
    columns = describe_columns(suite, WRITTEN_BY[table])
    assert [column.name for column in columns if not column.description] == []
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
@pytest.mark.parametrize("topic", [topic for topic in list_contract_names() if topic not in NOT_FED])
def test_the_records_of_the_shipped_sources_are_as_expected(spark: "SparkSession", topic: str) -> None:
    suite, contract = load_suite(f"topics/{topic}"), load_contract(topic)
    assert suite is not None
    types = {field.name: to_spark_type(field.parsed_type).upper() for field in contract.fields}
    counts = [f"count_if({compile_unexpected(one, types)}) AS {one.name}" for one in suite.expectations]
    records = shipped(spark, topic, ", ".join(f"{name} {kind}" for name, kind in types.items()))
    assert records.count() >= 2
    (found,) = records.selectExpr(*counts).toArrow().to_pylist()
    assert found == {one.name: 0 for one in suite.expectations}


def shipped(spark: "SparkSession", topic: str, fields: str) -> "DataFrame":
    """Records that come with the platform: all flights, lines of a log, or what the topic's generator makes."""
    if topic == "flights":
        return spark.createDataFrame(load_departures(find_flights_file()))
    rows: Iterable[Any]
    if topic == "access-log":
        rows = [parse_access_log_line(line) for line in LOG.splitlines()]
        rows = [
            {**row, "at": round(row["at"].timestamp() * 1_000), "status": int(row["status"])} for row in rows
        ]
        rows = [{**row, "bytes": int(row["bytes"]) if "bytes" in row else None} for row in rows]
    else:
        made = GENERATORS[topic](7).generate_records(0, make_even_send_times(NOON, 50.0))
        rows = map(msgspec.to_builtins, islice(made, MADE))
    names = [field.split()[0] for field in fields.split(", ")]
    return spark.createDataFrame([tuple(row.get(name) for name in names) for row in rows], fields)
