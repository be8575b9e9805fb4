"""Waits for an unreachable broker, which the caller can end."""

from collections.abc import Callable
from contextlib import closing
from itertools import count

import pytest
from confluent_kafka import Consumer
from confluent_kafka.admin import NewTopic
from tests.patience import PATIENCE_S

from penstock.core.kafka_client import create_admin_client
from penstock.infra.local_broker import LocalBroker
from penstock.infra.ports import find_free_ports
from penstock.ingestion.producer.kafka_io import WaitCallback, create_reader, list_targets, read_offset_ranges
from penstock.ingestion.producer.readback import read_records


class WaitEndedError(Exception):
    pass


def end_wait_after(number: int) -> WaitCallback:
    calls = count(1)

    def on_wait() -> None:
        if next(calls) == number:
            raise WaitEndedError

    return on_wait


BROKER_REQUESTS: list[Callable[[Consumer, WaitCallback], object]] = [
    lambda reader, on_wait: read_records(reader, "t", 0, 0, 5, on_wait),
    lambda reader, on_wait: read_offset_ranges(reader, [("t", 0)], on_wait),
    lambda reader, on_wait: list_targets("nowhere", reader, "t", "t.dead-letters", on_wait),
]


@pytest.mark.parametrize("request_broker", BROKER_REQUESTS, ids=["records", "offsets", "partitions"])
def test_the_caller_of_a_broker_request_can_end_the_wait(
    request_broker: Callable[[Consumer, WaitCallback], object],
) -> None:
    (port,) = find_free_ports(1)
    with closing(create_reader(f"127.0.0.1:{port}", {})) as reader, pytest.raises(WaitEndedError):
        request_broker(reader, end_wait_after(2 if request_broker is BROKER_REQUESTS[0] else 1))


@pytest.mark.kafka
def test_offsets_of_a_topic_that_brokers_do_not_know_yet_are_waited_for(broker: LocalBroker) -> None:
    """A feed that started right after its topic was created, while a leader died, gave up."""
    waits = count(1)

    def create_topic() -> None:
        if next(waits) == 1:
            admin = create_admin_client(broker.bootstrap, {})
            admin.create_topics([NewTopic("known_later", 2, 1)])["known_later"].result(PATIENCE_S)

    with closing(create_reader(broker.bootstrap, {})) as reader:
        assert read_offset_ranges(reader, [("known_later", 1)], create_topic) == [(0, 0)]
    assert next(waits) > 1
