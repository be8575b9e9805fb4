"""Who may write a stream."""

from collections.abc import Callable
from dataclasses import dataclass

from penstock.engine.errors import WriterFencedError


@dataclass(frozen=True)
class WriteFence:
    """The right to write a stream: an epoch, and whether it is still the highest."""

    stream: str
    epoch: int
    is_held: Callable[[], bool]

    def ensure_held(self) -> None:
        """Raise FencedError once another host has taken over."""
        if not self.is_held():
            raise WriterFencedError(self.stream, self.epoch)
