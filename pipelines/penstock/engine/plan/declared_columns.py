"""The columns that a function from table to table declares to return, for the analysis of later steps."""

import typing
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from penstock.core.names import suggest_or_list
from penstock.engine.definition.user_functions import FunctionRef
from penstock.engine.errors import DefinitionError
from penstock.engine.plan.sources import Column


def find_annotated_columns(function: Callable[..., Any]) -> Mapping[str, str] | None:
    """Return the columns of an annotation such as `Annotated[DataFrame, {"city": "STRING"}]`, None without one."""
    try:
        annotation = typing.get_type_hints(function, include_extras=True).get("return")
    except (TypeError, NameError, AttributeError):  # an annotation that cannot be resolved declares nothing
        return None
    return next((part for part in getattr(annotation, "__metadata__", ()) if isinstance(part, Mapping)), None)


def check_declared_columns(
    keyword: str, function: FunctionRef, returns: tuple[Column, ...], result_names: Iterable[str]
) -> None:
    """Refuse a result with other columns than declared. Columns that start with `_` do not count."""
    if not returns:
        return
    names = [name for name in result_names if not name.startswith("_")]
    declared_names = [column.name for column in returns]
    for name in declared_names:
        if name not in names:
            problem = f"{function.name} returned no column {name!r}"
            raise DefinitionError(f"{keyword}.returns", problem, suggest_or_list(name, names, "It returned"))
    undeclared = [name for name in names if name not in declared_names]
    if undeclared:
        problem = f"{function.name} returned {', '.join(map(repr, undeclared))}, which is not declared"
        raise DefinitionError(f"{keyword}.returns", problem, "Declare each column of the result, or drop it")
