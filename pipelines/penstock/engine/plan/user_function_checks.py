"""Checks of the user functions of steps against what the engine passes to them and expects from them."""

import typing
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from penstock.engine.definition.argument_checks import require, require_known_name
from penstock.engine.definition.function_signature import (
    CONTAINERS,
    SCALARS,
    describe_function,
    read_annotations,
    require_callable_with,
    require_result_type,
)
from penstock.engine.definition.problem_collector import ProblemCollector
from penstock.engine.definition.record_keys import find_record_keys, is_generator
from penstock.engine.definition.sql_type_names import base_type
from penstock.engine.errors import DefinitionError
from penstock.engine.plan.sources import Column

SQL_TYPES_BY_PYTHON_TYPE: Mapping[type, tuple[str, ...]] = {
    bool: ("BOOLEAN",),
    int: ("TINYINT", "SMALLINT", "INT", "INTEGER", "BIGINT", "LONG", "FLOAT", "DOUBLE", "DECIMAL"),
    float: ("FLOAT", "DOUBLE"),
    str: ("STRING", "VARCHAR", "CHAR"),
    bytes: ("BINARY",),
}
"""The column types that take the values of a Python type. A type that is not listed here is not checked."""


def check_row_function(
    keyword: str,
    function: Callable[..., Any],
    returns: Iterable[Column],
    columns: Iterable[str] | None,
) -> None:
    """Refuse a function of `map` or `flat_map` that cannot work. `columns` are those of its rows, if known."""
    require_callable_with(keyword, function, "row")
    if keyword == "map":
        fix = "Return a dict with the columns of `returns`; flat_map takes functions that return several rows"
        if is_generator(function):
            raise DefinitionError(keyword, f"{describe_function(function)} is a generator", fix)
        require_result_type(keyword, function, (*SCALARS, *CONTAINERS), fix)
    else:
        fix = "Return or yield dicts with the columns of `returns`; map takes functions that return one row"
        require_result_type(keyword, function, (*SCALARS, dict), fix)
    _check_typed_dicts(keyword, function, tuple(returns), columns)
    _check_keys(keyword, function, [column.name for column in returns], columns)


def check_table_function(keyword: str, function: Callable[..., Any], argument: str, result: str) -> None:
    """Refuse a function from table to table that takes other arguments, or declares to return something else."""
    require_callable_with(keyword, function, argument)
    fix = f"Return a {result}"
    require_result_type(keyword, function, (*SCALARS, *CONTAINERS, dict), fix)


def _check_keys(
    keyword: str, function: Callable[..., Any], result_names: list[str], columns: Iterable[str] | None
) -> None:
    """Refuse a key that the rows do not have, and a returned dict that misses a column and has an unknown one."""
    keys = find_record_keys(function)
    if keys is None:
        return
    problems, file = ProblemCollector(), Path(keys.file).name
    known_columns = None if columns is None else list(columns)
    for key in keys.read if known_columns is not None else ():
        problem = f"there is no field {key.name!r} ({file}:{key.line})"
        with problems.collect():
            require_known_name(key.name, known_columns or (), keyword, problem, "Known fields")
    for returned in keys.returned:
        names = {key.name for key in returned}
        missing_names = [name for name in result_names if name not in names]
        for key in returned if missing_names else ():
            problem = f"the result has no {missing_names[0]!r}, but {key.name!r} ({file}:{key.line})"
            with problems.collect():
                require_known_name(key.name, result_names, f"{keyword}.returns", problem, "Declared columns")
    problems.raise_problems()


def _check_typed_dicts(
    keyword: str, function: Callable[..., Any], returns: tuple[Column, ...], columns: Iterable[str] | None
) -> None:
    """Compare a TypedDict of the row with the columns, and one of the result with `returns`."""
    annotations = dict(read_annotations(function))
    result: Any = annotations.pop("return", None)
    for item in (result, *typing.get_args(result)):
        if typing.is_typeddict(item):
            _check_result_fields(keyword, function, item, returns)
    row: Any = next(iter(annotations.values()), None)
    if columns is not None and typing.is_typeddict(row):
        for name in sorted(row.__required_keys__):
            problem = f"there is no field {name!r}, which {row.__name__} of {describe_function(function)} has"
            require_known_name(name, columns, keyword, problem, "Known fields")


def _check_result_fields(
    keyword: str, function: Callable[..., Any], result: Any, returns: tuple[Column, ...]
) -> None:
    fields = read_annotations(result)
    for column in returns:
        location = f"{keyword}.returns.{column.name}"
        problem = f"{result.__name__}, the result of {describe_function(function)}, has no {column.name!r}"
        require_known_name(column.name, fields, location, problem, "Its fields")
        allowed = SQL_TYPES_BY_PYTHON_TYPE.get(fields[column.name], ())
        problem = f"{column.type}, but {describe_function(function)} returns {fields[column.name]}"
        fix = f"Write {' or '.join(allowed)}, or change {result.__name__}"
        require(not allowed or base_type(column.type) in allowed, location, problem, fix)
