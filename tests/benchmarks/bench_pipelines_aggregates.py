"""Measures each aggregate, from records to panes, against Spark's own aggregate over the same windows.

`python -m tests.benchmarks.bench_pipelines_aggregates [RECORDS] [ROUNDS]`. The time of the engine covers the Spark
job of a batch, the fetch, the processing and the state file. The rival is one group-by and the fetch of its result,
without state. Both read the same cached records, in turns, after a warm-up.
"""

import argparse
import statistics
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

from penstock.engine.aggregates.aggregate import Aggregate
from penstock.engine.aggregates.aggregate_output import AggregateOutput
from penstock.engine.batch_time import BatchTime
from penstock.engine.operators.compiled_stage import CompiledStage
from penstock.engine.operators.dispatch import process_batch
from penstock.engine.operators.stage_compilation import compile_stage
from penstock.engine.plan.stages import Stage
from penstock.engine.spark.aggregate.partials import aggregate_partials
from penstock.engine.spark.session import SparkSessionConfig, open_spark_session
from penstock.engine.state import state_tree as trees
from penstock.engine.state.header_columns import MIN_TIMESTAMP_MS
from penstock.infra.jars import ensure_jars, spark_jars
from penstock.infra.java import find_java
from penstock.stream import collect, combine, count, distinct, fixed, last, max_, mean, quantiles, sum_, top

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

KEY_COUNT = 1_000
WINDOW_COUNT = 10
WINDOW_SIZE_MS = 10_000
COLUMN_TYPES = {"key": pa.int64(), "value": pa.float64(), "word": pa.string(), "number": pa.int64()}


class SumOfSquares:
    """Sum of squares, as a user's combiner."""

    partial_type = pa.int64()
    result_type = pa.int64()
    can_subtract = True

    def add(self, values: pa.Table, groups: Any, count: int) -> pa.Array:
        """Add up the squares of each group."""
        number = values.column(0)
        return self._sum_groups(pc.multiply(number, number), groups, count)

    def merge(self, partials: pa.Array, groups: Any, count: int) -> pa.Array:
        """Add up the partials of each group."""
        return self._sum_groups(pa.chunked_array([partials]), groups, count)

    def subtract(self, partials: pa.Array, gone: pa.Array) -> pa.Array:
        """Subtract partials."""
        return pc.subtract(partials, gone)

    def result(self, partials: pa.Array) -> pa.Array:
        """Return the partials as results."""
        return partials

    def _sum_groups(self, values: pa.ChunkedArray, groups: Any, count: int) -> pa.Array:
        sums = pa.table({"group": groups, "value": values}).group_by("group").aggregate([("value", "sum")])
        sum_by_group = dict(
            zip(sums.column("group").to_pylist(), sums.column("value_sum").to_pylist(), strict=True)
        )
        return pa.array([sum_by_group.get(group) for group in range(count)], pa.int64())


@dataclass(frozen=True)
class AggregateComparison:
    """An aggregate and the SQL of Spark's equivalent, or None if that is a Python function."""

    name: str
    aggregate: Aggregate
    native: str | None


COMPARISONS = [
    AggregateComparison("count", count(), "count(1)"),
    AggregateComparison("sum", sum_("value"), "sum(value)"),
    AggregateComparison("mean", mean("value"), "avg(value)"),
    AggregateComparison("max", max_("value"), "max(value)"),
    AggregateComparison("max of text", max_("word"), "max(word)"),
    AggregateComparison("last", last("value"), "max_by(value, struct(_time, _offset))"),
    AggregateComparison("distinct, exact", distinct("word"), "count(distinct word)"),
    AggregateComparison(
        "distinct, sketch", distinct("number", exact=False), "hll_sketch_estimate(hll_sketch_agg(number, 12))"
    ),
    AggregateComparison("top 3", top(3, "word", by="value"), "max_by(word, struct(value, -_offset), 3)"),
    AggregateComparison(
        "quantiles",
        quantiles("value", 0.5, 0.99),
        "kll_sketch_get_quantile_double(kll_sketch_agg_double(value), array(0.5D, 0.99D))",
    ),
    AggregateComparison(
        "collect", collect("number"), "array_sort(collect_list(struct(_time, _offset, number))).number"
    ),
    AggregateComparison("user combiner", combine(SumOfSquares(), "number"), None),
]


def sum_squares(values: pd.Series) -> int:
    """Return the sum of squares; a grouped Python function for Spark."""
    return int((values * values).sum())


def make_records(session: "SparkSession", record_count: int) -> "DataFrame":
    """Return cached records in the form that the job of a batch reads."""
    rows = session.range(record_count, numPartitions=4).selectExpr(
        f"cast(pmod(hash(id), {KEY_COUNT}) AS BIGINT) AS key",
        "pmod(hash(id, 1), 10000) / 2D AS value",
        "concat('word', pmod(hash(id, 2), 50)) AS word",
        "cast(pmod(hash(id, 3), 100000) AS BIGINT) AS number",
        "'records' AS _topic",
        "cast(spark_partition_id() AS INT) AS _partition",
        "id AS _offset",
        f"cast(pmod(hash(id, 4), {WINDOW_COUNT * WINDOW_SIZE_MS}) AS BIGINT) AS _time",
    )
    records = rows.selectExpr(
        "*", "_time AS _watermark_time", "cast(null AS STRING) AS _invalid", "cast(null AS STRING) AS _fate",
        "0L AS _clock",
    ).cache()  # fmt: skip
    records.count()
    return records


def run_engine(frame: "DataFrame", stage: CompiledStage, folder: Path, number: int) -> int:
    """Run a batch, from records to panes and written state, and return the number of panes."""
    rows = aggregate_partials(frame, stage).toArrow()
    partials = rows.select(stage.partial_schema.names).cast(stage.partial_schema)
    batch_time = BatchTime(0, MIN_TIMESTAMP_MS, 0, MIN_TIMESTAMP_MS, WINDOW_COUNT * WINDOW_SIZE_MS)
    outcome = process_batch(stage, trees.create_empty_tree(stage.state_schema), partials, batch_time)
    trees.create_empty_tree(stage.state_schema).with_run(
        outcome.changed_state, folder / f"run-{number}.arrow"
    )
    return outcome.panes.num_rows


def run_native(frame: "DataFrame", measure: "Column") -> int:
    """Compute the same windows by one group-by, and return their number."""
    from pyspark.sql.functions import expr

    window = expr(f"_time - pmod(_time, {WINDOW_SIZE_MS})").alias("window_start")
    return frame.groupBy("key", window).agg(measure.alias("result")).toArrow().num_rows


def time_run(work: Callable[[], int]) -> float:
    """Return the seconds that the work takes; it must return the number of all windows."""
    started = time.perf_counter()
    window_count = work()
    seconds = time.perf_counter() - started
    assert window_count == KEY_COUNT * WINDOW_COUNT, window_count
    return seconds


def run_comparisons(session: "SparkSession", records: int, rounds: int, figures: Table) -> None:
    """Run every comparison and add a row for each."""
    from pyspark.sql.functions import expr, pandas_udf

    frame = make_records(session, records)
    native_sum_squares = pandas_udf(sum_squares, "bigint")
    with tempfile.TemporaryDirectory() as scratch:
        for comparison in COMPARISONS:
            bench_stage = Stage(
                "bench",
                ("records",),
                fixed(WINDOW_SIZE_MS),
                (AggregateOutput("result", comparison.aggregate),),
                key=("key",),
                lateness=WINDOW_SIZE_MS,
            )
            stage = compile_stage(bench_stage, COLUMN_TYPES)
            measure = native_sum_squares("number") if comparison.native is None else expr(comparison.native)
            durations = [
                (
                    time_run(lambda: run_engine(frame, stage, Path(scratch), number)),  # noqa: B023  # called immediately
                    time_run(lambda: run_native(frame, measure)),  # noqa: B023  # called immediately
                )
                for number in range(rounds + 1)
            ][1:]
            ratios = sorted(native_s / engine_s for engine_s, native_s in durations)
            engine_s, native_s = (statistics.median(side) for side in zip(*durations, strict=True))
            figures.add_row(
                comparison.name,
                f"{engine_s * 1000:.0f} ms",
                f"{native_s * 1000:.0f} ms",
                f"{statistics.median(ratios):.2f}",
                f"{ratios[0]:.2f} to {ratios[-1]:.2f}",
            )


def main(records: int, rounds: int) -> None:
    """Print a row for each aggregate: median times, and the ratio of Spark's time to the engine's."""
    title = (
        f"{records} records into {KEY_COUNT * WINDOW_COUNT} windows, {rounds} rounds; speed relative to Spark"
    )
    figures = Table("aggregate", "Penstock", "native Spark", "ratio", "min to max", title=title)
    jars = Path(__file__).parents[2] / ".penstock" / "jars"
    ensure_jars(jars, ("spark",))
    with tempfile.TemporaryDirectory() as scratch:
        config = SparkSessionConfig(
            spark_jars(jars), Path(scratch), driver_memory="1g", java_home=find_java().home
        )
        session = open_spark_session(config)
        session.sparkContext.setLogLevel("ERROR")
        run_comparisons(session, records, rounds, figures)
        session.stop()
    Console().print(figures)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "records", nargs="?", type=int, default=300_000, help="records per run (default: %(default)s)"
    )
    parser.add_argument(
        "rounds", nargs="?", type=int, default=5, help="measured rounds (default: %(default)s)"
    )
    arguments = parser.parse_args()
    main(arguments.records, arguments.rounds)
