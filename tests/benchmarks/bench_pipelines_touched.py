"""Measures a batch that touches 1,000 keys of N, for joins, chains of stages, and stateful functions.

It runs only the processing, without Spark, with its state in files. Time runs from the records of a
batch to its panes and the file of its changed state. State files are merged between batches and this time does
not count, because the
engine merges them in the background. A batch reads all members of a touched key, as in a windowed join: with
`--members`, each key has this many records before the measured batches. `python -m
tests.benchmarks.bench_pipelines_touched [--touched N] [--members N] [--repeats N] [--only TEXT] [N …]`.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table
from tests.benchmarks.bench_pipelines_python import plan_stateful

from penstock.engine.aggregates.aggregate_output import AggregateOutput
from penstock.engine.aggregates.count import Count
from penstock.engine.aggregates.join_members import JoinMembers
from penstock.engine.aggregates.sum import Sum
from penstock.engine.batch.placement import DRIVER_ONLY
from penstock.engine.batch.stage_execution import process_stages
from penstock.engine.batch.stage_states import StageStates
from penstock.engine.batch_time import BatchTime
from penstock.engine.columnar import as_arrow
from penstock.engine.operators.compiled_stage import CompiledStage
from penstock.engine.operators.stage_graph import CompiledGraph, compile_graph
from penstock.engine.plan.joins import Join, JoinColumn, JoinKind
from penstock.engine.plan.sources import Column, PlanSource, TopicOrigin
from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.sinks.pane_log import PaneLog
from penstock.engine.state.file_names import new_run_name
from penstock.engine.state.header_columns import MIN_TIMESTAMP_MS
from penstock.engine.windows.same_windows import SameWindows
from penstock.stream import after_count, as_of, between, fixed, repeatedly

LEFT_TOPIC, RIGHT_TOPIC = "readings", "limits"
COLUMN_TYPES = {"device": pa.string(), "at": pa.int64(), "temperature": pa.float64()}
BENCH_COLUMNS = (Column("device", "STRING"), Column("at", "BIGINT"), Column("temperature", "DOUBLE"))
BUILD_BATCHES = 20
"""The batches that build a state of any size."""


def plan_join(window: object, kind: JoinKind = "left", **others: object) -> Plan:
    """Return a join of two topics by device."""
    columns = (JoinColumn("one", LEFT_TOPIC, "temperature"), JoinColumn("other", RIGHT_TOPIC, "temperature"))
    join = Join(kind, LEFT_TOPIC, RIGHT_TOPIC, columns)
    outputs = tuple(
        AggregateOutput(name, JoinMembers(name, ("temperature",))) for name in (LEFT_TOPIC, RIGHT_TOPIC)
    )
    stage = Stage(
        "bench",
        (LEFT_TOPIC, RIGHT_TOPIC),
        window,
        outputs,
        key=("device",),
        join=join,
        sinks=(PaneLog("bench"),),
    )  # type: ignore[arg-type]
    return build_plan(replace(stage, **others))  # type: ignore[arg-type]


def build_plan(*stages: Stage) -> Plan:
    """Return a plan of these stages over the topics that they read."""
    read = {name for stage in stages for name in stage.inputs}
    sources = (PlanSource(name, TopicOrigin(name), BENCH_COLUMNS, "at") for name in (LEFT_TOPIC, RIGHT_TOPIC))
    return Plan("bench", tuple(source for source in sources if source.name in read), stages)


def plan_chain() -> Plan:
    """Return a chain of three retracting stages with the same key."""
    common = {"key": ("device",), "trigger": repeatedly(after_count(1)), "accumulation": "retracting"}
    outputs = (AggregateOutput("n", Count()), AggregateOutput("temperature", Sum("temperature")))
    stages = [Stage("s0", (LEFT_TOPIC,), fixed("1 minute"), outputs, sinks=(PaneLog("s0"),), **common)]  # type: ignore[arg-type]
    for number in (1, 2):
        read, name = f"s{number - 1}", f"s{number}"
        stages.append(Stage(name, (read,), SameWindows(), outputs, sinks=(PaneLog(name),), **common))  # type: ignore[arg-type]
    return build_plan(*stages)


EARLY_RETRACTING = {"trigger": repeatedly(after_count(1)), "accumulation": "retracting"}
PLAN_CASES: Mapping[str, Callable[[], Plan]] = {
    "windowed join": lambda: plan_join(fixed("1 minute"), **EARLY_RETRACTING),
    "interval join": lambda: plan_join(between("10 seconds", "10 seconds")),
    "join as of a time": lambda: plan_join(as_of()),
    "chain of three": plan_chain,
    "stateful": lambda: build_plan(replace(plan_stateful(vectorized=False).only_stage, inputs=(LEFT_TOPIC,))),
    "stateful, vectorized": lambda: build_plan(
        replace(plan_stateful(vectorized=True).only_stage, inputs=(LEFT_TOPIC,))
    ),
}


def make_records(topic: str, keys: np.ndarray, batch: int) -> pa.Table:
    """Return a record of each key, in the form that Spark sends."""
    count = len(keys)
    return pa.table(
        {
            "_input": pa.array([topic] * count),
            "_topic": pa.array([topic] * count),
            "_partition": pa.array(np.zeros(count, np.int32)),
            "_offset": pa.array(np.arange(count) + batch * 10**7),
            "_time": pa.array(np.full(count, 1_000 + batch)),
            "at": pa.array(np.full(count, 1_000 + batch)),
            "device": pa.array([f"device-{key:07d}" for key in keys.tolist()]),
            "temperature": pa.array(keys / 7),
        }
    )


def make_partials(stage: CompiledStage, records: pa.Table) -> pa.Table:
    """Return single records, or a partial of each record in its window; none is excluded."""
    fates = pa.nulls(records.num_rows, pa.string())
    if stage.is_ordered:
        rows = records.select(["_topic", "_partition", *stage.partial_schema.names])
        return rows.append_column("_fate", fates)
    count = records.num_rows
    columns = {
        "device": records.column("device"),
        "window_start": pa.array(np.zeros(count, np.int64)),
        "window_end": pa.array(np.full(count, 60_000)),
        "elements": pa.array(np.ones(count, np.int64)),
        **{part.name: as_arrow(part.lift(records), part.type) for part in stage.parts},
    }
    partials = pa.table([columns[field.name] for field in stage.partial_schema], schema=stage.partial_schema)
    return partials.append_column("_fate", fates)


@dataclass(frozen=True)
class BatchCost:
    """Wall-clock and CPU seconds of a batch; on a busy machine CPU seconds are more reliable."""

    seconds: float
    cpu_seconds: float


class OperatorBench:
    """A graph over a folder."""

    def __init__(self, plan: Plan, folder: Path) -> None:
        self.graph: CompiledGraph = compile_graph(plan, {plan.first_source_stage.name: COLUMN_TYPES})
        self.stage_states, self.batches = StageStates(self.graph, folder), 0

    def batch(self, *topics: str, keys: np.ndarray) -> BatchCost:
        """Run a batch with a record of each key in these topics."""
        read = {source.name for source in self.graph.plan.sources}
        records = [make_records(topic, keys, self.batches) for topic in topics if topic in read]
        partials = {
            self.graph.first_record_stage.plan.name: make_partials(
                self.graph.first_record_stage, pa.concat_tables(records)
            )
        }
        number = self.batches
        previous_clock = number - 1 if number else MIN_TIMESTAMP_MS
        batch_time = BatchTime(number, previous_clock, number, MIN_TIMESTAMP_MS, 0)
        started, cpu_started = time.perf_counter(), time.process_time()
        results = process_stages(self.graph, self.stage_states, DRIVER_ONLY, partials, batch_time)
        states = {
            name: tree.with_run(
                results.outcomes[name].changed_state,
                self.stage_states.stage_folder(name) / new_run_name(number),
            )
            for name, tree in self.stage_states.trees.items()
        }
        cost = BatchCost(time.perf_counter() - started, time.process_time() - cpu_started)
        self.stage_states.adopt(
            {name: tree.compact(self.stage_states.stage_folder(name)) for name, tree in states.items()}
        )
        self.batches += 1
        return cost


def measure_batches(plan: Plan, keys: int, touched: int, repeats: int, members: int) -> list[BatchCost]:
    """Return the cost of each batch that touches some of all keys."""
    random = np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as folder:
        bench = OperatorBench(plan, Path(folder))
        for part in np.array_split(np.arange(keys), BUILD_BATCHES):
            bench.batch(RIGHT_TOPIC, LEFT_TOPIC, keys=part)
            if members > 1:
                bench.batch(LEFT_TOPIC, keys=np.repeat(part, members - 1))
        return [
            bench.batch(LEFT_TOPIC, keys=random.choice(keys, touched, replace=False))
            for _ in range(repeats + 2)
        ][2:]


def main(sizes: list[int], touched: int, repeats: int, members: int, only: str) -> None:
    """Print the time of a batch, also relative to that of the least N."""
    scope = f"{touched:,} keys of {members:,} records each" if members > 1 else f"{touched:,} keys"
    title = f"batches that touch {scope}, {repeats} repeats: median (min to max)"
    table = Table("operator", "keys", "batch", "of the first size", "CPU time", title=title)
    for name, make in PLAN_CASES.items():
        first_median = 0.0
        for size in sizes if only in name else ():
            costs = measure_batches(make(), size, touched, repeats, members)
            seconds = [cost.seconds for cost in costs]
            cpu_seconds = statistics.median(cost.cpu_seconds for cost in costs)
            median = statistics.median(seconds)
            first_median = first_median or median
            spread = f"{median * 1000:.0f} ms ({min(seconds) * 1000:.0f} to {max(seconds) * 1000:.0f})"
            table.add_row(
                name, f"{size:,}", spread, f"{median / first_median:.2f}", f"{cpu_seconds * 1000:.0f} ms"
            )
    Console().print(table)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sizes", nargs="*", type=int, metavar="N", help="numbers of keys")
    parser.add_argument("--touched", type=int, default=1_000, help="keys that a batch touches")
    parser.add_argument("--members", type=int, default=1, help="records of each key before the batches")
    parser.add_argument("--repeats", type=int, default=15, help="measured batches")
    parser.add_argument("--only", default="", help="part of the name of the cases to run")
    arguments = parser.parse_args()
    main(
        arguments.sizes or [100_000, 5_000_000],
        arguments.touched,
        arguments.repeats,
        arguments.members,
        arguments.only,
    )
