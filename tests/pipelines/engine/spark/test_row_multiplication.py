"""Steps that make several rows of a record, or none: values by row, accounts by record."""

import random
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.pipelines.engine.spark.stream_runner import StreamRunner, send
from tests.pipelines.engine.spark.test_live_stream import FOREVER, query_duckdb, sum_accounts

from penstock.engine.plan import (
    AggregateOutput,
    ApplyStep,
    ArrowStep,
    Column,
    Plan,
    PlanSource,
    SqlStep,
    TopicOrigin,
    function_ref,
)
from penstock.engine.plan.stages import Stage
from penstock.engine.sinks.latest_values import LatestValues
from penstock.engine.windows.sliding import Sliding
from penstock.infra.local_broker import LocalBroker
from penstock.stream import after_count, count, repeatedly

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.kafka]
COLUMNS = (Column("tags", "ARRAY<STRING>"), Column("at", "BIGINT"))
EXPLODE = "SELECT *, explode(tags) AS tag FROM input"


def exploded(frame: "DataFrame") -> "DataFrame":
    """A row for each tag."""
    return frame.selectExpr("*", "explode(tags) AS tag")


def over_arrow(table: pa.Table) -> pa.Table:
    """A row for each tag, over Arrow."""
    tags = table.column("tags").combine_chunks()
    rows = pc.list_parent_indices(tags)
    return table.take(rows).append_column("tag", pc.list_flatten(tags))


STEPS = {
    "sql": SqlStep(EXPLODE),
    "a function": ApplyStep(function_ref(exploded)),
    "over Arrow": ArrowStep(function_ref(over_arrow)),
}


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS.keys())
def test_each_row_counts_in_its_windows_and_each_record_once_in_the_accounts(
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
    chance = random.Random(3)
    sent = [
        {
            "tags": chance.choices(["a", "b", "c", "dull"], k=chance.randrange(4)),
            "at": chance.randrange(60_000),
        }
        for _ in range(400)
    ]
    send(broker, topic, [*sent[:150], b"broken"], 0)
    send(broker, topic, sent[150:], 1)
    runner.run_until_read(401)
    shown = "SELECT tag, epoch_ms(window_start), n FROM found ORDER BY ALL"
    starts = """range("at" - "at" % 4000, "at" - 10000, -4000)"""
    placed = f'SELECT tag, unnest({starts}) AS w FROM (SELECT "at", unnest(tags) AS tag FROM sent)'
    expected = f"SELECT tag, w, count(1) FROM ({placed}) WHERE tag != 'dull' GROUP BY ALL ORDER BY ALL"
    assert query_duckdb(shown, found=runner.table("latest/tags")) == query_duckdb(
        expected, sent=pa.Table.from_pylist(sent)
    )
    interesting = sum(any(tag != "dull" for tag in record["tags"]) for record in sent)
    accounts = sum_accounts(runner, "read", "folded", "quarantined", "filtered", "late")
    assert accounts == [(401, interesting, 1, 400 - interesting, 0)]
