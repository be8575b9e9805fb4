"""Late records that a step explodes into several rows."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.pipelines.engine.spark.stream_runner import StreamRunner, send
from tests.quality.audit.audit_scopes import create_audit_scope

from penstock.engine.aggregates.aggregate_output import AggregateOutput
from penstock.engine.plan.sources import Column, PlanSource, TopicOrigin
from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.plan.steps import SqlStep
from penstock.engine.sinks.latest_values import LatestValues
from penstock.engine.windows.fixed import Fixed
from penstock.engine.windows.sliding import Sliding
from penstock.engine.windows.window import Window
from penstock.infra.local_broker import LocalBroker
from penstock.quality.audit.checks.late_and_quarantined_check import check_late_and_quarantined
from penstock.quality.audit.checks.results_check import check_recomputed_results
from penstock.quality.audit.comparability import Sample
from penstock.quality.audit.topic_view import TopicView
from penstock.stream import count

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.kafka]
COLUMNS = (Column("tags", "ARRAY<STRING>"), Column("at", "BIGINT"))
EXPLODE = SqlStep("SELECT *, explode(tags) AS tag FROM input")
START_MS = 1_000_000


def tagged_record(at: int, *tags: str) -> dict[str, Any]:
    return {"tags": tags, "at": at}


# The second batch comes when the watermark is at 60,000: two of its records are late for all of their windows, and
# the third for one of two where windows slide.
RECORD_BATCHES = [
    [
        tagged_record(5_000, "a", "b"),
        tagged_record(25_000, "a"),
        tagged_record(45_000, "b", "c"),
        tagged_record(60_000, "a"),
    ],
    [
        tagged_record(5_000, "a", "b", "a"),
        tagged_record(45_000, "c"),
        tagged_record(55_000, "a", "b", "a"),
        tagged_record(200_000, "z"),
    ],
]


@pytest.mark.parametrize("window", [Fixed(10_000), Sliding(20_000, 10_000)], ids=["fixed", "sliding"])
def test_a_late_record_with_several_rows_counts_once(
    spark: "SparkSession", broker: LocalBroker, tmp_path: Path, window: Window
) -> None:
    topic = f"multiplied-{type(window).__name__.lower()}"
    broker.create_topic(topic, 1)
    source = PlanSource(topic, TopicOrigin(topic), COLUMNS, "at")
    outputs, sinks = (AggregateOutput("n", count()),), (LatestValues("tags"),)
    stage = Stage("tags", (topic,), window, outputs, (EXPLODE,), ("tag",), sinks=sinks)
    runner = StreamRunner(Plan("tags", (source,), (stage,)), spark, broker, tmp_path, clock=START_MS)
    for number, part in enumerate(RECORD_BATCHES, 1):
        send(broker, topic, part)
        runner.run_until_read(sum(map(len, RECORD_BATCHES[:number])))
    scope = create_audit_scope(runner, START_MS)
    assert scope.late_rows.num_rows > len({row["offset"] for row in scope.late_rows.to_pylist()})
    for outcome in (
        check_late_and_quarantined(scope),
        check_recomputed_results(scope, {topic: TopicView(scope, topic)}, Sample()),
    ):
        assert outcome.state == "passed", outcome
