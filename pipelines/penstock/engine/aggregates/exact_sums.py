"""Sums of floating numbers from which what was added can be taken back: exact, as the few terms that make them up.

One number would lose a small value beside a great one for good: when the great one is taken back, nothing is left.
"""

import sys
from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import copysign, fsum, inf

from penstock.engine.aggregates.list_columns import ListEntry

MAX_FLOAT = Fraction(sys.float_info.max)


def split_into_terms(values: Sequence[float]) -> tuple[float, ...]:
    """The sum of finite numbers, rounded, then what was rounded off, and so on until nothing is left."""
    exact_terms: list[float] = []
    try:
        while term := fsum([*values, *(-earlier_term for earlier_term in exact_terms)]):
            exact_terms.append(term)
    except OverflowError:
        return _split_beyond_max(values)
    return tuple(exact_terms)


def _split_beyond_max(values: Iterable[float]) -> tuple[float, ...]:
    """The same of numbers whose sum, or a part of it, is greater than the greatest that there is."""
    remainder, exact_terms = sum(map(Fraction, values)), []
    while remainder:
        exact_terms.append(float(max(-MAX_FLOAT, min(MAX_FLOAT, remainder))))
        remainder -= Fraction(exact_terms[-1])
    return tuple(exact_terms)


def add_terms(entries: list[ListEntry]) -> Sequence[ListEntry]:
    """Terms that are held and terms that came, as the terms of their sum."""
    return [(term,) for term in split_into_terms([term for (term,) in entries])]


def sum_terms(exact_terms: Sequence[float] | None) -> float:
    """The sum that terms make up; infinite where it is greater than any number."""
    try:
        return fsum(exact_terms or ())
    except OverflowError:
        return copysign(inf, (exact_terms or (0.0,))[0])
