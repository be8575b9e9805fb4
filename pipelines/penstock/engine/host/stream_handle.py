"""The interface of a running stream, and what a host keeps about each."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from penstock.engine.batch.outcome import BatchOutcome
from penstock.engine.batch.write_fence import WriteFence
from penstock.engine.host.control import DesiredState, Lease


class StreamHandle(Protocol):
    """A running stream. `start` is called once; the other calls may come at any time, one after the other."""

    def read_outcomes_after(self, after: int) -> Iterable[BatchOutcome]:
        """Return the committed batches after this one that the journal still has, in order."""

    def start(self, *, reading: bool = True) -> None:
        """Finish what the last run left, and start. Without `reading`, only timers run."""

    def failure(self) -> BaseException | None:
        """Return why the stream no longer runs; None while it runs."""

    def describe_current_batch(self) -> str:
        """Return the batch in progress and its records as text; empty if there is none."""

    def pause(self) -> None:
        """Finish the current batch, and read no more."""

    def resume(self) -> None:
        """Read again."""

    def drain(self) -> None:
        """Finish the current batch, and stop."""

    def stop(self) -> None:
        """Stop without finishing the current batch; the next start repeats it as a whole."""


StreamFactory = Callable[[str, WriteFence, Callable[[BatchOutcome], None]], StreamHandle]
"""Creates a stream that is ready to start."""


@dataclass
class HostedStream:
    """A stream that this host runs, and the desired state that it follows."""

    lease: Lease
    handle: StreamHandle
    desired_state: DesiredState
    definition_version: str
    """The version of the definition that it was started with."""
    started_ms: int


@dataclass(frozen=True)
class FailedAttempt:
    """What a failed stream was started with. A new request or a new definition starts it again."""

    revision: int
    definition_version: str
