"""Convert values returned by user functions to Arrow without loss, or refuse them."""

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import pyarrow as pa


def convert_strictly(values: Sequence[Any], column_type: pa.DataType) -> pa.Array:
    """Return the values as a column. Raise ValueError for a value that the type cannot hold without loss."""
    _refuse_lossy(values, column_type)
    try:
        return pa.array(values, column_type, from_pandas=False)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise ValueError(str(error)) from error


def _refuse_lossy(values: Sequence[Any], column_type: pa.DataType) -> None:
    """Refuse values that Arrow converts silently: 1.5 to 1, and a string to a list of characters."""
    if pa.types.is_list(column_type):
        _refuse_first((value for value in values if isinstance(value, str | bytes)), "list")
        inner_values = chain.from_iterable(value for value in values if isinstance(value, Iterable))
        _refuse_lossy(list(inner_values), column_type.value_type)
    elif pa.types.is_integer(column_type):
        _refuse_first((value for value in values if isinstance(value, float) and value % 1), "whole number")


def _refuse_first(invalid_values: Iterable[Any], expected: str) -> None:
    for value in invalid_values:
        raise ValueError(f"{value!r} is not a {expected}")
