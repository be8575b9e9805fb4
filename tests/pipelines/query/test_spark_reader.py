"""A table as a data frame of Spark."""

import pytest
from pyspark.sql import SparkSession
from tests.pipelines.engine.batch.stream_bench import Bench

import penstock
from penstock.query.errors import QueryError


@pytest.mark.spark
def test_spark_reads_the_same_rows_of_the_same_version(stream: Bench, spark: SparkSession) -> None:
    for selection in ({}, {"at_batch": 2}):
        table = penstock.open("stream", warehouse=str(stream.warehouse), **selection)
        expected = table.to_arrow(columns=["key", "n"], where="n > 1").to_pylist()
        rows = [row.asDict() for row in table.spark(spark, columns=["key", "n"], where="n > 1").collect()]
        assert sorted(rows, key=repr) == sorted(expected, key=repr) != []
    comments = {
        row.col_name: row.comment
        for row in spark.sql(f"DESCRIBE delta.`{stream.warehouse}/latest/stream`").collect()
    }
    assert comments["final"] == "whether it is the last pane of the window; no other one follows"


def test_spark_needs_a_session(stream: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    with pytest.raises(QueryError, match=r"needs a session\. Start one, or pass it"):
        penstock.open("stream", warehouse=str(stream.warehouse)).spark()
