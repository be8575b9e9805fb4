"""Recognizes the errors of Spark's Kafka source about records that expired before they were read."""

import re

from penstock.engine.errors import RecordsExpiredError

_UNREADABLE_RANGE = re.compile(
    r"Could not read records in offset \[(\d+), (\d+)\) for topic partition (\S+)-(\d+)"
)
_LATER_START = re.compile(r"Partition (\S+)-(\d+)'s offset was changed from (\d+) to (\d+)")


def explain_expired_records(stream: str, error: BaseException) -> BaseException:
    """Return RecordsExpiredError for an error that says so, and any other error as it is."""
    text = str(error)
    if found := _UNREADABLE_RANGE.search(text):
        start, end, topic, partition = found.groups()
        return RecordsExpiredError(
            stream, f"of the offsets {start} to {int(end) - 1} of {topic}/{partition}, some"
        )
    if (found := _LATER_START.search(text)) and int(found[3]) < int(found[4]):
        topic, partition, start, end = found.groups()
        return RecordsExpiredError(stream, f"offsets {start} to {int(end) - 1} of {topic}/{partition}")
    return error
