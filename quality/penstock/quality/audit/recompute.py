"""Results computed again: the bounded pipeline over what a stream has read, without what came too late."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.pipelines.batch.inputs import topic_of
from penstock.pipelines.batch.intent import Range
from penstock.pipelines.plan import (
    AfterWatermark,
    Default,
    LatestValues,
    PaneLog,
    Plan,
    Sliding,
    Source,
    Sql,
    Stage,
    Step,
)
from penstock.pipelines.plan.predicates import quoted
from penstock.pipelines.spark.avro import Schemas, no_registry
from penstock.pipelines.spark.bounded import BoundedConfig, run_bounded
from penstock.pipelines.spark.stored import Stored
from penstock.pipelines.spark.stored.together import StoredTogether
from penstock.pipelines.store import Place
from penstock.quality.audit.comparable import Sample, in_order
from penstock.quality.audit.set_aside import ADDRESS
from penstock.quality.audit.tables import milliseconds

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LATE_VIEW = "penstock_audit_late"
WITHOUT_LATE = f"SELECT /*+ BROADCAST(l) */ i.* FROM input i LEFT ANTI JOIN {LATE_VIEW} l"  # noqa: S608  # a name of ours
AT_ONCE = 5_000_000
"""Records to a batch: what is fetched of them must fit the driver's memory."""

SHARES = 1_000_000


@dataclass(frozen=True)
class Again:
    """What is computed again: a plan, the ranges that were read, and the records that have no part in it."""

    plan: Plan
    ranges: Sequence[Range]
    late: pa.Table
    """Addresses of records that no window took."""
    refused: pa.Table
    """Addresses of records that were refused for a reason that does not hold any more."""


@dataclass(frozen=True)
class AsRead:
    """Stored records of one topic as far as a stream has read them, without some."""

    stored: Stored
    spans: tuple[Range, ...]
    without: pa.Table

    def ranges(self) -> tuple[Range, ...]:
        """The ranges that were read."""
        return self.spans

    def records(self, ranges: Sequence[Range]) -> "DataFrame":
        """The records of these ranges."""
        records = self.stored.records(ranges)
        if not self.without.num_rows:
            return records
        gone = records.sparkSession.createDataFrame(self.without)
        return records.join(gone.hint("broadcast"), ADDRESS, "left_anti")


def again(plan: Plan, sample: Sample, late: pa.Table) -> Plan:
    """Return the plan that gives each window's last value, and nothing else, of the records in a sample."""
    stage = plan.stage
    quiet = replace(
        stage,
        steps=tuple(steps(stage, sample, late)),
        trigger=Default() if in_order(stage) else AfterWatermark(),
        may_finish=not in_order(stage),
        accumulation="accumulating",
        on_time_pane="always",
        final_pane="never",
        sinks=((PaneLog if in_order(stage) else LatestValues)(stage.name),),
    )
    return replace(plan, sources=tuple(map(accepting, plan.sources)), stages=(quiet,))


def steps(stage: Stage, sample: Sample, late: pa.Table) -> list[Step]:
    """Return the stage's steps, with others that take out what is late and what the sample leaves out."""
    first: list[Step] = []
    if late.num_rows:
        same = " AND ".join(f"i._{name} = l.{name}" for name in ADDRESS)
        # Taken out after repeats were told: a record that came late is remembered like any other.
        first.append(Sql(f"{WITHOUT_LATE} ON {same}"))
    limits = [
        f"_time {sign} {bound}L"
        for sign, bound in ((">=", sample.start), ("<", sample.end))
        if bound is not None
    ]
    if limits:
        first.append(only(" AND ".join(limits)))
    last = [only(share(stage, sample))] if sample.keys < 1 else []
    return [*first, *stage.steps, *last]


def only(condition: str) -> Sql:
    """Return the step that keeps the records which a condition holds for."""
    return Sql(f"SELECT * FROM input WHERE {condition}")  # noqa: S608  # of ours, over quoted names


def share(stage: Stage, sample: Sample) -> str:
    """Return the SQL that chooses a share of the keys, the same wherever it is asked."""
    keys = ", ".join(quoted(name) for name in stage.key)
    return f"pmod(xxhash64({keys}), {SHARES}) < {round(sample.keys * SHARES)}"


def accepting(source: Source) -> Source:
    """Return the source without a guard that goes by a clock: whom it refused is taken out by address."""
    return replace(source, watermark=replace(source.watermark, max_ahead=None))


def run_again(
    session: "SparkSession",
    what: Again,
    stored: Mapping[str, Stored],
    folder: Path,
    live: Place,
    clock: Callable[[], int],
    tell: Callable[[str], None],
    schemas: Schemas = no_registry,
) -> Place:
    """Run it into an empty folder, and return where its tables are; `stored` has the records of each topic.

    `live` is the warehouse of the stream: what its records were looked up in is looked into again, as it was.
    """
    session.createDataFrame(what.late).createOrReplaceTempView(LATE_VIEW)
    parts = [
        AsRead(
            stored[topic],
            tuple(span for span in what.ranges if span.topic == topic),
            what.refused.filter(pc.equal(what.refused.column("topic"), topic)),
        )
        for topic in map(topic_of, what.plan.sources)
    ]
    config = BoundedConfig(folder / "run", folder / "tables", AT_ONCE, schemas=schemas, live=live)
    run_bounded(
        what.plan,
        session,
        StoredTogether(parts),
        config,
        clock,
        lambda outcome, count: tell(f"computing again: batch {outcome.batch_id + 1} of {count}"),
    )
    return config.warehouse


def nowhere(stage: Stage, late: pa.Table) -> pa.Table:
    """Return the addresses of late records that no window took.

    A record that lies in several windows has a row for each that it missed; if these are all of its windows it was
    taken by none. One of which a step has made several rows has as many for each window.
    """
    missed_once = late.group_by([*ADDRESS, "event_time", "window_start"]).aggregate([])
    counted = missed_once.group_by([*ADDRESS, "event_time"]).aggregate([("window_start", "count")])
    if isinstance(stage.window, Sliding):
        times = milliseconds(counted.column("event_time"))
        missed = counted.column("window_start_count")
        counted = counted.filter(pc.equal(missed, windows_of(stage.window, times)))
    return counted.select(ADDRESS)


def windows_of(window: Sliding, times: pa.ChunkedArray) -> pa.Array:
    """Return in how many windows records of these times lie."""
    at = np.asarray(times)
    newest = at - np.mod(at - window.offset, window.period)
    first = newest - at + window.size  # how far the newest start lies inside of the window's reach
    return pa.array(np.where(first > 0, -(-first // window.period), 0).astype(np.int64))


def apart(stage: Stage, rows: pa.Table, late: pa.Table) -> pa.Table:
    """Return rows without the windows that missed a record which another window took."""
    if not isinstance(stage.window, Sliding) or not late.num_rows:
        return rows
    import polars as pl

    names = [*stage.key, "window_start", "window_end"]
    missed = pl.DataFrame(pl.from_arrow(late.select(names)))
    return pl.DataFrame(pl.from_arrow(rows)).join(missed, on=names, how="anti", nulls_equal=True).to_arrow()
