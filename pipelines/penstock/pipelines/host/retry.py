"""How long a stream that failed waits before it is tried again, and when it is tried no more."""

from dataclasses import dataclass

from penstock.pipelines.errors import (
    DefinitionError,
    PlanChangedError,
    PlanFormatError,
    PoisonError,
    ReplayError,
)

FIRST_MS = 1_000
LONGEST_MS = 60_000
FORGIVEN_AFTER_MS = 300_000
PARK_AFTER = 20

NO_USE_TO_TRY = (DefinitionError, PlanChangedError, PlanFormatError, PoisonError, ReplayError)
"""Errors that are the same at every try, until somebody changes something."""


@dataclass(frozen=True)
class Failures:
    """The failures of one stream so far: how many in a row, when the last one was, and whether it is the last."""

    count: int = 0
    at_ms: int = 0
    hopeless: bool = False

    def again(self, now_ms: int, problem: BaseException | None = None) -> "Failures":
        """One more; a stream that ran for long enough begins to count anew."""
        forgiven = self.count and now_ms - self.at_ms > FORGIVEN_AFTER_MS
        return Failures(1 if forgiven else self.count + 1, now_ms, isinstance(problem, NO_USE_TO_TRY))

    @property
    def retry_at_ms(self) -> int:
        """The earliest moment of the next try: twice as long after each failure, up to a minute."""
        if not self.count:
            return 0
        wait: int = min(FIRST_MS << min(self.count - 1, 16), LONGEST_MS)
        return self.at_ms + wait

    def is_enough(self, park_after: int) -> bool:
        """Whether the stream is to be parked."""
        return self.hopeless or self.count >= park_after
