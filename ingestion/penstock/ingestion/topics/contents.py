"""What the cluster's topics are and hold: partitions, copies, how long records stay, and the offsets there are."""

from collections.abc import Sequence
from dataclasses import dataclass

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import OffsetSpec

from penstock.ingestion.clients import PLAIN, ClientSettings, admin_client, said
from penstock.ingestion.errors import TopicsError
from penstock.ingestion.topics.cluster import observe

_SECONDS = 15.0
RETENTION, CLEANUP = "retention.ms", "cleanup.policy"


@dataclass(frozen=True)
class PartitionContents:
    """A partition: offsets from `first` up to `end`, which is that of the next record."""

    topic: str
    partition: int
    first: int
    end: int

    @property
    def records(self) -> int:
        """Return how many offsets there are; in a compacted topic some of them are empty."""
        return self.end - self.first


@dataclass(frozen=True)
class TopicContents:
    """A topic; `retention_ms` of -1 keeps records for ever."""

    name: str
    replicas: int
    retention_ms: int
    compacted: bool
    partitions: tuple[PartitionContents, ...]

    @property
    def records(self) -> int:
        """Return how many offsets all partitions have."""
        return sum(each.records for each in self.partitions)


def contents(bootstrap: str, client: ClientSettings = PLAIN) -> tuple[TopicContents, ...]:
    """Return the cluster's topics, internal ones left out, with what each partition holds now."""
    found = observe(bootstrap, (RETENTION, CLEANUP), client=client)
    places = [(name, number) for name, spec in found.items() for number in range(spec.partitions)]
    oldest: OffsetSpec = OffsetSpec.earliest()  # type: ignore[no-untyped-call]  # the client has no types
    newest: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]  # the client has no types
    firsts, ends = (_offsets(bootstrap, client, places, at) for at in (oldest, newest))
    return tuple(
        TopicContents(
            name,
            spec.replicas,
            int(dict(spec.settings).get(RETENTION, "-1")),
            "compact" in dict(spec.settings).get(CLEANUP, ""),
            tuple(
                PartitionContents(name, number, firsts[name, number], ends[name, number])
                for number in range(spec.partitions)
            ),
        )
        for name, spec in sorted(found.items())
    )


def _offsets(
    bootstrap: str, client: ClientSettings, places: Sequence[tuple[str, int]], at: OffsetSpec
) -> dict[tuple[str, int], int]:
    try:
        # The client must outlive its answers: they would never come.
        admin = admin_client(bootstrap, client)
        asked = admin.list_offsets({TopicPartition(*each): at for each in places}, request_timeout=_SECONDS)
        found = {place: answer.result(2 * _SECONDS).offset for place, answer in asked.items()}
        return {(place.topic, place.partition): offset for place, offset in found.items()}
    except KafkaException as error:
        raise TopicsError(f"the offsets at {bootstrap} cannot be read: {said(error)}") from error
