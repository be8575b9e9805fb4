"""Where in event time the partners of a record lie, for joins that know no windows."""

from dataclasses import dataclass, field

from penstock.engine.plan.predicates import Predicate
from penstock.engine.plan.validation.argument_checks import require_non_negative, require_positive

OMITTED_AT_DEFAULT = {"added": True}
"""Marks a field that plans once did not have: at its default it is not written, so their fingerprints stay."""


@dataclass(frozen=True)
class Between:
    """Records of the right input from `before` earlier to `after` later than one of the left are its partners."""

    before: int
    after: int

    def __post_init__(self) -> None:
        require_non_negative(self.before, "window.between.before")
        require_non_negative(self.after, "window.between.after")


@dataclass(frozen=True)
class AsOf:
    """The partner of a record of the left input is the newest one of the right that is no younger.

    With a `tolerance` it is none that is older by more than that. A record of the right that meets `ends` is no
    partner: from its time on there is none, until a newer one comes.
    """

    tolerance: int | None = None
    ends: Predicate | None = field(default=None, metadata=OMITTED_AT_DEFAULT)

    def __post_init__(self) -> None:
        if self.tolerance is not None:
            require_positive(self.tolerance, "window.as_of.tolerance")


RecordJoinWindow = Between | AsOf
