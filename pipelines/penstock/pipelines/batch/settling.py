"""The last decided batch made good in the tables, by somebody who knows nothing of the stream but its folders.

A host that was killed after a decision leaves its commits to whoever comes next. Whoever decides something else
first, such as an erasure, has to make them before: only the newest outcome is told to tables again.
"""

from collections.abc import Mapping

import pyarrow as pa

from penstock.pipelines.batch.outcome import Outcome
from penstock.pipelines.plan.stage import Plan
from penstock.pipelines.store import Place
from penstock.pipelines.store.files import delta_table, is_table
from penstock.pipelines.tables.table import BatchTable
from penstock.pipelines.tables.topic import topics_of


def settle(outcome: Outcome, plan: Plan, warehouse: Place, clients: Mapping[str, str]) -> None:
    """Commit what a batch decided, to each table and topic once; what is there already stays."""
    topics = dict(topics_of(plan, warehouse, clients))
    for name, change in outcome.changes.items():
        path = warehouse / name
        if name in topics:
            topics[name].commit(outcome.batch_id, change, outcome.clock)
        elif is_table(path):  # one that was taken away takes nothing
            table = BatchTable(path, pa.schema(delta_table(path).schema().to_arrow()), plan.name)
            table.commit(outcome.batch_id, change, outcome.clock)
