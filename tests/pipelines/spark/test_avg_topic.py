"""The topic `avg` of every course: created, fed by Kafka's own console producer, read from the beginning."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.ingestion.kafka_tools import kafka_tool
from tests.pipelines.spark.running import Running

from penstock.infra.local_broker import LocalBroker
from penstock.pipelines import catalog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

TYPED = [("a", 1.0), ("b", 10.0), ("a", 2.0), ("a", 6.0), ("b", -4.0)]
MORE = [("a", 3.0), ("c", 0.5)]


def lines(typed: list[tuple[str, float]]) -> bytes:
    said = (
        f'{{"key": "{key}", "value": {value}, "at": {1_000 * n}}}\n' for n, (key, value) in enumerate(typed)
    )
    return "".join(said).encode()


def test_numbers_from_kafkas_console_are_averaged_by_key_as_they_come(
    spark: "SparkSession", broker: LocalBroker, jar_directory: Path, tmp_path: Path
) -> None:
    tool = kafka_tool(jar_directory)
    at = ("--bootstrap-server", broker.bootstrap, "--topic", "avg")
    tool("TopicCommand", "--create", "--partitions", "1", *at)
    tool("ConsoleProducer", *at, given=lines(TYPED))
    running = Running(catalog.load("running_avg"), spark, broker, tmp_path)
    running.until_read(len(TYPED))
    assert found(running) == {"a": (3.0, 3), "b": (3.0, 2)}
    tool("ConsoleProducer", *at, given=lines(MORE))
    running.until_read(len(TYPED) + len(MORE))
    assert found(running) == {"a": (3.0, 4), "b": (3.0, 2), "c": (0.5, 1)}


def found(running: Running) -> dict[str, tuple[float, int]]:
    rows = running.table("latest/running_avg").to_pylist()
    return {row["key"]: (row["mean"], row["values"]) for row in rows}
