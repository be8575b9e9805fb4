"""Dead letters as quarantined records."""

import pytest
from tests.quality.quarantine.test_decisions import quarantined_record

from penstock.ingestion.consumers.topic_contents import StoredRecord
from penstock.ingestion.contracts import load_contract
from penstock.ingestion.producer.record_serde import create_record_format
from penstock.quality.errors import QuarantineError
from penstock.quality.quarantine.dead_letters import to_quarantined_records
from penstock.quality.quarantine.decisions import QuarantineDecision
from penstock.quality.quarantine.quarantined_records import RecordPosition, parse_position
from penstock.quality.quarantine.record_status import build_statuses
from penstock.quality.quarantine.replay import judge_records

HEADERS = {
    "penstock-producer": b"json-lines-orders",
    "penstock-reason": b"wrong_type:amount",
    "penstock-detail": b'expected double, found "12.5"',
}


def test_a_dead_letter_has_the_reason_that_a_stream_gives() -> None:
    (record,) = to_quarantined_records("orders", [StoredRecord(0, 12, None, None, b"{}", HEADERS)])
    assert record.reason == 'wrong_type:amount (expected double, found "12.5")'
    assert (str(record.position), record.streams) == ("dead-letters/0:12", ("producer json-lines-orders",))
    (unknown,) = to_quarantined_records("orders", [StoredRecord(0, 13, None, None, b"{}", {})])
    assert (unknown.reason, unknown.streams) == ("unknown", ("producer unknown",))


@pytest.mark.parametrize(
    ("text", "position"),
    [("1:4711", RecordPosition(1, 4711)), ("dead-letters/0:12", RecordPosition(0, 12, "dead-letters"))],
)
def test_an_address_is_parsed_as_it_is_shown(text: str, position: RecordPosition) -> None:
    assert parse_position(text) == position
    assert str(position) == text


@pytest.mark.parametrize("text", ["letters/0:12", "/0:12", "dead-letters/0", "0:1:2", "0:-1"])
def test_another_address_is_refused_with_the_valid_forms(text: str) -> None:
    with pytest.raises(QuarantineError, match="write PARTITION:OFFSET, such as 1:4711, or dead-letters/0:12"):
        parse_position(text)


def test_decisions_about_dead_letters_go_by_their_own_log() -> None:
    """The topic and its dead letters have the same partitions and offsets."""
    (letter,) = to_quarantined_records("orders", [StoredRecord(0, 2, None, None, b"{}", HEADERS)])
    assert letter.position != quarantined_record(2).position
    (status,) = build_statuses([letter], [QuarantineDecision("discarded", 0, 2, 5)], {})
    assert status.state == "discarded"


def test_a_truncated_dead_letter_is_replayed_only_with_a_repaired_value() -> None:
    headers = {**HEADERS, "penstock-original-bytes": b"99"}
    (letter,) = to_quarantined_records("ovens", [StoredRecord(0, 2, None, None, b"{}", headers)])
    checker = create_record_format(load_contract("ovens")).checker
    (refused,) = judge_records([letter], {}, checker, {}).refused
    assert refused.reason == "the dead letter has only the first bytes of the record; repair or discard it"
    (repaired,) = judge_records([letter], {letter.position: b"{"}, checker, {}).refused
    assert repaired.reason.startswith("it still violates the contract")
