"""Finds partitions that may hold records that a stream did not read yet, so they must not count as idle."""

from collections.abc import Sequence

from penstock.engine.batch.input_watermarks import WatermarkRules
from penstock.engine.batch.outcome import BatchOutcome
from penstock.engine.spark.consumer_lag import LagTracker


class UnreadPartitions:
    """The unread partitions of a stream that reads since `reading_since_ms`."""

    def __init__(self, lag: LagTracker, watermark_rules: WatermarkRules) -> None:
        self._lag = lag
        self._watermark_rules = watermark_rules
        self.reading_since_ms = 0

    def find_for_records(self, last_outcome: BatchOutcome | None) -> Sequence[str]:
        """Return all partitions until the first batch since reading started: before that, silence means nothing."""
        if last_outcome is None or last_outcome.clock >= self.reading_since_ms:
            return []
        return list(last_outcome.ends)

    def find_for_tick(self, last_outcome: BatchOutcome | None, now_ms: int) -> Sequence[str]:
        """Return the unread partitions at a tick; ask the broker only when one would count as idle."""
        if last_outcome is None or not last_outcome.watermarks.has_idle_partition(
            self._watermark_rules, now_ms
        ):
            return []
        return self.find_for_records(last_outcome) or self._lag.find_unread_partitions(
            last_outcome.end_ranges
        )
