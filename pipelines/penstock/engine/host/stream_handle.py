"""A stream at work, as the host sees it, and the place that the host has for it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from penstock.engine.batch.outcome import BatchOutcome
from penstock.engine.batch.write_fence import WriteFence
from penstock.engine.host.control import DesiredState, Lease


class StreamHandle(Protocol):
    """A stream at work. It is started once; the other calls may come at any time, one after the other."""

    def read_outcomes_after(self, after: int) -> Iterable[BatchOutcome]:
        """Every batch after one that is decided and that its journal still has, from old to young."""

    def start(self, *, reading: bool = True) -> None:
        """Finish what the last run began, and begin; without reading, only what the clock brings is done."""

    def failure(self) -> BaseException | None:
        """Why it no longer runs; None while it does."""

    def describe_current_batch(self) -> str:
        """Which batch it is at, and of which records; empty where it has begun none."""

    def pause(self) -> None:
        """Finish the batch at work, and read no more."""

    def resume(self) -> None:
        """Read again."""

    def drain(self) -> None:
        """Finish the batch at work, and stop."""

    def stop(self) -> None:
        """Stop without finishing the batch at work; it is repeated whole at the next start."""


StreamFactory = Callable[[str, WriteFence, Callable[[BatchOutcome], None]], StreamHandle]
"""Makes a stream ready to be started."""


@dataclass
class HostedStream:
    """What the host has of one stream at the moment, and the wish that it goes by."""

    lease: Lease
    handle: StreamHandle
    desired_state: DesiredState
    definition_version: str
    """What it was written in when it was begun."""
    started_ms: int


@dataclass(frozen=True)
class FailedAttempt:
    """What a stream that was given up had been begun with: wished anew or written anew, it is tried again."""

    revision: int
    definition_version: str
