"""Values that a person's function gave for a column, as Arrow: as they are, or refused, never cut to fit."""

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import pyarrow as pa


def fitting(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """The values as a column. Raises ValueError for one that the type cannot hold as it is."""
    _refuse_cut(values, kind)
    try:
        return pa.array(values, kind, from_pandas=False)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as problem:
        raise ValueError(str(problem)) from problem


def _refuse_cut(values: Sequence[Any], kind: pa.DataType) -> None:
    """Refuse what Arrow would make something else of: 1 of 1.5, and a list of letters of a text."""
    if pa.types.is_list(kind):
        _refuse((each for each in values if isinstance(each, str | bytes)), "list")
        within = chain.from_iterable(each for each in values if isinstance(each, Iterable))
        _refuse_cut(list(within), kind.value_type)
    elif pa.types.is_integer(kind):
        _refuse((each for each in values if isinstance(each, float) and each % 1), "whole number")


def _refuse(wrong: Iterable[Any], wanted: str) -> None:
    for each in wrong:
        raise ValueError(f"{each!r} is no {wanted}")
