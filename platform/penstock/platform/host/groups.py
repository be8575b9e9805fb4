"""How far streams are, as Kafka's own tools see it: a consumer group for each stream, that nobody joins."""

import logging

from penstock.ingestion.clients import ClientSettings
from penstock.ingestion.consumers import GroupOffsets
from penstock.ingestion.errors import GroupError
from penstock.pipelines.host.control import BatchRecord

log = logging.getLogger(__name__)
LAST_WORD_SECONDS = 5.0


def group_of(stream: str) -> str:
    """Return the group that a stream's offsets are kept under."""
    return f"penstock-{stream}"


class StreamGroups:
    """Reports each committed batch to the broker; a broker that does not take it costs a line of the log.

    What a stream starts from is its own journal, never these offsets.
    """

    def __init__(self, bootstrap: str, client: ClientSettings) -> None:
        self._refusals: set[str] = set()
        self._offsets = GroupOffsets(bootstrap, client, on_refusal=self._refused)

    def batch(self, record: BatchRecord) -> None:
        """Report where a batch ended; does not wait."""
        ends = {(account.topic, account.partition): account.end for account in record.accounts}
        self._offsets.report(group_of(record.stream), ends)

    def close(self) -> None:
        """Have what was reported arrive, as far as the broker answers soon."""
        self._offsets.close(LAST_WORD_SECONDS)

    def _refused(self, error: GroupError) -> None:
        if str(error) not in self._refusals:
            self._refusals.add(str(error))
            log.warning("%s", error)
