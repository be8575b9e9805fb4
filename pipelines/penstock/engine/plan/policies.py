"""Policies of order windows: when a window closes, drops what is old, or shows what it holds.

They are judged per key, record by record, in record order; only `Elapsed` looks at the batch clock.
"""

from dataclasses import dataclass
from math import inf
from typing import TypeAlias

from penstock.engine.plan.predicates import Predicate
from penstock.engine.plan.validation.argument_checks import require, require_name, require_positive


@dataclass(frozen=True)
class CountPolicy:
    """A number of records: the window closes with its n-th, keeps the last n, or shows after each n."""

    n: int

    def __post_init__(self) -> None:
        require_positive(self.n, "window.count", "records")


@dataclass(frozen=True)
class DeltaPolicy:
    """A distance in the field.

    Tumbling: a record more than `by` above the window's first closes the window and opens the next.
    Eviction: the oldest go while more than `by` below the one that comes in. Trigger: a record more than
    `by` above the one that caused the last showing (at first: the first) shows what was held before it came.
    """

    field: str
    by: float

    def __post_init__(self) -> None:
        require_name(self.field, "window.delta.field")
        is_number = isinstance(self.by, int | float) and not isinstance(self.by, bool)
        require(
            is_number and 0 <= self.by < inf, "window.delta.by", repr(self.by), "Give a distance of 0 or more"
        )


@dataclass(frozen=True)
class PunctuationPolicy:
    """A record that matches closes the tumbling window, as its last record."""

    predicate: Predicate


@dataclass(frozen=True)
class TimePolicy:
    """Time on the batch clock.

    Tumbling: the window closes at the first batch, a tick included, whose clock is `elapsed` or more after
    that of the window's first record, before the batch's own records. Eviction: records that came `elapsed`
    or longer ago go. Trigger: as for tumbling, since the first record that was not shown.
    """

    elapsed: int

    def __post_init__(self) -> None:
        require_positive(self.elapsed, "window.time")


ClosePolicy: TypeAlias = CountPolicy | DeltaPolicy | PunctuationPolicy | TimePolicy
EvictionPolicy: TypeAlias = CountPolicy | DeltaPolicy | TimePolicy
TriggerPolicy: TypeAlias = CountPolicy | DeltaPolicy | TimePolicy
