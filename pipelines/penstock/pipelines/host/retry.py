"""How long a stream that failed waits before it is tried again."""

from dataclasses import dataclass

FIRST_MS = 1_000
LONGEST_MS = 60_000
FORGIVEN_AFTER_MS = 300_000


@dataclass(frozen=True)
class Failures:
    """The failures of one stream so far: how many in a row, and when the last one was."""

    count: int = 0
    at_ms: int = 0

    def again(self, now_ms: int) -> "Failures":
        """One more; a stream that ran for long enough begins to count anew."""
        forgiven = self.count and now_ms - self.at_ms > FORGIVEN_AFTER_MS
        return Failures(1 if forgiven else self.count + 1, now_ms)

    @property
    def retry_at_ms(self) -> int:
        """The earliest moment of the next try: twice as long after each failure, up to a minute."""
        if not self.count:
            return 0
        wait: int = min(FIRST_MS << (self.count - 1), LONGEST_MS)
        return self.at_ms + wait
