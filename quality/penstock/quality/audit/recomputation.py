"""Recomputes results with a bounded run over the records that a stream has read, without late records."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.core.progress import ProgressReporter
from penstock.engine.batch.input_watermarks import topic_of
from penstock.engine.batch.intent import OffsetRange
from penstock.engine.batch.outcome import BatchOutcome
from penstock.engine.definition.predicates import quote_column
from penstock.engine.history.bounded_run import run_bounded
from penstock.engine.history.bounded_run_config import BoundedRunConfig
from penstock.engine.plan.sources import PlanSource
from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.plan.steps import SqlStep, Step
from penstock.engine.sinks.latest_values import LatestValues
from penstock.engine.sinks.pane_log import PaneLog
from penstock.engine.spark.bounded_sources import BoundedSource
from penstock.engine.spark.bounded_sources.union_source import UnionSource
from penstock.engine.spark.parse.writer_schemas import SchemaLookup, refuse_without_registry
from penstock.engine.storage import StoragePath
from penstock.engine.triggers.after_watermark import AfterWatermark
from penstock.engine.triggers.default import Default
from penstock.engine.windows.time_window import TimeWindow
from penstock.quality.audit.comparability import Sample, has_order_windows
from penstock.quality.audit.side_tables import ADDRESS_COLUMNS
from penstock.quality.table_reads import to_milliseconds

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LATE_VIEW = "penstock_audit_late"
ANTI_JOIN_LATE_SQL = f"SELECT /*+ BROADCAST(l) */ i.* FROM input i LEFT ANTI JOIN {LATE_VIEW} l"  # noqa: S608  # a name of ours
MAX_RECORDS_PER_BATCH = 5_000_000
"""The maximum number of records per batch; their output must fit the memory of the driver."""

KEY_SHARE_BUCKETS = 1_000_000


@dataclass(frozen=True)
class Recomputation:
    """The input of a recomputation: a plan, the ranges that were read, and the excluded records."""

    plan: Plan
    ranges: Sequence[OffsetRange]
    late_addresses: pa.Table
    """The addresses of records that no window accepted."""
    rejected_addresses: pa.Table
    """The addresses of records that were rejected for a reason that does not come up again."""


@dataclass(frozen=True)
class RecordsAsRead:
    """The stored records of a topic that a stream has read, without excluded ones."""

    source: BoundedSource
    read_ranges: tuple[OffsetRange, ...]
    excluded: pa.Table

    def list_ranges(self) -> tuple[OffsetRange, ...]:
        """Return the ranges that were read."""
        return self.read_ranges

    def read_records(self, ranges: Sequence[OffsetRange]) -> "DataFrame":
        """Return the records of these ranges."""
        records = self.source.read_records(ranges)
        if not self.excluded.num_rows:
            return records
        excluded_rows = records.sparkSession.createDataFrame(self.excluded)
        return records.join(excluded_rows.hint("broadcast"), ADDRESS_COLUMNS, "left_anti")


def build_recompute_plan(plan: Plan, sample: Sample, late_addresses: pa.Table) -> Plan:
    """Return a plan that computes the last value of each window from the sampled records."""
    stage = plan.only_stage
    bounded_stage = replace(
        stage,
        steps=tuple(build_recompute_steps(stage, sample, late_addresses)),
        trigger=Default() if has_order_windows(stage) else AfterWatermark(),
        may_finish=not has_order_windows(stage),
        accumulation="accumulating",
        on_time_pane="always",
        final_pane="never",
        sinks=((PaneLog if has_order_windows(stage) else LatestValues)(stage.name),),
    )
    return replace(plan, sources=tuple(map(without_future_guard, plan.sources)), stages=(bounded_stage,))


def build_recompute_steps(stage: Stage, sample: Sample, late_addresses: pa.Table) -> list[Step]:
    """Return the steps of a stage, with filters for late records and for the sample."""
    leading_steps: list[Step] = []
    if late_addresses.num_rows:
        on_address = " AND ".join(f"i._{name} = l.{name}" for name in ADDRESS_COLUMNS)
        # Exclude late records after deduplication: their keys count as seen, too.
        leading_steps.append(SqlStep(f"{ANTI_JOIN_LATE_SQL} ON {on_address}"))
    limits = [
        f"_time {operator} {bound}L"
        for operator, bound in ((">=", sample.start), ("<", sample.end))
        if bound is not None
    ]
    if limits:
        leading_steps.append(filter_step(" AND ".join(limits)))
    trailing_steps = [filter_step(key_share_condition(stage, sample))] if sample.key_share < 1 else []
    return [*leading_steps, *stage.steps, *trailing_steps]


def filter_step(condition: str) -> SqlStep:
    """Return a step that keeps the records that match a condition."""
    return SqlStep(f"SELECT * FROM input WHERE {condition}")  # noqa: S608  # of ours, over quoted names


def key_share_condition(stage: Stage, sample: Sample) -> str:
    """Return SQL that selects a share of the keys, the same in every query."""
    keys = ", ".join(quote_column(name) for name in stage.key)
    return f"pmod(xxhash64({keys}), {KEY_SHARE_BUCKETS}) < {round(sample.key_share * KEY_SHARE_BUCKETS)}"


def without_future_guard(source: PlanSource) -> PlanSource:
    """Return the source without its max future skew, which depends on a clock.

    The records that it rejected are excluded by address.
    """
    return replace(source, watermark=replace(source.watermark, max_future_skew=None))


def run_recomputation(
    session: "SparkSession",
    recomputation: Recomputation,
    sources: Mapping[str, BoundedSource],
    folder: Path,
    live_warehouse: StoragePath,
    clock: Callable[[], int],
    report_progress: ProgressReporter,
    schemas: SchemaLookup = refuse_without_registry,
) -> StoragePath:
    """Run the recomputation into an empty folder, and return the path of its tables.

    `sources` has the records of each topic. `live_warehouse` is the warehouse of the stream; lookups read their
    tables there, at the recorded versions.
    """
    session.createDataFrame(recomputation.late_addresses).createOrReplaceTempView(LATE_VIEW)
    topic_records = [
        RecordsAsRead(
            sources[topic],
            tuple(span for span in recomputation.ranges if span.topic == topic),
            recomputation.rejected_addresses.filter(
                pc.equal(recomputation.rejected_addresses.column("topic"), topic)
            ),
        )
        for topic in map(topic_of, recomputation.plan.sources)
    ]
    config = BoundedRunConfig(
        folder / "run",
        folder / "tables",
        MAX_RECORDS_PER_BATCH,
        schema_lookup=schemas,
        live_warehouse=live_warehouse,
    )
    record_count = sum(span.end - span.start for span in recomputation.ranges)
    report_progress(f"recomputing the results of {record_count:,} records")
    done_count = 0

    def report_batch(outcome: BatchOutcome, batch_count: int) -> None:
        nonlocal done_count
        done_count += sum(account.read for account in outcome.accounts)
        batch = f"batch {outcome.batch_id + 1} of {batch_count}"
        report_progress(f"recomputed {done_count:,} of {record_count:,} records, {batch}")

    run_bounded(recomputation.plan, session, UnionSource(topic_records), config, clock, report_batch)
    return config.warehouse


def find_fully_missed(stage: Stage, late: pa.Table) -> pa.Table:
    """Return the addresses of late records that no window accepted.

    The late table has one row per missed window of a record. If that is every window of the record, no window
    accepted it. A record that a step multiplied has several rows per window.
    """
    missed_windows = late.group_by([*ADDRESS_COLUMNS, "event_time", "window_start"]).aggregate([])
    missed_counts = missed_windows.group_by([*ADDRESS_COLUMNS, "event_time"]).aggregate(
        [("window_start", "count")]
    )
    if isinstance(stage.window, TimeWindow) and stage.window.may_overlap:
        times = to_milliseconds(missed_counts.column("event_time"))
        missed_count = missed_counts.column("window_start_count")
        window_count = pa.array(stage.window.count_windows(np.asarray(times)))
        missed_counts = missed_counts.filter(pc.equal(missed_count, window_count))
    return missed_counts.select(ADDRESS_COLUMNS)


def exclude_partly_missed(stage: Stage, rows: pa.Table, late: pa.Table) -> pa.Table:
    """Return the rows without windows that missed a record that another window accepted."""
    if not stage.window.may_overlap or not late.num_rows:
        return rows
    import polars as pl

    names = [*stage.key, "window_start", "window_end"]
    missed = pl.DataFrame(pl.from_arrow(late.select(names)))
    return pl.DataFrame(pl.from_arrow(rows)).join(missed, on=names, how="anti", nulls_equal=True).to_arrow()
