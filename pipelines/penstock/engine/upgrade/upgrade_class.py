"""What a change of a definition takes, from nothing to a replay."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum


class UpgradeClass(IntEnum):
    """What a change takes; of several changes the greatest counts."""

    SAME = 0
    COMPATIBLE = 1
    MIGRATABLE = 2
    REPLAY = 3

    @property
    def label(self) -> str:
        """The class, for people and programs."""
        return self.name.lower()

    @property
    def description(self) -> str:
        """What happens to the state."""
        return _DESCRIPTIONS[self]


_DESCRIPTIONS = {
    UpgradeClass.SAME: "nothing changed",
    UpgradeClass.COMPATIBLE: "the state is kept, and the new definition holds from the next batch on",
    UpgradeClass.MIGRATABLE: "the state is rewritten before the next batch",
    UpgradeClass.REPLAY: "the state does not fit: new tables are made from the records, and switched",
}


@dataclass(frozen=True)
class PlanDifference:
    """One thing that is said otherwise than before, what that takes, and what a person should know of it."""

    subject: str
    before: str
    after: str
    upgrade_class: UpgradeClass
    note: str


@dataclass(frozen=True)
class PlanUpgrade:
    """Everything that differs between two definitions of a stream."""

    stream: str
    differences: Sequence[PlanDifference] = ()
    from_now: frozenset[str] = frozenset()
    """Columns that are declared to count only what comes from now on, in windows that are open."""

    @property
    def upgrade_class(self) -> UpgradeClass:
        """What the whole of it takes."""
        return max((difference.upgrade_class for difference in self.differences), default=UpgradeClass.SAME)

    @property
    def description(self) -> str:
        """What changed, in one sentence."""
        return "; ".join(
            f"{difference.subject} was {difference.before} and is {difference.after} "
            f"({difference.upgrade_class.label})"
            for difference in self.differences
        )
