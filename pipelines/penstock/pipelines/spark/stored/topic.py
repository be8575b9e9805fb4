"""A topic, as far as it goes at the moment."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from penstock.pipelines.batch.intent import Range
from penstock.pipelines.errors import StoredError
from penstock.pipelines.spark.asking import READING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PATIENCE_S = 20.0


@dataclass(frozen=True)
class StoredTopic:
    """The records that a topic holds. `client` and `kafka` are what a secured broker wants of either client."""

    session: "SparkSession"
    topic: str
    bootstrap: str
    client: Mapping[str, str] = field(default_factory=dict, repr=False)
    kafka: Mapping[str, str] = field(default_factory=dict, repr=False)

    def ranges(self) -> tuple[Range, ...]:
        """Every partition from its oldest record to its newest."""
        return ranges_of(self.topic, self.bootstrap, self.client)

    def offsets_at(self, at_ms: int) -> Mapping[str, int]:
        """The first offset of each partition whose record came at a time or later; the end where none did."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": "2", **self.client})
        spans = self.ranges()
        places = [TopicPartition(self.topic, span.partition) for span in spans]
        at: OffsetSpec = OffsetSpec.for_timestamp(at_ms)
        found = offsets(admin, places, at)
        return {s.name: found[s.partition] if found[s.partition] >= 0 else s.end for s in spans}

    def records(self, ranges: Sequence[Range]) -> "DataFrame":
        """Read offset ranges; one that the broker no longer holds fails the run."""
        reader = self.session.read.format("kafka").option("kafka.bootstrap.servers", self.bootstrap)
        reader = reader.option("subscribe", self.topic).options(**READING, **self.kafka)
        starts, ends = ({str(r.partition): at(r) for r in ranges} for at in (start_of, end_of))
        reader = reader.option("startingOffsets", json.dumps({self.topic: starts}))
        return reader.option("endingOffsets", json.dumps({self.topic: ends})).load()


def ranges_of(topic: str, bootstrap: str, client: Mapping[str, str]) -> tuple[Range, ...]:
    """Every partition of a topic from its oldest record to its newest, as the broker says; it takes no Spark."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": "2", **client})
    try:
        known = admin.list_topics(topic, timeout=PATIENCE_S).topics[topic]
    except KafkaException as problem:
        raise StoredError(
            f"topic {topic} at {bootstrap}",
            f"its broker does not answer ({problem.args[0].str()})",
            "See whether it runs: `penstock status`, `penstock doctor`",
        ) from problem
    if known.error is not None or not known.partitions:
        raise StoredError(
            f"topic {topic} at {bootstrap}", "it is not there", "Make it with `penstock topics apply`"
        )
    places = [TopicPartition(topic, number) for number in sorted(known.partitions)]
    earliest: OffsetSpec = OffsetSpec.earliest()  # type: ignore[no-untyped-call]  # the client has no types
    latest: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]  # the client has no types
    starts, ends = (offsets(admin, places, at) for at in (earliest, latest))
    return tuple(Range(topic, p.partition, starts[p.partition], ends[p.partition]) for p in places)


def start_of(span: Range) -> int:
    """Where a range begins."""
    return span.start


def end_of(span: Range) -> int:
    """Where a range ends."""
    return span.end


def offsets(admin: AdminClient, places: Sequence[TopicPartition], at: OffsetSpec) -> dict[int, int]:
    """Ask for an end of each partition."""
    asked = admin.list_offsets(dict.fromkeys(places, at), request_timeout=PATIENCE_S)
    return {place.partition: answer.result().offset for place, answer in asked.items()}
