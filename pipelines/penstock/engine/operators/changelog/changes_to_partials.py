"""Changes as partials: what Spark does for records, for the elements of a stage that reads other stages."""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from penstock.engine.aggregates.aggregate_context import WEIGHT_COLUMN
from penstock.engine.columnar import as_arrow
from penstock.engine.errors import DefinitionError, UserCodeError
from penstock.engine.operators.changelog.pane_changes import CHANGE_METADATA_FIELDS, concat_changes
from penstock.engine.operators.changelog.window_assignment import assign_windows
from penstock.engine.operators.compiled_stage import CHANGE_COUNT_FIELD, CompiledStage
from penstock.engine.operators.row_steps import filter_rows, map_rows, select_columns
from penstock.engine.plan.field_usage import refuse_type_conflicts, unused_conflicting_fields
from penstock.engine.plan.stages import Stage
from penstock.engine.plan.steps import ArrowStep, FilterStep, RowFunctionStep, SelectStep, Step, step_kind


def make_partials(stage: CompiledStage, elements: pa.Table) -> pa.Table:
    """A partial for each change in each of its windows; the stage's steps are done."""
    assignment = assign_windows(stage.plan.window, elements)
    elements = elements.take(pa.array(assignment.element)).combine_chunks()
    for restricted in stage.restricted_columns:
        elements = elements.append_column(restricted.name, restricted.from_changes(elements))
    bounds = {"start": assignment.start, "end": assignment.end}
    columns = {
        **{field.name: elements.column(field.name) for field in stage.key},
        **{f"window_{bound}": pa.array(times) for bound, times in bounds.items()},
        **{f"piece_{bound}": pa.array(times) for bound, times in bounds.items()},
        "elements": elements.column(WEIGHT_COLUMN),
        CHANGE_COUNT_FIELD.name: pa.array(np.ones(len(assignment.element), np.int64)),
        **{part.name: as_arrow(part.lift(elements), part.type) for part in stage.parts},
    }
    schema = stage.partial_schema
    return pa.table([columns[field.name] for field in schema], schema=schema)


def union_changes(stage: Stage, changes: Mapping[str, pa.Table]) -> pa.Table:
    """What a stage reads of others, by the stage it comes from: each after steps of its own, then all together."""
    prepared = {
        name: apply_steps(stage.steps_of_input(name), stage_changes)
        for name, stage_changes in changes.items()
    }
    return apply_steps(stage.steps, concat_changes(drop_conflicting_columns(stage, prepared)))


def drop_conflicting_columns(stage: Stage, changes: Mapping[str, pa.Table]) -> list[pa.Table]:
    """The same changes, those of each stage without columns of another type elsewhere that are not used of it.

    Raises DefinitionError for a column that is used of several stages and is not of one type in them.
    """
    type_names = {
        name: {field.name: _type_name(field.type) for field in table.schema}
        for name, table in changes.items()
    }
    refuse_type_conflicts(stage, type_names, panes=True)
    unused_columns = unused_conflicting_fields(stage, type_names)
    return [table.drop_columns(list(unused_columns[name])) for name, table in changes.items()]


def _type_name(arrow_type: pa.DataType) -> str | None:
    """What a type is called; a column of nulls alone is of any type."""
    return None if pa.types.is_null(arrow_type) else str(arrow_type)


def apply_steps(steps: Sequence[Step], elements: pa.Table) -> pa.Table:
    """Elements after all steps. Raises DefinitionError where a step lost or changed a column that is ours."""
    for number, step in enumerate(steps, start=1):
        elements = (
            _apply_arrow_step(step, number, elements)
            if isinstance(step, ArrowStep)
            else _apply_typed_step(step, elements)
        )
    return elements


def _apply_typed_step(step: Step, elements: pa.Table) -> pa.Table:
    match step:
        case FilterStep():
            return filter_rows(step, elements)
        case SelectStep():
            return select_columns(step, elements)
        case RowFunctionStep():
            return map_rows(step, elements)
        case _:
            raise TypeError(f"a {step_kind(step)} step over panes")


def _apply_arrow_step(step: ArrowStep, number: int, elements: pa.Table) -> pa.Table:
    function = step.function.resolve()
    try:
        result = function(elements)
    except Exception as problem:
        raise UserCodeError(step.function.name, problem) from problem
    if not isinstance(result, pa.Table):
        message = f"{step.function.name} gives {type(result).__name__}"
        raise DefinitionError(f"step {number}", message, "Return a pyarrow.Table")
    changed_columns = [
        field.name
        for field in CHANGE_METADATA_FIELDS
        if field.name not in result.column_names or result.schema.field(field.name).type != field.type
    ]
    if changed_columns:
        raise DefinitionError(
            f"step {number}",
            f"{step.function.name} drops or changes {', '.join(changed_columns)}, by which a change is told",
            "Keep the columns that begin with _, as filter, take and append_column do",
        )
    return result
