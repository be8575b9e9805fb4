"""Checks that the tables of late and quarantined records match the ledger."""

from collections.abc import Iterator
from functools import partial

import pyarrow.compute as pc

from penstock.engine.plan.stages import Stage
from penstock.quality.audit.audit_check import stream_check
from penstock.quality.audit.comparability import can_multiply_records
from penstock.quality.audit.scope import AuditScope
from penstock.quality.audit.side_tables import ADDRESS_COLUMNS, check_side_table
from penstock.quality.audit.stage_differences import find_in_source_stages
from penstock.quality.audit.verdict import AuditDifference, CheckOutcome, judge_differences


@stream_check("late and quarantined", order=50)
def check_late_and_quarantined(scope: AuditScope) -> CheckOutcome:
    """The tables of late and quarantined records have as many records as the ledger counts."""
    differences = find_in_source_stages(scope, partial(_compare_side_tables, scope))
    late_count = sum(scope.stage_late_rows(stage).num_rows for stage in scope.plan.source_stages)
    success_text = (
        f"{late_count:,} late and {scope.quarantined_rows.num_rows:,} quarantined rows match the ledger"
    )
    return judge_differences(differences, success_text)


def _compare_side_tables(scope: AuditScope, stage: Stage) -> Iterator[AuditDifference]:
    ledger = scope.stage_ledger(stage)
    is_own_topic = pc.is_in(scope.quarantined_rows.column("topic"), pc.unique(ledger.column("topic")))
    yield from check_side_table(
        ledger,
        scope.stage_late_rows(stage),
        "late",
        _row_identity(stage),
        allow_more=_can_exceed_count(stage),
    )
    yield from check_side_table(ledger, scope.quarantined_rows.filter(is_own_topic), "quarantined")


def _row_identity(stage: Stage) -> tuple[str, ...] | None:
    """Return the columns that identify a late row; None if a step may make equal rows of one record."""
    if can_multiply_records(stage):
        return None
    return (*ADDRESS_COLUMNS, "window_start") if stage.window.may_overlap else tuple(ADDRESS_COLUMNS)


def _can_exceed_count(stage: Stage) -> bool:
    """Tell whether one window may accept a record that is late for another window or key."""
    return stage.window.may_overlap or can_multiply_records(stage)
