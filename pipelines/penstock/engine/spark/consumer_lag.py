"""How many records a topic holds beyond the offsets that a batch read."""

from collections.abc import Sequence

from confluent_kafka import KafkaException

from penstock.core.clock import Clock
from penstock.core.kafka_client import BrokerAccess
from penstock.core.kafka_offsets import fetch_end_offsets, open_offset_consumer
from penstock.engine.batch.intent import OffsetRange

LAG_REFRESH_INTERVAL_MS = 1_000
BROKER_TIMEOUT_S = 2.0


class LagTracker:
    """Asks the broker for end offsets, at most once a second; between requests the last answer is used."""

    def __init__(self, broker: BrokerAccess, clock: Clock) -> None:
        self._consumer = open_offset_consumer(broker.bootstrap, broker.client_options)
        self._clock = clock
        self._refreshed_at_ms: int | None = None
        self._end_offsets: dict[tuple[str, int], int] = {}

    def count_backlog(self, ranges: Sequence[OffsetRange]) -> int:
        """Return the number of records beyond these ranges; partitions without an answer count as none."""
        now_ms = self._clock()
        if ranges and (
            self._refreshed_at_ms is None or now_ms - self._refreshed_at_ms >= LAG_REFRESH_INTERVAL_MS
        ):
            self._refreshed_at_ms = now_ms
            self._refresh_end_offsets(ranges)
        return sum(
            max(
                self._end_offsets.get((offset_range.topic, offset_range.partition), offset_range.end)
                - offset_range.end,
                0,
            )
            for offset_range in ranges
        )

    def find_unread_partitions(self, ranges: Sequence[OffsetRange]) -> list[str]:
        """Return the partitions with records beyond these ranges now, or whose end the broker does not report."""
        self._refreshed_at_ms = self._clock()
        self._refresh_end_offsets(ranges)
        return [
            offset_range.name
            for offset_range in ranges
            if self._end_offsets.get((offset_range.topic, offset_range.partition), offset_range.end + 1)
            > offset_range.end
        ]

    def _refresh_end_offsets(self, ranges: Sequence[OffsetRange]) -> None:
        partitions = [(offset_range.topic, offset_range.partition) for offset_range in ranges]
        try:
            end_offsets = fetch_end_offsets(self._consumer, partitions, BROKER_TIMEOUT_S, skip_errors=True)
        except KafkaException:
            end_offsets = {}
        for partition in partitions:
            self._end_offsets.pop(partition, None)
        self._end_offsets |= end_offsets
