"""Waiting for a condition, with a deadline."""

import time
from collections.abc import Callable

from penstock.core.errors import WaitTimeoutError

INITIAL_POLL_INTERVAL_S = 0.01
MAX_POLL_INTERVAL_S = 0.25


def wait_until(condition: Callable[[], bool], timeout_s: float, description: str) -> None:
    """Return once the condition holds; raise WaitTimeoutError, which names what was waited for, after the timeout.

    The condition is checked at least once, and once more at the deadline.
    """
    deadline = time.monotonic() + timeout_s
    interval_s = INITIAL_POLL_INTERVAL_S
    while not condition():
        remaining_s = deadline - time.monotonic()
        if remaining_s <= 0:
            raise WaitTimeoutError(f"Timed out after {timeout_s:g} s waiting for {description}.")
        time.sleep(min(interval_s, remaining_s))
        interval_s = min(interval_s * 1.5, MAX_POLL_INTERVAL_S)
