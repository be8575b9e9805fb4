"""What is done again and again beside everything else, such as a heartbeat."""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

log = logging.getLogger(__name__)


@contextmanager
def run_periodically(interval_s: float, action: Callable[[], None], name: str) -> Iterator[None]:
    """Act so often while the context lasts, first after so many seconds, in a thread of this name.

    Where it fails that is logged, and it is tried again the next time: what it asks may be away for a while. The
    context ends when the last one is over.
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
