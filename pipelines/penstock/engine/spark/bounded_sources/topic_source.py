"""Reads a topic up to its current end."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from penstock.engine.batch.intent import OffsetRange
from penstock.engine.errors import BoundedInputError
from penstock.engine.spark.kafka.consumer_options import CONSUMER_OPTIONS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BROKER_TIMEOUT_S = 20.0


@dataclass(frozen=True)
class TopicSource:
    """The records that a topic holds now.

    `client_options` are the security options of librdkafka, `spark_kafka_options` those of Spark's Kafka source.
    """

    session: "SparkSession"
    topic: str
    bootstrap_servers: str
    client_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    spark_kafka_options: Mapping[str, str] = field(default_factory=dict, repr=False)

    def list_ranges(self) -> tuple[OffsetRange, ...]:
        """Return every partition from its oldest record to its newest."""
        return list_topic_ranges(self.topic, self.bootstrap_servers, self.client_options)

    def find_offsets_at(self, timestamp_ms: int) -> Mapping[str, int]:
        """Return the first offset of each partition whose record arrived at this time or later, else the end."""
        admin = AdminClient(
            {"bootstrap.servers": self.bootstrap_servers, "log_level": "2", **self.client_options}
        )
        spans = self.list_ranges()
        partitions = [TopicPartition(self.topic, span.partition) for span in spans]
        offset_spec: OffsetSpec = OffsetSpec.for_timestamp(timestamp_ms)
        offsets_by_partition = list_partition_offsets(admin, partitions, offset_spec)
        return {
            s.name: offsets_by_partition[s.partition] if offsets_by_partition[s.partition] >= 0 else s.end
            for s in spans
        }

    def read_records(self, ranges: Sequence[OffsetRange]) -> "DataFrame":
        """Return the records of these ranges; a range that the broker no longer holds fails the run."""
        reader = self.session.read.format("kafka").option("kafka.bootstrap.servers", self.bootstrap_servers)
        reader = reader.option("subscribe", self.topic).options(
            **CONSUMER_OPTIONS, **self.spark_kafka_options
        )
        starts, ends = (
            {str(span.partition): bound(span) for span in ranges} for bound in (range_start, range_end)
        )
        reader = reader.option("startingOffsets", json.dumps({self.topic: starts}))
        return reader.option("endingOffsets", json.dumps({self.topic: ends})).load()


def list_topic_ranges(
    topic: str, bootstrap_servers: str, client_options: Mapping[str, str]
) -> tuple[OffsetRange, ...]:
    """Every partition of a topic from its oldest record to its newest, as the broker says; it takes no Spark."""
    admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": "2", **client_options})
    try:
        metadata = admin.list_topics(topic, timeout=BROKER_TIMEOUT_S).topics[topic]
    except KafkaException as problem:
        raise BoundedInputError(
            f"topic {topic} at {bootstrap_servers}",
            f"its broker does not answer ({problem.args[0].str()})",
            "See whether it runs: `penstock status`, `penstock doctor`",
        ) from problem
    if metadata.error is not None or not metadata.partitions:
        raise BoundedInputError(
            f"topic {topic} at {bootstrap_servers}", "it is not there", "Make it with `penstock topics apply`"
        )
    partitions = [TopicPartition(topic, number) for number in sorted(metadata.partitions)]
    earliest: OffsetSpec = OffsetSpec.earliest()  # type: ignore[no-untyped-call]  # the client has no types
    latest: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]  # the client has no types
    starts, ends = (
        list_partition_offsets(admin, partitions, offset_spec) for offset_spec in (earliest, latest)
    )
    return tuple(OffsetRange(topic, p.partition, starts[p.partition], ends[p.partition]) for p in partitions)


def range_start(span: OffsetRange) -> int:
    """Return the start of a range."""
    return span.start


def range_end(span: OffsetRange) -> int:
    """Return the end of a range."""
    return span.end


def list_partition_offsets(
    admin: AdminClient, partitions: Sequence[TopicPartition], offset_spec: OffsetSpec
) -> dict[int, int]:
    """Ask for an end of each partition."""
    futures = admin.list_offsets(dict.fromkeys(partitions, offset_spec), request_timeout=BROKER_TIMEOUT_S)
    return {partition.partition: future.result().offset for partition, future in futures.items()}
