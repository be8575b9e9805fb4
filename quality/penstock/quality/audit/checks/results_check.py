"""Checks result tables against the records that the stream has read.

Results that depend on the records alone are recomputed by a bounded run. Results that depend on batches or on
clocks are checked by re-executing the recorded batches.
"""

import shutil
from collections.abc import Mapping
from dataclasses import replace

from penstock.engine.plan.codec import fingerprint
from penstock.engine.spark.bounded_sources import BoundedSource
from penstock.quality.audit.audit_check import result_check
from penstock.quality.audit.comparability import (
    Sample,
    explain_batch_dependence,
    explain_unsampleable,
    has_order_windows,
)
from penstock.quality.audit.ledger_coverage import (
    explain_compacted,
    explain_expired,
    list_offset_ranges,
    select_topic,
)
from penstock.quality.audit.recomputation import (
    Recomputation,
    build_recompute_plan,
    find_fully_missed,
    run_recomputation,
)
from penstock.quality.audit.recomputed_tables import compare_recomputed_tables
from penstock.quality.audit.rejections import find_rejections
from penstock.quality.audit.replay_check import check_replayed_batches
from penstock.quality.audit.scope import AuditScope
from penstock.quality.audit.side_tables import ADDRESS_COLUMNS
from penstock.quality.audit.topic_view import TopicView
from penstock.quality.audit.verdict import CheckOutcome, unproven_outcome


@result_check("results", order=10)
def check_recomputed_results(
    scope: AuditScope, topics: Mapping[str, TopicView], sample: Sample
) -> CheckOutcome:
    """The result tables match the records of the stream."""
    obstacle = explain_definition_change(scope) or explain_unsampleable(scope.plan, sample)
    if obstacle is not None:
        return unproven_outcome(f"the results of {scope.plan.name} cannot be recomputed: {obstacle}")
    sample = exclude_old_definition(scope, sample)
    stored: dict[str, BoundedSource] = {}
    for topic, topic_view in topics.items():
        topic_ledger = select_topic(scope.ledger, topic)
        source = topic_view.find_source(list_offset_ranges(topic_ledger))
        if source is None:
            return unproven_outcome(explain_expired(topic))
        if topic_view.has_lost_records(topic_ledger, source):
            return unproven_outcome(explain_compacted(topic))
        stored[topic] = source
    if explain_batch_dependence(scope.plan):
        return check_replayed_batches(scope, stored, sample)
    stage = scope.plan.only_stage
    fully_missed = (
        find_fully_missed(stage, scope.late_rows)
        if scope.late_rows.num_rows
        else scope.late_rows.select(ADDRESS_COLUMNS)
    )
    recomputation = Recomputation(
        build_recompute_plan(scope.plan, sample, fully_missed),
        list_offset_ranges(scope.ledger),
        fully_missed,
        find_rejections(scope).select(ADDRESS_COLUMNS),
    )
    shutil.rmtree(scope.scratch_folder, ignore_errors=True)
    try:
        recomputed_warehouse = run_recomputation(
            scope.open_session(),
            recomputation,
            stored,
            scope.scratch_folder,
            scope.warehouse,
            scope.clock,
            scope.report_progress,
            scope.schemas,
        )
        return compare_recomputed_tables(scope, sample, recomputed_warehouse, recomputation)
    finally:
        shutil.rmtree(scope.scratch_folder, ignore_errors=True)


def explain_definition_change(scope: AuditScope) -> str | None:
    """Explain why results cannot be checked after a change of the definition; None if they can.

    Windows that start after all records of the earlier definition can be checked.
    """
    changed_after = scope.changed_after
    plans = {item.plan for item in scope.outcomes() if item.batch_id > changed_after} - {
        "",
        fingerprint(scope.plan),
    }
    consequence = "earlier results follow the old definition"
    if plans:
        return f"its definition changed within the last batches: {consequence}"
    is_inseparable = (
        explain_batch_dependence(scope.plan)
        or has_order_windows(scope.plan.only_stage)
        or not all(item.is_time_bounded for item in scope.definition_changes)
    )
    return (
        f"its definition changed after batch {changed_after}: {consequence}"
        if changed_after >= 0 and is_inseparable
        else None
    )


def exclude_old_definition(scope: AuditScope, sample: Sample) -> Sample:
    """Return the sample without windows that may contain a record from before the definition changed."""
    earliest_starts = [change.newest + 1 for change in scope.definition_changes if change.newest is not None]
    window_starts = [*earliest_starts, *([] if sample.start is None else [sample.start])]
    return replace(sample, start=max(window_starts)) if window_starts else sample
