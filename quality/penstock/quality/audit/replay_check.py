"""Checks results that depend on batches: runs the recorded batches again.

Clocks, offsets and definition are those of the recorded batches. Every pane must come out row for row, early
panes included, and so must the accounts and the watermark of every batch.
"""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from penstock.engine.batch.excluded_records import ExcludedRecord
from penstock.engine.batch.intent import OffsetRange
from penstock.engine.batch.outcome import BatchOutcome
from penstock.engine.history.reexecute import BatchToReexecute, InMemoryPanes, reexecute_batches
from penstock.engine.host.control import BatchRecord
from penstock.engine.host.control_reporter import to_batch_record
from penstock.engine.operators.ordered.state_schema import WINDOW_NUMBER_FIELD
from penstock.engine.plan.sinks import PaneContent, Sink
from penstock.engine.plan.stages import Stage
from penstock.engine.spark.bounded_sources import BoundedSource
from penstock.engine.spark.bounded_sources.union_source import UnionSource
from penstock.engine.tables.table_paths import LOOKUPS_FOLDER
from penstock.engine.windows.order_window import OrderWindow
from penstock.quality.audit.comparability import Sample
from penstock.quality.audit.recomputation import filter_step, key_share_condition
from penstock.quality.audit.rejections import FUTURE_RECORD_REASON, find_rejections
from penstock.quality.audit.result_comparison import TableComparison, compare_results
from penstock.quality.audit.scope import AuditScope
from penstock.quality.audit.sink_rows import describe_incomparable, read_stored_rows, select_expected_rows
from penstock.quality.audit.verdict import AuditDifference, CheckOutcome, judge_differences, unproven_outcome
from penstock.quality.table_reads import read_rows

ROW_NUMBER_COLUMN = "row_of_batch"
"""The number of a row among the rows of a batch with the same identity."""
COPY_NUMBER_COLUMN = "copy"
"""The number of a row among equal rows of a batch, from 0."""


def explain_no_replay(scope: AuditScope, sample: Sample) -> str | None:
    """Explain why the batches of a stream cannot be run again; return None if they can."""
    first_batch, kinds = scope.batches[0].batch_id, {batch.kind for batch in scope.batches}
    if "replay" in kinds:
        return "its history was replayed, so its batches did not make its tables"
    if other_kinds := kinds - {"data", "tick"}:
        return f"a batch of another kind changed its state ({', '.join(sorted(other_kinds))})"
    if first_batch > 0:
        return (
            f"the control store no longer has its batches before {first_batch} (maintenance.batch_retention)"
        )
    if (sample.start, sample.end) != (None, None):
        return "its results depend on all earlier batches; sample with --keys instead"
    if sample.key_share < 1 and (len(scope.plan.stages) > 1 or not scope.plan.first_source_stage.key):
        return "it has no key that could be sampled in all stages"
    return None


def check_replayed_batches(
    scope: AuditScope, stored: Mapping[str, BoundedSource], sample: Sample
) -> CheckOutcome:
    """The tables have, row for row, the results of the recorded batches."""
    obstacle = explain_no_replay(scope, sample)
    if obstacle is not None:
        return unproven_outcome(f"the batches of {scope.plan.name} cannot be run again: {obstacle}")
    plan, stage = scope.plan, scope.plan.first_source_stage
    if sample.key_share < 1:
        steps = (*stage.steps, filter_step(key_share_condition(stage, sample)))
        plan = replace(plan, stages=tuple(replace(s, steps=steps) if s is stage else s for s in plan.stages))
    outcomes: list[BatchOutcome] = []

    def record_outcome(outcome: BatchOutcome) -> None:
        outcomes.append(outcome)
        if len(outcomes) % 100 == 0:
            scope.report_progress(f"re-executing batches: {len(outcomes)} of {len(scope.batches)}")

    shutil.rmtree(scope.scratch_folder, ignore_errors=True)
    try:
        records = UnionSource(list(stored.values()))
        lookup_versions = read_lookup_versions(scope)
        batches = [
            to_recorded_batch(batch, lookup_versions.get(batch.batch_id, {})) for batch in scope.batches
        ]
        poisoned_records = list(list_poisoned_records(scope))
        replayed_panes = reexecute_batches(
            plan,
            scope.open_session(),
            records,
            batches,
            scope.scratch_folder,
            record_outcome,
            poisoned_records,
            scope.warehouse,
            scope.schemas,
        )
        return _compare_replay(scope, sample, replayed_panes, outcomes)
    finally:
        shutil.rmtree(scope.scratch_folder, ignore_errors=True)


def to_recorded_batch(batch: BatchRecord, lookups: Mapping[str, int]) -> BatchToReexecute:
    """Convert a committed batch to a batch to re-execute."""
    read_ranges = (
        OffsetRange(account.topic, account.partition, account.start, account.end)
        for account in batch.accounts
    )
    return BatchToReexecute(batch.clock_ms, tuple(read_ranges), table_versions=lookups)


def read_lookup_versions(scope: AuditScope) -> Mapping[int, Mapping[str, int]]:
    """Return the versions of lookup tables that each batch used."""
    lookup_rows = read_rows(scope.warehouse / LOOKUPS_FOLDER / scope.plan.name, scope.upto)
    versions_by_batch: dict[int, dict[str, int]] = {}
    for row in lookup_rows.to_pylist() if lookup_rows is not None else ():
        versions_by_batch.setdefault(row["batch_id"], {})[row["table"]] = row["version"]
    return versions_by_batch


def list_poisoned_records(scope: AuditScope) -> Iterator[ExcludedRecord]:
    """Yield quarantined records whose reason would not come up again."""
    for row in find_rejections(scope).to_pylist():
        if not row["reason"].startswith(FUTURE_RECORD_REASON):  # the batch clock finds it again
            yield ExcludedRecord(row["topic"], row["partition"], row["offset"], row["reason"])


def _compare_replay(
    scope: AuditScope,
    sample: Sample,
    replayed_panes: InMemoryPanes,
    outcomes: Sequence[BatchOutcome],
) -> CheckOutcome:
    replayed_batches = [to_batch_record(scope.plan.name, outcome) for outcome in outcomes]
    differences = list(compare_batches(scope.batches, replayed_batches)) if sample.is_complete else []
    count, incomparable_paths = 0, list[str]()
    for stage in scope.plan.stages:
        for sink in stage.sinks:
            panes = replayed_panes.panes_of(stage.name, sink.output)
            sink_rows = read_stored_rows(scope, sink)
            if sink_rows is None:
                incomparable_paths.append(sink.path)
                continue
            stored_rows = _sample_rows(scope, sample, sink_rows)
            comparison = comparison_for_sink(
                stage,
                sink,
                [column for column in panes.column_names if column in stored_rows.column_names],
            )
            expected = select_expected_rows(sink, panes, comparison.identity)
            count += expected.num_rows
            differences += compare_results(
                comparison, _number_rows(stored_rows, comparison), _number_rows(expected, comparison)
            )
    share_of = "" if sample.is_complete else " of the sample"
    incomparable = describe_incomparable(incomparable_paths)
    success_text = f"{count:,} rows{share_of} match {len(outcomes):,} re-executed batches{incomparable}"
    if incomparable and not count and not differences:
        return unproven_outcome(f"no table was compared{incomparable}")
    return judge_differences(differences, success_text)


def compare_batches(
    batches: Sequence[BatchRecord], replayed_batches: Sequence[BatchRecord]
) -> Iterator[AuditDifference]:
    """Yield batches whose accounts, watermark or panes differ when they run again."""
    for recorded, replayed in zip(batches, replayed_batches, strict=True):
        location = f"batch {recorded.batch_id}"
        if recorded.watermark_ms != replayed.watermark_ms:
            yield AuditDifference(
                location,
                f"watermark is {recorded.watermark_ms}; re-executed, it is {replayed.watermark_ms}",
            )
        for recorded_account, replayed_account in zip(recorded.accounts, replayed.accounts, strict=True):
            if recorded_account != replayed_account:
                yield AuditDifference(
                    f"{recorded_account.topic}/{recorded_account.partition}, {location}",
                    f"account is {recorded_account}; re-executed, it is {replayed_account}",
                )
        if recorded.panes != replayed.panes:
            yield AuditDifference(
                location, f"panes are {dict(recorded.panes)}; re-executed, they are {dict(replayed.panes)}"
            )


def comparison_for_sink(stage: Stage, sink: Sink, columns: Sequence[str]) -> TableComparison:
    """Return the columns that identify a row of a sink's table, and those that must be equal.

    Randomized sketches are not compared. A window of a join may have any number of rows in any order, so a row is
    identified by all joined values. An edited row shows up as one unexpected row and one missing row.
    """
    identity_columns = [*stage.key, "window_start", "window_end"]
    joined_columns = (
        []
        if stage.join is None
        else [column.name for column in stage.join.columns if column.name not in identity_columns]
    )
    identity_columns += [WINDOW_NUMBER_FIELD.name] if isinstance(stage.window, OrderWindow) else []
    if sink.content is not PaneContent.LATEST:
        identity_columns = [
            "batch_id",
            *identity_columns,
            "kind",
            *joined_columns,
            COPY_NUMBER_COLUMN if joined_columns else ROW_NUMBER_COLUMN,
        ]
    varying_columns = {output.name for output in stage.aggregates if not output.aggregate.is_reproducible}
    return TableComparison(
        sink.path,
        identity_columns,
        [name for name in columns if name not in {*identity_columns, *varying_columns}],
    )


def _sample_rows(scope: AuditScope, sample: Sample, table: pa.Table) -> pa.Table:
    """Return the rows whose key is in the sample."""
    if sample.key_share == 1.0 or not table.num_rows:
        return table
    import polars as pl

    stage = scope.plan.only_stage
    keys = (
        scope.open_session()
        .createDataFrame(table.select(stage.key))
        .distinct()
        .where(key_share_condition(stage, sample))
    )
    wanted_keys = pl.DataFrame(pl.from_arrow(keys.toArrow()))
    frame = pl.DataFrame(pl.from_arrow(table))
    return frame.join(wanted_keys, on=list(stage.key), how="semi", nulls_equal=True).to_arrow()


def _number_rows(table: pa.Table, comparison: TableComparison) -> pa.Table:
    """Number the rows of a batch with the same identity, in table order."""
    number_column = next(
        (name for name in comparison.identity if name in (ROW_NUMBER_COLUMN, COPY_NUMBER_COLUMN)), None
    )
    if number_column is None:
        return table
    import polars as pl

    frame = pl.DataFrame(pl.from_arrow(table))
    group_columns = [name for name in comparison.identity if name != number_column]
    return frame.with_columns(pl.int_range(pl.len()).over(group_columns).alias(number_column)).to_arrow()
