"""Spark's messages about records that are gone become an error that says what to do."""

import pytest

from penstock.engine.errors import RecordsExpiredError
from penstock.engine.host.restart_policy import PERMANENT_ERRORS
from penstock.engine.spark.kafka.expired_records import explain_expired_records


@pytest.mark.parametrize(
    ("message", "records"),
    [
        (
            "Reason: Could not read records in offset [10, 30) for topic partition my-topic-0\nwith consumer group",
            "of the offsets 10 to 29 of my-topic/0, some",
        ),
        (
            "Partition my-topic-2's offset was changed from 10 to 25, some data may have been missed.",
            "offsets 10 to 24 of my-topic/2",
        ),
    ],
)
def test_expired_records_are_named_with_a_way_on(message: str, records: str) -> None:
    error = explain_expired_records("minute", RuntimeError(message))
    assert isinstance(error, PERMANENT_ERRORS)
    assert isinstance(error, RecordsExpiredError)
    assert str(error).startswith(f"stream minute: {records} expired in the topic")
    assert "penstock stream replay minute --from archive" in str(error)


@pytest.mark.parametrize("message", ["", "Partition t-0's offset was changed from 30 to 5, some data"])
def test_other_errors_stay_as_they_are(message: str) -> None:
    error = RuntimeError(message)
    assert explain_expired_records("minute", error) is error
