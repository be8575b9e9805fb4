"""Measures joins of two topics of equal rate against Spark's stream-stream join.

Each record has one match. All variants read the same topics with equal batches, in turns, after a warm-up round.
Time runs from the start of the query to the commit of the last record. The rival joins by device and window and
appends to Delta. The engine runs the same join with early results and retractions, and an interval join. `python -m
tests.benchmarks.bench_pipelines_join [--records N] [--repeats N] [--batch N]`.
"""

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from tests.benchmarks.bench_pipelines_catchup import format_spread, time_rival
from tests.benchmarks.rivals import (
    READING_COLUMNS,
    BenchScene,
    EngineRival,
    NativeRival,
    open_scene,
    read_parsed,
    start_load,
)

from penstock.engine.aggregates.aggregate_output import AggregateOutput
from penstock.engine.aggregates.join_members import JoinMembers
from penstock.engine.plan.joins import Join, JoinColumn
from penstock.engine.plan.sources import PlanSource, TopicOrigin, WatermarkStrategy
from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.plan.validation.plans import validate_plan
from penstock.engine.sinks.pane_log import PaneLog
from penstock.stream import after_count, between, fixed, repeatedly

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

LEFT_TOPIC, RIGHT_TOPIC = "left", "right"


def plan_window_join() -> Plan:
    """Return a join in windows of ten seconds, with results in every batch and retractions."""
    columns = (JoinColumn("one", LEFT_TOPIC, "temperature"), JoinColumn("other", RIGHT_TOPIC, "temperature"))
    join = Join("inner", LEFT_TOPIC, RIGHT_TOPIC, columns)
    outputs = tuple(
        AggregateOutput(name, JoinMembers(name, join.fields_from(name))) for name in (LEFT_TOPIC, RIGHT_TOPIC)
    )
    stage = Stage(
        "bench", (LEFT_TOPIC, RIGHT_TOPIC), fixed("10 seconds"), outputs, (), ("device",),
        repeatedly(after_count(1)), accumulation="retracting", sinks=(PaneLog("bench"),), join=join,
    )  # fmt: skip
    rule = WatermarkStrategy(max_out_of_orderness=10_000)
    return validate_plan(
        Plan(
            "bench",
            tuple(
                PlanSource(n, TopicOrigin(n), READING_COLUMNS, "at", rule) for n in (LEFT_TOPIC, RIGHT_TOPIC)
            ),
            (stage,),
        )
    )


def plan_interval_join() -> Plan:
    """Return a join of records within ten seconds of each other, each pair once."""
    plan = plan_window_join()
    window = between("10 seconds", "10 seconds")
    stage = replace(plan.only_stage, window=window, trigger=Stage.trigger, accumulation="accumulating")
    return validate_plan(replace(plan, stages=(stage,)))


@dataclass
class NativeJoin(NativeRival):
    """Spark's own join of two streams, by device and window."""

    def start(self) -> None:
        """Start the query."""
        folder = self.scene.new_folder("joined")
        checkpoint, table = folder / "checkpoint", str(folder / "table")

        def write(rows: "DataFrame", batch: int) -> None:
            writer = rows.write.format("delta").mode("append")
            writer.option("txnAppId", "joined").option("txnVersion", batch).save(table)
            before = sum(end - start for _, spans in self.committed for _, start, end in spans)
            self.committed.append((time.time(), [(0, before, count_read_records(checkpoint, batch))]))

        one, other = (self._side(name) for name in (LEFT_TOPIC, RIGHT_TOPIC))
        pairs = one.join(other, ["device", "window"]).selectExpr("device", "window", LEFT_TOPIC, RIGHT_TOPIC)
        writer = pairs.writeStream.outputMode("append").foreachBatch(write)
        self.query = writer.option("checkpointLocation", str(checkpoint)).start()

    def _side(self, name: str) -> "DataFrame":
        from pyspark.sql.functions import window

        records = read_parsed(self.scene, name, self.records_per_batch // 2)
        timed = records.selectExpr("*", "timestamp_millis(at) AS time").withWatermark("time", "10 seconds")
        windows = timed.withColumn("window", window("time", "10 seconds"))
        return windows.selectExpr("device", "window", f"temperature AS {name}")


def count_read_records(checkpoint: Path, batch: int) -> int:
    """Return the number of records of both topics that Spark has read up to a batch."""
    lines = (checkpoint / "offsets" / str(batch)).read_text().splitlines()[2:]
    return sum(end for line in lines for parts in json.loads(line).values() for end in parts.values())


def main(records: int, repeats: int, batch: int) -> None:
    """Measure all variants in turns, and print throughput relative to the rival."""
    with open_scene() as scene:
        for topic in (LEFT_TOPIC, RIGHT_TOPIC):
            scene.broker.create_topic(topic, 2)
            start_load(scene.broker.bootstrap, topic, 0, records, keys=records).wait()
        variants: dict[str, Callable[[BenchScene], EngineRival | NativeRival]] = {
            "Spark's own": lambda scene: NativeJoin(scene, "", records_per_batch=batch),
            "windowed, early results": lambda scene: EngineRival(scene, plan_window_join(), batch),
            "interval": lambda scene: EngineRival(scene, plan_interval_join(), batch),
        }
        for make in variants.values():
            time_rival(make(scene), 2 * records)
        durations = {name: [] for name in variants}  # type: dict[str, list[float]]
        for _ in range(repeats):
            for name, make in variants.items():
                durations[name].append(time_rival(make(scene), 2 * records))
    setup = f"{records:,} records in each topic, {batch:,} per batch, {repeats} repeats"
    title = f"{setup}: median (min to max)"
    table = Table("variant", "records/s", "of Spark's own", title=title)
    for name, seconds in durations.items():
        shares = [rival / own for own, rival in zip(seconds, durations["Spark's own"], strict=True)]
        table.add_row(
            name,
            format_spread([2 * records / each for each in seconds], ",.0f"),
            format_spread(shares, ".2f"),
        )
    Console().print(table)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=200_000, help="records in each topic")
    parser.add_argument("--repeats", type=int, default=5, help="measured rounds")
    parser.add_argument("--batch", type=int, default=100_000, help="records per batch, of both topics")
    arguments = parser.parse_args()
    main(arguments.records, arguments.repeats, arguments.batch)
