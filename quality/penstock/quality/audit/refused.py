"""Records that a stream has refused for a reason that is not found again when they are read again."""

import pyarrow as pa
import pyarrow.compute as pc

from penstock.pipelines.batch.inputs import topic_of
from penstock.pipelines.plan.codec import contract_version
from penstock.quality.audit.scope import Scope

AHEAD = "ahead_of_clock"
"""Why a record is no good that only the clock of its batch could tell."""
BY_ADDRESS = ("breaks_code: ", "sent_again: ")
"""With what the reason begins for which a record was set aside by its address."""


def refused(scope: Scope) -> pa.Table:
    """Return them, as the quarantine has them.

    A clock that is past refused them, or a contract that has changed since; they would break one's own code, or are
    in the topic once more.
    """
    rows = scope.quarantined
    reason = rows.column("reason")
    wanted = pc.equal(reason, AHEAD)
    for beginning in BY_ADDRESS:
        wanted = pc.or_(wanted, pc.starts_with(reason, beginning))
    if "contract" in rows.column_names:
        versions = {topic_of(source): contract_version(source) for source in scope.plan.sources}
        now = pa.array([versions.get(topic) for topic in rows.column("topic").to_pylist()], pa.string())
        wanted = pc.or_(wanted, pc.fill_null(pc.not_equal(rows.column("contract"), now), False))
    return rows.filter(wanted)
