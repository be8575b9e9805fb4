"""Up to when Dagster was told what came of a check: what it keeps of the check itself is the cursor.

So whoever else has a table checked, as `penstock check` does, and whatever run is lost: what came of a batch is
told by the next run that ends.
"""

from dagster import AssetCheckKey, DagsterInstance, IntMetadataValue
from dagster._core.storage.asset_check_execution_record import AssetCheckExecutionRecordStatus

REPORTED_UP_TO_KEY = "told_up_to_ms"
"""The metadata of an evaluation that says it: when the last outcome that it tells of was made."""
EVALUATED_STATUSES = {AssetCheckExecutionRecordStatus.SUCCEEDED, AssetCheckExecutionRecordStatus.FAILED}
NOTHING_REPORTED_MS = -1


def read_reported_up_to(instance: DagsterInstance, key: AssetCheckKey) -> int:
    """Return it; NOTHING where Dagster was told of no outcome."""
    history = instance.event_log_storage.get_asset_check_execution_history(
        key, limit=1, status=EVALUATED_STATUSES
    )
    if not history or (evaluation := history[0].evaluation) is None:
        return NOTHING_REPORTED_MS
    reported_value = evaluation.metadata.get(REPORTED_UP_TO_KEY)
    return (
        reported_value.value
        if isinstance(reported_value, IntMetadataValue) and reported_value.value is not None
        else NOTHING_REPORTED_MS
    )
