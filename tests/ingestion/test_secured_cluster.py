"""Ingestion with a cluster that requires TLS and a password."""

import dataclasses
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.ingestion.topic_contracts import sensors_contract

from penstock.core.kafka_client import KafkaClientSettings
from penstock.infra.local.certificates import make_certificates
from penstock.infra.local_broker import LocalBroker
from penstock.infra.ports import find_free_ports
from penstock.ingestion.consumers import ConsumerRecord, GroupOffsetCommitter, PlainConsumer
from penstock.ingestion.contracts import TopicLayout
from penstock.ingestion.errors import TopicAdminError
from penstock.ingestion.feed import Feed, FeedLimits
from penstock.ingestion.generators import SensorGenerator
from penstock.ingestion.ledger import DeliveryLedger, read_addresses
from penstock.ingestion.sources import GeneratorSource
from penstock.ingestion.topics import ensure_topics, plan_cluster_changes, read_cluster_topics

pytestmark = pytest.mark.kafka
LOGIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule required"


@dataclasses.dataclass(frozen=True)
class SecuredBroker:
    """The secured address of a broker, and the client settings for it."""

    address: str
    client: KafkaClientSettings


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory, kafka_jar_paths: list[Path]) -> Iterator[SecuredBroker]:
    """A broker with a plain listener for its start and a secured one for clients."""
    folder = tmp_path_factory.mktemp("secured")
    make_certificates(folder, datetime.now(UTC))
    broker = LocalBroker.in_directory(folder / "broker", kafka_jar_paths)
    (port,) = find_free_ports(1)
    plain, address = f"127.0.0.1:{broker.config.port}", f"127.0.0.1:{port}"
    properties = {
        "listeners": f"PLAINTEXT://{plain},SASL_SSL://{address},CONTROLLER://127.0.0.1:{broker.config.controller_port}",
        "advertised.listeners": f"PLAINTEXT://{plain},SASL_SSL://{address}",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_SSL:SASL_SSL",
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_ssl.plain.sasl.jaas.config": f'{LOGIN_MODULE} user_writer="of records";',
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(folder / "broker.pem"),
    }
    config = dataclasses.replace(broker.config, properties=tuple(properties.items()))
    client = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "writer",
        "sasl.password": "of records",
        "ssl.ca.location": str(folder / "ca.pem"),
    }
    with LocalBroker(config, kafka_jar_paths):
        yield SecuredBroker(address, client)


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def test_topics_are_planned_and_created(secured: SecuredBroker):
    contract = dataclasses.replace(sensors_contract("kept"), layout=TopicLayout(partitions=2))
    changes = ensure_topics(secured.address, [contract], client_settings=secured.client)
    assert [change.action for change in changes] == ["create", "create"]
    assert plan_cluster_changes(secured.address, [contract], client_settings=secured.client).changes == ()


def test_a_feed_delivers_and_resumes_and_a_consumer_reads(secured: SecuredBroker, tmp_path: Path):
    contract = sensors_contract("fed")
    ensure_topics(secured.address, [contract], client_settings=secured.client)
    source = GeneratorSource(SensorGenerator(1), contract, now_ms)
    feed = Feed(source, contract, secured.address, tmp_path / "feed", now_ms, client_settings=secured.client)
    assert (
        feed.run(threading.Event(), limits=FeedLimits(count=500, finish_ms=30_000)).acknowledged_records
        == 500
    )
    record_unsent_intent(tmp_path / "feed")
    # Recovery reads the topic, over the same listener.
    assert (
        feed.run(threading.Event(), limits=FeedLimits(count=500, finish_ms=30_000)).acknowledged_until
        == 1_100
    )
    records: list[ConsumerRecord] = []
    consumer = PlainConsumer(
        secured.address, "fed", "readers", records.extend, client_settings=secured.client
    )
    assert consumer.run(threading.Event(), 1_100) == 1_100
    assert {(record.partition, record.offset) for record in records} == {
        (address.partition, address.offset) for address in read_addresses(tmp_path / "feed")
    }


def record_unsent_intent(directory: Path) -> None:
    """Record an intent without sending its records, as a kill at that time leaves it."""
    ledger = DeliveryLedger(directory, now_ms)
    last = ledger.state.last_intent
    assert last is not None
    ledger.record_intent(500, 100, {**last.position, "next": 500, "count": 100})
    ledger.close(clean=False)


def test_offsets_of_a_group_are_committed(secured: SecuredBroker):
    ensure_topics(secured.address, [sensors_contract("lagging")], client_settings=secured.client)
    groups = GroupOffsetCommitter(secured.address, secured.client)
    groups.report("stream", {("lagging", 0): 7})
    assert groups.wait_until_committed(30)
    assert groups.read_offsets("stream") == {("lagging", 0): 7}


@pytest.mark.parametrize("change", [{"sasl.password": "guessed"}, {"security.protocol": "PLAINTEXT"}])
def test_a_refused_login_is_reported(secured: SecuredBroker, change: KafkaClientSettings):
    with pytest.raises(TopicAdminError, match="Cannot read"):
        read_cluster_topics(secured.address, timeout_s=1.0, client_settings={**secured.client, **change})
