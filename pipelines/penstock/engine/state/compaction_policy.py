"""When to merge runs: often enough for fast lookups, rarely enough to limit rewrites."""

from collections.abc import Sequence

MERGE_FANOUT = 6
"""The number of runs of similar size that are merged into one."""


def plan_merge(sizes: Sequence[int], fanout: int = MERGE_FANOUT) -> tuple[int, int] | None:
    """Return the adjacent runs to merge as [begin, end), from old to young, or None if nothing is due.

    The size class of a run is the logarithm of its size. A merge is due for `fanout` neighbors of which none
    has a higher class than the youngest. So the number of runs grows with the logarithm of the state, and a
    row is rewritten about once for each class.
    """
    for end in range(len(sizes), fanout - 1, -1):
        highest = _size_class(sizes[end - 1], fanout)
        begin = end
        while begin > 0 and _size_class(sizes[begin - 1], fanout) <= highest:
            begin -= 1
        if end - begin >= fanout:
            return begin, end
    return None


def _size_class(size: int, fanout: int) -> int:
    steps = 0
    while size >= fanout:
        size //= fanout
        steps += 1
    return steps
