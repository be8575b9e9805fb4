"""Checks result tables against the records that the stream has read.

Results that depend on the records alone are recomputed by a bounded run. Results that depend on batches or on
clocks are checked by re-executing the recorded batches.
"""

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.batch.accounts import RECORD_FATES
from penstock.engine.plan.codec import fingerprint
from penstock.engine.plan.sinks import PaneContent, Sink
from penstock.engine.spark.bounded_sources import BoundedSource
from penstock.engine.storage import StoragePath
from penstock.quality.audit.comparability import (
    Sample,
    comparison_for,
    explain_batch_dependence,
    explain_unsampleable,
    filter_final_windows,
    has_order_windows,
)
from penstock.quality.audit.erased_keys import exclude_erased_rows, read_erased_keys
from penstock.quality.audit.recomputation import (
    Recomputation,
    build_recompute_plan,
    exclude_partly_missed,
    find_fully_missed,
    key_share_condition,
    run_recomputation,
)
from penstock.quality.audit.record_checks import COMPACTED_AWAY, ledger_ranges
from penstock.quality.audit.rejections import find_rejections
from penstock.quality.audit.replay_check import check_replayed_batches
from penstock.quality.audit.result_comparison import TableComparison, compare_results, latest_panes
from penstock.quality.audit.scope import AuditScope
from penstock.quality.audit.side_tables import ADDRESS_COLUMNS
from penstock.quality.audit.sink_rows import describe_incomparable, read_stored_rows
from penstock.quality.audit.split_sessions import exclude_split_sessions, find_split_sessions
from penstock.quality.audit.topic_view import TopicView
from penstock.quality.audit.verdict import AuditDifference, AuditVerdict, judge_differences, unproven_verdict
from penstock.quality.table_reads import read_rows

RESULTS_CHECK = "results"


def check_recomputed_results(
    scope: AuditScope, topics: Mapping[str, TopicView], sample: Sample
) -> AuditVerdict:
    """The result tables match the records of the stream."""
    obstacle = explain_definition_change(scope) or explain_unsampleable(scope.plan, sample)
    if obstacle is not None:
        return unproven_verdict(
            RESULTS_CHECK, f"the results of {scope.plan.name} cannot be recomputed: {obstacle}"
        )
    sample = exclude_old_definition(scope, sample)
    read_ranges = ledger_ranges(scope.ledger)
    stored: dict[str, BoundedSource] = {}
    for topic, topic_view in topics.items():
        source = topic_view.find_source(
            [read_range for read_range in read_ranges if read_range.topic == topic]
        )
        if source is None:
            return unproven_verdict(
                RESULTS_CHECK, f"some records of {topic} have expired, and no archive has them"
            )
        topic_ledger = scope.ledger.filter(pc.equal(scope.ledger.column("topic"), topic))
        if topic_view.has_lost_records(topic_ledger, source):
            return unproven_verdict(RESULTS_CHECK, f"some records of {topic} {COMPACTED_AWAY}")
        stored[topic] = source
    if explain_batch_dependence(scope.plan):
        return check_replayed_batches(RESULTS_CHECK, scope, stored, sample)
    stage = scope.plan.only_stage
    fully_missed = (
        find_fully_missed(stage, scope.late_rows)
        if scope.late_rows.num_rows
        else scope.late_rows.select(ADDRESS_COLUMNS)
    )
    recomputation = Recomputation(
        build_recompute_plan(scope.plan, sample, fully_missed),
        read_ranges,
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
        return _compare_tables(scope, sample, recomputed_warehouse, recomputation)
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


def _compare_tables(
    scope: AuditScope, sample: Sample, recomputed_warehouse: StoragePath, recomputation: Recomputation
) -> AuditVerdict:
    stage = scope.plan.only_stage
    recomputed_rows = _read_recomputed(recomputed_warehouse / recomputation.plan.only_stage.sinks[0].path)
    compared_rows, incomparable_paths = 0, list[str]()
    differences: list[AuditDifference] = (
        list(_compare_fates(scope, recomputed_warehouse, recomputation)) if sample.is_complete else []
    )
    for sink in stage.sinks:
        comparison = comparison_for(stage, sink.path)
        stored_rows = _read_stored_results(scope, sink, comparison)
        if stored_rows is None:
            incomparable_paths.append(sink.path)
            continue
        split_intervals = (
            find_split_sessions(stored_rows, stage.key) if stage.window.merge_gap is not None else []
        )
        actual, expected = (
            exclude_split_sessions(_filter_comparable(scope, sample, table), stage.key, split_intervals)
            for table in (stored_rows, recomputed_rows)
        )
        expected_rows = (
            _filter_by_keys(expected, actual, comparison) if sink.content is PaneContent.FINAL else expected
        )
        compared_rows += expected_rows.num_rows
        differences += compare_results(comparison, actual, expected_rows)
    share_of = "" if sample.is_complete else " of the sample"
    if scope.changed_after >= 0:
        share_of = f" of windows without a record up to batch {scope.changed_after} (earlier definition)"
    incomparable = describe_incomparable(incomparable_paths)
    table_count = len(stage.sinks) - len(incomparable_paths)
    success_text = (
        f"{compared_rows:,} rows{share_of} in {table_count} tables match their records{incomparable}"
    )
    if not compared_rows and not differences:
        reason = (
            f"no window{share_of} is final yet" if table_count else f"no table was compared{incomparable}"
        )
        return unproven_verdict(RESULTS_CHECK, reason)
    return judge_differences(RESULTS_CHECK, differences, success_text)


def _read_recomputed(path: StoragePath) -> pa.Table:
    recomputed_rows = read_rows(path, BEYOND_LAST_BATCH)
    assert recomputed_rows is not None
    return recomputed_rows


BEYOND_LAST_BATCH = 1 << 40
"""A batch number above that of any recomputation."""


def _read_stored_results(scope: AuditScope, sink: Sink, comparison: TableComparison) -> pa.Table | None:
    """Return the stored result of each window as of the last audited batch; None if the sink cannot tell it."""
    stored_rows = read_stored_rows(scope, sink)
    if stored_rows is None or sink.content is PaneContent.LATEST or has_order_windows(scope.plan.only_stage):
        return stored_rows
    return latest_panes(stored_rows, comparison.identity)


def _filter_comparable(scope: AuditScope, sample: Sample, table: pa.Table) -> pa.Table:
    """Return the rows of final windows in the sample, without partly missed windows and erased keys."""
    stage = scope.plan.only_stage
    table = exclude_partly_missed(
        stage, filter_final_windows(table, stage, scope.watermark, sample), scope.late_rows
    )
    table = exclude_erased_rows(table, scope.plan.name, read_erased_keys(scope))
    if sample.key_share == 1.0 or not table.num_rows:
        return table
    chosen_keys = (
        scope.open_session()
        .createDataFrame(table.select(stage.key))
        .distinct()
        .where(key_share_condition(stage, sample))
    )
    keys = chosen_keys.toArrow()
    return _filter_by_keys(table, keys, TableComparison("", list(stage.key), ()))


def _filter_by_keys(table: pa.Table, chosen: pa.Table, comparison: TableComparison) -> pa.Table:
    import polars as pl

    wanted_keys = pl.DataFrame(pl.from_arrow(chosen.select(comparison.identity)))
    frame = pl.DataFrame(pl.from_arrow(table))
    return frame.join(wanted_keys, on=list(comparison.identity), how="semi", nulls_equal=True).to_arrow()


def _compare_fates(
    scope: AuditScope, recomputed_warehouse: StoragePath, recomputation: Recomputation
) -> Iterator[AuditDifference]:
    """Yield the partitions whose records have other fates in the recomputation."""
    ledger = read_rows(recomputed_warehouse / scope.ledger_table, BEYOND_LAST_BATCH)
    assert ledger is not None
    ledger_counts, recomputed_counts = _sum_fates(scope.ledger), _sum_fates(ledger)
    late_counts, rejected_counts = (
        _count_addresses(recomputation.late_addresses),
        _count_addresses(recomputation.rejected_addresses),
    )
    for partition, counted in sorted(ledger_counts.items()):
        recounted = recomputed_counts.get(partition, dict.fromkeys(RECORD_FATES, 0))
        expected = {
            "folded": recounted["folded"],
            "quarantined": recounted["quarantined"] + rejected_counts.get(partition, 0),
            "duplicate": recounted["duplicate"],
            "filtered": recounted["filtered"] - late_counts.get(partition, 0),
        }
        for fate, count in expected.items():
            if counted[fate] != count:
                yield AuditDifference(
                    f"{partition[0]}/{partition[1]}",
                    f"the ledger counts {counted[fate]} {fate}; recomputed, there are {count}",
                )


def _sum_fates(ledger: pa.Table) -> dict[tuple[str, int], dict[str, int]]:
    sums = ledger.group_by(["topic", "partition"]).aggregate([(fate, "sum") for fate in RECORD_FATES])
    return {
        (row["topic"], row["partition"]): {fate: row[f"{fate}_sum"] for fate in RECORD_FATES}
        for row in sums.to_pylist()
    }


def _count_addresses(addresses: pa.Table) -> dict[tuple[str, int], int]:
    counted = addresses.group_by(["topic", "partition"]).aggregate([("offset", "count")])
    return {(row["topic"], row["partition"]): row["offset_count"] for row in counted.to_pylist()}
