"""Says what is wrong with a quarantined record, in the words of the judge of records."""

from penstock.ingestion.errors import IngestionError
from penstock.ingestion.producer import RecordChecker, SourceBatch
from penstock.quality.quarantine.quarantined_records import QuarantinedRecord

AVRO_FIRST_BYTE = b"\0"


def explain_record(record: QuarantinedRecord, checker: RecordChecker, *, is_encoded: bool) -> str:
    """Return what the current contract expects and what it found, or an empty text if it finds nothing wrong.

    If its reason is not the one under which the record was quarantined, the text starts with the reason.
    `is_encoded` says that values have the encoding of the topic.
    """
    if record.value is None:
        return ""
    if record.position.is_dead_letter and not record.value.startswith(AVRO_FIRST_BYTE):
        is_encoded = False  # the producer was to encode it
    try:
        error = checker.check(SourceBatch([record.value], is_encoded=is_encoded)).invalid.get(0)
    except IngestionError:
        return ""  # a registry that does not answer explains nothing
    if error is None or record.reason.startswith(f"{error.reason} ("):
        return ""  # the reason of a dead letter has the detail that its producer gave
    return error.detail if error.reason == record.reason else str(error)
