"""Compares result tables with their recomputation."""

import pyarrow as pa

from penstock.engine.plan.sinks import PaneContent, Sink
from penstock.engine.storage import StoragePath
from penstock.quality.audit.comparability import (
    Sample,
    comparison_for,
    filter_final_windows,
    has_order_windows,
)
from penstock.quality.audit.erased_keys import exclude_erased_rows, read_erased_keys
from penstock.quality.audit.recomputation import Recomputation, exclude_partly_missed, key_share_condition
from penstock.quality.audit.recomputed_fates import BEYOND_LAST_BATCH, compare_fates
from penstock.quality.audit.result_comparison import TableComparison, compare_results, latest_panes
from penstock.quality.audit.scope import AuditScope
from penstock.quality.audit.sink_rows import describe_incomparable, read_stored_rows
from penstock.quality.audit.split_sessions import exclude_split_sessions, find_split_sessions
from penstock.quality.audit.verdict import AuditDifference, CheckOutcome, judge_differences, unproven_outcome
from penstock.quality.table_reads import read_rows


def compare_recomputed_tables(
    scope: AuditScope, sample: Sample, recomputed_warehouse: StoragePath, recomputation: Recomputation
) -> CheckOutcome:
    """Compare the tables of a stream, and the counts of its ledger, with a recomputation."""
    stage = scope.plan.only_stage
    recomputed_rows = _read_recomputed(recomputed_warehouse / recomputation.plan.only_stage.sinks[0].path)
    compared_rows, incomparable_paths = 0, list[str]()
    differences: list[AuditDifference] = (
        list(compare_fates(scope, recomputed_warehouse, recomputation)) if sample.is_complete else []
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
        return unproven_outcome(reason)
    return judge_differences(differences, success_text)


def _read_recomputed(path: StoragePath) -> pa.Table:
    recomputed_rows = read_rows(path, BEYOND_LAST_BATCH)
    assert recomputed_rows is not None
    return recomputed_rows


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
