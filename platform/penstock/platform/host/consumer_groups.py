"""The progress of streams for Kafka's own tools: offsets of one consumer group for each stream, without members."""

import logging

from penstock.core.kafka_client import KafkaClientSettings
from penstock.engine.host.control import BatchRecord
from penstock.ingestion.consumers import GroupOffsetCommitter
from penstock.ingestion.errors import ConsumerGroupError

log = logging.getLogger(__name__)
CLOSE_TIMEOUT_S = 5.0


def consumer_group_id(stream: str) -> str:
    """Return the consumer group that holds the offsets of a stream."""
    return f"penstock-{stream}"


class StreamConsumerGroups:
    """Commits the offsets of each batch to the broker; a failure is logged once and affects nothing else.

    A stream starts from its journal, never from these offsets.
    """

    def __init__(self, bootstrap: str, client: KafkaClientSettings) -> None:
        self._logged_refusals: set[str] = set()
        self._group_offsets = GroupOffsetCommitter(bootstrap, client, on_refusal=self._log_refusal)

    def report_batch(self, record: BatchRecord) -> None:
        """Commit the end offsets of a batch, without waiting for the broker."""
        end_offsets = {(account.topic, account.partition): account.end for account in record.accounts}
        self._group_offsets.report(consumer_group_id(record.stream), end_offsets)

    def close(self) -> None:
        """Wait a short time for pending commits."""
        self._group_offsets.close(CLOSE_TIMEOUT_S)

    def _log_refusal(self, error: ConsumerGroupError) -> None:
        if str(error) not in self._logged_refusals:
            self._logged_refusals.add(str(error))
            log.warning("%s", error)
