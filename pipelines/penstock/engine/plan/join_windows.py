"""Join conditions in event time, for joins without windows: interval joins and as-of joins."""

from dataclasses import dataclass, field

from penstock.engine.definition.argument_checks import require_non_negative, require_positive
from penstock.engine.definition.predicates import Predicate

OMITTED_AT_DEFAULT = {"added": True}
"""Metadata of a field that is not stored at its default value, so that older fingerprints stay valid."""


@dataclass(frozen=True)
class Between:
    """An interval join: a left record matches right records from `before` earlier to `after` later."""

    before: int
    after: int

    def __post_init__(self) -> None:
        require_non_negative(self.before, "window.between.before")
        require_non_negative(self.after, "window.between.after")


@dataclass(frozen=True)
class AsOf:
    """An as-of join: a left record matches the latest right record at or before its time.

    A right record that is older than `tolerance` does not match. A right record that meets `ends` ends the version
    before it: there is no match from then on, until a newer record arrives.
    """

    tolerance: int | None = None
    ends: Predicate | None = field(default=None, metadata=OMITTED_AT_DEFAULT)

    def __post_init__(self) -> None:
        if self.tolerance is not None:
            require_positive(self.tolerance, "window.as_of.tolerance")


RecordJoinWindow = Between | AsOf
