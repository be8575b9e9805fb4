"""Exact, retractable sums of floating-point numbers, stored as the few terms that make them up.

A single number would lose a small value next to a large one: after retracting the large one, nothing would be
left.
"""

import sys
from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import copysign, fsum, inf

from penstock.engine.aggregates.list_columns import ListEntry

MAX_FLOAT = Fraction(sys.float_info.max)


def split_into_terms(values: Sequence[float]) -> tuple[float, ...]:
    """Return the rounded sum of finite numbers, then its rounding error, and so on until nothing remains."""
    exact_terms: list[float] = []
    try:
        while term := fsum([*values, *(-earlier_term for earlier_term in exact_terms)]):
            exact_terms.append(term)
    except OverflowError:
        return _split_beyond_max(values)
    return tuple(exact_terms)


def _split_beyond_max(values: Iterable[float]) -> tuple[float, ...]:
    """Return the same for numbers whose sum, or a partial sum, exceeds the largest float."""
    remainder, exact_terms = sum(map(Fraction, values)), []
    while remainder:
        exact_terms.append(float(max(-MAX_FLOAT, min(MAX_FLOAT, remainder))))
        remainder -= Fraction(exact_terms[-1])
    return tuple(exact_terms)


def add_terms(entries: list[ListEntry]) -> Sequence[ListEntry]:
    """Return the terms of the sum of stored and new terms."""
    return [(term,) for term in split_into_terms([term for (term,) in entries])]


def sum_terms(exact_terms: Sequence[float] | None) -> float:
    """Return the sum of terms; infinite if it exceeds the largest float."""
    try:
        return fsum(exact_terms or ())
    except OverflowError:
        return copysign(inf, (exact_terms or (0.0,))[0])
