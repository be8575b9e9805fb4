"""A topic gets each batch once: after a retry, from a fenced host, or when the topic did not exist yet."""

from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, TopicPartition
from tests.pipelines.engine.batch.test_crashes import PLANS

from penstock.engine.batch.open_sinks import open_sinks_to_commit
from penstock.engine.batch.stream_claim import make_stream_claim
from penstock.engine.errors import PublishError, TableOwnedError
from penstock.engine.plan.stages import Plan
from penstock.engine.sinks.changelog_topic import ChangelogTopic
from penstock.engine.storage import StoragePath
from penstock.engine.tables.published_topic import PublishedTopic
from penstock.infra.local_broker import LocalBroker

pytestmark = pytest.mark.kafka


def open_topic(broker: LocalBroker, topic: str, warehouse: StoragePath) -> PublishedTopic:
    """Open the topic as the host of one stream."""
    stage = replace(PLANS["fixed"].only_stage, sinks=(), topics=(ChangelogTopic(topic),))
    plan = Plan(f"stream-{topic}", PLANS["fixed"].sources, (stage,))
    (target,) = open_sinks_to_commit(
        plan, warehouse, {"bootstrap.servers": broker.bootstrap, "log_level": "2"}
    ).values()
    assert isinstance(target, PublishedTopic)
    return target


def make_panes(batch: int) -> pa.Table:
    return pa.table(
        {"key": ["a", "b", None], "kind": ["insert", "insert", "watermark"], "batch_id": [batch] * 3}
    )


def read_values(broker: LocalBroker, topic: str) -> list[bytes]:
    """The records that a read-committed consumer finds after those that existed at the start."""
    settings = {"bootstrap.servers": broker.bootstrap, "group.id": uuid4().hex, "enable.partition.eof": True}
    consumer = Consumer({**settings, "isolation.level": "read_committed"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    payloads: list[bytes] = []
    while (message := consumer.poll(30)) is not None and not message.error():
        payloads.append(message.value() or b"")
    consumer.close()
    assert message is not None
    return payloads


def test_a_batch_that_is_published_again_is_stored_once(broker: LocalBroker, somewhere: StoragePath) -> None:
    topic = f"panes{uuid4().hex[:8]}"
    broker.create_topic(topic, 1)
    first_host = open_topic(broker, topic, somewhere)
    change = first_host.write(make_panes(3), 3, 0)
    second_host = open_topic(broker, topic, somewhere)
    assert first_host.commit(3, change, 0)
    assert not first_host.commit(3, change, 0)
    (somewhere / f"published/{topic}/stream-{topic}.sent.json").unlink()
    assert not second_host.commit(3, second_host.write(make_panes(3), 3, 0), 0), (
        "the broker has this batch already"
    )
    assert second_host.commit(4, second_host.write(make_panes(4), 4, 0), 0)
    uncommitted = first_host.write(make_panes(5), 5, 0)
    with pytest.raises(PublishError, match="batch 5 could not be sent"):
        first_host.commit(5, uncommitted, 0)  # another host has fenced its writer
    assert len(read_values(broker, topic)) == 6
    assert second_host.commit(5, uncommitted, 0)
    assert len(read_values(broker, topic)) == 9
    assert [path.name for path in (somewhere / "published" / topic).iterdir()] == [
        f"stream-{topic}.sent.json"
    ]


def test_pending_panes_are_published_once_the_topic_exists(broker: LocalBroker, tmp_path: Path) -> None:
    topic = f"panes{uuid4().hex[:8]}"
    published_topic = open_topic(broker, topic, tmp_path)
    change = published_topic.write(make_panes(0), 0, 0)
    with pytest.raises(
        PublishError, match=f"topic {topic}: the topic does not exist. The panes are in a file"
    ):
        published_topic.commit(0, change, 0)
    broker.create_topic(topic, 1)
    assert published_topic.commit(0, change, 0)
    assert len(read_values(broker, topic)) == 3


def test_a_stream_of_another_installation_publishes_nothing(broker: LocalBroker, tmp_path: Path) -> None:
    """It has a warehouse of its own, so only the broker knows the owner. The owner is not fenced by it."""
    topic = f"panes{uuid4().hex[:8]}"
    broker.create_topic(topic, 1)
    own, foreign = (open_topic(broker, topic, tmp_path / home) for home in ("own", "foreign"))
    own.claim(make_stream_claim(tmp_path / "own" / "streams", own.application))
    foreign.claim(make_stream_claim(tmp_path / "foreign" / "streams", own.application))
    assert own.commit(0, own.write(make_panes(0), 0, 0), 0)
    with pytest.raises(TableOwnedError, match=rf"published/{topic} belongs to stream .*own"):
        foreign.commit(7, foreign.write(make_panes(7), 7, 0), 0)
    assert own.commit(1, own.write(make_panes(1), 1, 0), 0)
    assert len(read_values(broker, topic)) == 6
