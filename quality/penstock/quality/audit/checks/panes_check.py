"""Checks that pane tables have the rows that each batch reports."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain as one_after_another
from itertools import product

import pyarrow as pa

from penstock.engine.host.control import BatchRecord
from penstock.engine.plan.sinks import PaneContent
from penstock.engine.plan.stages import Stage
from penstock.engine.plan.stateful_function import StatefulFunction
from penstock.quality.audit.audit_check import stream_check
from penstock.quality.audit.scope import AuditScope
from penstock.quality.audit.verdict import AuditDifference, CheckOutcome, judge_differences, unproven_outcome
from penstock.quality.table_reads import read_required_rows


@stream_check("panes", order=60)
def check_panes(scope: AuditScope) -> CheckOutcome:
    """Pane tables have as many rows as each batch reports, over all stages together."""
    logs_by_output = [tables for stage in scope.plan.stages for tables in list_pane_logs(stage)]
    if not all(logs_by_output):
        return unproven_outcome("a batch counts the panes of all stages, but not every stage has a pane log")
    comparisons = (_compare_pane_counts(scope, tables) for tables in product(*logs_by_output))
    table_names = ", ".join(table for tables in logs_by_output for table in tables)
    return judge_differences(
        one_after_another.from_iterable(comparisons), f"{table_names} match the counts of each batch"
    )


def list_pane_logs(stage: Stage) -> list[list[str]]:
    """Return the pane log tables for each output of a stage; most stages have one output."""
    logs = [sink for sink in stage.sinks if sink.is_delta_table and sink.content is PaneContent.ALL]
    named_outputs = stage.window.outputs if isinstance(stage.window, StatefulFunction) else ()
    return [
        [log.path for log in logs if log.output == output]
        for output in (None, *(output_name.name for output_name in named_outputs))
    ]


def _compare_pane_counts(scope: AuditScope, tables: Sequence[str]) -> Iterator[AuditDifference]:
    columns = ["batch_id", "timing", "kind"]
    pane_rows = pa.concat_tables(
        [read_required_rows(scope.warehouse / table, scope.upto, columns) for table in tables]
    )
    starts_after = max(map(scope.table_starts_after, tables))
    batches = [batch for batch in scope.batches if batch.batch_id > starts_after]
    return check_pane_counts(batches, pane_rows, ", ".join(tables)) if batches else iter(())


def check_pane_counts(
    batches: Sequence[BatchRecord], panes: pa.Table, table: str
) -> Iterator[AuditDifference]:
    """Yield the batches whose row counts differ. `panes` needs batch_id, timing and kind."""
    stored_counts = count_panes(panes)
    first_batch = batches[0].batch_id if batches else 0
    recorded_counts = {batch.batch_id: dict(batch.panes) for batch in batches}
    for batch in sorted({*recorded_counts, *(number for number in stored_counts if number >= first_batch)}):
        recorded, stored = recorded_counts.get(batch, {}), stored_counts.get(batch, {})
        for kind in sorted({*recorded, *stored}):
            if recorded.get(kind, 0) != stored.get(kind, 0):
                yield AuditDifference(
                    f"{table}, batch {batch}",
                    f"the batch reports {recorded.get(kind, 0)} rows of kind {kind}; "
                    f"the table has {stored.get(kind, 0)}",
                )


def count_panes(panes: pa.Table) -> Mapping[int, Mapping[str, int]]:
    """Count the rows of each batch by timing, and by kind for kinds other than insert."""
    counts: dict[int, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    grouped = panes.group_by(["batch_id", "timing", "kind"]).aggregate([([], "count_all")])
    for row in grouped.to_pylist():
        kind = row["timing"] if row["kind"] == "insert" else row["kind"]
        counts[row["batch_id"]][kind] += row["count_all"]
    return counts
