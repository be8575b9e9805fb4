"""What is said once about numbers: every NaN is the same value, and greater than all others."""

from math import isnan, nan
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
