"""The shipped suites: every topic and table has one, and the shipped sources meet them."""

import re
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from penstock.ingestion.contracts import list_contract_names, load_contract
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
GENERATED_COUNT = 3_000
"""Records of each generator: three of its blocks."""
NOON = 1_800_000_000_000
WRITTEN_BY = {
    sink.path: plan
    for plan in map(catalog.load_plan, catalog.pipeline_names())
    for stage in plan.stages
    for sink in stage.sinks
}
TABLES = sorted(WRITTEN_BY)
WITHOUT_SOURCE = {
    "card-alerts": "the stream card_alerts publishes it; its rows are checked in panes/card_alerts"
}
"""Topics without a shipped source, and why."""
LOG = b"""\
::1 - - [10/Oct/2025:13:55:36 +0000] "GET /prices HTTP/1.1" 200 2326 "https://shop.example/" "curl/8"
192.0.2.7 - ada [10/Oct/2025:13:55:37 +0000] "POST /orders HTTP/1.1" 503 -
"""


@pytest.mark.parametrize("topic", list_contract_names())
def test_every_topic_has_a_suite_an_owner_and_documented_fields(
    topic: str,
) -> None:
    contract, suite = load_contract(topic), load_suite(f"topics/{topic}")
    assert suite is not None, f"write quality/penstock/quality/suites/topics/{topic}.yaml"
    assert (contract.owner or "").startswith("team:")
    assert contract.doc
    assert [field.name for field in contract.fields if not field.doc] == []
    assert list_named_columns(suite) <= {field.name for field in contract.fields}


@pytest.mark.parametrize("table", TABLES)
def test_every_table_has_a_suite_of_existing_columns(table: str) -> None:
    suite = load_suite(table)
    assert suite is not None, f"write quality/penstock/quality/suites/{table}.yaml"
    columns = describe_columns(suite, WRITTEN_BY[table])
    assert [column.name for column in columns if not column.description] == []
    assert list_named_columns(suite) <= {column.name for column in columns}


def list_named_columns(suite: Suite) -> set[str]:
    """Return the columns that a suite names."""
    argument_names = ("column", "column_A", "column_B")
    columns = {
        expectation.kwargs[key]
        for expectation in suite.expectations
        for key in argument_names
        if key in expectation.kwargs
    }
    counted = () if suite.statistics is None else suite.statistics.distinct
    return columns.union(
        counted, *(expectation.kwargs.get("column_list", ()) for expectation in suite.expectations)
    )


@pytest.mark.parametrize("table", TABLES)
def test_the_gallery_pages_show_passed_expectations(table: str) -> None:
    """Each page shows the verdicts on the rows that the pipeline wrote."""
    suite, page = load_suite(table), (GALLERY / f"{WRITTEN_BY[table].name}.md").read_text("utf-8")
    assert suite is not None
    section = page.partition(f"`{table}`, ")[2].partition("\n\n")[0]
    verdicts = dict(re.findall(r"`([a-z0-9_]+)`: (.+)", section))
    assert verdicts == {expectation.name: "met" for expectation in suite.expectations}


@pytest.mark.spark
@pytest.mark.parametrize("topic", [topic for topic in list_contract_names() if topic not in WITHOUT_SOURCE])
def test_records_of_the_shipped_sources_meet_their_suites(spark: "SparkSession", topic: str) -> None:
    suite, contract = load_suite(f"topics/{topic}"), load_contract(topic)
    assert suite is not None
    types = {field.name: field.parsed_type.spark_type.upper() for field in contract.fields}
    counts = [
        f"count_if({compile_unexpected(expectation, types)}) AS {expectation.name}"
        for expectation in suite.expectations
    ]
    records = load_shipped_records(spark, topic, ", ".join(f"{name} {kind}" for name, kind in types.items()))
    assert records.count() >= 2
    (unexpected,) = records.selectExpr(*counts).toArrow().to_pylist()
    assert unexpected == {expectation.name: 0 for expectation in suite.expectations}


def load_shipped_records(spark: "SparkSession", topic: str, fields: str) -> "DataFrame":
    """Return shipped records of a topic: all flights, lines of a log, or generated ones."""
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
        records = GENERATORS[topic](7).generate_records(0, make_even_send_times(NOON, 50.0))
        rows = map(msgspec.to_builtins, islice(records, GENERATED_COUNT))
    names = [field.split()[0] for field in fields.split(", ")]
    return spark.createDataFrame([tuple(row.get(name) for name in names) for row in rows], fields)
