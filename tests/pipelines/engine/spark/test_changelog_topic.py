"""Panes through a topic arrive once, also after kills, and are read as `then()` reads them."""

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, TopicPartition
from tests.pipelines.engine.spark.stream_runner import StreamRunner, send
from tests.pipelines.engine.spark.test_live_stream import COLUMNS, make_readings, query_duckdb

from penstock.core.kafka_client import BrokerAccess
from penstock.engine.aggregates.aggregate_output import AggregateOutput
from penstock.engine.plan.sources import PlanSource, TopicOrigin, WatermarkStrategy
from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.sinks.changelog_topic import ChangelogTopic
from penstock.engine.sinks.latest_values import LatestValues
from penstock.engine.sinks.pane_log import PaneLog
from penstock.engine.spark.bounded_sources.topic_source import list_topic_ranges
from penstock.engine.tables.published_topic import TopicTransactions
from penstock.infra.local_broker import LocalBroker
from penstock.stream import after_count, count, fixed, max_, read_panes, repeatedly, sum_

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.kafka]
FIRST_AGGREGATES = (AggregateOutput("n", count()), AggregateOutput("most", max_("temperature")))
SECOND_AGGREGATES = {"devices": count(), "readings": sum_("n"), "hottest": max_("most")}
COMPARED_COLUMNS = ("device", "n", "most", "kind", "pane", "batch_id")
RESULT_QUERY = "SELECT epoch_ms(window_start), devices, readings, hottest FROM found ORDER BY ALL"


def build_first_plan(topic: str, panes_topic: str) -> Plan:
    """Aggregate per device and ten seconds, and publish a pane in every batch."""
    source = PlanSource(
        topic, TopicOrigin(topic), COLUMNS, "at", WatermarkStrategy(max_out_of_orderness=30_000)
    )
    stage = Stage(f"first_{topic}", (topic,), fixed(10_000), FIRST_AGGREGATES, (), ("device",),
                  repeatedly(after_count(1)), 20_000, "retracting", sinks=(PaneLog(f"first_{topic}"),),
                  topics=(ChangelogTopic(panes_topic),))  # fmt: skip
    return Plan(f"first_{topic}", (source,), (stage,))


def build_second_plan(panes_topic: str, name: str) -> Plan:
    """Aggregate all devices per minute from the topic."""
    panes = read_panes(
        panes_topic, columns={"device": "STRING", "n": "BIGINT", "most": "DOUBLE"}, lateness="20 seconds"
    )
    single_graph = (
        panes.aggregate(**SECOND_AGGREGATES).window(fixed("1 minute")).trigger(repeatedly(after_count(1)))
    )
    return single_graph.write(name).to_plan(name)


def build_single_plan(plan: Plan, name: str) -> Plan:
    """Build both stages as one graph."""
    stage = replace(plan.only_stage, topics=())
    outputs = tuple(AggregateOutput(n, of) for n, of in SECOND_AGGREGATES.items())
    after = Stage(name, (stage.name,), fixed(60_000), outputs, (), (),
                  repeatedly(after_count(1)), 20_000, "retracting", sinks=(LatestValues(name),))  # fmt: skip
    return Plan(name, plan.sources, (stage, after))


def read_committed(broker: LocalBroker, topic: str) -> list[dict[str, Any]]:
    """Read all committed records; wait for the marker of each transaction, which the broker writes later."""
    ends = {span.partition: span.end for span in list_topic_ranges(topic, BrokerAccess(broker.bootstrap))}
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": uuid4().hex,
                         "enable.partition.eof": True, "isolation.level": "read_committed",
                         "auto.offset.reset": "earliest"})  # fmt: skip
    consumer.assign([TopicPartition(topic, number, 0) for number in ends])
    found, ended = [], set()
    while ended != set(ends):
        message = consumer.poll(30)
        assert message is not None
        if message.error():
            if message.offset() >= ends[message.partition()]:
                ended.add(message.partition())
        else:
            found.append({**json.loads(message.value()), "partition": message.partition()})
    consumer.close()
    return found


@pytest.fixture
def kill_points(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A list that says where the next batch fails: before or after its transaction."""
    kill_at: list[str] = []
    send_transaction = TopicTransactions.send

    def send(self: TopicTransactions, *arguments: Any) -> None:
        if kill_at == ["before"]:
            kill_at.clear()
            raise OSError("the machine failed")
        send_transaction(self, *arguments)
        if kill_at:
            kill_at.clear()
            raise OSError("the machine failed")

    monkeypatch.setattr(TopicTransactions, "send", send)
    return kill_at


def test_two_plans_over_a_topic_give_the_result_of_one_graph(
    spark: "SparkSession", broker: LocalBroker, tmp_path: Path, kill_points: list[str]
) -> None:
    topic, panes_topic = f"readings{uuid4().hex[:8]}", f"panes{uuid4().hex[:8]}"
    broker.create_topic(topic, 1)
    broker.create_topic(panes_topic, 2)
    writer = StreamRunner(build_first_plan(topic, panes_topic), spark, broker, tmp_path / "first")
    reader = StreamRunner(
        build_second_plan(panes_topic, f"second_{topic}"), spark, broker, tmp_path / "second"
    )
    single_graph = StreamRunner(
        build_single_plan(build_first_plan(topic, panes_topic), f"whole_{topic}"),
        spark,
        broker,
        tmp_path / "whole",
    )
    sent = sorted(make_readings(300, seed=9), key=lambda reader: reader["at"] // 20_000)
    for number, kill_at in enumerate(("before", "after"), start=1):
        send(broker, topic, sent[(number - 1) * 150 : number * 150])
        kill_points.append(kill_at)
        with pytest.raises(OSError, match="the machine failed"):
            writer.run_until_read(number * 150)
        writer.run_until_read(number * 150)
        panes = read_committed(broker, panes_topic)
        reader.run_until_read(len(panes))
    single_graph.run_until_read(300)
    rows = [row for row in panes if row["kind"] != "watermark"]
    found = writer.table(f"panes/first_{topic}")
    written = query_duckdb(f"SELECT {', '.join(COMPARED_COLUMNS)} FROM found", found=found)
    assert sorted((tuple(row[name] for name in COMPARED_COLUMNS) for row in rows), key=repr) == sorted(
        written, key=repr
    )
    assert len({(row["device"], row["partition"]) for row in rows}) == len({row["device"] for row in rows})
    through_topic, in_single_graph = (run.table(f"latest/{run.plan.name}") for run in (reader, single_graph))
    assert query_duckdb(RESULT_QUERY, found=through_topic) == query_duckdb(
        RESULT_QUERY, found=in_single_graph
    )
