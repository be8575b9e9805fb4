"""Quarantined records whose reason does not come up when they are read again."""

import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.batch.input_watermarks import topic_of
from penstock.engine.plan.codec import contract_version
from penstock.quality.audit.scope import AuditScope

FUTURE_RECORD_REASON = "future_event_time"
"""The start of the reason that depends on the clock of the batch; the field and by how much follow."""
ADDRESS_REASON_PREFIXES = ("user_code_error: ", "replayed: ", "left_out: ")
"""Prefixes of the reasons for which a record is excluded by its address."""


def find_rejections(scope: AuditScope) -> pa.Table:
    """Return the quarantine rows of these records.

    The reasons: a batch clock in the past, another version of the contract, a failure of user code, or a replayed
    record that is in the topic a second time.
    """
    rows = scope.quarantined_rows
    reason = rows.column("reason")
    is_rejection = pc.starts_with(reason, FUTURE_RECORD_REASON)
    for prefix in ADDRESS_REASON_PREFIXES:
        is_rejection = pc.or_(is_rejection, pc.starts_with(reason, prefix))
    if "contract" in rows.column_names:
        versions = {topic_of(source): contract_version(source) for source in scope.plan.sources}
        current_versions = pa.array(
            [versions.get(topic) for topic in rows.column("topic").to_pylist()], pa.string()
        )
        is_rejection = pc.or_(
            is_rejection, pc.fill_null(pc.not_equal(rows.column("contract"), current_versions), False)
        )
    return rows.filter(is_rejection)
