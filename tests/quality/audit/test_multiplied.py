"""Records of which a step makes several rows: what came too late of them is proved as of any other."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.pipelines.engine.spark.running import Running, send
from tests.quality.audit.scopes import scope_of

from penstock.engine.plan import AggregateOutput, Column, Plan, PlanSource, SqlStep, Stage, TopicOrigin
from penstock.engine.plan.windows import Fixed, Sliding, Window
from penstock.engine.sinks.latest_values import LatestValues
from penstock.infra.local_broker import LocalBroker
from penstock.quality.audit.comparability import Sample
from penstock.quality.audit.ledger_checks import STREAM_CHECKS
from penstock.quality.audit.recompute_check import check_recomputed_results
from penstock.quality.audit.topic_view import TopicView
from penstock.stream import count

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.kafka]
COLUMNS = (Column("tags", "ARRAY<STRING>"), Column("at", "BIGINT"))
EXPLODE = SqlStep("SELECT *, explode(tags) AS tag FROM input")
BEGAN = 1_000_000


def tagged(at: int, *tags: str) -> dict[str, Any]:
    return {"tags": tags, "at": at}


# The second batch comes when the watermark is at 60,000: two of its records are late for all of their windows, and
# the third for one of two where windows slide.
SENT = [
    [tagged(5_000, "a", "b"), tagged(25_000, "a"), tagged(45_000, "b", "c"), tagged(60_000, "a")],
    [tagged(5_000, "a", "b", "a"), tagged(45_000, "c"), tagged(55_000, "a", "b", "a"), tagged(200_000, "z")],
]


@pytest.mark.parametrize("window", [Fixed(10_000), Sliding(20_000, 10_000)], ids=["fixed", "sliding"])
def test_a_late_record_with_several_rows_is_one_record(
    spark: "SparkSession", broker: LocalBroker, tmp_path: Path, window: Window
) -> None:
    topic = f"multiplied-{type(window).__name__.lower()}"
    broker.create_topic(topic, 1)
    source = PlanSource(topic, TopicOrigin(topic), COLUMNS, "at")
    counted, sinks = (AggregateOutput("n", count()),), (LatestValues("tags"),)
    stage = Stage("tags", (topic,), window, counted, (EXPLODE,), ("tag",), sinks=sinks)
    running = Running(Plan("tags", (source,), (stage,)), spark, broker, tmp_path, clock=BEGAN)
    for number, part in enumerate(SENT, 1):
        send(broker, topic, part)
        running.until_read(sum(map(len, SENT[:number])))
    scope = scope_of(running, BEGAN)
    assert scope.late_rows.num_rows > len({row["offset"] for row in scope.late_rows.to_pylist()})
    told = dict(STREAM_CHECKS)["late and quarantined"](scope)
    assert told.state == "passed", told
    told = check_recomputed_results(scope, {topic: TopicView(scope, topic)}, Sample())
    assert told.state == "passed", told
