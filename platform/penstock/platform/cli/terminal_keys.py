"""Single keys from the terminal, without Enter. The terminal is as it was at the end of the block."""

import os
import select
import sys
import termios
import threading
import time
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager

POLL_S = 0.25
MAX_KEY_BYTES = 32
"""Enough for one key: arrows and function keys send several bytes."""

KeyWaiter = Callable[[threading.Event, float], str]
"""Waits for a key until an event is set or the time is over; returns the key, or an empty text."""


@contextmanager
def read_keys() -> Iterator[KeyWaiter]:
    """Yield what waits for a key. Without a terminal as input there are no keys, and it waits for the time only."""
    if not sys.stdin.isatty():
        yield _wait_for_time
        return
    descriptor = sys.stdin.fileno()
    previous_mode = termios.tcgetattr(descriptor)
    tty.setcbreak(descriptor)
    try:
        yield lambda stop, timeout_s: _wait_for_key(descriptor, stop, timeout_s)
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, previous_mode)


def _wait_for_time(stop: threading.Event, timeout_s: float) -> str:
    stop.wait(timeout_s)
    return ""


def _wait_for_key(descriptor: int, stop: threading.Event, timeout_s: float) -> str:
    deadline = time.monotonic() + timeout_s
    while not stop.is_set():
        remaining_s = deadline - time.monotonic()
        if remaining_s <= 0:
            break
        # A signal does not end `select`, so it waits in short steps.
        if select.select([descriptor], [], [], min(remaining_s, POLL_S))[0]:
            return os.read(descriptor, MAX_KEY_BYTES).decode("utf-8", "replace")
    return ""
