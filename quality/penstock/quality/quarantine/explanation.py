"""Says what is wrong with a quarantined record, in the words of the judge of records."""

from penstock.ingestion.errors import IngestionError
from penstock.ingestion.producer import RecordChecker, SourceBatch
from penstock.quality.quarantine.quarantined_records import QuarantinedRecord


def explain_record(record: QuarantinedRecord, checker: RecordChecker) -> str:
    """Return what the current contract expects and what it found, or an empty text if it finds nothing wrong.

    If its reason is not the one under which the record was quarantined, the text starts with the reason.
    """
    if record.value is None:
        return ""
    # A dead letter may be JSON that the producer was to encode.
    is_encoded = not record.position.is_dead_letter or checker.is_encoded(record.value)
    try:
        error = checker.check(SourceBatch([record.value], is_encoded=is_encoded)).invalid.get(0)
    except IngestionError:
        return ""  # a registry that does not answer explains nothing
    if error is None or record.reason.startswith(f"{error.reason} ("):
        return ""  # the reason of a dead letter has the detail that its producer gave
    return error.detail if error.reason == record.reason else str(error)
