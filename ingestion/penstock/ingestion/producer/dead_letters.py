"""Invalid records and the headers of their dead letters."""

from collections.abc import Mapping

from penstock.ingestion.errors import InvalidRecordError
from penstock.ingestion.topics.topic_specs import MAX_DEAD_LETTER_BYTES

PRODUCER_HEADER, SEQUENCE_HEADER, TOPIC_HEADER = "penstock-producer", "penstock-sequence", "penstock-topic"
REASON_HEADER, DETAIL_HEADER, ORIGINAL_BYTES_HEADER = (
    "penstock-reason",
    "penstock-detail",
    "penstock-original-bytes",
)
_MAX_DETAIL_BYTES = 1_000
# The size limit of the dead-letter topic, minus room for the headers.
MAX_DEAD_LETTER_VALUE_BYTES = MAX_DEAD_LETTER_BYTES - 65_536


def build_dead_letter_headers(
    producer: str, sequence: int, topic: str, error: InvalidRecordError, size_bytes: int
) -> list[tuple[str, str | bytes | None]]:
    """Return the headers of a dead letter. Its value is the original bytes of the record.

    A value beyond the size limit is truncated, and a header records the original size.
    """
    return [
        *([(ORIGINAL_BYTES_HEADER, str(size_bytes))] if size_bytes > MAX_DEAD_LETTER_VALUE_BYTES else []),
        (PRODUCER_HEADER, producer),
        (SEQUENCE_HEADER, str(sequence)),
        (TOPIC_HEADER, topic),
        (REASON_HEADER, error.reason),
        (DETAIL_HEADER, error.detail.encode("utf-8", "replace")[:_MAX_DETAIL_BYTES]),
    ]


def parse_dead_letter_sequence(producer: str, headers: Mapping[str, bytes]) -> int | None:
    """Return the sequence of a dead letter of this producer, or None for other records."""
    if headers.get(PRODUCER_HEADER) != producer.encode():
        return None
    return int(headers[SEQUENCE_HEADER])
