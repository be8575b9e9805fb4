"""The current lag of each stream, measured at the broker: a batch that hangs reports none while records arrive."""

import logging
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing, contextmanager

from confluent_kafka import Consumer, KafkaException, TopicPartition

from penstock.core.kafka_client import KafkaClientSettings
from penstock.core.periodic import run_periodically

log = logging.getLogger(__name__)

POLL_INTERVAL_S = 15.0
QUERY_TIMEOUT_S = 2.0

PartitionPositions = Mapping[tuple[str, int], int]


class EndOffsetReader:
    """Reads end offsets of partitions. It uses a consumer, because an admin client may abort without its broker."""

    def __init__(self, bootstrap: str, client: KafkaClientSettings) -> None:
        consumer_config = {"group.id": "penstock-lag", "enable.auto.commit": "false", "log_level": "2"}
        self._consumer = Consumer({"bootstrap.servers": bootstrap, **consumer_config, **client})

    def __call__(self, partitions: Collection[tuple[str, int]]) -> PartitionPositions:
        """Return the end offsets of the partitions that exist; raise KafkaException if the broker is away."""
        topic_partitions = {partition: TopicPartition(*partition) for partition in partitions}
        bounds_by_partition = {
            partition: self._consumer.get_watermark_offsets(topic_partition, timeout=QUERY_TIMEOUT_S)
            for partition, topic_partition in topic_partitions.items()
        }
        return {
            partition: bounds[1] for partition, bounds in bounds_by_partition.items() if bounds is not None
        }

    def close(self) -> None:
        """Disconnect from the broker."""
        self._consumer.close()


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
    with closing(EndOffsetReader(bootstrap, client)) as end_offsets:
        lag_watch = LagWatch(read_positions, end_offsets, show_lag)
        with run_periodically(POLL_INTERVAL_S, lag_watch.poll, "lag"):
            yield
