"""When runs are merged: so often that a lookup asks few, so seldom that a row is rewritten rarely."""

from collections.abc import Sequence

MERGE_FANOUT = 6
"""How many runs of about one size may stand before they become one."""


def plan_merge(sizes: Sequence[int], fanout: int = MERGE_FANOUT) -> tuple[int, int] | None:
    """Which adjacent runs, [begin, end) from old to young, are to become one; None while all is well.

    A run's class is the logarithm of its size. Where `fanout` neighbours stand of which none is of a higher
    class than the youngest of them, they are merged. So the number of runs grows with the logarithm of the
    state, and a row is rewritten about once for each class that it rises through.
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
