"""Sums of floating numbers from which what was added can be taken back: exact, as the few terms that make them up.

One number would lose a small value beside a great one for good: when the great one is taken back, nothing is left.
"""

import sys
from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import copysign, fsum, inf

from penstock.pipelines.fold.aggregates.lists import Entry

MOST = Fraction(sys.float_info.max)


def terms(values: Sequence[float]) -> tuple[float, ...]:
    """The sum of finite numbers, rounded, then what was rounded off, and so on until nothing is left."""
    found: list[float] = []
    try:
        while term := fsum([*values, *(-each for each in found)]):
            found.append(term)
    except OverflowError:
        return _beyond(values)
    return tuple(found)


def _beyond(values: Iterable[float]) -> tuple[float, ...]:
    """The same of numbers whose sum, or a part of it, is greater than the greatest that there is."""
    left, found = sum(map(Fraction, values)), []
    while left:
        found.append(float(max(-MOST, min(MOST, left))))
        left -= Fraction(found[-1])
    return tuple(found)


def added(entries: list[Entry]) -> Sequence[Entry]:
    """Terms that are held and terms that came, as the terms of their sum."""
    return [(term,) for term in terms([term for (term,) in entries])]


def total(held: Sequence[float] | None) -> float:
    """The sum that terms make up; infinite where it is greater than any number."""
    try:
        return fsum(held or ())
    except OverflowError:
        return copysign(inf, (held or (0.0,))[0])
