"""How long a replay will take: from the stream's last replay, or else from how long its batches work.

The rate at which records arrive says nothing about a replay, which reads as fast as it can. Small live batches say
little either: nearly all of their time is the same for one record and for a hundred. So the time per record comes
from the difference between large and small batches, and that of the start from batches that were first on a host.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

from penstock.platform.control.replay_history import BatchSample, read_batch_samples, read_last_replay

if TYPE_CHECKING:
    from penstock.platform.control import ControlStore

SPARK_START_S = 15.0
"""A session of Spark, a drained stream and switched tables, on two cores that have other work."""
COLD_RUNS = 2
"""A replay runs its first batch, and that of the last records, in code that the Java machine has not compiled."""
DEFAULT_COLD_BATCH_S = 5.0
DEFAULT_RECORDS_PER_S = 20_000.0
"""For a stream whose batches are all of one size. Plain windows over JSON do ten times as much."""
MAX_RECORDS_PER_S = 200_000.0
SIZE_RATIO = 4
"""How much larger than small batches large ones must be to tell the time per record."""
LARGE_SHARE = 0.05
MODEL_ERROR = 3.0
"""The range of an estimate from batches: a third to three times the likely duration."""
REPLAY_ERROR = 2.0
"""The range of an estimate from an earlier replay of the stream."""


@dataclass(frozen=True)
class ReplayEstimate:
    """The likely duration of a replay, its range, and where the figures are from."""

    records: int
    seconds: float
    seconds_low: float
    seconds_high: float
    source: str

    def __str__(self) -> str:
        """Describe the estimate in words."""
        low, high = format_seconds(self.seconds_low), format_seconds(self.seconds_high)
        return f"{low} to {high} for up to {self.records:,} records, estimated from {self.source}"

    def as_json(self) -> dict[str, Any]:
        """Return the estimate as JSON data."""
        return asdict(self)


def estimate_replay(store: "ControlStore", stream: str, records: int) -> ReplayEstimate:
    """Estimate how long the replay of this many records of a stream will take."""
    last_replay = read_last_replay(store, stream)
    if last_replay is not None and last_replay.records:
        run_seconds = max(last_replay.seconds - last_replay.start_seconds, 0.0)
        seconds = last_replay.start_seconds + run_seconds * max(records / last_replay.records, 0.5)
        source = f"its last replay: {last_replay.records:,} records in {format_seconds(last_replay.seconds)}"
        return _build_estimate(records, seconds, REPLAY_ERROR, source)
    samples = read_batch_samples(store, stream)
    seconds_per_record = measure_seconds_per_record(samples)
    source = (
        "a usual rate, because its batches have one size"
        if seconds_per_record is None
        else f"the durations of its last {len(samples):,} batches"
    )
    cold_batch_s = median([sample.seconds for sample in samples if sample.is_cold] or [DEFAULT_COLD_BATCH_S])
    seconds = SPARK_START_S + COLD_RUNS * cold_batch_s
    seconds += records * (seconds_per_record or 1 / DEFAULT_RECORDS_PER_S)
    return _build_estimate(records, seconds, MODEL_ERROR, source)


def measure_seconds_per_record(samples: Sequence[BatchSample]) -> float | None:
    """Return what one more record adds to a batch; None if no batches are large enough to tell.

    Medians of the largest and of the smaller half of the batches are compared, because single ones vary with
    whatever else the machine does.
    """
    by_size = sorted((sample for sample in samples if not sample.is_cold), key=lambda sample: sample.records)
    small, large = by_size[: len(by_size) // 2], by_size[-max(round(len(by_size) * LARGE_SHARE), 1) :]
    if not small or median(s.records for s in large) < SIZE_RATIO * median(s.records for s in small):
        return None
    added_records = median(s.records for s in large) - median(s.records for s in small)
    added_seconds = median(s.seconds for s in large) - median(s.seconds for s in small)
    return max(added_seconds / added_records, 1 / MAX_RECORDS_PER_S)


def format_seconds(seconds: float) -> str:
    """Format a duration with as many digits as an estimate has: 8 s, 40 s, 3 min, 2 h."""
    for unit, unit_seconds in (("h", 3_600), ("min", 60)):
        if seconds >= 2 * unit_seconds:
            return f"{seconds / unit_seconds:.0f} {unit}"
    return f"{seconds:.0f} s" if seconds < 10 else f"{round(seconds, -1):.0f} s"


def _build_estimate(records: int, seconds: float, error: float, source: str) -> ReplayEstimate:
    return ReplayEstimate(records, seconds, seconds / error, seconds * error, source)
