"""Waiting for a broker that is not there: somebody is told, and can end it."""

from collections.abc import Callable
from contextlib import closing
from itertools import count

import pytest
from confluent_kafka import Consumer

from penstock.infra.ports import free_ports
from penstock.ingestion.producer.client import Told, new_reader, offset_ranges, targets_of
from penstock.ingestion.producer.readback import read_range


class EnoughError(Exception):
    pass


def enough_at(number: int) -> Told:
    told = count(1)

    def waiting() -> None:
        if next(told) == number:
            raise EnoughError

    return waiting


ASKED: list[Callable[[Consumer, Told], object]] = [
    lambda reader, waiting: read_range(reader, "t", 0, 0, 5, waiting),
    lambda reader, waiting: offset_ranges(reader, [("t", 0)], waiting),
    lambda reader, waiting: targets_of("nowhere", reader, "t", "t.dead-letters", waiting),
]


@pytest.mark.parametrize("ask", ASKED, ids=["records", "offsets", "partitions"])
def test_who_waits_for_a_broker_is_told_and_can_end_it(ask: Callable[[Consumer, Told], object]) -> None:
    (port,) = free_ports(1)
    with closing(new_reader(f"127.0.0.1:{port}", {})) as reader, pytest.raises(EnoughError):
        ask(reader, enough_at(2 if ask is ASKED[0] else 1))
