"""What a batch costs that touches 1,000 keys of N, for joins, chains of stages, and functions with a memory.

The fold alone, without Spark, with its state in files: a time is from the records of a batch to its panes and the
file of its changed state. States are built by the fold itself. Files of the state are merged between the batches,
as an engine has them merged beside its batches: that is not counted. With `--members` each key has so many records
before that: what is kept of a key record by record, as a join in windows keeps it, is touched whole.
`python -m tests.benchmarks.bench_pipelines_touched [--touched N] [--members N] [--repeats N] [--only WORD] [N …]`.
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

from penstock.engine.batch.placement import DRIVER_ONLY
from penstock.engine.batch.stage_execution import fold_stages
from penstock.engine.batch.stage_states import StageStates
from penstock.engine.batch_time import BatchTime
from penstock.engine.columnar import as_arrow
from penstock.engine.operators.compiled_stage import CompiledStage
from penstock.engine.operators.stage_graph import CompiledGraph, compile_graph
from penstock.engine.plan import (
    AggregateOutput,
    Column,
    Count,
    Join,
    JoinColumn,
    JoinMembers,
    PaneLog,
    Plan,
    PlanSource,
    SameWindows,
    Stage,
    Sum,
    TopicOrigin,
)
from penstock.engine.plan.joins import JoinKind
from penstock.engine.state.file_names import new_run_name
from penstock.engine.state.header_columns import MIN_TIMESTAMP_MS
from penstock.stream import after_count, as_of, between, fixed, repeatedly

LEFT_TOPIC, RIGHT_TOPIC = "readings", "limits"
COLUMN_TYPES = {"device": pa.string(), "at": pa.int64(), "temperature": pa.float64()}
BENCH_COLUMNS = (Column("device", "STRING"), Column("at", "BIGINT"), Column("temperature", "DOUBLE"))
BUILD_BATCHES = 20
"""Batches in which a state is built, whatever its size."""


def plan_join(window: object, kind: JoinKind = "left", **others: object) -> Plan:
    """Records of two topics, put together by device."""
    columns = (JoinColumn("one", LEFT_TOPIC, "temperature"), JoinColumn("other", RIGHT_TOPIC, "temperature"))
    join = Join(kind, LEFT_TOPIC, RIGHT_TOPIC, columns)
    of = tuple(
        AggregateOutput(name, JoinMembers(name, ("temperature",))) for name in (LEFT_TOPIC, RIGHT_TOPIC)
    )
    stage = Stage(
        "bench", (LEFT_TOPIC, RIGHT_TOPIC), window, of, key=("device",), join=join, sinks=(PaneLog("bench"),)
    )  # type: ignore[arg-type]
    return build_plan(replace(stage, **others))  # type: ignore[arg-type]


def build_plan(*stages: Stage) -> Plan:
    """These stages, over both topics where they read them."""
    read = {name for stage in stages for name in stage.inputs}
    sources = (PlanSource(name, TopicOrigin(name), BENCH_COLUMNS, "at") for name in (LEFT_TOPIC, RIGHT_TOPIC))
    return Plan("bench", tuple(source for source in sources if source.name in read), stages)


def plan_chain() -> Plan:
    """Three stages after each other, each of the same keys, which show and take back what changes."""
    alike = {"key": ("device",), "trigger": repeatedly(after_count(1)), "accumulation": "retracting"}
    of = (AggregateOutput("n", Count()), AggregateOutput("temperature", Sum("temperature")))
    stages = [Stage("s0", (LEFT_TOPIC,), fixed("1 minute"), of, sinks=(PaneLog("s0"),), **alike)]  # type: ignore[arg-type]
    for number in (1, 2):
        read, name = f"s{number - 1}", f"s{number}"
        stages.append(Stage(name, (read,), SameWindows(), of, sinks=(PaneLog(name),), **alike))  # type: ignore[arg-type]
    return build_plan(*stages)


EARLY_RETRACTING = {"trigger": repeatedly(after_count(1)), "accumulation": "retracting"}
PLAN_CASES: Mapping[str, Callable[[], Plan]] = {
    "join in windows": lambda: plan_join(fixed("1 minute"), **EARLY_RETRACTING),
    "join of near records": lambda: plan_join(between("10 seconds", "10 seconds")),
    "join as of a time": lambda: plan_join(as_of()),
    "chain of three": plan_chain,
    "stateful": lambda: build_plan(replace(plan_stateful(vectorized=False).only_stage, inputs=(LEFT_TOPIC,))),
    "stateful, vectorized": lambda: build_plan(
        replace(plan_stateful(vectorized=True).only_stage, inputs=(LEFT_TOPIC,))
    ),
}


def make_records(topic: str, keys: np.ndarray, batch: int) -> pa.Table:
    """A record of each key, as Spark sends them."""
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


def make_partials(stage: CompiledStage, came: pa.Table) -> pa.Table:
    """The records one by one, or a partial of each in its window; none is set aside."""
    none = pa.nulls(came.num_rows, pa.string())
    if stage.is_ordered:
        chosen = came.select(["_topic", "_partition", *stage.partial_schema.names])
        return chosen.append_column("_fate", none)
    count = came.num_rows
    known = {
        "device": came.column("device"),
        "window_start": pa.array(np.zeros(count, np.int64)),
        "window_end": pa.array(np.full(count, 60_000)),
        "elements": pa.array(np.ones(count, np.int64)),
        **{part.name: as_arrow(part.lift(came), part.type) for part in stage.parts},
    }
    made = pa.table([known[field.name] for field in stage.partial_schema], schema=stage.partial_schema)
    return made.append_column("_fate", none)


@dataclass(frozen=True)
class BatchCost:
    """Seconds of a batch, and of processor time in it: on a machine that others use the second says more."""

    seconds: float
    processor: float


class OperatorBench:
    """A graph over a folder."""

    def __init__(self, plan: Plan, folder: Path) -> None:
        self.graph: CompiledGraph = compile_graph(plan, {plan.first_source_stage.name: COLUMN_TYPES})
        self.holding, self.batches = StageStates(self.graph, folder), 0

    def batch(self, *topics: str, keys: np.ndarray) -> BatchCost:
        """Run a batch with a record of each key in these topics."""
        read = {source.name for source in self.graph.plan.sources}
        found = [make_records(topic, keys, self.batches) for topic in topics if topic in read]
        came = {
            self.graph.first_record_stage.plan.name: make_partials(
                self.graph.first_record_stage, pa.concat_tables(found)
            )
        }
        number = self.batches
        moment = BatchTime(number, number - 1 if number else MIN_TIMESTAMP_MS, number, MIN_TIMESTAMP_MS, 0)
        began, worked = time.perf_counter(), time.process_time()
        done = fold_stages(self.graph, self.holding, DRIVER_ONLY, came, moment, number)
        states = {
            name: tree.with_run(
                done.outcomes[name].changed_state, self.holding.stage_folder(name) / new_run_name(number)
            )
            for name, tree in self.holding.trees.items()
        }
        took = BatchCost(time.perf_counter() - began, time.process_time() - worked)
        self.holding.adopt(
            {name: tree.compact(self.holding.stage_folder(name)) for name, tree in states.items()}
        )
        self.batches += 1
        return took


def measure_batches(plan: Plan, keys: int, touched: int, repeats: int, members: int) -> list[BatchCost]:
    """What each batch took that touches some keys of a state that knows all, from so many records of each."""
    chance = np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as folder:
        bench = OperatorBench(plan, Path(folder))
        for part in np.array_split(np.arange(keys), BUILD_BATCHES):
            bench.batch(RIGHT_TOPIC, LEFT_TOPIC, keys=part)
            if members > 1:
                bench.batch(LEFT_TOPIC, keys=np.repeat(part, members - 1))
        return [
            bench.batch(LEFT_TOPIC, keys=chance.choice(keys, touched, replace=False))
            for _ in range(repeats + 2)
        ][2:]


def main(sizes: list[int], touched: int, repeats: int, members: int, only: str) -> None:
    """Print what a batch takes, and how many times that of the least N."""
    of = f"{touched:,} keys of {members:,} records each" if members > 1 else f"{touched:,} keys"
    title = f"batches that touch {of}, {repeats} repeats: median (least to greatest)"
    table = Table("", "keys", "a batch", "of the least N", "processor time", title=title)
    for name, make in PLAN_CASES.items():
        least = 0.0
        for size in sizes if only in name else ():
            found = measure_batches(make(), size, touched, repeats, members)
            took, worked = [each.seconds for each in found], statistics.median(e.processor for e in found)
            middle = statistics.median(took)
            least = least or middle
            spread = f"{middle * 1000:.0f} ms ({min(took) * 1000:.0f} to {max(took) * 1000:.0f})"
            table.add_row(name, f"{size:,}", spread, f"{middle / least:.2f}", f"{worked * 1000:.0f} ms")
    Console().print(table)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sizes", nargs="*", type=int, metavar="N", help="how many keys there are")
    parser.add_argument("--touched", type=int, default=1_000)
    parser.add_argument("--members", type=int, default=1, help="records of each key before the batches")
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--only", default="", help="a word of what is to be measured")
    chosen = parser.parse_args()
    main(chosen.sizes or [100_000, 5_000_000], chosen.touched, chosen.repeats, chosen.members, chosen.only)
