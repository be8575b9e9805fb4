"""Where in event time the partners of a record lie, for joins that know no windows."""

from dataclasses import dataclass

from penstock.pipelines.plan.checks import not_negative, positive


@dataclass(frozen=True)
class Between:
    """Records of the right input from `before` earlier to `after` later than one of the left are its partners."""

    before: int
    after: int

    def __post_init__(self) -> None:
        not_negative(self.before, "window.between.before")
        not_negative(self.after, "window.between.after")


@dataclass(frozen=True)
class AsOf:
    """The partner of a record of the left input is the newest one of the right that is no younger.

    With a `tolerance` it is none that is older by more than that.
    """

    tolerance: int | None = None

    def __post_init__(self) -> None:
        if self.tolerance is not None:
            positive(self.tolerance, "window.as_of.tolerance")


Pairing = Between | AsOf
