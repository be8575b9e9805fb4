"""Whether two lists can be paired off, each with each, where one side says only part of what it means."""

from collections import deque
from collections.abc import Callable, Sequence
from typing import TypeVar

Wanted = TypeVar("Wanted")
Found = TypeVar("Found")


def paired(wanted: Sequence[Wanted], found: Sequence[Found], agrees: Callable[[Wanted, Found], bool]) -> bool:
    """Tell whether each wanted item has a found one of its own, and none is left over."""
    if len(wanted) != len(found):
        return False
    fits = [[place for place, item in enumerate(found) if agrees(want, item)] for want in wanted]
    pairs = Pairs(fits)
    return all(pairs.admit(want) for want in range(len(wanted)))


class Pairs:
    """Who holds which place; who fits several moves on where another has no other place."""

    def __init__(self, fits: Sequence[Sequence[int]]) -> None:
        self.fits = fits
        self.holder: dict[int, int] = {}
        self.place: dict[int, int] = {}

    def admit(self, want: int) -> bool:
        """Find a place for one more, moving others on; a chain of moves may be as long as there are items."""
        asked_by: dict[int, int] = {}
        asking = deque([want])
        while asking:
            one = asking.popleft()
            free = next((place for place in self.fits[one] if place not in self.holder), None)
            if free is not None:
                self.move_on(free, asked_by | {free: one})
                return True
            for place in self.fits[one]:
                if place not in asked_by:
                    asked_by[place] = one
                    asking.append(self.holder[place])
        return False

    def move_on(self, free: int, asked_by: dict[int, int]) -> None:
        """Let each of a chain take the place that it asked for, and leave its own to who asked for that."""
        place: int | None = free
        while place is not None:
            one = asked_by[place]
            self.holder[place], left = one, self.place.get(one)
            self.place[one], place = place, left
