"""One Spark job for many scripts, and the share of each batch in its output.

The job is the job of a live batch, over the records of all batches of the scripts that share it. What it computes
for a record depends on that record alone, and its output is divided by partition. So a batch with a partition of
its own gets the same output as from a job of its own.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from penstock.conformance.engines import Script
from penstock.conformance.on_spark.shared_topic import ScriptBatch, SharedTopic, build_shared_topic
from penstock.engine.operators.compiled_stage import CompiledStage
from penstock.engine.plan.stages import DEFAULT_TRIGGER, Plan
from penstock.engine.spark.batch_input import SparkBatchInput
from penstock.engine.spark.parse.suspects import judge_always

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def group_scripts(scripts: Sequence[Script], max_group_size: int) -> Iterable[list[int]]:
    """Return groups of script numbers that need the same Spark job, with a maximum size."""
    groups: dict[Hashable, list[int]] = {}
    for number, script in enumerate(scripts):
        groups.setdefault(spark_job_key(script.plan), []).append(number)
    for numbers in groups.values():
        yield from (
            numbers[start : start + max_group_size] for start in range(0, len(numbers), max_group_size)
        )


def spark_job_key(plan: Plan) -> Hashable:
    """Return the part of a plan that Spark runs; lateness, accumulation and triggers belong to the operators."""
    stage = replace(plan.only_stage, lateness=0, accumulation="accumulating", on_time_pane="always")
    stage = replace(stage, final_pane="never", sinks=(), trigger=DEFAULT_TRIGGER)
    return plan.sources, stage, plan.only_stage.trigger.punctuation


@dataclass(frozen=True)
class SharedJobReading:
    """The records of one batch, as the batch engine reads them."""

    job_reading: SparkBatchInput
    job_partials: pa.Table
    partition: int

    def compute_partials(self) -> pa.Table:
        """Return the batch's share of the job's output."""
        is_own = pc.equal(self.job_partials.column("_partition"), self.partition)
        return to_single_partition(self.job_partials.filter(is_own), "_partition")

    def read_invalid_records(self) -> pa.Table:
        """Fetch the invalid records of the batch."""
        return to_single_partition(self.own_reading().read_invalid_records(), "partition")

    def read_late_records(self, windows: pa.Table) -> pa.Table:
        """Fetch the batch's records of the given windows."""
        return to_single_partition(self.own_reading().read_late_records(windows), "partition")

    def own_reading(self) -> SparkBatchInput:
        """Return a reading of only this batch's records."""
        ranges = tuple(
            offset_range
            for offset_range in self.job_reading.ranges
            if offset_range.partition == self.partition
        )
        return replace(
            self.job_reading, raw=self.job_reading.raw.where(f"partition = {self.partition}"), ranges=ranges
        )


def to_single_partition(rows: pa.Table, column: str) -> pa.Table:
    """Return rows with the partition of the script, not of the job."""
    column_index = rows.schema.get_field_index(column)
    return rows.set_column(
        column_index, rows.schema.field(column_index), pa.array([0] * rows.num_rows, pa.int32())
    )


def run_shared_jobs(
    session: "SparkSession", stage: CompiledStage, scripts: Sequence[Script]
) -> Mapping[ScriptBatch, SharedJobReading]:
    """Run the job of scripts that share it; one job per clock time if it depends on the clock."""
    return {
        script_batch: reading
        for part in split_by_clock(scripts)
        for script_batch, reading in run_shared_job(session, stage, scripts, part)
    }


def split_by_clock(scripts: Sequence[Script]) -> Iterator[tuple[int, SharedTopic]]:
    """Yield clock times, each with the topic of the batches that are read at it."""
    plan = scripts[0].plan
    clocks = sorted({batch.clock for script in scripts for batch in script.batches if batch.records})
    for clock in clocks if is_clock_dependent(plan) else clocks[:1]:
        clock_scripts = (
            [filter_clock(script, clock) for script in scripts] if is_clock_dependent(plan) else scripts
        )
        yield clock, build_shared_topic(clock_scripts)


def is_clock_dependent(plan: Plan) -> bool:
    """Tell whether Spark's result for a record depends on the batch clock."""
    has_future_limit = any(source.watermark.max_future_skew is not None for source in plan.sources)
    return has_future_limit or plan.only_stage.window.uses_processing_time


def filter_clock(script: Script, clock: int) -> Script:
    """Return the script with only the batches of one clock time."""
    return replace(script, batches=tuple(batch for batch in script.batches if batch.clock == clock))


def run_shared_job(
    session: "SparkSession", stage: CompiledStage, scripts: Sequence[Script], part: tuple[int, SharedTopic]
) -> Iterator[tuple[ScriptBatch, SharedJobReading]]:
    """Run one job, and yield every batch with its share."""
    clock, topic = part
    raw = session.createDataFrame(topic.table)
    reading = SparkBatchInput(
        raw, scripts[0].plan.sources, stage, clock, topic.ranges, judge_mode=judge_always()
    )
    job_partials = reading.compute_partials()
    for script_batch, partition in topic.partitions.items():
        yield script_batch, SharedJobReading(reading, job_partials, partition)
