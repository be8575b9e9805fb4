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
from tests.benchmarks.bench_pipelines_python import remembering

from penstock.pipelines.batch.folding import folded
from penstock.pipelines.batch.holding import Holding
from penstock.pipelines.batch.placement import HERE
from penstock.pipelines.fold.graph import ReadyGraph, ready_graph
from penstock.pipelines.fold.moment import Moment
from penstock.pipelines.fold.rows import arrow
from penstock.pipelines.fold.stage import ReadyStage
from penstock.pipelines.model import after_count, as_of, between, fixed, repeatedly
from penstock.pipelines.plan import (
    Column,
    Count,
    Join,
    Members,
    Output,
    PaneLog,
    Plan,
    SameWindows,
    Source,
    Stage,
    Sum,
    Taken,
    Topic,
)
from penstock.pipelines.plan.joins import JoinKind
from penstock.pipelines.state.columns import BEFORE_ALL
from penstock.pipelines.state.names import run_name

LEFT, RIGHT = "readings", "limits"
TYPES = {"device": pa.string(), "at": pa.int64(), "temperature": pa.float64()}
COLUMNS = (Column("device", "STRING"), Column("at", "BIGINT"), Column("temperature", "DOUBLE"))
BUILT_IN = 20
"""Batches in which a state is built, whatever its size."""


def joined(window: object, kind: JoinKind = "left", **others: object) -> Plan:
    """Records of two topics, put together by device."""
    columns = (Taken("one", LEFT, "temperature"), Taken("other", RIGHT, "temperature"))
    join = Join(kind, LEFT, RIGHT, columns)
    of = tuple(Output(name, Members(name, ("temperature",))) for name in (LEFT, RIGHT))
    stage = Stage("bench", (LEFT, RIGHT), window, of, key=("device",), join=join, sinks=(PaneLog("bench"),))  # type: ignore[arg-type]
    return plan_of(replace(stage, **others))  # type: ignore[arg-type]


def plan_of(*stages: Stage) -> Plan:
    """These stages, over both topics where they read them."""
    read = {name for stage in stages for name in stage.inputs}
    sources = (Source(name, Topic(name), COLUMNS, "at") for name in (LEFT, RIGHT))
    return Plan("bench", tuple(source for source in sources if source.name in read), stages)


def chain() -> Plan:
    """Three stages after each other, each of the same keys, which show and take back what changes."""
    alike = {"key": ("device",), "trigger": repeatedly(after_count(1)), "accumulation": "retracting"}
    of = (Output("n", Count()), Output("temperature", Sum("temperature")))
    stages = [Stage("s0", (LEFT,), fixed("1 minute"), of, sinks=(PaneLog("s0"),), **alike)]  # type: ignore[arg-type]
    for number in (1, 2):
        read, name = f"s{number - 1}", f"s{number}"
        stages.append(Stage(name, (read,), SameWindows(), of, sinks=(PaneLog(name),), **alike))  # type: ignore[arg-type]
    return plan_of(*stages)


EARLY = {"trigger": repeatedly(after_count(1)), "accumulation": "retracting"}
CASES: Mapping[str, Callable[[], Plan]] = {
    "join in windows": lambda: joined(fixed("1 minute"), **EARLY),
    "join of near records": lambda: joined(between("10 seconds", "10 seconds")),
    "join as of a time": lambda: joined(as_of()),
    "chain of three": chain,
    "remember": lambda: plan_of(replace(remembering(vectorised=False).stage, inputs=(LEFT,))),
    "remember, vectorised": lambda: plan_of(replace(remembering(vectorised=True).stage, inputs=(LEFT,))),
}


def records(topic: str, keys: np.ndarray, batch: int) -> pa.Table:
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


def partials(stage: ReadyStage, came: pa.Table) -> pa.Table:
    """The records one by one, or a partial of each in its window; none is set aside."""
    none = pa.nulls(came.num_rows, pa.string())
    if stage.in_order:
        chosen = came.select(["_topic", "_partition", *stage.partial_columns.names])
        return chosen.append_column("_set_aside", none)
    count = came.num_rows
    known = {
        "device": came.column("device"),
        "window_start": pa.array(np.zeros(count, np.int64)),
        "window_end": pa.array(np.full(count, 60_000)),
        "elements": pa.array(np.ones(count, np.int64)),
        **{part.name: arrow(part.lift(came), part.type) for part in stage.parts},
    }
    made = pa.table([known[field.name] for field in stage.partial_columns], schema=stage.partial_columns)
    return made.append_column("_set_aside", none)


@dataclass(frozen=True)
class Took:
    """Seconds of a batch, and of processor time in it: on a machine that others use the second says more."""

    seconds: float
    processor: float


class Bench:
    """A graph over a folder."""

    def __init__(self, plan: Plan, folder: Path) -> None:
        self.graph: ReadyGraph = ready_graph(plan, {plan.first.name: TYPES})
        self.holding, self.batches = Holding(self.graph, folder), 0

    def batch(self, *topics: str, keys: np.ndarray) -> Took:
        """Run a batch with a record of each key in these topics."""
        read = {source.name for source in self.graph.plan.sources}
        found = [records(topic, keys, self.batches) for topic in topics if topic in read]
        came = {self.graph.first.plan.name: partials(self.graph.first, pa.concat_tables(found))}
        number = self.batches
        moment = Moment(number, number - 1 if number else BEFORE_ALL, number, BEFORE_ALL, 0)
        began, worked = time.perf_counter(), time.process_time()
        done = folded(self.graph, self.holding, HERE, came, moment, number)
        states = {
            name: tree.with_run(done.stages[name].changed, self.holding.folder(name) / run_name(number))
            for name, tree in self.holding.trees.items()
        }
        took = Took(time.perf_counter() - began, time.process_time() - worked)
        self.holding.adopt({name: tree.compacted(self.holding.folder(name)) for name, tree in states.items()})
        self.batches += 1
        return took


def times(plan: Plan, keys: int, touched: int, repeats: int, members: int) -> list[Took]:
    """What each batch took that touches some keys of a state that knows all, from so many records of each."""
    chance = np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(plan, Path(folder))
        for part in np.array_split(np.arange(keys), BUILT_IN):
            bench.batch(RIGHT, LEFT, keys=part)
            if members > 1:
                bench.batch(LEFT, keys=np.repeat(part, members - 1))
        return [
            bench.batch(LEFT, keys=chance.choice(keys, touched, replace=False)) for _ in range(repeats + 2)
        ][2:]


def main(sizes: list[int], touched: int, repeats: int, members: int, only: str) -> None:
    """Print what a batch takes, and how many times that of the least N."""
    of = f"{touched:,} keys of {members:,} records each" if members > 1 else f"{touched:,} keys"
    title = f"batches that touch {of}, {repeats} repeats: median (least to greatest)"
    table = Table("", "keys", "a batch", "of the least N", "processor time", title=title)
    for name, make in CASES.items():
        least = 0.0
        for size in sizes if only in name else ():
            found = times(make(), size, touched, repeats, members)
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
