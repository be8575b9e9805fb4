"""Changes as partials: what Spark does for records, for the elements of a stage that reads other stages."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from penstock.pipelines.errors import DefinitionError
from penstock.pipelines.fold.aggregates.setting import WEIGHT
from penstock.pipelines.fold.changes import HIDDEN
from penstock.pipelines.fold.placing import placed
from penstock.pipelines.fold.rows import arrow
from penstock.pipelines.fold.stage import NEWS, ReadyStage
from penstock.pipelines.plan.steps import OverArrow, Step


def lifted(stage: ReadyStage, changes: pa.Table) -> pa.Table:
    """A partial for each change in each of its windows, after the stage's own steps."""
    elements = stepped(stage.plan.steps, changes)
    where = placed(stage.plan.window, elements)
    elements = elements.take(pa.array(where.element)).combine_chunks()
    bounds = {"start": where.start, "end": where.end}
    columns = {
        **{field.name: elements.column(field.name) for field in stage.key},
        **{f"window_{bound}": pa.array(times) for bound, times in bounds.items()},
        **{f"piece_{bound}": pa.array(times) for bound, times in bounds.items()},
        "elements": elements.column(WEIGHT),
        NEWS.name: pa.array(np.ones(len(where.element), np.int64)),
        **{part.name: arrow(part.lift(elements), part.type) for part in stage.parts},
    }
    schema = stage.partial_columns
    return pa.table([columns[field.name] for field in schema], schema=schema)


def stepped(steps: Sequence[Step], elements: pa.Table) -> pa.Table:
    """Elements after all steps. Raises DefinitionError where a step lost or changed a column that is ours."""
    for number, step in enumerate(steps, start=1):
        if not isinstance(step, OverArrow):
            raise TypeError(f"a {type(step).__name__} step over panes")
        made = step.function.resolve()(elements)
        if not isinstance(made, pa.Table):
            found = f"{step.function.name} gives {type(made).__name__}"
            raise DefinitionError(f"step {number}", found, "Return a pyarrow.Table")
        wrong = [
            field.name
            for field in HIDDEN
            if field.name not in made.column_names or made.schema.field(field.name).type != field.type
        ]
        if wrong:
            raise DefinitionError(
                f"step {number}",
                f"{step.function.name} drops or changes {', '.join(wrong)}, by which a change is told",
                "Keep the columns that begin with _, as filter, take and append_column do",
            )
        elements = made
    return elements
