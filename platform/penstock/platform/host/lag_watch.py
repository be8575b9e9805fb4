"""The current lag of each stream, measured at the broker: a batch that hangs reports none while records arrive."""

import logging
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing, contextmanager

from confluent_kafka import KafkaException

from penstock.core.kafka_client import KafkaClientSettings
from penstock.core.kafka_offsets import fetch_end_offsets, open_offset_consumer
from penstock.core.periodic import run_periodically

log = logging.getLogger(__name__)

POLL_INTERVAL_S = 15.0
QUERY_TIMEOUT_S = 2.0

PartitionPositions = Mapping[tuple[str, int], int]


class LagWatch:
    """Measures the lag of reading streams periodically; without an answer of the broker the last values stay."""

    def __init__(
        self,
        read_positions: Callable[[], Mapping[str, PartitionPositions]],
        fetch_end_offsets: Callable[[Collection[tuple[str, int]]], PartitionPositions],
        show_lag: Callable[[Mapping[str, int]], None],
    ) -> None:
        self._read_positions = read_positions
        self._fetch_end_offsets = fetch_end_offsets
        self._show_lag = show_lag

    def poll(self) -> None:
        """Measure once."""
        positions = self._read_positions()
        try:
            end_offsets = self._fetch_end_offsets(
                {partition for offsets in positions.values() for partition in offsets}
            )
        except KafkaException as problem:
            log.debug("End offsets not available: %s", problem)
            return
        self._show_lag(
            {
                stream: sum(
                    max(end_offsets.get(partition, offset) - offset, 0)
                    for partition, offset in offsets.items()
                )
                for stream, offsets in positions.items()
            }
        )


@contextmanager
def watch_lag(
    bootstrap: str,
    client: KafkaClientSettings,
    read_positions: Callable[[], Mapping[str, PartitionPositions]],
    show_lag: Callable[[Mapping[str, int]], None],
) -> Iterator[None]:
    """Measure and show the lag of streams until the context ends."""
    with closing(open_offset_consumer(bootstrap, client, committed_only=True)) as consumer:
        lag_watch = LagWatch(
            read_positions,
            lambda partitions: fetch_end_offsets(consumer, partitions, QUERY_TIMEOUT_S, skip_errors=True),
            show_lag,
        )
        with run_periodically(POLL_INTERVAL_S, lag_watch.poll, "lag"):
            yield
