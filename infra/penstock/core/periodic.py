"""Periodic actions in a background thread, such as a heartbeat."""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

log = logging.getLogger(__name__)


@contextmanager
def run_periodically(interval_s: float, action: Callable[[], None], name: str) -> Iterator[None]:
    """Run an action at an interval inside the block, first after one interval, in a thread of this name.

    A failure is logged, and the action runs again after the next interval. The block ends after the last run.
    """
    stopped = threading.Event()

    def repeat() -> None:
        while not stopped.wait(interval_s):
            try:
                action()
            except Exception:
                log.exception("%s failed, and is tried again in %g s", name, interval_s)

    thread = threading.Thread(target=repeat, name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()
