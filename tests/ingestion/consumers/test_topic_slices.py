"""Parts of topics: the newest records, those from an offset, and those from a time on."""

import pytest
from confluent_kafka import Producer
from tests.patience import PATIENCE_S

from penstock.infra.local_broker import LocalBroker
from penstock.ingestion.consumers.topic_slices import open_topic_slices
from penstock.ingestion.contracts import Contract, ContractField, TopicLayout
from penstock.ingestion.errors import TopicReadError
from penstock.ingestion.topics import ensure_topics

START_MS = 1_700_000_000_000
RECORDS = 5


@pytest.fixture
def topic(broker: LocalBroker) -> str:
    """A topic with five records in partition 0, a second apart, and none in partition 1."""
    fields = (ContractField("n", "long", "A number."),)
    ensure_topics(
        broker.bootstrap, [Contract("sliced", "A topic.", fields, layout=TopicLayout(partitions=2))]
    )
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(RECORDS):
        producer.produce("sliced", b"%d" % number, partition=0, timestamp=START_MS + 1000 * number)
    assert producer.flush(PATIENCE_S) == 0
    return "sliced"


@pytest.mark.kafka
def test_a_slice_starts_at_a_count_an_offset_or_a_time(broker: LocalBroker, topic: str) -> None:
    with open_topic_slices(broker.bootstrap, topic) as slices:
        assert (slices.first_offsets, slices.end_offsets) == ({0: 0, 1: 0}, {0: RECORDS, 1: 0})
        newest = slices.read(slices.find_newest_offsets(2), 2)
        assert [(record.offset, record.value) for record in newest] == [(3, b"3"), (4, b"4")]
        assert [record.offset for record in slices.read({0: 1}, 3)] == [1, 2, 3]
        starts = slices.find_offsets_at(START_MS + 2_500)
        assert starts == {0: 3, 1: 0}
        assert [record.arrived_ms for record in slices.read(starts, 9)] == [
            START_MS + 3_000,
            START_MS + 4_000,
        ]
        assert slices.find_offsets_at(START_MS + 60_000) == {0: RECORDS, 1: 0}
    with open_topic_slices(broker.bootstrap, "no-such-topic") as slices:
        assert slices.read(slices.find_newest_offsets(5), 5) == []


def test_a_broker_that_does_not_listen_is_named() -> None:
    with pytest.raises(TopicReadError, match=r"127\.0\.0\.1:1"), open_topic_slices("127.0.0.1:1", "sliced"):
        pass
