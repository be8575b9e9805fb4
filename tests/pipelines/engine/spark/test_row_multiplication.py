"""Steps that return several rows per record: windows count rows, the ledger counts records."""

import random
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.pipelines.engine.spark.stream_runner import StreamRunner, send
from tests.pipelines.engine.spark.test_live_stream import FOREVER, query_duckdb, sum_accounts

from penstock.engine.aggregates.aggregate_output import AggregateOutput
from penstock.engine.definition.user_functions import function_ref
from penstock.engine.plan.sources import Column, PlanSource, TopicOrigin
from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.plan.steps import ApplyStep, ArrowStep, SqlStep
from penstock.engine.sinks.latest_values import LatestValues
from penstock.engine.windows.sliding import Sliding
from penstock.infra.local_broker import LocalBroker
from penstock.stream import after_count, count, repeatedly

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.kafka]
COLUMNS = (Column("tags", "ARRAY<STRING>"), Column("at", "BIGINT"))
EXPLODE = "SELECT *, explode(tags) AS tag FROM input"


def explode_in_spark(frame: "DataFrame") -> "DataFrame":
    """Return a row per tag."""
    return frame.selectExpr("*", "explode(tags) AS tag")


def explode_in_arrow(table: pa.Table) -> pa.Table:
    """Return a row per tag, from Arrow."""
    tags = table.column("tags").combine_chunks()
    rows = pc.list_parent_indices(tags)
    return table.take(rows).append_column("tag", pc.list_flatten(tags))


STEPS = {
    "sql": SqlStep(EXPLODE),
    "a function": ApplyStep(function_ref(explode_in_spark)),
    "over Arrow": ArrowStep(function_ref(explode_in_arrow)),
}


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS.keys())
def test_windows_count_rows_and_the_ledger_counts_records(
    spark: "SparkSession", broker: LocalBroker, tmp_path: Path, step: Any
) -> None:
    topic = f"tagged{uuid4().hex[:8]}"
    broker.create_topic(topic, 2)
    steps = (step, SqlStep("SELECT * FROM input WHERE tag != 'dull'"))
    stage = Stage(
        topic + "_tags", (topic,), Sliding(10_000, 4_000), (AggregateOutput("n", count()),), steps, ("tag",),
        repeatedly(after_count(1)), FOREVER, sinks=(LatestValues("tags"),),
    )  # fmt: skip
    plan = Plan(f"of_{topic}", (PlanSource(topic, TopicOrigin(topic), COLUMNS, "at"),), (stage,))
    runner = StreamRunner(plan, spark, broker, tmp_path)
    rng = random.Random(3)
    sent = [
        {
            "tags": rng.choices(["a", "b", "c", "dull"], k=rng.randrange(4)),
            "at": rng.randrange(60_000),
        }
        for _ in range(400)
    ]
    send(broker, topic, [*sent[:150], b"broken"], 0)
    send(broker, topic, sent[150:], 1)
    runner.run_until_read(401)
    query = "SELECT tag, epoch_ms(window_start), n FROM found ORDER BY ALL"
    starts = """range("at" - "at" % 4000, "at" - 10000, -4000)"""
    windowed = f'SELECT tag, unnest({starts}) AS w FROM (SELECT "at", unnest(tags) AS tag FROM sent)'
    expected = f"SELECT tag, w, count(1) FROM ({windowed}) WHERE tag != 'dull' GROUP BY ALL ORDER BY ALL"
    assert query_duckdb(query, found=runner.table("latest/tags")) == query_duckdb(
        expected, sent=pa.Table.from_pylist(sent)
    )
    records_with_rows = sum(any(tag != "dull" for tag in record["tags"]) for record in sent)
    accounts = sum_accounts(runner, "read", "accepted", "quarantined", "filtered", "late")
    assert accounts == [(401, records_with_rows, 1, 400 - records_with_rows, 0)]
