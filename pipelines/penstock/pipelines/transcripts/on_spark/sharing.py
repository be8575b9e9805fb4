"""One Spark job for many scripts, and each batch's share of what it says.

The job is that of a live batch, code for code, over the records of all batches of the scripts that share it.
What it computes of a record depends on that record alone, and it is said by partition; so a batch that has a
partition of its own finds there what a job over its records alone would say.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from penstock.pipelines.fold.stage import ReadyStage
from penstock.pipelines.plan.stage import DEFAULT, Plan
from penstock.pipelines.plan.triggers import punctuations
from penstock.pipelines.plan.windows import by_processing_time
from penstock.pipelines.spark.reading import SparkReading
from penstock.pipelines.transcripts.engine import Script
from penstock.pipelines.transcripts.on_spark.records import Place, Shared, shared

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def in_groups(scripts: Sequence[Script], most: int) -> Iterable[list[int]]:
    """Return the numbers of scripts that ask Spark for the same, at most so many together."""
    groups: dict[Hashable, list[int]] = {}
    for number, script in enumerate(scripts):
        groups.setdefault(asked_of_spark(script.plan), []).append(number)
    for numbers in groups.values():
        yield from (numbers[begin : begin + most] for begin in range(0, len(numbers), most))


def asked_of_spark(plan: Plan) -> Hashable:
    """Return what Spark does for a plan: lateness, refinement and triggers that match nothing are the fold's."""
    stage = replace(plan.stage, lateness=0, accumulation="accumulating", on_time_pane="always")
    stage = replace(stage, final_pane="never", sinks=(), trigger=DEFAULT)
    return plan.sources, stage, punctuations(plan.stage.trigger)


@dataclass(frozen=True)
class Share:
    """The records of one batch, as the batch engine reads them."""

    whole: SparkReading
    fetched: pa.Table
    partition: int

    def partials(self) -> pa.Table:
        """Return the batch's share of what the job said."""
        mine = pc.equal(self.fetched.column("_partition"), self.partition)
        return as_only_partition(self.fetched.filter(mine), "_partition")

    def invalid(self) -> pa.Table:
        """Fetch the batch's records that are no good."""
        return as_only_partition(self.alone().invalid(), "partition")

    def late(self, windows: pa.Table) -> pa.Table:
        """Fetch the batch's records of the windows named."""
        return as_only_partition(self.alone().late(windows), "partition")

    def alone(self) -> SparkReading:
        """Return the reading of this batch's records and no others."""
        ranges = tuple(span for span in self.whole.ranges if span.partition == self.partition)
        return replace(self.whole, raw=self.whole.raw.where(f"partition = {self.partition}"), ranges=ranges)


def as_only_partition(rows: pa.Table, column: str) -> pa.Table:
    """Return rows as those of the script's one partition, whichever it had in the job."""
    at = rows.schema.get_field_index(column)
    return rows.set_column(at, rows.schema.field(at), pa.array([0] * rows.num_rows, pa.int32()))


def shares(session: "SparkSession", stage: ReadyStage, scripts: Sequence[Script]) -> Mapping[Place, Share]:
    """Run the job of scripts that share it; where it depends on the clock, a job for each clock."""
    return {place: share for part in parts(scripts) for place, share in ran(session, stage, scripts, part)}


def parts(scripts: Sequence[Script]) -> Iterator[tuple[int, Shared]]:
    """Yield clocks, and what a topic would hold of the batches that are read under each."""
    plan = scripts[0].plan
    clocks = sorted({batch.clock for script in scripts for batch in script.batches if batch.records})
    for clock in clocks if needs_clock(plan) else clocks[:1]:
        chosen = [of_clock(script, clock) for script in scripts] if needs_clock(plan) else scripts
        yield clock, shared(chosen)


def needs_clock(plan: Plan) -> bool:
    """Tell whether what Spark does with a record depends on the batch clock."""
    ahead = any(source.watermark.max_ahead is not None for source in plan.sources)
    return ahead or by_processing_time(plan.stage.window)


def of_clock(script: Script, clock: int) -> Script:
    """Return the script with the batches of one clock only."""
    return replace(script, batches=tuple(batch for batch in script.batches if batch.clock == clock))


def ran(
    session: "SparkSession", stage: ReadyStage, scripts: Sequence[Script], part: tuple[int, Shared]
) -> Iterator[tuple[Place, Share]]:
    """Run one job, and yield every batch with its share."""
    clock, held = part
    raw = session.createDataFrame(held.table)
    reading = SparkReading(raw, scripts[0].plan.sources, stage, clock, held.ranges)
    fetched = reading.partials()
    for place, partition in held.partitions.items():
        yield place, Share(reading, fetched, partition)
