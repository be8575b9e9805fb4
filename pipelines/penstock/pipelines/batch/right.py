"""Who may write a stream."""

from collections.abc import Callable
from dataclasses import dataclass

from penstock.pipelines.errors import FencedError


@dataclass(frozen=True)
class Right:
    """The right to write a stream: an epoch, and whether it is still the highest."""

    stream: str
    epoch: int
    holds: Callable[[], bool]

    def check(self) -> None:
        """Raise FencedError once another host has taken over."""
        if not self.holds():
            raise FencedError(self.stream, self.epoch)
