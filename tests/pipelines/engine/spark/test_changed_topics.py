"""Topics that change under a live stream: partitions added, records expired, transactions left open."""

from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions
from tests.pipelines.engine.spark.stream_runner import StreamRunner, send
from tests.pipelines.engine.spark.test_live_stream import (
    TEN_SECONDS,
    build_plan,
    expect_windows,
    list_windows,
    make_readings,
    sum_accounts,
)

from penstock.engine.errors import RecordsExpiredError
from penstock.infra.local_broker import LocalBroker
from penstock.stream import fixed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


@pytest.fixture
def runner(spark: "SparkSession", broker: LocalBroker, tmp_path: Path) -> StreamRunner:
    """A stream of a new topic with one partition."""
    topic = f"changed{uuid4().hex[:8]}"
    broker.create_topic(topic, 1)
    return StreamRunner(build_plan(topic, fixed("10 seconds")), spark, broker, tmp_path)


@pytest.fixture
def admin(broker: LocalBroker) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap})


def topic_of(runner: StreamRunner) -> str:
    return runner.plan.sources[0].name


def test_all_records_of_a_partition_that_was_added_are_read(runner: StreamRunner, admin: AdminClient) -> None:
    topic, readings = topic_of(runner), make_readings(60, 1)
    send(runner.broker, topic, readings[:20])
    stream = runner.start()
    try:
        runner.progress.wait_for(20, stream)
        admin.create_partitions([NewPartitions(topic, 2)])[topic].result(30)
        send(runner.broker, topic, readings[20:50], partition=1)
        send(runner.broker, topic, readings[50:], partition=0)
        runner.progress.wait_for(60, stream)
    finally:
        stream.drain()
    assert sum_accounts(runner, "read", "accepted") == [(60, 60)]
    found = list_windows(runner.table(f"latest/{runner.plan.name}"))
    assert found == expect_windows(readings, TEN_SECONDS, 10_000)


def test_records_that_expired_before_they_were_read_stop_the_stream(
    runner: StreamRunner, admin: AdminClient
) -> None:
    topic = topic_of(runner)
    send(runner.broker, topic, make_readings(10, 1))
    runner.run_until_read(10)
    send(runner.broker, topic, make_readings(20, 2))
    for future in admin.delete_records([TopicPartition(topic, 0, 25)]).values():
        future.result(30)
    stream = runner.start()
    try:
        with pytest.raises(RecordsExpiredError, match=f"of the offsets 10 to 29 of {topic}/0, some expired"):
            runner.progress.wait_for(11, stream)
    finally:
        stream.stop()
    assert runner.progress.records_read == 10


def test_records_behind_an_open_transaction_are_read_once_when_it_ends(runner: StreamRunner) -> None:
    topic, readings = topic_of(runner), make_readings(40, 1)
    send(runner.broker, topic, readings[:10])
    producer = begin_transaction(runner.broker, topic)
    send(runner.broker, topic, readings[10:])
    stream = runner.start()
    try:
        runner.progress.wait_for(10, stream)
        assert runner.progress.records_read == 10
        producer.abort_transaction(30)
        runner.progress.wait_for(40, stream)
    finally:
        stream.drain()
    assert sum_accounts(runner, "read", "accepted") == [(40, 40)]
    found = list_windows(runner.table(f"latest/{runner.plan.name}"))
    assert found == expect_windows(readings, TEN_SECONDS, 10_000)


def begin_transaction(broker: LocalBroker, topic: str) -> Producer:
    """Send a record in a transaction that stays open."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": topic})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"uncommitted", partition=0)
    producer.flush()
    return producer
