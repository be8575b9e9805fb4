"""Measures how fast Spark parses records whose time is in ISO 8601, relative to milliseconds.

The records have five fields and lie in memory; only their parse is timed, on one core. The turns of the formats
alternate, and the best of each counts. `python -m tests.benchmarks.bench_timestamp_formats [--records N]
[--rounds N]`.
"""

import argparse
import time
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from penstock.engine.spark.parse.records import parse_records
from penstock.ingestion.contracts import Contract, ContractField
from penstock.ingestion.contracts.field_types.type_discovery import parse_type
from penstock.stream.input_specs import TopicInput

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FORMATS = ("millis", "seconds", "nanos", "iso8601")
START_MS = 1_767_225_600_000
AGGREGATES = ("sum(_time)", "count(_invalid)", "sum(temperature)", "max(device)", "max(site)", "max(id)")


def make_contract(format_name: str) -> Contract:
    """Return the contract of the records, with the time in a format."""
    types = {"at": f"timestamp({format_name})", "device": "string", "temperature": "double"}
    types |= {"site": "string", "id": "string"}
    fields = tuple(ContractField(name, type_text, "F.") for name, type_text in types.items())
    return Contract("readings", "Readings.", fields, event_time="at")


def make_records(session: "SparkSession", format_name: str, records: int) -> "DataFrame":
    """Return records with the columns of Spark's Kafka source, in memory."""
    at_sql = parse_type(f"timestamp({format_name})").wire_sql(f"({START_MS}L + id)")
    value = (
        f"named_struct('at', {at_sql}, 'device', concat('oven-', id % 100), 'temperature', id % 1000 / 8D,"
        " 'site', 'north', 'id', cast(id AS STRING))"
    )
    return session.range(records, numPartitions=1).selectExpr(
        "cast(NULL AS BINARY) AS key",
        f"cast(to_json({value}) AS BINARY) AS value",
        "'readings' AS topic",
        "0 AS partition",
        "id AS offset",
        "current_timestamp() AS timestamp",
    ).localCheckpoint()  # fmt: skip


def measure_seconds(raw: "DataFrame", format_name: str) -> float:
    """Parse the records once, and return how long it took."""
    source = TopicInput(make_contract(format_name)).to_source(None)
    start = time.monotonic()
    [row] = parse_records(raw, (source,)).selectExpr(*AGGREGATES).collect()
    duration_s = time.monotonic() - start
    assert row["count(_invalid)"] == 0
    return duration_s


def main() -> None:
    """Run the benchmark and print its figures."""
    from pyspark.sql import SparkSession

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=500_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    session = builder.config("spark.sql.session.timeZone", "UTC").getOrCreate()
    frames = {name: make_records(session, name, options.records) for name in FORMATS}
    rounds = [
        {name: measure_seconds(frame, name) for name, frame in frames.items()} for _ in range(options.rounds)
    ]
    durations_s = {name: min(durations[name] for durations in rounds) for name in FORMATS}
    table = Table("format", "records/s", "time relative to millis")
    for name, seconds in durations_s.items():
        table.add_row(name, f"{options.records / seconds:,.0f}", f"{seconds / durations_s['millis']:.2f}")
    Console().print(table)


if __name__ == "__main__":
    main()
