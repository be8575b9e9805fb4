"""Whether what a state holds has the types that a changed definition goes on with.

Two definitions that are compared do not tell: which type a step gives to a column only Spark knows.
"""

from collections.abc import Collection, Iterator
from pathlib import Path

import pyarrow as pa

from penstock.pipelines.batch.outcome import Outcome
from penstock.pipelines.errors import PlanChangedError
from penstock.pipelines.fold.graph import ReadyGraph
from penstock.pipelines.state import run as runs_of
from penstock.pipelines.state import tree as trees


def check_types(
    directory: Path, stream: str, graph: ReadyGraph, last: Outcome, anew: Collection[str] = ()
) -> None:
    """Raise PlanChangedError where the state of a stage lacks a column, or has it of another type.

    Columns in `anew` begin anew, so what the state has under their names does not count.
    """
    found = []
    for stage in graph.stages:
        name = stage.plan.name
        wanted = [field for field in trees.empty(stage.state_columns).schema if field.name not in anew]
        for file in last.state_files.get(name, ())[:1]:  # all of them have the same
            kept = runs_of.read(directory / "state" / name / file).table.schema
            found += [f"{name} has {each}" for each in _differing(kept, wanted)]
    if found:
        raise PlanChangedError(
            stream,
            f"its definition changed, and its state does not fit: {'; '.join(found)}",
            f"Take the change back, or replay it: `penstock stream replay {stream}`",
        )


def _differing(kept: pa.Schema, wanted: Collection[pa.Field]) -> Iterator[str]:
    for field in wanted:
        if field.name not in kept.names:
            yield f"no column {field.name}"
        elif (before := kept.field(field.name).type) != field.type:
            yield f"{field.name} as {before}, where it is to be {field.type} now"
