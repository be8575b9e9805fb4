"""The cursor of a check: the time until which its outcomes were reported to Dagster, kept in its last evaluation.

Tables are also checked outside Dagster (`penstock check`), and runs can be lost. So the next run that ends
reports every outcome after the cursor.
"""

from dagster import AssetCheckKey, DagsterInstance, IntMetadataValue
from dagster._core.storage.asset_check_execution_record import AssetCheckExecutionRecordStatus

REPORTED_UNTIL_KEY = "reported_until_ms"
"""The metadata key of an evaluation for the time of the last outcome that it reports."""
EVALUATED_STATUSES = {AssetCheckExecutionRecordStatus.SUCCEEDED, AssetCheckExecutionRecordStatus.FAILED}
NOTHING_REPORTED_MS = -1


def read_reported_until(instance: DagsterInstance, key: AssetCheckKey) -> int:
    """Return the time of the last reported outcome; NOTHING_REPORTED_MS if there is none."""
    history = instance.event_log_storage.get_asset_check_execution_history(
        key, limit=1, status=EVALUATED_STATUSES
    )
    if not history or (evaluation := history[0].evaluation) is None:
        return NOTHING_REPORTED_MS
    reported_value = evaluation.metadata.get(REPORTED_UNTIL_KEY)
    return (
        reported_value.value
        if isinstance(reported_value, IntMetadataValue) and reported_value.value is not None
        else NOTHING_REPORTED_MS
    )
