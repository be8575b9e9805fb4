"""Whether two lists can be paired off, each with each, where one side says only part of what it means."""

from collections.abc import Callable, Sequence
from typing import TypeVar

Wanted = TypeVar("Wanted")
Found = TypeVar("Found")


def paired(wanted: Sequence[Wanted], found: Sequence[Found], agrees: Callable[[Wanted, Found], bool]) -> bool:
    """Tell whether each wanted item has a found one of its own, and none is left over."""
    if len(wanted) != len(found):
        return False
    fits = [[place for place, item in enumerate(found) if agrees(want, item)] for want in wanted]
    holder: dict[int, int] = {}
    return all(placed(want, fits, holder, set()) for want in range(len(wanted)))


def placed(want: int, fits: Sequence[Sequence[int]], holder: dict[int, int], tried: set[int]) -> bool:
    """Find a place for an item, moving others on where they have another."""
    for place in fits[want]:
        if place in tried:
            continue
        tried.add(place)
        if place not in holder or placed(holder[place], fits, holder, tried):
            holder[place] = want
            return True
    return False
