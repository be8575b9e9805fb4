"""Decides whether two lists match one to one, if the items of one list are only partial descriptions."""

from collections import deque
from collections.abc import Callable, Sequence
from typing import TypeVar

ExpectedT = TypeVar("ExpectedT")
ActualT = TypeVar("ActualT")


def can_pair_all(
    expected: Sequence[ExpectedT], actual: Sequence[ActualT], matches: Callable[[ExpectedT, ActualT], bool]
) -> bool:
    """Tell whether each expected item has its own actual item, with none left over."""
    if len(expected) != len(actual):
        return False
    candidate_slots = [
        [slot for slot, item in enumerate(actual) if matches(expected_item, item)]
        for expected_item in expected
    ]
    pairs = BipartiteMatching(candidate_slots)
    return all(pairs.try_assign(expected_item) for expected_item in range(len(expected)))


class BipartiteMatching:
    """The current assignment of items to slots.

    An item moves to another slot if that frees its slot for an item without an alternative.
    """

    def __init__(self, candidate_slots: Sequence[Sequence[int]]) -> None:
        self.candidate_slots = candidate_slots
        self.item_by_slot: dict[int, int] = {}
        self.slot_by_item: dict[int, int] = {}

    def try_assign(self, new_item: int) -> bool:
        """Assign one more item, moving others if necessary. A chain of moves may be as long as the list."""
        item_asking: dict[int, int] = {}
        queue = deque([new_item])
        while queue:
            item = queue.popleft()
            free_slot = next(
                (slot for slot in self.candidate_slots[item] if slot not in self.item_by_slot), None
            )
            if free_slot is not None:
                self.shift_assignments(free_slot, item_asking | {free_slot: item})
                return True
            for slot in self.candidate_slots[item]:
                if slot not in item_asking:
                    item_asking[slot] = item
                    queue.append(self.item_by_slot[slot])
        return False

    def shift_assignments(self, free_slot: int, item_asking: dict[int, int]) -> None:
        """Move each item of a chain to the slot that it asked for."""
        slot: int | None = free_slot
        while slot is not None:
            item = item_asking[slot]
            self.item_by_slot[slot], previous_slot = item, self.slot_by_item.get(item)
            self.slot_by_item[item], slot = slot, previous_slot
