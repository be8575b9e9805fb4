"""Records that break their contract, with the reason, on their way to the dead-letter topic."""

from collections.abc import Mapping

from penstock.ingestion.errors import InvalidRecordError
from penstock.ingestion.topics.topic_specs import MAX_DEAD_LETTER_BYTES

PRODUCER_HEADER, SEQUENCE_HEADER, TOPIC_HEADER = "penstock-producer", "penstock-sequence", "penstock-topic"
REASON_HEADER, DETAIL_HEADER, ORIGINAL_BYTES_HEADER = (
    "penstock-reason",
    "penstock-detail",
    "penstock-whole-bytes",
)
_MAX_DETAIL_BYTES = 1_000
# What the dead-letter topic takes, without what headers may weigh.
MAX_DEAD_LETTER_VALUE_BYTES = MAX_DEAD_LETTER_BYTES - 65_536


def build_dead_letter_headers(
    producer: str, sequence: int, topic: str, error: InvalidRecordError, size_bytes: int
) -> list[tuple[str, str | bytes | None]]:
    """Return the headers of a dead letter; its value is the record's original bytes.

    Of more than the topic takes only the beginning is kept, and a header says how many bytes there were.
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
    """Return the sequence of a dead letter if it is this producer's."""
    if headers.get(PRODUCER_HEADER) != producer.encode():
        return None
    return int(headers[SEQUENCE_HEADER])
