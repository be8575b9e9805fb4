"""Several topics in one stage, from a real broker: each by its own contract and watermark, in one result."""

from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa
import pytest
from tests.pipelines.spark.running import Running, send
from tests.pipelines.spark.test_stream import COLUMNS, asked

from penstock.infra.local_broker import LocalBroker
from penstock.pipelines.errors import DefinitionError
from penstock.pipelines.model import after_count, count, fixed, repeatedly, sum_
from penstock.pipelines.plan import (
    Column,
    Deduplication,
    LatestValues,
    Output,
    Plan,
    Source,
    Topic,
    WatermarkRule,
)
from penstock.pipelines.plan.stage import Stage
from penstock.pipelines.spark.bounded import BoundedConfig, run_bounded
from penstock.pipelines.spark.fields import FieldTypes
from penstock.pipelines.spark.stored.together import StoredTogether
from penstock.pipelines.spark.stored.topic import StoredTopic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.kafka]
CALLS = (
    Column("id", "STRING", required=True),
    Column("device", "STRING"),
    Column("called", "BIGINT", required=True),
    Column("seconds", "BIGINT"),
)


def plan_over(readings: str, calls: str, lateness: int = 0) -> Plan:
    """How often each device was heard of: by a reading of it, or by a call that somebody made because of it."""
    name = f"heard_{readings}"
    aggregates = (
        Output("n", count()),
        Output("measured", count("temperature")),
        Output("seconds", sum_("seconds")),
    )
    stage = Stage(
        name, (readings, calls), fixed("10 seconds"), aggregates, (), ("device",),
        repeatedly(after_count(1)), lateness, sinks=(LatestValues(name),),
    )  # fmt: skip
    ahead = WatermarkRule(bound=5_000, max_ahead=10**9)
    sources = (
        Source(readings, Topic(readings), COLUMNS, "at", WatermarkRule(bound=1_000)),
        Source(calls, Topic(calls), CALLS, "called", ahead, Deduplication(("id",), 10**9)),
    )
    return Plan(name, sources, (stage,))


@pytest.fixture
def topics(broker: LocalBroker) -> tuple[str, str]:
    suffix = uuid4().hex[:8]
    names = f"readings{suffix}", f"calls{suffix}"
    for name in names:
        broker.create_topic(name, 1)
    return names


def heard(table: pa.Table) -> list[tuple[Any, ...]]:
    columns = "device, epoch_ms(window_start), n, measured, seconds"
    return asked(f"SELECT {columns} FROM found ORDER BY ALL", found=table)


def reading(device: str, at: int) -> dict[str, Any]:
    return {"device": device, "at": at, "temperature": 1.0}


def call(number: int, device: str | None, at: int, seconds: int) -> dict[str, Any]:
    return {"id": f"c{number}", "device": device, "called": at, "seconds": seconds}


def test_each_topic_is_read_by_its_own_contract_across_restarts(
    spark: "SparkSession", broker: LocalBroker, topics: tuple[str, str], tmp_path: Path
) -> None:
    readings, calls = topics
    running = Running(plan_over(readings, calls, lateness=10**13), spark, broker, tmp_path)
    send(broker, readings, [reading("a", 1_000), reading("b", 2_000), b"broken"])
    send(broker, calls, [call(1, "a", 3_000, 40), call(1, "a", 3_000, 40), call(2, None, 4_000, 9)])
    running.until_read(6)
    send(broker, readings, [reading("a", 11_000)])
    send(broker, calls, [call(1, "a", 3_000, 40), call(3, "b", 5_000, 5), {"device": "a", "called": 1}])
    running.until_read(10)
    expected = [
        ("a", 0, 2, 1, 40),
        ("a", 10_000, 1, 1, None),
        ("b", 0, 2, 1, 5),
        (None, 0, 1, 0, 9),
    ]
    assert heard(running.table(f"latest/{running.plan.name}")) == expected
    accounts = ", ".join(f"sum({name})" for name in ("read", "folded", "quarantined", "duplicate"))
    sums = f"SELECT topic, {accounts} FROM ledger GROUP BY 1 ORDER BY 1"
    found = asked(sums, ledger=running.table(f"ledger/{running.plan.name}"))
    assert found == [(calls, 6, 3, 1, 2), (readings, 4, 3, 1, 0)]
    reasons = [running.table(f"quarantine/{topic}").column("reason").to_pylist() for topic in topics]
    assert reasons == [["malformed"], ["missing_field:id"]]
    stored = StoredTogether(tuple(StoredTopic(spark, topic, broker.bootstrap) for topic in topics))
    place = BoundedConfig(tmp_path / "bounded", tmp_path / "bounded", 4)
    run_bounded(running.plan, spark, stored, place, lambda: 1_000_000)
    bounded = Running(running.plan, spark, broker, tmp_path)
    assert heard(pa.table(bounded.table(f"../bounded/latest/{running.plan.name}"))) == expected


def test_the_slower_topic_holds_the_watermark_back(
    spark: "SparkSession", broker: LocalBroker, topics: tuple[str, str], tmp_path: Path
) -> None:
    readings, calls = topics
    running = Running(plan_over(readings, calls), spark, broker, tmp_path)
    send(broker, readings, [reading("a", 100_000)])
    running.until_read(1)
    send(broker, readings, [reading("a", 1_000)])
    running.until_read(2)
    send(broker, calls, [call(1, "a", 60_000, 1)])
    running.until_read(3)
    assert running.progress.outcomes[-1].watermark.value == 55_000
    send(broker, calls, [call(2, "a", 44_000, 1), call(3, "a", 45_000, 1)])
    running.until_read(5)
    late = running.table(f"late/{running.plan.name}").to_pylist()
    assert [(row["topic"], row["offset"], row["missed_by_ms"]) for row in late] == [
        (calls, 1, 5_000),
        (calls, 2, 5_000),
    ]


def stage_over(*sources: Source) -> Stage:
    """A stage over these inputs."""
    names = tuple(source.name for source in sources)
    return Stage("reading", names, fixed("10 seconds"), (Output("n", count()),))


def test_inputs_that_contradict_each_other_are_refused(spark: "SparkSession") -> None:
    other = Source("b", Topic("b"), (Column("at", "STRING"),), "at")
    source = Source("a", Topic("a"), (Column("at", "BIGINT"),), "at")
    with pytest.raises(DefinitionError, match="it is STRING in b and BIGINT in an input before it"):
        FieldTypes(spark).after((source, other), stage_over(source, other))
    again = Source("a#2", Topic("a"), source.columns, "at")
    with pytest.raises(DefinitionError, match="the topic a is read twice"):
        FieldTypes(spark).after((source, again), stage_over(source, again))
