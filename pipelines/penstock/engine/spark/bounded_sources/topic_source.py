"""Reads a topic up to its current end."""

import json
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from confluent_kafka import KafkaException

from penstock.core.kafka_client import BrokerAccess, describe_kafka_error
from penstock.core.kafka_offsets import (
    fetch_end_offsets,
    fetch_first_offsets,
    fetch_offsets_at,
    open_offset_consumer,
)
from penstock.engine.batch.intent import OffsetRange
from penstock.engine.errors import BoundedInputError
from penstock.engine.spark.kafka.consumer_options import CONSUMER_OPTIONS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BROKER_TIMEOUT_S = 20.0


@dataclass(frozen=True)
class TopicSource:
    """The records that a topic holds now."""

    session: "SparkSession"
    topic: str
    broker: BrokerAccess

    def list_ranges(self) -> tuple[OffsetRange, ...]:
        """Return every partition from its oldest record to its newest."""
        return list_topic_ranges(self.topic, self.broker)

    def find_offsets_at(self, timestamp_ms: int) -> Mapping[str, int]:
        """Return the first offset of each partition whose record arrived at this time or later, else the end."""
        ranges = self.list_ranges()
        partitions = [(span.topic, span.partition) for span in ranges]
        with closing(open_offset_consumer(self.broker.bootstrap, self.broker.client_options)) as consumer:
            offsets = fetch_offsets_at(consumer, partitions, timestamp_ms, BROKER_TIMEOUT_S)
        return {span.name: offsets.get((span.topic, span.partition), span.end) for span in ranges}

    def read_records(self, ranges: Sequence[OffsetRange]) -> "DataFrame":
        """Return the records of these ranges; a range that the broker no longer holds fails the run."""
        reader = self.session.read.format("kafka").option("kafka.bootstrap.servers", self.broker.bootstrap)
        reader = reader.option("subscribe", self.topic).options(
            **CONSUMER_OPTIONS, **self.broker.spark_options
        )
        starts, ends = (
            {str(span.partition): bound(span) for span in ranges} for bound in (range_start, range_end)
        )
        reader = reader.option("startingOffsets", json.dumps({self.topic: starts}))
        return reader.option("endingOffsets", json.dumps({self.topic: ends})).load()


def list_topic_ranges(topic: str, broker: BrokerAccess) -> tuple[OffsetRange, ...]:
    """Return every partition of a topic from its oldest record to its newest, without Spark.

    Raises BoundedInputError when the broker does not answer, or the topic does not exist.
    """
    location = f"topic {topic} at {broker.bootstrap}"
    try:
        with closing(open_offset_consumer(broker.bootstrap, broker.client_options)) as consumer:
            metadata = consumer.list_topics(topic, timeout=BROKER_TIMEOUT_S).topics[topic]
            if metadata.error is not None or not metadata.partitions:
                raise BoundedInputError(
                    location, "it does not exist", "Create it with `penstock topics apply`"
                )
            partitions = [(topic, number) for number in sorted(metadata.partitions)]
            starts = fetch_first_offsets(consumer, partitions, BROKER_TIMEOUT_S)
            ends = fetch_end_offsets(consumer, partitions, BROKER_TIMEOUT_S)
    except KafkaException as problem:
        raise BoundedInputError(
            location,
            f"its broker does not answer ({describe_kafka_error(problem)})",
            "Check that it runs: `penstock status`, `penstock doctor`",
        ) from problem
    return tuple(OffsetRange(*partition, starts[partition], ends[partition]) for partition in partitions)


def range_start(span: OffsetRange) -> int:
    """Return the start of a range."""
    return span.start


def range_end(span: OffsetRange) -> int:
    """Return the end of a range."""
    return span.end
