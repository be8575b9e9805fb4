"""Checks of a user function before any record arrives: how many arguments it takes, and what it declares to return.

Only what is certain is refused. A function without annotations, or whose annotations cannot be resolved, passes.
"""

import inspect
import typing
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from penstock.engine.errors import DefinitionError

SCALARS = (type(None), bool, int, float, str, bytes)
CONTAINERS = (list, tuple, set, frozenset)
COMBINER_METHODS = {
    "add": ("values", "groups", "count"),
    "merge": ("partials", "groups", "count"),
    "subtract": ("partials", "gone"),
    "result": ("partials",),
}
"""The methods of a combiner with their arguments."""


def require_callable_with(field: str, function: Callable[..., Any], *arguments: str) -> None:
    """Refuse a function that cannot be called with these arguments by position. They are named in the error."""
    if inspect.iscoroutinefunction(function):
        fix = "Remove async: the engine does not wait for coroutines"
        raise DefinitionError(field, f"{describe_function(function)} is a coroutine function", fix)
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some built-in functions have no signature
        return
    try:
        signature.bind(*arguments)
    except TypeError:
        parameters = f"({', '.join(signature.parameters)})"
        count = f"{len(arguments)} argument{'s' if len(arguments) != 1 else ''}"
        problem = f"{describe_function(function)} takes {parameters}, and {field} passes {count}"
        fix = f"Write a function of ({', '.join(arguments)}); functools.partial or defaults set other parameters"
        raise DefinitionError(field, problem, fix) from None


def require_combiner_methods(combiner: object) -> None:
    """Refuse a combiner whose methods take other arguments than the engine passes."""
    for name, arguments in COMBINER_METHODS.items():
        require_callable_with(f"combine.{name}", getattr(combiner, name), *arguments)


def require_result_type(
    field: str, function: Callable[..., Any], refused_types: tuple[type, ...], fix: str
) -> None:
    """Refuse a function that declares to return one of these types or a subclass."""
    annotation = read_annotations(function).get("return", Any)
    result_type = typing.get_origin(annotation) or annotation
    if isinstance(result_type, type) and issubclass(result_type, refused_types):
        name = "None" if result_type is type(None) else getattr(annotation, "__name__", str(annotation))
        raise DefinitionError(field, f"{describe_function(function)} returns {name}", fix)


def read_annotations(function: Callable[..., Any]) -> Mapping[str, Any]:
    """Return the resolved annotations of a function; none if they cannot be resolved."""
    try:
        return typing.get_type_hints(function)
    except (TypeError, NameError, AttributeError):
        return {}


def describe_function(function: Callable[..., Any]) -> str:
    """Return the name of a function with its file and line, as in `tax (orders.py:4)`."""
    name = getattr(function, "__name__", type(function).__name__)
    code = getattr(inspect.unwrap(function), "__code__", None)
    return name if code is None else f"{name} ({Path(code.co_filename).name}:{code.co_firstlineno})"
