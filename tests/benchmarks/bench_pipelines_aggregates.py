"""What each aggregate costs, from records to panes, beside what Spark's own aggregate takes for the same windows.

`python -m tests.benchmarks.bench_pipelines_aggregates [records] [rounds]`; it starts a Spark of its own. Ours is
the batch's job, the fetch, the fold and the written state; the rival is one group-by with the fetch of its answer,
which keeps nothing. Both read the same cached records, in turns, after a warm-up.
"""

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from rich.console import Console
from rich.table import Table

from penstock.infra.jars import ensure_jars, spark_jars
from penstock.infra.java import find_java
from penstock.pipelines.fold.fold import fold
from penstock.pipelines.fold.moment import Moment
from penstock.pipelines.fold.stage import ReadyStage, ready_stage
from penstock.pipelines.model import (
    collect,
    combine,
    count,
    distinct,
    fixed,
    last,
    max_,
    mean,
    quantiles,
    sum_,
    top,
)
from penstock.pipelines.plan import Aggregate, Output, Stage
from penstock.pipelines.spark.partials import partials
from penstock.pipelines.spark.session import SparkConfig, open_session
from penstock.pipelines.state import tree as trees
from penstock.pipelines.state.columns import BEFORE_ALL

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

KEYS = 1_000
WINDOWS = 10
SIZE = 10_000
TYPES = {"key": pa.int64(), "value": pa.float64(), "word": pa.string(), "number": pa.int64()}


class Squares:
    """Sum of squares, as a combiner of one's own."""

    partial_type = pa.int64()
    result_type = pa.int64()
    takes_back = True

    def add(self, values: pa.Table, groups: Any, count: int) -> pa.Array:
        """Square and add up."""
        number = values.column(0)
        return self._summed(pc.multiply(number, number), groups, count)

    def merge(self, partials: pa.Array, groups: Any, count: int) -> pa.Array:
        """Add up."""
        return self._summed(pa.chunked_array([partials]), groups, count)

    def subtract(self, partials: pa.Array, gone: pa.Array) -> pa.Array:
        """Take off."""
        return pc.subtract(partials, gone)

    def result(self, partials: pa.Array) -> pa.Array:
        """Show it as it is."""
        return partials

    def _summed(self, values: pa.ChunkedArray, groups: Any, count: int) -> pa.Array:
        found = pa.table({"group": groups, "value": values}).group_by("group").aggregate([("value", "sum")])
        there = dict(
            zip(found.column("group").to_pylist(), found.column("value_sum").to_pylist(), strict=True)
        )
        return pa.array([there.get(group) for group in range(count)], pa.int64())


@dataclass(frozen=True)
class Contest:
    """An aggregate of ours and the SQL of Spark's own; None where Spark's own is a Python function."""

    name: str
    ours: Aggregate
    native: str | None


CONTESTS = [
    Contest("count", count(), "count(1)"),
    Contest("sum", sum_("value"), "sum(value)"),
    Contest("mean", mean("value"), "avg(value)"),
    Contest("max", max_("value"), "max(value)"),
    Contest("max of text", max_("word"), "max(word)"),
    Contest("last", last("value"), "max_by(value, struct(_time, _offset))"),
    Contest("distinct, exact", distinct("word"), "count(distinct word)"),
    Contest(
        "distinct, sketch", distinct("number", exact=False), "hll_sketch_estimate(hll_sketch_agg(number, 12))"
    ),
    Contest("top 3", top(3, "word", by="value"), "max_by(word, struct(value, -_offset), 3)"),
    Contest(
        "quantiles",
        quantiles("value", 0.5, 0.99),
        "kll_sketch_get_quantile_double(kll_sketch_agg_double(value), array(0.5D, 0.99D))",
    ),
    Contest("collect", collect("number"), "array_sort(collect_list(struct(_time, _offset, number))).number"),
    Contest("one's own", combine(Squares(), "number"), None),
]


def squares(values: pd.Series) -> int:
    """The same as a grouped Python function of Spark's."""
    return int((values * values).sum())


def records(session: "SparkSession", many: int) -> "DataFrame":
    """Records as a batch's job gets them, kept in memory."""
    made = session.range(many, numPartitions=4).selectExpr(
        f"cast(pmod(hash(id), {KEYS}) AS BIGINT) AS key",
        "pmod(hash(id, 1), 10000) / 2D AS value",
        "concat('word', pmod(hash(id, 2), 50)) AS word",
        "cast(pmod(hash(id, 3), 100000) AS BIGINT) AS number",
        "'records' AS _topic",
        "cast(spark_partition_id() AS INT) AS _partition",
        "id AS _offset",
        f"cast(pmod(hash(id, 4), {WINDOWS * SIZE}) AS BIGINT) AS _time",
    )
    whole = made.selectExpr(
        "*", "_time AS _moving", "cast(null AS STRING) AS _invalid", "cast(null AS STRING) AS _aside",
        "0L AS _clock",
    ).cache()  # fmt: skip
    whole.count()
    return whole


def ours(frame: "DataFrame", stage: ReadyStage, folder: Path, number: int) -> int:
    """A batch, from records to panes and written state; answers how many panes there are."""
    partial = partials(frame, stage).toArrow()
    fitting = partial.select(stage.partial_columns.names).cast(stage.partial_columns)
    moment = Moment(0, BEFORE_ALL, 0, BEFORE_ALL, WINDOWS * SIZE)
    outcome = fold(stage, trees.empty(stage.state_columns), fitting, moment)
    trees.empty(stage.state_columns).with_run(outcome.changed, folder / f"run-{number}.arrow")
    return outcome.panes.num_rows


def native(frame: "DataFrame", measure: "Column") -> int:
    """The same windows by one group-by; answers how many there are."""
    from pyspark.sql.functions import expr

    window = expr(f"_time - pmod(_time, {SIZE})").alias("window_start")
    return frame.groupBy("key", window).agg(measure.alias("said")).toArrow().num_rows


def seconds(work: Callable[[], int]) -> float:
    """How long it takes; it must find every window."""
    began = time.perf_counter()
    found = work()
    taken = time.perf_counter() - began
    assert found == KEYS * WINDOWS, found
    return taken


def compared(session: "SparkSession", many: int, rounds: int, figures: Table) -> None:
    """Run every contest, and write a line for each."""
    from pyspark.sql.functions import expr, pandas_udf

    frame = records(session, many)
    own = pandas_udf(squares, "bigint")
    with tempfile.TemporaryDirectory() as scratch:
        for contest in CONTESTS:
            answer = Stage(
                "bench",
                ("records",),
                fixed(SIZE),
                (Output("said", contest.ours),),
                key=("key",),
                lateness=SIZE,
            )
            stage = ready_stage(answer, TYPES)
            measure = own("number") if contest.native is None else expr(contest.native)
            taken = [
                (
                    seconds(lambda: ours(frame, stage, Path(scratch), number)),  # noqa: B023  # called at once
                    seconds(lambda: native(frame, measure)),  # noqa: B023  # called at once
                )
                for number in range(rounds + 1)
            ][1:]
            ratios = sorted(theirs / mine for mine, theirs in taken)
            mine, theirs = (statistics.median(side) for side in zip(*taken, strict=True))
            figures.add_row(
                contest.name,
                f"{mine * 1000:.0f} ms",
                f"{theirs * 1000:.0f} ms",
                f"{statistics.median(ratios):.2f}",
                f"{ratios[0]:.2f} to {ratios[-1]:.2f}",
            )


def main(many: int = 300_000, rounds: int = 5) -> None:
    """Measure, and print a line for each aggregate: medians, and native time over ours with its spread."""
    title = f"{many} records into {KEYS * WINDOWS} windows, {rounds} rounds; speed as a share of native"
    figures = Table("aggregate", "ours", "native", "ratio", "spread", title=title)
    jars = Path(__file__).parents[2] / ".penstock" / "jars"
    ensure_jars(jars, ("spark",))
    with tempfile.TemporaryDirectory() as scratch:
        config = SparkConfig(spark_jars(jars), Path(scratch), driver_memory="1g", java_home=find_java().home)
        session = open_session(config)
        session.sparkContext.setLogLevel("ERROR")
        compared(session, many, rounds, figures)
        session.stop()
    Console().print(figures)


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:]))
