"""Measures the CPU time of ways to parse JSON records: `python -m tests.benchmarks.bench_json_parsing`.

Each way parses the same records in memory and sums a field by key, in turns, on one core. The time is that of Spark
and of its Python workers together. `from_json alone` accepts invalid records; those in Python prove nothing either.
"""

import argparse
import json
import os
import statistics
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import patch

import pyarrow as pa
from rich.console import Console
from rich.table import Table
from tests.benchmarks.bench_pipelines_catchup import format_spread
from tests.benchmarks.rivals import JAR_FOLDER

from penstock.engine.plan.sources import Column, PlanSource, TopicOrigin, WatermarkStrategy
from penstock.engine.spark.parse.records import parse_records
from penstock.engine.spark.parse.wire_columns import parsed_record_ddl
from penstock.engine.spark.session import SparkSessionConfig, open_spark_session
from penstock.infra.jars import ensure_jars
from penstock.infra.java import find_java

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SOURCE = PlanSource(
    "readings",
    TopicOrigin("readings"),
    (
        Column("device", "STRING", required=True),
        Column("city", "STRING"),
        Column("state", "STRING"),
        Column("at", "BIGINT", required=True),
        Column("temperature", "DOUBLE"),
        Column("number", "BIGINT"),
    ),
    "at",
    WatermarkStrategy(max_out_of_orderness=0),
)
ARROW_TYPES = {"STRING": pa.string(), "BIGINT": pa.int64(), "DOUBLE": pa.float64()}
PARTIAL_DDL = "device STRING, temperature DOUBLE"
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def make_record(number: int, *, numeric_ids: bool) -> bytes:
    """Return a record of about 105 bytes with three texts and three numbers."""
    reading = {
        "device": str(number % 1_000) if numeric_ids else f"device-{number % 1_000}",
        "city": "Paris",
        "state": "running",
        "at": 1_700_000_000_000 + number,
        "temperature": 20 + number % 600 / 10,
        "number": number,
    }
    return json.dumps(reading, separators=(",", ":")).encode()


def aggregate(records: "DataFrame") -> "DataFrame":
    """Return the sum by key that every way computes."""
    return records.where("_invalid IS NULL").groupBy("device").agg({"temperature": "sum"})


def parse_by_from_json(raw: "DataFrame") -> "DataFrame":
    """Parse without any proof."""
    parsed = raw.selectExpr(f"from_json(CAST(value AS STRING), '{parsed_record_ddl(SOURCE)}') AS r")
    return aggregate(parsed.selectExpr("r.device", "r.temperature", "r._corrupt AS _invalid"))


def parse_by_proof(raw: "DataFrame") -> "DataFrame":
    """Parse by `from_json`, and prove each record valid in SQL."""
    with patch("penstock.engine.spark.parse.parser_selection.find_parser_class", lambda _: None):
        return aggregate(parse_records(raw, [SOURCE]))


def parse_strictly(raw: "DataFrame") -> "DataFrame":
    """Parse as streams do, by the strict parser."""
    return aggregate(parse_records(raw, [SOURCE]))


def send_to_python(raw: "DataFrame") -> "DataFrame":
    """Only send the records to the Python workers."""

    def count_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.RecordBatch.from_pydict({"rows": [batch.num_rows]})

    return raw.select("value").mapInArrow(count_rows, "rows BIGINT").groupBy().sum("rows")


def parse_by_msgspec(raw: "DataFrame") -> "DataFrame":
    """Parse in Python workers by the judge's decoder, and aggregate there."""
    fields = [(column.name, column.type, column.required) for column in SOURCE.columns]

    def parse(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import msgspec

        python_types = {"STRING": str, "BIGINT": int, "DOUBLE": float}
        members = [
            (name, python_types[kind]) if required else (name, python_types[kind] | None, None)
            for name, kind, required in fields
        ]
        decode = msgspec.json.Decoder(msgspec.defstruct("Reading", members, kw_only=True, gc=False)).decode
        for batch in batches:
            readings = [decode(value) for value in batch.column(0).to_pylist()]
            yield from sum_by_device(
                pa.table(
                    {
                        "device": [each.device for each in readings],
                        "temperature": [each.temperature for each in readings],
                    }
                )
            )

    return raw.select("value").mapInArrow(parse, PARTIAL_DDL).groupBy("device").agg({"temperature": "sum"})


def parse_by_arrow(raw: "DataFrame") -> "DataFrame":
    """Parse in Python workers by Arrow's reader of JSON, and aggregate there."""
    schema = pa.schema([(column.name, ARROW_TYPES[column.type]) for column in SOURCE.columns])

    def parse(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyarrow import json as arrow_json

        for batch in batches:
            lines = b"\n".join(batch.column(0).to_pylist())
            readings = arrow_json.read_json(
                pa.BufferReader(lines),
                arrow_json.ReadOptions(use_threads=False, block_size=len(lines) + 1),
                arrow_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
            )
            yield from sum_by_device(readings)

    return raw.select("value").mapInArrow(parse, PARTIAL_DDL).groupBy("device").agg({"temperature": "sum"})


def sum_by_device(readings: pa.Table) -> list[pa.RecordBatch]:
    """Return the partial sums of a batch."""
    sums = readings.group_by("device", use_threads=False).aggregate([("temperature", "sum")])
    return sums.select(["device", "temperature_sum"]).rename_columns(["device", "temperature"]).to_batches()


WAYS: Mapping[str, Callable[["DataFrame"], "DataFrame"]] = {
    "from_json alone": parse_by_from_json,
    "from_json, proof in SQL": parse_by_proof,
    "strict parser": parse_strictly,
    "to Python and back": send_to_python,
    "msgspec in Python": parse_by_msgspec,
    "pyarrow.json in Python": parse_by_arrow,
}


def read_child_seconds() -> float:
    """Return the CPU seconds of all descendants of this process."""
    parents, ticks = {}, {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # the process has ended
        parents[int(stat.parent.name)] = int(fields[1])
        ticks[int(stat.parent.name)] = sum(map(int, fields[11:15]))
    own = {os.getpid()}
    while found := {child for child, parent in parents.items() if parent in own} - own:
        own |= found
    return sum(ticks[process] for process in own - {os.getpid()}) / TICKS_PER_SECOND


def main(records: int, repeats: int, *, numeric_ids: bool) -> None:
    """Measure all ways in turns, and print nanoseconds a record."""
    config = SparkSessionConfig(
        ensure_jars(JAR_FOLDER, ["spark"]),
        Path(tempfile.mkdtemp()),
        master="local[1]",
        java_home=find_java().home,
    )
    session = open_spark_session(config)
    session.sparkContext.setLogLevel("ERROR")
    values = pa.array(
        [make_record(number, numeric_ids=numeric_ids) for number in range(records)], pa.binary()
    )
    numbers = pa.array(range(records), pa.int64())
    columns = {"value": values, "offset": numbers}
    raw = session.createDataFrame(pa.table(columns)).selectExpr(
        "CAST(NULL AS BINARY) AS key",
        "value",
        "'readings' AS topic",
        "0 AS partition",
        "offset",
        "timestamp_millis(0) AS timestamp",
    )
    raw = raw.coalesce(1).cache()
    raw.count()
    for way in WAYS.values():
        way(raw).collect()
    nanoseconds: dict[str, list[float]] = {name: [] for name in WAYS}
    for _ in range(repeats):
        for name, way in WAYS.items():
            frame = way(raw)
            before = read_child_seconds()
            frame.collect()
            nanoseconds[name].append((read_child_seconds() - before) / records * 1e9)
    title = f"{records:,} records, {repeats} repeats: median (min to max)"
    table = Table("way", "ns of CPU a record", "of from_json alone", title=title)
    baseline = statistics.median(nanoseconds["from_json alone"])
    for name, spent in nanoseconds.items():
        table.add_row(name, format_spread(spent, ",.0f"), f"{statistics.median(spent) / baseline:.2f}")
    Console().print(table)
    session.stop()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=300_000, help="records to parse")
    parser.add_argument("--repeats", type=int, default=7, help="measured rounds")
    parser.add_argument("--numeric-ids", action="store_true", help="let the text of the key be a number")
    arguments = parser.parse_args()
    main(arguments.records, arguments.repeats, numeric_ids=arguments.numeric_ids)
