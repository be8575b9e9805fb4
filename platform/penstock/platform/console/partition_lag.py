"""The lag of a stream by partition: the offsets of its newest batch, beside the ends that the broker reports."""

import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from penstock.core.kafka_offsets import PartitionKey, fetch_end_offsets
from penstock.engine.batch.accounts import PartitionAccount
from penstock.engine.host.control import BatchRecord
from penstock.ingestion.consumers.topic_contents import open_reading_consumer
from penstock.ingestion.errors import TopicReadError
from penstock.platform.settings import Settings

KEEP_MS = 2_000
TIMEOUT_S = 5.0
MAX_PARTITIONS = 48


@dataclass(frozen=True)
class PartitionLag:
    """A partition with the next offset that the stream reads. `end` is None if the broker did not report it."""

    topic: str
    partition: int
    position: int
    end: int | None
    read: int
    """The records that the stream has read of it in the shown interval."""

    @property
    def lag(self) -> int | None:
        """How many records the stream has not read yet."""
        return None if self.end is None else max(self.end - self.position, 0)


def list_partition_lags(
    accounts: Sequence[PartitionAccount], ends: Mapping[PartitionKey, int], batches: Sequence[BatchRecord]
) -> list[PartitionLag]:
    """Return the partitions of a stream in their order; of very many, those with the greatest lag."""
    read: Counter[PartitionKey] = Counter()
    for account in (account for batch in batches for account in batch.accounts):
        read[account.topic, account.partition] += account.read
    lags = [
        PartitionLag(
            account.topic,
            account.partition,
            account.end,
            ends.get((account.topic, account.partition)),
            read[account.topic, account.partition],
        )
        for account in accounts
    ]
    greatest = sorted(lags, key=lambda each: -(each.lag or 0))[:MAX_PARTITIONS]
    return sorted(greatest, key=lambda each: (each.topic, each.partition))


class EndOffsetReader:
    """Asks the broker for the ends of partitions. Answers are shared, and are at most two seconds old."""

    def __init__(self, settings: Settings, clock: Callable[[], int]) -> None:
        self._settings, self._clock = settings, clock
        self._lock = threading.Lock()
        self._known: dict[str, tuple[int, Mapping[PartitionKey, int]]] = {}

    def read(self, stream: str, accounts: Sequence[PartitionAccount]) -> Mapping[PartitionKey, int]:
        """Return the ends of the partitions that a stream reads; none if the broker does not answer."""
        with self._lock:
            now_ms = self._clock()
            asked_at_ms, ends = self._known.get(stream, (-KEEP_MS, {}))
            if now_ms - asked_at_ms >= KEEP_MS:
                ends = self._fetch([(account.topic, account.partition) for account in accounts])
                self._known[stream] = now_ms, ends
            return ends

    def list_known(self, stream: str) -> Mapping[PartitionKey, int]:
        """Return what is known already, without asking the broker, for the first view of a page."""
        return self._known.get(stream, (0, {}))[1]

    def _fetch(self, partitions: Sequence[PartitionKey]) -> Mapping[PartitionKey, int]:
        if not partitions:
            return {}
        kafka = self._settings.kafka
        try:
            with open_reading_consumer(
                kafka.bootstrap_servers, partitions[0][0], kafka.client_config("host")
            ) as consumer:
                return fetch_end_offsets(consumer, partitions, TIMEOUT_S, skip_errors=True)
        except TopicReadError:
            return {}
