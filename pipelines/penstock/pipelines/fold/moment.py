"""The moment at which a batch is folded: all that the fold knows of time."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Moment:
    """Milliseconds of UTC. `watermark_before` is W(N-1), by which lateness is judged; `watermark` is W(N).

    `clock_before` is the clock of the batch before; both clock and watermark never go back.
    """

    batch_id: int
    clock_before: int
    clock: int
    watermark_before: int
    watermark: int
