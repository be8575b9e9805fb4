"""The system clock, read in one place and passed to whatever needs the time."""

import time
from collections.abc import Callable
from typing import TypeAlias

Clock: TypeAlias = Callable[[], int]
"""Returns the current time in milliseconds of UTC since 1970."""


def now_ms() -> int:
    """Return the current time in milliseconds of UTC since 1970."""
    return time.time_ns() // 1_000_000
