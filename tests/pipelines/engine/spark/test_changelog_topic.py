"""Panes through a real topic: each once, whenever the host is killed, and read as `then()` reads them."""

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
from penstock.engine.plan import AggregateOutput, Plan, PlanSource, Stage, TopicOrigin, WatermarkStrategy
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
FIRST = (AggregateOutput("n", count()), AggregateOutput("most", max_("temperature")))
SECOND = {"devices": count(), "readings": sum_("n"), "hottest": max_("most")}
SAME = ("device", "n", "most", "kind", "pane", "batch_id")
FOUND = "SELECT epoch_ms(window_start), devices, readings, hottest FROM found ORDER BY ALL"


def first(topic: str, to: str) -> Plan:
    """Per device and ten seconds, with a pane at every batch, published."""
    source = PlanSource(
        topic, TopicOrigin(topic), COLUMNS, "at", WatermarkStrategy(max_out_of_orderness=30_000)
    )
    stage = Stage(f"first_{topic}", (topic,), fixed(10_000), FIRST, (), ("device",), repeatedly(after_count(1)),
                  20_000, "retracting", sinks=(PaneLog(f"first_{topic}"),),
                  topics=(ChangelogTopic(to),))  # fmt: skip
    return Plan(f"first_{topic}", (source,), (stage,))


def over_panes(to: str, name: str) -> Plan:
    """Over all devices, by the minute, from the topic."""
    panes = read_panes(
        to, columns={"device": "STRING", "n": "BIGINT", "most": "DOUBLE"}, lateness="20 seconds"
    )
    whole = panes.aggregate(**SECOND).window(fixed("1 minute")).trigger(repeatedly(after_count(1)))
    return whole.write(name).to_plan(name)


def in_one(plan: Plan, name: str) -> Plan:
    """The same as one graph."""
    stage = replace(plan.only_stage, topics=())
    outputs = tuple(AggregateOutput(n, of) for n, of in SECOND.items())
    after = Stage(name, (stage.name,), fixed(60_000), outputs, (), (),
                  repeatedly(after_count(1)), 20_000, "retracting", sinks=(LatestValues(name),))  # fmt: skip
    return Plan(name, plan.sources, (stage, after))


def committed(broker: LocalBroker, topic: str) -> list[dict[str, Any]]:
    """What a reader of committed records finds, once each transaction has its marker: a broker writes it later."""
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
def kill(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Holds when the next batch is to end: before its transaction, or after it."""
    when: list[str] = []
    really = TopicTransactions.send

    def send(self: TopicTransactions, *given: Any) -> None:
        if when == ["before"]:
            when.clear()
            raise OSError("the machine went away")
        really(self, *given)
        if when:
            when.clear()
            raise OSError("the machine went away")

    monkeypatch.setattr(TopicTransactions, "send", send)
    return when


def test_panes_through_a_topic_are_the_changes_of_one_graph(
    spark: "SparkSession", broker: LocalBroker, tmp_path: Path, kill: list[str]
) -> None:
    topic, to = f"readings{uuid4().hex[:8]}", f"panes{uuid4().hex[:8]}"
    broker.create_topic(topic, 1)
    broker.create_topic(to, 2)
    writing = StreamRunner(first(topic, to), spark, broker, tmp_path / "first")
    reading = StreamRunner(over_panes(to, f"second_{topic}"), spark, broker, tmp_path / "second")
    whole = StreamRunner(in_one(first(topic, to), f"whole_{topic}"), spark, broker, tmp_path / "whole")
    sent = sorted(make_readings(300, seed=9), key=lambda reading: reading["at"] // 20_000)
    for number, when in enumerate(("before", "after"), start=1):
        send(broker, topic, sent[(number - 1) * 150 : number * 150])
        kill.append(when)
        with pytest.raises(OSError, match="the machine went away"):
            writing.run_until_read(number * 150)
        writing.run_until_read(number * 150)
        panes = committed(broker, to)
        reading.run_until_read(len(panes))
    whole.run_until_read(300)
    rows = [row for row in panes if row["kind"] != "watermark"]
    found = writing.table(f"panes/first_{topic}")
    written = query_duckdb(f"SELECT {', '.join(SAME)} FROM found", found=found)
    assert sorted((tuple(row[name] for name in SAME) for row in rows), key=repr) == sorted(written, key=repr)
    assert len({(row["device"], row["partition"]) for row in rows}) == len({row["device"] for row in rows})
    in_two, in_one_graph = (run.table(f"latest/{run.plan.name}") for run in (reading, whole))
    assert query_duckdb(FOUND, found=in_two) == query_duckdb(FOUND, found=in_one_graph)
