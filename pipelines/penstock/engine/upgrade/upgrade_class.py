"""What a change of a definition requires, from nothing to a replay."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum


class UpgradeClass(IntEnum):
    """What a change requires; among several changes the greatest counts."""

    SAME = 0
    COMPATIBLE = 1
    MIGRATABLE = 2
    REPLAY = 3

    @property
    def label(self) -> str:
        """The class as text."""
        return self.name.lower()

    @property
    def description(self) -> str:
        """What happens to the state."""
        return _DESCRIPTIONS[self]


_DESCRIPTIONS = {
    UpgradeClass.SAME: "nothing changed",
    UpgradeClass.COMPATIBLE: "the state stays, and the new definition applies from the next batch on",
    UpgradeClass.MIGRATABLE: "the state is rewritten before the next batch",
    UpgradeClass.REPLAY: "the state does not fit: a replay writes new tables, and switches to them",
}


@dataclass(frozen=True)
class PlanDifference:
    """One difference between two definitions, what it requires, and a note for the user."""

    subject: str
    before: str
    after: str
    upgrade_class: UpgradeClass
    note: str


@dataclass(frozen=True)
class PlanUpgrade:
    """All differences between two definitions of a stream."""

    stream: str
    differences: Sequence[PlanDifference] = ()
    from_now: frozenset[str] = frozenset()
    """Columns that are declared to count only new records in open windows."""

    @property
    def upgrade_class(self) -> UpgradeClass:
        """What the whole upgrade requires."""
        return max((difference.upgrade_class for difference in self.differences), default=UpgradeClass.SAME)

    @property
    def description(self) -> str:
        """The changes in one sentence."""
        return "; ".join(
            f"{difference.subject} was {difference.before} and is {difference.after} "
            f"({difference.upgrade_class.label})"
            for difference in self.differences
        )
