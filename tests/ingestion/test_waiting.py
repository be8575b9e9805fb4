"""Waiting for a broker that is not there: somebody is told, and can end it."""

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
    told = count(1)

    def waiting() -> None:
        if next(told) == number:
            raise WaitEndedError

    return waiting


BROKER_REQUESTS: list[Callable[[Consumer, WaitCallback], object]] = [
    lambda reader, waiting: read_records(reader, "t", 0, 0, 5, waiting),
    lambda reader, waiting: read_offset_ranges(reader, [("t", 0)], waiting),
    lambda reader, waiting: list_targets("nowhere", reader, "t", "t.dead-letters", waiting),
]


@pytest.mark.parametrize("ask", BROKER_REQUESTS, ids=["records", "offsets", "partitions"])
def test_who_waits_for_a_broker_is_told_and_can_end_it(
    ask: Callable[[Consumer, WaitCallback], object],
) -> None:
    (port,) = find_free_ports(1)
    with closing(create_reader(f"127.0.0.1:{port}", {})) as reader, pytest.raises(WaitEndedError):
        ask(reader, end_wait_after(2 if ask is BROKER_REQUESTS[0] else 1))
