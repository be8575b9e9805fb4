"""What is said once about numbers: every NaN is the same value, and greater than all others."""

from fractions import Fraction
from math import inf, isfinite, isnan, nan
from typing import Any


def canonical(value: Any) -> Any:
    """Return the value, or the one NaN in place of any other, so that equal values are found equal."""
    if isinstance(value, tuple | list):
        return tuple(canonical(item) for item in value)
    return nan if is_nan(value) else value


def rank(value: Any) -> tuple[bool, Any]:
    """Return what values are ordered by; lists by what is in them."""
    if isinstance(value, tuple):
        return False, tuple((item is not None, item is not None and rank(item)) for item in value)
    return (True, 0) if is_nan(value) else (False, value)


def is_nan(value: Any) -> bool:
    """Tell whether the value is a number that is none."""
    return isinstance(value, float) and isnan(value)


def exact_sum(found: list[Any]) -> Any:
    """Return the sum; of floating numbers the one that is nearest to it, in whatever order they stand."""
    if not any(isinstance(value, float) for value in found) or not all(map(isfinite, found)):
        return sum(found)
    whole = sum(map(Fraction, found))
    try:
        return float(whole)
    except OverflowError:
        return inf if whole > 0 else -inf
