"""Waits for an unreachable broker, which the caller can end."""

from collections.abc import Callable
from contextlib import closing
from itertools import count

import pytest
from confluent_kafka import Consumer

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
