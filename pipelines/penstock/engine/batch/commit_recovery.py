"""Finishes the commits of the last batch, from the folders of the stream only.

A host that is killed after it commits an outcome leaves the tables to its successor. Another writer of the journal,
such as an erasure, must finish these commits first: a restart commits the newest outcome only.
"""

from collections.abc import Mapping

import pyarrow as pa

from penstock.core.file_sync import sync_files
from penstock.engine.batch.open_sinks import open_sinks_to_commit
from penstock.engine.batch.outcome import BatchOutcome
from penstock.engine.plan.stages import Plan
from penstock.engine.storage import StoragePath
from penstock.engine.storage.file_access import is_delta_table, open_delta_table
from penstock.engine.tables.batch_table import BatchTable, claim_existing_tables
from penstock.engine.tables.sink_target import SinkTarget
from penstock.engine.tables.table_owner import TableClaim
from penstock.engine.tables.table_paths import list_owned_paths


def finish_commits(
    outcome: BatchOutcome,
    plan: Plan,
    warehouse: StoragePath,
    client_config: Mapping[str, str],
    claim: TableClaim | None = None,
) -> None:
    """Commit the changes of an outcome to each sink and table once; existing commits stay.

    With a claim, raises TableOwnedError for a table of another writer.
    """
    if claim is not None:
        claim_existing_tables([warehouse / path for path in list_owned_paths(plan)], claim)
    targets = open_sinks_to_commit(plan, warehouse, client_config)
    for name, change in outcome.changes.items():
        path = warehouse / name
        target: SinkTarget | BatchTable
        if name in targets:
            target = targets[name]
        elif is_delta_table(path):
            target = BatchTable(path, pa.schema(open_delta_table(path).schema().to_arrow()), plan.name)
        else:
            continue  # a table that was removed
        target.commit(outcome.batch_id, change, outcome.clock)
        if isinstance(target, BatchTable):  # the next outcome must not be written before
            sync_files(target.list_unsynced_files(change))
