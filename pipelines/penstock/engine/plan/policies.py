"""Policies of order windows: when a window closes, evicts old records, or emits its content.

A policy is evaluated per key, record by record, in record order. Only `TimePolicy` uses the batch clock.
"""

from dataclasses import dataclass
from math import inf
from typing import TypeAlias

from penstock.engine.definition.argument_checks import require, require_name, require_positive
from penstock.engine.definition.predicates import Predicate


@dataclass(frozen=True)
class CountPolicy:
    """A number of records: the window closes at its n-th record, keeps the last n, or emits after every n."""

    n: int

    def __post_init__(self) -> None:
        require_positive(self.n, "window.count", "records")


@dataclass(frozen=True)
class DeltaPolicy:
    """A difference in a field.

    Tumbling: a record more than `by` above the first record of the window closes it and opens the next one.
    Eviction: the oldest records are evicted while they are more than `by` below the new record. Trigger: a record
    more than `by` above the record that fired last (initially the first record) emits the content before it.
    """

    field: str
    by: float

    def __post_init__(self) -> None:
        require_name(self.field, "window.delta.field")
        is_number = isinstance(self.by, int | float) and not isinstance(self.by, bool)
        require(
            is_number and 0 <= self.by < inf,
            "window.delta.by",
            repr(self.by),
            "Give a difference of 0 or more",
        )


@dataclass(frozen=True)
class PunctuationPolicy:
    """A record that matches closes the tumbling window, as its last record."""

    predicate: Predicate


@dataclass(frozen=True)
class TimePolicy:
    """Time on the batch clock.

    Tumbling: the window closes at the first batch, including empty ones, whose clock is at least `elapsed` after
    the clock of its first record, and before the records of that batch. Eviction: records that arrived `elapsed` or
    longer ago are evicted. Trigger: as for tumbling, counted from the first record that is not yet emitted.
    """

    elapsed: int

    def __post_init__(self) -> None:
        require_positive(self.elapsed, "window.time")


ClosePolicy: TypeAlias = CountPolicy | DeltaPolicy | PunctuationPolicy | TimePolicy
EvictionPolicy: TypeAlias = CountPolicy | DeltaPolicy | TimePolicy
TriggerPolicy: TypeAlias = CountPolicy | DeltaPolicy | TimePolicy
