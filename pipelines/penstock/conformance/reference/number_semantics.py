"""Semantics of numbers: all NaNs are equal, and greater than every other number."""

from fractions import Fraction
from math import inf, isfinite, isnan, nan
from typing import Any


def canonicalize(value: Any) -> Any:
    """Return the value, with every NaN replaced by the same NaN."""
    if isinstance(value, tuple | list):
        return tuple(canonicalize(item) for item in value)
    return nan if is_nan(value) else value


def sort_key(value: Any) -> tuple[bool, Any]:
    """Return the sort key of a value; lists compare by content."""
    if isinstance(value, tuple):
        return False, tuple((item is not None, item is not None and sort_key(item)) for item in value)
    return (True, 0) if is_nan(value) else (False, value)


def is_nan(value: Any) -> bool:
    """Tell whether the value is NaN."""
    return isinstance(value, float) and isnan(value)


def sum_exactly(numbers: list[Any]) -> Any:
    """Return the exact sum, rounded once; independent of the order."""
    if not any(isinstance(value, float) for value in numbers) or not all(map(isfinite, numbers)):
        return sum(numbers)
    exact_total = sum(map(Fraction, numbers))
    try:
        return float(exact_total)
    except OverflowError:
        return inf if exact_total > 0 else -inf
