"""Typed steps over Arrow tables: filter, select, and user functions over single rows."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.definition.predicates import (
    Comparison,
    Conjunction,
    Disjunction,
    IsNotTrue,
    IsNull,
    Negation,
    Predicate,
)
from penstock.engine.errors import DefinitionError, UserCodeError
from penstock.engine.operators.stateful.schema import to_arrow_type
from penstock.engine.operators.strict_conversion import convert_strictly
from penstock.engine.plan.steps import FilterStep, RowFunctionStep, SelectStep
from penstock.engine.user_tracebacks import wrap_user_error

COMPARISONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "=": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


def filter_rows(step: FilterStep, rows: pa.Table) -> pa.Table:
    """Return the rows that meet the condition."""
    return rows.filter(evaluate_predicate(step.condition, rows), null_selection_behavior="drop")


def evaluate_predicate(predicate: Predicate, rows: pa.Table) -> Any:
    """Return true, false or null (unknown) for each row, as SQL does. NaN is greater than every number."""
    match predicate:
        case Comparison(field, operator, value):
            column = rows.column(field)
            try:
                comparison = COMPARISONS[operator](column, value)
            except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
                fix = "Compare it with a constant of its type"
                raise DefinitionError(
                    "filter", f"{field} has type {column.type}, which cannot be compared with {value!r}", fix
                ) from None
            may_exceed = operator in (">", ">=") and pa.types.is_floating(column.type)
            return pc.or_(comparison, pc.is_nan(column)) if may_exceed else comparison
        case IsNull(field):
            return pc.is_null(rows.column(field))
        case Negation(operands):
            return pc.invert(evaluate_predicate(operands, rows))
        case IsNotTrue(operands):
            return pc.invert(pc.fill_null(evaluate_predicate(operands, rows), False))
        case Conjunction(operands):
            return _combine_masks(pc.and_kleene, [evaluate_predicate(part, rows) for part in operands])
        case Disjunction(operands):
            return _combine_masks(pc.or_kleene, [evaluate_predicate(part, rows) for part in operands])


def select_columns(step: SelectStep, rows: pa.Table) -> pa.Table:
    """Return the selected columns. Internal columns (leading underscore) are kept."""
    hidden_names = [name for name in rows.column_names if name.startswith("_")]
    columns = [rows.column(old_name) for _, old_name in step.columns]
    return pa.table(
        [*columns, *rows.select(hidden_names).columns],
        names=[*(new_name for new_name, _ in step.columns), *hidden_names],
    )


def map_rows(step: RowFunctionStep, rows: pa.Table) -> pa.Table:
    """Apply a user function to each row. Internal columns are copied to every row that results from it."""
    visible_names = [name for name in rows.column_names if not name.startswith("_")]
    function = step.function.resolve()
    result_rows: list[Mapping[str, Any]] = []
    source_rows: list[int] = []
    for number, row in enumerate(rows.select(visible_names).to_pylist()):
        row_results = _call_function(step, function, row)
        result_rows += row_results
        source_rows += [number] * len(row_results)
    hidden_columns = rows.select([name for name in rows.column_names if name.startswith("_")])
    repeated = hidden_columns.take(pa.array(np.array(source_rows, np.int64)))
    columns = {
        column.name: _to_typed_column(
            step, column.name, column.type, [row.get(column.name) for row in result_rows]
        )
        for column in step.returns
    }
    return pa.table({**columns, **dict(zip(repeated.column_names, repeated.columns, strict=True))})


def _call_function(
    step: RowFunctionStep, function: Callable[..., Any], row: Mapping[str, Any]
) -> list[Mapping[str, Any]]:
    try:
        returned = function(row)
        results = list(returned) if step.many else [returned]
    except Exception as error:
        raise wrap_user_error(f"{step.keyword} {step.function.name}", error) from error
    for result in results:
        if not isinstance(result, Mapping):
            fix = "Return an iterable of dicts of columns" if step.many else "Return a dict of columns"
            problem = f"{step.function.name} returned {type(result).__name__}"
            raise DefinitionError(step.keyword, problem, fix)
    return results


def _to_typed_column(step: RowFunctionStep, name: str, type_name: str, values: list[Any]) -> pa.Array:
    try:
        return convert_strictly(values, to_arrow_type(type_name, f"{step.keyword}.returns.{name}"))
    except ValueError as error:
        raise UserCodeError(f"{step.keyword} {step.function.name}, column {name}", error) from error


def _combine_masks(combine: Callable[[Any, Any], Any], parts: Iterable[Any]) -> Any:
    combined, *remaining = parts
    for mask in remaining:
        combined = combine(combined, mask)
    return combined
