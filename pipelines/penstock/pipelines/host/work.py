"""What a thread works on, so that each line of its log can say of which stream and batch it is."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True)
class Work:
    """A stream, and its batch where one is at work."""

    stream: str
    batch: int | None = None


_NOW: ContextVar[Work | None] = ContextVar("penstock_work", default=None)


def work_at_hand() -> Work | None:
    """Return what this thread works on; None where it is no stream."""
    return _NOW.get()


@contextmanager
def working_on(stream: str, batch: int | None = None) -> Iterator[None]:
    """Have everything that is logged inside say so."""
    before = _NOW.set(Work(stream, batch))
    try:
        yield
    finally:
        _NOW.reset(before)
