"""The right to write a stream."""

from collections.abc import Callable
from dataclasses import dataclass

from penstock.engine.errors import WriterFencedError


@dataclass(frozen=True)
class WriteFence:
    """The right to write a stream: an epoch, and whether the lease of that epoch is still held."""

    stream: str
    epoch: int
    is_held: Callable[[], bool]

    def ensure_held(self) -> None:
        """Raise WriterFencedError if another host has taken over."""
        if not self.is_held():
            raise WriterFencedError(self.stream, self.epoch)
