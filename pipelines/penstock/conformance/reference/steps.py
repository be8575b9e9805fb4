"""Applies the steps that are data to a record or a pane."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from penstock.conformance.reference.predicates import matches_predicate
from penstock.engine.plan.steps import FilterStep, RowFunctionStep, SelectStep, Step

RowFields = Mapping[str, Any]
StepFunction = Callable[[RowFields], Iterable[RowFields]]


def are_supported_steps(steps: Sequence[Step]) -> bool:
    """Tell whether the reference can apply all of these steps."""
    return all(isinstance(step, FilterStep | SelectStep | RowFunctionStep) for step in steps)


def apply_steps(steps: Sequence[Step], fields: RowFields) -> list[RowFields]:
    """Return the rows that supported steps make of a row."""
    rows = [fields]
    for step in steps:
        rows = [output_row for row in rows for output_row in apply_step(step, row)]
    return rows


def apply_step(step: Step, row: RowFields) -> Iterable[RowFields]:
    """Return the rows that one step makes of a row."""
    match step:
        case FilterStep(condition):
            return [row] if matches_predicate(row, condition) else []
        case SelectStep(columns):
            return [{new: row.get(old) for new, old in columns}]
        case RowFunctionStep(function, returns, is_multi_row):
            returned = function.resolve()(row)
            returned_rows = list(returned) if is_multi_row else [returned]
            return [
                {column.name: returned_row.get(column.name) for column in returns}
                for returned_row in returned_rows
            ]
        case _:
            raise TypeError(f"the reference does not support {step}")
