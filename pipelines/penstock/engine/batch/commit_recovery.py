"""The last decided batch made good in the tables, by somebody who knows nothing of the stream but its folders.

A host that was killed after a decision leaves its commits to whoever comes next. Whoever decides something else
first, such as an erasure, has to make them before: only the newest outcome is told to tables again.
"""

from collections.abc import Mapping

import pyarrow as pa

from penstock.engine.batch.outcome import BatchOutcome
from penstock.engine.plan.stages import Plan
from penstock.engine.storage import StoragePath
from penstock.engine.storage.file_access import is_delta_table, open_delta_table
from penstock.engine.tables.batch_table import BatchTable
from penstock.engine.tables.published_topic import open_published_topics


def finish_commits(
    outcome: BatchOutcome, plan: Plan, warehouse: StoragePath, client_config: Mapping[str, str]
) -> None:
    """Commit what a batch decided, to each table and topic once; what is there already stays."""
    topics = dict(open_published_topics(plan, warehouse, client_config))
    for name, change in outcome.changes.items():
        path = warehouse / name
        if name in topics:
            topics[name].commit(outcome.batch_id, change, outcome.clock)
        elif is_delta_table(path):  # one that was taken away takes nothing
            table = BatchTable(path, pa.schema(open_delta_table(path).schema().to_arrow()), plan.name)
            table.commit(outcome.batch_id, change, outcome.clock)
