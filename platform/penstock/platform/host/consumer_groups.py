"""How far streams are, as Kafka's own tools see it: a consumer group for each stream, that nobody joins."""

import logging

from penstock.core.kafka_client import KafkaClientSettings
from penstock.engine.host.control import BatchRecord
from penstock.ingestion.consumers import GroupOffsetCommitter
from penstock.ingestion.errors import ConsumerGroupError

log = logging.getLogger(__name__)
CLOSE_TIMEOUT_S = 5.0


def consumer_group_id(stream: str) -> str:
    """Return the group that a stream's offsets are kept under."""
    return f"penstock-{stream}"


class StreamConsumerGroups:
    """Reports each committed batch to the broker; a broker that does not take it costs a line of the log.

    What a stream starts from is its own journal, never these offsets.
    """

    def __init__(self, bootstrap: str, client: KafkaClientSettings) -> None:
        self._logged_refusals: set[str] = set()
        self._group_offsets = GroupOffsetCommitter(bootstrap, client, on_refusal=self._log_refusal)

    def report_batch(self, record: BatchRecord) -> None:
        """Report where a batch ended; does not wait."""
        end_offsets = {(account.topic, account.partition): account.end for account in record.accounts}
        self._group_offsets.report(consumer_group_id(record.stream), end_offsets)

    def close(self) -> None:
        """Have what was reported arrive, as far as the broker answers soon."""
        self._group_offsets.close(CLOSE_TIMEOUT_S)

    def _log_refusal(self, error: ConsumerGroupError) -> None:
        if str(error) not in self._logged_refusals:
            self._logged_refusals.add(str(error))
            log.warning("%s", error)
