"""What is done again and again beside everything else, such as a heartbeat."""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

log = logging.getLogger(__name__)


@contextmanager
def repeating(seconds: float, act: Callable[[], None], name: str) -> Iterator[None]:
    """Act so often while the context lasts, first after so many seconds, in a thread of this name.

    Where it fails that is logged, and it is tried again the next time: what it asks may be away for a while. The
    context ends when the last one is over.
    """
    over = threading.Event()

    def repeat() -> None:
        while not over.wait(seconds):
            try:
                act()
            except Exception:
                log.exception("%s failed, and is tried again in %g s", name, seconds)

    thread = threading.Thread(target=repeat, name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
