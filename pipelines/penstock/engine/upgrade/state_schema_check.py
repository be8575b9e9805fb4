"""Checks that the columns of a state have the types of a changed definition.

A comparison of plans does not show this: only Spark knows the types of columns that steps add.
"""

from collections.abc import Collection, Iterator
from pathlib import Path

import pyarrow as pa

from penstock.engine.batch.outcome import BatchOutcome
from penstock.engine.errors import PlanChangedError
from penstock.engine.operators.stage_graph import CompiledGraph
from penstock.engine.state import sorted_run, state_tree


def check_state_schema(
    directory: Path,
    stream: str,
    graph: CompiledGraph,
    last_outcome: BatchOutcome,
    new_columns: Collection[str] = (),
) -> None:
    """Raise PlanChangedError if the state of a stage lacks a column, or has it with another type.

    `new_columns` start empty, so their stored types do not count.
    """
    mismatches = []
    for stage in graph.stages:
        name = stage.plan.name
        wanted_fields = [
            field
            for field in state_tree.create_empty_tree(stage.state_schema).schema
            if field.name not in new_columns
        ]
        for file in last_outcome.state_files.get(name, ())[:1]:  # all files of a stage have the same schema
            stored_schema = sorted_run.open_run(directory / "state" / name / file).table.schema
            mismatches += [
                f"{name} has {mismatch}" for mismatch in _find_mismatches(stored_schema, wanted_fields)
            ]
    if mismatches:
        raise PlanChangedError(
            stream,
            f"its definition changed, and its state does not fit: {'; '.join(mismatches)}",
            f"Revert the change, or replay the stream: `penstock stream replay {stream}`",
        )


def _find_mismatches(stored_schema: pa.Schema, wanted_fields: Collection[pa.Field]) -> Iterator[str]:
    for field in wanted_fields:
        if field.name not in stored_schema.names:
            yield f"no column {field.name}"
        elif (stored_type := stored_schema.field(field.name).type) != field.type:
            yield f"{field.name} as {stored_type}, which must now be {field.type}"
