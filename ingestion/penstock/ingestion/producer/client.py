"""The Kafka client as this platform wants it, and what can be asked of a topic."""

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from penstock.ingestion.clients import ClientSettings, said
from penstock.ingestion.errors import TopicsError

Targets = list[tuple[str, int]]
# Told again and again while somebody waits for the broker; ends the waiting by raising.
Told = Callable[[], None]
Answer = TypeVar("Answer")
_SECONDS = 30.0
_PAUSE_SECONDS = 0.2
_ANSWER_SECONDS = 3.0
_MAY_PASS = {
    "_ALL_BROKERS_DOWN",
    "_TIMED_OUT",
    "_DESTROY_BROKER",
    "_TRANSPORT",
    "FENCED_LEADER_EPOCH",
    "LEADER_NOT_AVAILABLE",
    "NOT_LEADER_FOR_PARTITION",
    "UNKNOWN_LEADER_EPOCH",
}


def silently() -> None:
    """Wait, and tell nobody."""


def new_producer(bootstrap: str, on_error: Callable[[KafkaError], None], client: ClientSettings) -> Producer:
    """Return an idempotent producer that waits for the broker for as long as it takes.

    A record that is refused stops it with a fatal error, instead of leaving a gap and going on.
    """
    return Producer(
        {
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,
            "enable.gapless.guarantee": True,
            "acks": "all",
            "message.timeout.ms": 0,
            "linger.ms": 5,
            "batch.size": 1_000_000,
            "compression.type": "lz4",
            "reconnect.backoff.ms": 50,
            "reconnect.backoff.max.ms": 1_000,
            "error_cb": on_error,
            "log_level": 2,
            **client,
        },
        logger=logging.getLogger("penstock.ingestion.kafka"),
    )


def new_reader(bootstrap: str, client: ClientSettings) -> Consumer:
    """Return a consumer that belongs to no group's balance and commits nothing."""
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "penstock-reader",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
            "isolation.level": "read_uncommitted",
            "fetch.message.max.bytes": 4_194_304,
            "log_level": 2,
            **client,
        },
        logger=logging.getLogger("penstock.ingestion.kafka"),
    )


def targets_of(
    bootstrap: str, reader: Consumer, topic: str, dead_letters: str, waiting: Told = silently
) -> Targets:
    """Return the partitions of a topic, and last the partition that takes its dead letters."""
    for name in (topic, dead_letters):
        found = _partitions(bootstrap, reader, name, waiting)
        if not found:
            raise TopicsError(f"there is no topic {name} at {bootstrap}; `penstock topics apply` makes it")
        if name == topic:
            targets = [(topic, partition) for partition in range(found)]
    return [*targets, (dead_letters, 0)]


def offset_ranges(
    reader: Consumer, targets: Sequence[tuple[str, int]], waiting: Told = silently
) -> list[tuple[int, int]]:
    """Return for each target its first offset and the one after its last.

    Where a broker has just gone it waits, as long as for any answer, until another one leads its partitions.
    """
    deadline = time.monotonic() + _SECONDS
    return [_offset_range(reader, TopicPartition(*target), deadline, waiting) for target in targets]


def _offset_range(reader: Consumer, place: TopicPartition, deadline: float, waiting: Told) -> tuple[int, int]:
    def look_for_the_leader() -> None:
        waiting()
        reader.poll(_PAUSE_SECONDS)
        # What it cannot be told now it is told, or not, when it asks again.
        with suppress(KafkaException):
            reader.list_topics(place.topic, timeout=_ANSWER_SECONDS)

    return _answer(
        lambda seconds: reader.get_watermark_offsets(place, timeout=seconds), deadline, look_for_the_leader
    )


def _answer(ask: Callable[[float], Answer], deadline: float, waiting: Told) -> Answer:
    """Ask until there is an answer; between two tries `waiting` is told, which may end the waiting by raising."""
    while True:
        try:
            return ask(_ANSWER_SECONDS)
        except KafkaException as error:
            if error.args[0].name() not in _MAY_PASS or time.monotonic() > deadline:
                raise
        waiting()


def _partitions(bootstrap: str, reader: Consumer, topic: str, waiting: Told) -> int:
    deadline = time.monotonic() + _SECONDS
    try:
        metadata = _answer(
            lambda seconds: reader.list_topics(topic, timeout=seconds), deadline, waiting
        ).topics[topic]
    except KafkaException as error:
        raise TopicsError(
            f"topic {topic} at {bootstrap} cannot be looked up: {said(error)}; is the broker up?"
        ) from error
    return 0 if metadata.error is not None else len(metadata.partitions)
