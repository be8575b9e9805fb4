"""Up to when Dagster was told what came of a check: what it keeps of the check itself is the cursor.

So whoever else has a table checked, as `penstock check` does, and whatever run is lost: what came of a batch is
told by the next run that ends.
"""

from dagster import AssetCheckKey, DagsterInstance, IntMetadataValue
from dagster._core.storage.asset_check_execution_record import AssetCheckExecutionRecordStatus

TOLD = "told_up_to_ms"
"""The metadata of an evaluation that says it: when the last outcome that it tells of was made."""
EVALUATED = {AssetCheckExecutionRecordStatus.SUCCEEDED, AssetCheckExecutionRecordStatus.FAILED}
NOTHING = -1


def told_up_to(instance: DagsterInstance, key: AssetCheckKey) -> int:
    """Return it; NOTHING where Dagster was told of no outcome."""
    history = instance.event_log_storage.get_asset_check_execution_history(key, limit=1, status=EVALUATED)
    if not history or (evaluation := history[0].evaluation) is None:
        return NOTHING
    told = evaluation.metadata.get(TOLD)
    return told.value if isinstance(told, IntMetadataValue) and told.value is not None else NOTHING
