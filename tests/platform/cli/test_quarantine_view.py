"""The rows of `penstock quarantine list`."""

from penstock.ingestion.consumers.topic_contents import StoredRecord
from penstock.platform.cli.quarantine_view import RECORD_COLUMNS, to_row
from penstock.quality.quarantine.dead_letters import to_quarantined_records
from penstock.quality.quarantine.record_status import QuarantineStatus


def test_a_dead_letter_has_its_detail_in_the_column_of_the_records_of_streams() -> None:
    headers = {"penstock-reason": b"wrong_type:amount", "penstock-detail": b'expected double, found "(12.5)"'}
    (record,) = to_quarantined_records("orders", [StoredRecord(0, 12, None, None, b"{}", headers)])
    row = dict(zip(RECORD_COLUMNS, to_row(QuarantineStatus(record, "pending"), set(), ""), strict=True))
    assert (row["reason"], row["detail"]) == ("wrong_type:amount", 'expected double, found "(12.5)"')
