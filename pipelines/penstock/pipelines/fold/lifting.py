"""Changes as partials: what Spark does for records, for the elements of a stage that reads other stages."""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from penstock.pipelines.errors import DefinitionError, UserCodeError
from penstock.pipelines.fold.aggregates.setting import WEIGHT
from penstock.pipelines.fold.changes import HIDDEN, all_changes
from penstock.pipelines.fold.placing import placed
from penstock.pipelines.fold.rows import arrow
from penstock.pipelines.fold.rowwise import kept, mapped, selected
from penstock.pipelines.fold.stage import NEWS, ReadyStage
from penstock.pipelines.plan.stage import Stage
from penstock.pipelines.plan.steps import Keep, OverArrow, PerRow, Select, Step
from penstock.pipelines.plan.used import left_out, refuse_two_types


def lifted(stage: ReadyStage, elements: pa.Table) -> pa.Table:
    """A partial for each change in each of its windows; the stage's steps are done."""
    where = placed(stage.plan.window, elements)
    elements = elements.take(pa.array(where.element)).combine_chunks()
    for each in stage.one_sided:
        elements = elements.append_column(each.name, each.of(elements))
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


def united(stage: Stage, changes: Mapping[str, pa.Table]) -> pa.Table:
    """What a stage reads of others, by the stage it comes from: each after steps of its own, then all together."""
    prepared = {name: stepped(stage.steps_of(name), told) for name, told in changes.items()}
    return stepped(stage.steps, all_changes(agreed(stage, prepared)))


def agreed(stage: Stage, changes: Mapping[str, pa.Table]) -> list[pa.Table]:
    """The same changes, those of each stage without columns of another type elsewhere that are not used of it.

    Raises DefinitionError for a column that is used of several stages and is not of one type in them.
    """
    types = {name: {f.name: _word(f.type) for f in table.schema} for name, table in changes.items()}
    refuse_two_types(stage, types, panes=True)
    without = left_out(stage, types)
    return [table.drop_columns(list(without[name])) for name, table in changes.items()]


def _word(kind: pa.DataType) -> str | None:
    """What a type is called; a column of nulls alone is of any type."""
    return None if pa.types.is_null(kind) else str(kind)


def stepped(steps: Sequence[Step], elements: pa.Table) -> pa.Table:
    """Elements after all steps. Raises DefinitionError where a step lost or changed a column that is ours."""
    for number, step in enumerate(steps, start=1):
        elements = (
            _over_arrow(step, number, elements) if isinstance(step, OverArrow) else _typed(step, elements)
        )
    return elements


def _typed(step: Step, elements: pa.Table) -> pa.Table:
    match step:
        case Keep():
            return kept(step, elements)
        case Select():
            return selected(step, elements)
        case PerRow():
            return mapped(step, elements)
        case _:
            raise TypeError(f"a {type(step).__name__} step over panes")


def _over_arrow(step: OverArrow, number: int, elements: pa.Table) -> pa.Table:
    function = step.function.resolve()
    try:
        made = function(elements)
    except Exception as problem:
        raise UserCodeError(step.function.name, problem) from problem
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
    return made
