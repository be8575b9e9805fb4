"""Records that break their contract, with the reason, on their way to the dead-letter topic."""

from collections.abc import Mapping

from penstock.ingestion.errors import BrokenRecordError

PRODUCER, SEQUENCE, TOPIC = "penstock-producer", "penstock-sequence", "penstock-topic"
REASON, DETAIL = "penstock-reason", "penstock-detail"
_DETAIL_BYTES = 1_000


def headers_of(
    producer: str, sequence: int, topic: str, error: BrokenRecordError
) -> list[tuple[str, str | bytes | None]]:
    """Return the headers of a dead letter; its value is the record's original bytes."""
    return [
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
