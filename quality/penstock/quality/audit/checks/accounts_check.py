"""Checks that the counts of each row of a stream ledger add up."""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.batch.accounts import RECORD_FATES
from penstock.quality.audit.audit_check import stream_check
from penstock.quality.audit.scope import AuditScope
from penstock.quality.audit.stage_differences import find_in_source_stages
from penstock.quality.audit.verdict import AuditDifference, CheckOutcome, judge_differences


@stream_check("accounts", order=30)
def check_accounts(scope: AuditScope) -> CheckOutcome:
    """Every record that was read has exactly one fate."""
    counts = {name: pc.sum(scope.ledger.column(name)).as_py() or 0 for name in ("read", *RECORD_FATES)}
    fates_text = " + ".join(f"{counts[name]:,} {name}" for name in RECORD_FATES)
    differences = find_in_source_stages(scope, lambda stage: check_sums(scope.stage_ledger(stage)))
    return judge_differences(differences, f"{counts['read']:,} read = {fates_text}")


def check_sums(ledger: pa.Table) -> Iterator[AuditDifference]:
    """Yield rows whose counts do not add up, exceed their offsets, or are negative."""
    read_counts = ledger.column("read")
    fates = [ledger.column(name) for name in RECORD_FATES]
    fate_total = fates[0]
    for column in fates[1:]:
        fate_total = pc.add(fate_total, column)
    offset_counts = pc.subtract(ledger.column("end"), ledger.column("start"))
    is_wrong = pc.or_(pc.not_equal(read_counts, fate_total), pc.greater(read_counts, offset_counts))
    for column in (read_counts, *fates):
        is_wrong = pc.or_(is_wrong, pc.less(column, 0))
    for row in ledger.filter(is_wrong).sort_by("batch_id").to_pylist():
        fates_text = " + ".join(f"{row[name]} {name}" for name in RECORD_FATES)
        yield AuditDifference(
            f"{row['topic']}/{row['partition']}, batch {row['batch_id']}",
            f"{row['read']} records read of offsets {row['start']} to {row['end'] - 1}, but {fates_text}",
        )
