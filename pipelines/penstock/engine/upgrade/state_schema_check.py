"""Whether what a state holds has the types that a changed definition goes on with.

Two definitions that are compared do not tell: which type a step gives to a column only Spark knows.
"""

from collections.abc import Collection, Iterator
from pathlib import Path

import pyarrow as pa

from penstock.engine.batch.outcome import BatchOutcome
from penstock.engine.errors import PlanChangedError
from penstock.engine.operators.stage_graph import CompiledGraph
from penstock.engine.state import sorted_run as runs_of
from penstock.engine.state import state_tree as trees


def check_state_schema(
    directory: Path,
    stream: str,
    graph: CompiledGraph,
    last_outcome: BatchOutcome,
    new_columns: Collection[str] = (),
) -> None:
    """Raise PlanChangedError where the state of a stage lacks a column, or has it of another type.

    Columns in `anew` begin anew, so what the state has under their names does not count.
    """
    mismatches = []
    for stage in graph.stages:
        name = stage.plan.name
        wanted_fields = [
            field
            for field in trees.create_empty_tree(stage.state_schema).schema
            if field.name not in new_columns
        ]
        for file in last_outcome.state_files.get(name, ())[:1]:  # all of them have the same
            stored_schema = runs_of.open_run(directory / "state" / name / file).table.schema
            mismatches += [
                f"{name} has {mismatch}" for mismatch in _find_mismatches(stored_schema, wanted_fields)
            ]
    if mismatches:
        raise PlanChangedError(
            stream,
            f"its definition changed, and its state does not fit: {'; '.join(mismatches)}",
            f"Take the change back, or replay it: `penstock stream replay {stream}`",
        )


def _find_mismatches(stored_schema: pa.Schema, wanted_fields: Collection[pa.Field]) -> Iterator[str]:
    for field in wanted_fields:
        if field.name not in stored_schema.names:
            yield f"no column {field.name}"
        elif (stored_type := stored_schema.field(field.name).type) != field.type:
            yield f"{field.name} as {stored_type}, where it is to be {field.type} now"
