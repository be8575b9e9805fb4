"""Typed steps over Arrow: conditions, and functions of a person's over single rows."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.pipelines.errors import DefinitionError, UserCodeError
from penstock.pipelines.fold.fitting import fitting
from penstock.pipelines.fold.returned import arrow_type
from penstock.pipelines.plan.predicates import (
    Compare,
    Conjunction,
    Disjunction,
    IsNull,
    Negation,
    Predicate,
    Unmet,
)
from penstock.pipelines.plan.steps import Keep, PerRow, Select

COMPARE: Mapping[str, Callable[[Any, Any], Any]] = {
    "=": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


def kept(step: Keep, rows: pa.Table) -> pa.Table:
    """The rows that meet the condition."""
    return rows.filter(truth(step.condition, rows), null_selection_behavior="drop")


def truth(predicate: Predicate, rows: pa.Table) -> Any:
    """For each row true, false, or null where nobody knows, as in SQL; NaN is greater than every number."""
    match predicate:
        case Compare(field, sign, value):
            column = rows.column(field)
            try:
                found = COMPARE[sign](column, value)
            except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
                fix = "Compare it with a constant of its type"
                raise DefinitionError(
                    "filter", f"{field} is of type {column.type}, {value!r} is not", fix
                ) from None
            above = sign in (">", ">=") and pa.types.is_floating(column.type)
            return pc.or_(found, pc.is_nan(column)) if above else found
        case IsNull(field):
            return pc.is_null(rows.column(field))
        case Negation(of):
            return pc.invert(truth(of, rows))
        case Unmet(of):
            return pc.invert(pc.fill_null(truth(of, rows), False))
        case Conjunction(of):
            return _joined(pc.and_kleene, [truth(part, rows) for part in of])
        case Disjunction(of):
            return _joined(pc.or_kleene, [truth(part, rows) for part in of])


def selected(step: Select, rows: pa.Table) -> pa.Table:
    """The columns that are asked for; those that begin with _ stay."""
    ours = [name for name in rows.column_names if name.startswith("_")]
    columns = [rows.column(old) for _, old in step.columns]
    return pa.table([*columns, *rows.select(ours).columns], names=[*(new for new, _ in step.columns), *ours])


def mapped(step: PerRow, rows: pa.Table) -> pa.Table:
    """What the function makes of each row; columns that begin with _ go along with each row that comes of one."""
    seen = [name for name in rows.column_names if not name.startswith("_")]
    function = step.function.resolve()
    made: list[Mapping[str, Any]] = []
    origin: list[int] = []
    for number, row in enumerate(rows.select(seen).to_pylist()):
        found = _called(step, function, row)
        made += found
        origin += [number] * len(found)
    ours = rows.select([name for name in rows.column_names if name.startswith("_")])
    carried = ours.take(pa.array(np.array(origin, np.int64)))
    columns = {
        column.name: _typed(step, column.name, column.type, [row.get(column.name) for row in made])
        for column in step.returns
    }
    return pa.table({**columns, **dict(zip(carried.column_names, carried.columns, strict=True))})


def _called(step: PerRow, function: Callable[..., Any], row: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    try:
        answer = function(row)
        found = list(answer) if step.many else [answer]
    except Exception as problem:
        raise UserCodeError(step.function.name, problem) from problem
    for each in found:
        if not isinstance(each, Mapping):
            fix = (
                "Return a dict of columns" if not step.many else "Return dicts of columns, any number of them"
            )
            raise DefinitionError(step.word, f"{step.function.name} gives {type(each).__name__}", fix)
    return found


def _typed(step: PerRow, name: str, kind: str, values: list[Any]) -> pa.Array:
    try:
        return fitting(values, arrow_type(kind, f"{step.word}.returns.{name}"))
    except ValueError as problem:
        raise UserCodeError(step.function.name, problem) from problem


def _joined(join: Callable[[Any, Any], Any], parts: Iterable[Any]) -> Any:
    first, *others = parts
    for other in others:
        first = join(first, other)
    return first
