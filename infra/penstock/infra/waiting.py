"""Waiting for a condition, with a deadline: the one place in this package that polls."""

import time
from collections.abc import Callable

from penstock.infra.errors import NotInTimeError

FIRST_PAUSE = 0.01
LONGEST_PAUSE = 0.25


def wait_until(condition: Callable[[], bool], seconds: float, what: str) -> None:
    """Return once the condition holds; raise NotInTimeError, which says what was waited for, after that.

    The condition is asked at least once, and once more at the deadline.
    """
    deadline = time.monotonic() + seconds
    pause = FIRST_PAUSE
    while not condition():
        left = deadline - time.monotonic()
        if left <= 0:
            raise NotInTimeError(f"Waited {seconds:g} s for {what}, in vain.")
        time.sleep(min(pause, left))
        pause = min(pause * 1.5, LONGEST_PAUSE)
