"""Convert changes to partials, for stages that read other stages. For records, Spark builds the partials."""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from penstock.engine.aggregates.aggregate_context import WEIGHT_COLUMN
from penstock.engine.columnar import as_arrow
from penstock.engine.errors import DefinitionError
from penstock.engine.operators.changelog.pane_changes import CHANGE_METADATA_FIELDS, concat_changes
from penstock.engine.operators.compiled_stage import CompiledStage
from penstock.engine.operators.row_steps import filter_rows, map_rows, select_columns
from penstock.engine.operators.stage_columns import CHANGE_COUNT_FIELD
from penstock.engine.plan.declared_columns import check_declared_columns
from penstock.engine.plan.field_usage import refuse_type_conflicts, unused_conflicting_fields
from penstock.engine.plan.stages import Stage
from penstock.engine.plan.steps import ArrowStep, FilterStep, RowFunctionStep, SelectStep, Step, step_kind
from penstock.engine.state.header_columns import int_column
from penstock.engine.user_tracebacks import wrap_user_error
from penstock.engine.windows.time_window import TimeWindow, WindowAssignment
from penstock.engine.windows.window import Window


def make_partials(stage: CompiledStage, elements: pa.Table) -> pa.Table:
    """Return one partial per change and window. The stage's steps must already be applied."""
    assignment = _assign_windows(stage.plan.window, elements)
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


def _assign_windows(window: Window, changes: pa.Table) -> WindowAssignment:
    """Return the windows of changes: by their time, or those of their panes."""
    if isinstance(window, TimeWindow):
        return window.assign(int_column(changes, "_time"))
    if not window.reuses_upstream_windows:
        raise TypeError(f"{window} does not depend on the time of an element alone")
    return WindowAssignment.of_single_windows(int_column(changes, "_start"), int_column(changes, "_end"))


def union_changes(stage: Stage, changes: Mapping[str, pa.Table]) -> pa.Table:
    """Apply the input steps to each upstream stage's changes, concatenate them, and apply the stage's steps."""
    prepared = {
        name: apply_steps(stage.steps_of_input(name), stage_changes)
        for name, stage_changes in changes.items()
    }
    return apply_steps(stage.steps, concat_changes(drop_conflicting_columns(stage, prepared)))


def drop_conflicting_columns(stage: Stage, changes: Mapping[str, pa.Table]) -> list[pa.Table]:
    """Drop columns whose type differs between upstream stages, where the stage does not use them.

    Raises DefinitionError for a column that is used from several stages with different types.
    """
    type_names = {
        name: {field.name: _type_name(field.type) for field in table.schema}
        for name, table in changes.items()
    }
    refuse_type_conflicts(stage, type_names, panes=True)
    unused_columns = unused_conflicting_fields(stage, type_names)
    return [table.drop_columns(list(unused_columns[name])) for name, table in changes.items()]


def _type_name(arrow_type: pa.DataType) -> str | None:
    """Return the name of a type, or None for a column of nulls, which fits any type."""
    return None if pa.types.is_null(arrow_type) else str(arrow_type)


def apply_steps(steps: Sequence[Step], elements: pa.Table) -> pa.Table:
    """Return the elements after all steps.

    Raise DefinitionError if a step drops or changes a metadata column.
    """
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
            raise TypeError(f"a {step_kind(step)} step cannot read panes")


def _apply_arrow_step(step: ArrowStep, number: int, elements: pa.Table) -> pa.Table:
    function = step.function.resolve()
    try:
        result = function(elements)
    except Exception as error:
        raise wrap_user_error(f"arrow {step.function.name}", error) from error
    if not isinstance(result, pa.Table):
        message = f"{step.function.name} returned {type(result).__name__}"
        raise DefinitionError(f"step {number}", message, "Return a pyarrow.Table")
    check_declared_columns("arrow", step.function, step.returns, result.column_names)
    changed_columns = [
        field.name
        for field in CHANGE_METADATA_FIELDS
        if field.name not in result.column_names or result.schema.field(field.name).type != field.type
    ]
    if changed_columns:
        raise DefinitionError(
            f"step {number}",
            f"{step.function.name} drops or changes the metadata columns {', '.join(changed_columns)}",
            "Keep all columns that start with an underscore, as filter, take and append_column do",
        )
    return result
