"""Records that break their contract, with the reason, on their way to the dead-letter topic."""

from collections.abc import Mapping

from penstock.ingestion.errors import BrokenRecordError
from penstock.ingestion.topics.model import DEAD_LETTER_MAX_BYTES

PRODUCER, SEQUENCE, TOPIC = "penstock-producer", "penstock-sequence", "penstock-topic"
REASON, DETAIL, WHOLE_BYTES = "penstock-reason", "penstock-detail", "penstock-whole-bytes"
_DETAIL_BYTES = 1_000
# What the dead-letter topic takes, without what headers may weigh.
KEPT_BYTES = DEAD_LETTER_MAX_BYTES - 65_536


def headers_of(
    producer: str, sequence: int, topic: str, error: BrokenRecordError, size: int
) -> list[tuple[str, str | bytes | None]]:
    """Return the headers of a dead letter; its value is the record's original bytes.

    Of more than the topic takes only the beginning is kept, and a header says how many bytes there were.
    """
    return [
        *([(WHOLE_BYTES, str(size))] if size > KEPT_BYTES else []),
        (PRODUCER, producer),
        (SEQUENCE, str(sequence)),
        (TOPIC, topic),
        (REASON, error.reason),
        (DETAIL, error.detail.encode("utf-8", "replace")[:_DETAIL_BYTES]),
    ]


def sequence_of(producer: str, headers: Mapping[str, bytes]) -> int | None:
    """Return the sequence of a dead letter if it is this producer's."""
    if headers.get(PRODUCER) != producer.encode():
        return None
    return int(headers[SEQUENCE])
