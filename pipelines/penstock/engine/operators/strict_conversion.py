"""Values that a person's function gave for a column, as Arrow: as they are, or refused, never cut to fit."""

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import pyarrow as pa


def convert_strictly(values: Sequence[Any], column_type: pa.DataType) -> pa.Array:
    """The values as a column. Raises ValueError for one that the type cannot hold as it is."""
    _refuse_lossy(values, column_type)
    try:
        return pa.array(values, column_type, from_pandas=False)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as problem:
        raise ValueError(str(problem)) from problem


def _refuse_lossy(values: Sequence[Any], column_type: pa.DataType) -> None:
    """Refuse what Arrow would make something else of: 1 of 1.5, and a list of letters of a text."""
    if pa.types.is_list(column_type):
        _refuse_first((value for value in values if isinstance(value, str | bytes)), "list")
        inner_values = chain.from_iterable(value for value in values if isinstance(value, Iterable))
        _refuse_lossy(list(inner_values), column_type.value_type)
    elif pa.types.is_integer(column_type):
        _refuse_first((value for value in values if isinstance(value, float) and value % 1), "whole number")


def _refuse_first(invalid_values: Iterable[Any], expected: str) -> None:
    for value in invalid_values:
        raise ValueError(f"{value!r} is no {expected}")
